/* The write of keys and values to the cache, which measured kernels of attention have in their
 * time. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"
#include "tests/unit/workload_case.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES };

static void played(struct play *play, const char *stack, const char *workload)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 1, \"gpus\": 1, "
              "\"profile\": \"measured\", \"stack\": \"%s\"}, \"mesh\": {\"dp\": [\"gpu\"]}, "
              "\"workload\": {%s, \"allow_oversubscription\": true}}",
              stack, workload);
    play_run(play, text, &lower_only);
}

#define DECODE "\"kind\": \"decode\", \"batch\": 8, \"context\": 4096, \"model\": "
#define PREFILL "\"kind\": \"prefill\", \"batch\": 1, \"prompt\": 8192, \"model\": "
#define MIXED                                                                                      \
    "\"kind\": \"mixed\", \"batch\": 8, \"context\": 4096, \"prompts\": 1, \"prompt\": 2048, "     \
    "\"model\": "

/* Tables of engines have the write in them, in any pass. Transformer Engine's has no decodes, and
 * neither has a table of a cache in a format that was not measured. */
static void the_cache_is_written_once(void **state)
{
    static const struct {
        const char *stack, *workload;
        bool is_within;
    } rows[] = {
        {"trtllm", DECODE "\"llama-3-8b\"", true},
        {"vllm", DECODE "\"llama-3-8b\"", true},
        {"sglang", DECODE "\"llama-3-8b\"", true},
        {"trtllm", PREFILL "\"llama-3-8b\"", true},
        {"vllm", MIXED "\"llama-3-8b\"", true},
        {"vllm", DECODE "\"deepseek-v3\"", true},
        {"trtllm", PREFILL "\"deepseek-v3\"", true},
        {"trtllm", MIXED "\"deepseek-v3\"", true},
        {"te", DECODE "\"llama-3-8b\"", false},
        {"te", MIXED "\"llama-3-8b\"", false},
        {"te", DECODE "\"deepseek-v3\"", false},
        {"vllm", DECODE "\"llama-3-8b\", \"formats\": {\"kv\": \"int4\"}", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        uint32_t found = 0;
        played(&play, rows[i].stack, rows[i].workload);
        struct walk_op walk = {.program = &play.program};
        while (walk_next(&walk)) {
            if (strcmp(walk.op->name, "attention.append") != 0) continue;
            const struct work *work = &play.program.works[walk.op->index];
            int64_t const ps = compute_time(&play.machine.chip, work, PPM_ONE, PPM_ONE).duration_ps;
            if ((work->kernel == WORK_KERNEL_WITHIN_ATTENTION) != rows[i].is_within ||
                (ps == 0) != rows[i].is_within)
                fail_msg("row %zu: the append takes %lld ps", i, (long long)ps);
            assert_true(kernel_is_within(play.machine.chip.kernels.stack, work) ==
                        rows[i].is_within);
            found++;
        }
        assert_true(found > 0);
        play_close(&play);
    }
}

/* A file of one's own says so of its kernels. */
static void tables_say_whether_they_append(void **state)
{
    struct kernel_stack stack;
    (void)state;
    case_ok(kernel_stack_find("trtllm", "h100-sxm", "", &stack, &case_error));
    for (uint32_t t = 0; t < stack.table_count; t++) {
        enum kernel_family const family = stack.table[t].family;
        assert_true(stack.table[t].appends ==
                    (family == KERNEL_ATTENTION || family == KERNEL_LATENT_ATTENTION ||
                     family == KERNEL_DECODE || family == KERNEL_LATENT_DECODE));
    }
    case_ok(kernel_stack_find("vllm", "h100-sxm", "", &stack, &case_error));
    assert_false(kernel_other_of(&stack, KERNEL_FULL_ATTENTION, FORMAT_BF16, FORMAT_BF16)->appends);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_is_written_once),
        cmocka_unit_test(tables_say_whether_they_append),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
