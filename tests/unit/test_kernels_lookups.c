/* An op is looked up in the tables of a stack once, whoever asks. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/kernels/kernel_lookups.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, OPS_MAX = 512, CORES = 132 };

#define H100                                                                                       \
    "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2, \"gpus\": 8, "            \
    "\"profile\": \"measured\", \"stack\": \"%s\"}, \"mesh\": {%s}, \"workload\": {%s, "           \
    "\"allow_oversubscription\": true}}"
#define V6E                                                                                        \
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v6e\", \"shape\": \"4x4\", \"profile\": "       \
    "\"measured\", \"stack\": \"%s\"}, \"mesh\": {%s}, \"workload\": {%s, "                        \
    "\"allow_oversubscription\": true}}"

#define TRAIN                                                                                      \
    "\"kind\": \"train_step\", \"batch_tokens\": 65536, \"sequence_length\": 4096, \"model\": "

/* Ops of templates that ask tables: those whose kernels and formats are alike are one. */
static uint64_t ops_of(const struct play *play)
{
    static struct {
        struct work_call call[WORK_MATMULS_MAX];
        uint32_t count;
        enum format format;
    } seen[OPS_MAX], one;
    const struct kernel_stack *stack = play->machine.chip.kernels.stack;
    uint32_t count = 0;
    struct walk_op walk = {.program = &play->program};
    while (walk_next(&walk)) {
        const struct work *work = &play->program.works[walk.op->index];
        if (walk.op->kind != PROGRAM_OP_COMPUTE || work->kernel == WORK_KERNEL_NONE ||
            work->kernel >= WORK_KERNEL_FUNCTIONS)
            continue;
        memset(&one, 0, sizeof one);
        one.count = work_calls(stack, work, one.call);
        one.format = work->math_format;
        uint32_t i = 0;
        while (i < count && memcmp(&seen[i], &one, sizeof one) != 0) i++;
        assert_true(i < OPS_MAX);
        seen[i] = one;
        count += i == count;
    }
    return count;
}

/* The roofline, the run and the cores of collectives ask, and a report afterwards. */
static void ops_are_looked_up_once(void **state)
{
    static const struct {
        const char *text, *stack, *mesh, *workload;
    } rows[] = {
        {H100, "te", "\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]", TRAIN "\"llama-3-8b\""},
        {H100, "torch-eager", "\"dp\": [\"node\"], \"fsdp\": [\"gpu\"]", TRAIN "\"llama-3-8b\""},
        {H100, "te", "\"pp\": [\"node\"], \"tp\": [\"gpu\"]",
         "\"accumulate\": 4, \"schedule\": \"1f1b\", " TRAIN "\"llama-3-8b\""},
        {H100, "te", "\"dp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN "\"mixtral-8x7b\""},
        {H100, "vllm", "\"pp\": [\"node\"], \"tp\": [\"gpu\"]",
         "\"kind\": \"mixed\", \"batch\": 16, \"context\": 4096, \"prompt\": 2048, \"model\": "
         "\"llama-3-8b\""},
        {V6E, "xla", "\"fsdp\": [\"x\"], \"tp\": [\"y\"]", TRAIN "\"llama-3-8b\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        case_text(text, sizeof text, rows[i].text, rows[i].stack, rows[i].mesh, rows[i].workload);
        play_run(&play, text, NULL);
        uint64_t const made = play.machine.chip.kernels.stack->lookups->made;
        uint64_t const ops = ops_of(&play);
        if (made != ops || made == 0)
            fail_msg("row %zu: %llu look-ups for %llu ops", i, (unsigned long long)made,
                     (unsigned long long)ops);
        play_close(&play);
    }
}

/* A product of `rows` rows, in chunks. */
static struct work product(uint64_t rows, uint64_t chunks)
{
    return (struct work){.matmul = {{.rows = rows, .inner = 4096, .columns = 4096, .count = 1}},
                         .matmul_count = 1,
                         .math_format = FORMAT_BF16,
                         .kernel = WORK_KERNEL_FORWARD,
                         .chunked = chunks > 1 ? WORK_SIDE_ROWS : WORK_SIDE_NONE,
                         .chunk_count = chunks};
}

/* Tables of two copies of a stack. */
static bool same(const struct kernel_stack *stack, const struct work_kernels *one,
                 const struct kernel_stack *copy, const struct work_kernels *other)
{
    return one->table - stack->table == other->table - copy->table &&
           one->share_ppm == other->share_ppm && one->is_outside == other->is_outside;
}

/* What is kept is what tables say, also when more was asked than is kept, in chunks, and of a
 * copy whose tables may be others. */
static void kept_is_what_tables_say(void **state)
{
    struct kernel_stack stack, plain;
    (void)state;
    case_ok(kernel_stack_find("te", "h100-sxm", "", &stack, &case_error));
    plain = stack;
    case_ok(kernel_lookups_create(case_arena, &stack, &case_error));
    uint64_t const wanted = 2 * (KERNEL_LOOKUPS_MAX + 100);
    for (uint64_t i = 0; i < wanted; i++) {
        struct work const work = product(64 * (i / 2 + 1), i % 2 == 0 ? 0 : 4);
        if (i % 2 == 0) assert_true(kernel_is_measured(&stack, &work));
        struct work_kernels const kept = kernel_of_work(&stack, CORES, &work),
                                  again = kernel_of_work(&stack, CORES, &work),
                                  fresh = kernel_of_work(&plain, CORES, &work);
        assert_true(same(&stack, &kept, &plain, &fresh) && same(&stack, &again, &plain, &fresh));
    }
    assert_int_equal(stack.lookups->made, wanted);
    struct kernel_stack copy = stack;
    copy.table_count = 0;
    struct work const work = product(64 * wanted, 0);
    assert_null(kernel_of_work(&copy, CORES, &work).table);
    assert_int_equal(stack.lookups->made, wanted);
}

/* Chunks of a batch may lie outside its table, so each counts as a work of its own. */
static void chunks_of_a_batch_are_apart(void **state)
{
    struct kernel_stack stack, plain;
    (void)state;
    case_ok(kernel_stack_find("te", "h100-sxm", "", &stack, &case_error));
    plain = stack;
    case_ok(kernel_lookups_create(case_arena, &stack, &case_error));
    struct work whole = {
        .matmul = {{.rows = 64, .inner = 128, .columns = 512, .count = 16}},
        .matmul_count = 1,
        .math_format = FORMAT_BF16,
        .kernel = WORK_KERNEL_FORWARD,
        .batched = 1,
    };
    struct work chunks = whole;
    chunks.chunked = WORK_SIDE_COLUMNS;
    chunks.chunk_count = 64;
    assert_true(kernel_is_measured(&stack, &whole) && kernel_is_measured(&stack, &chunks));
    struct work_kernels const kept = kernel_of_work(&stack, CORES, &chunks),
                              fresh = kernel_of_work(&plain, CORES, &chunks),
                              kept_whole = kernel_of_work(&stack, CORES, &whole),
                              fresh_whole = kernel_of_work(&plain, CORES, &whole);
    assert_true(same(&stack, &kept, &plain, &fresh));
    assert_true(same(&stack, &kept_whole, &plain, &fresh_whole));
    assert_true(kept.table != kept_whole.table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_are_looked_up_once),
        cmocka_unit_test(kept_is_what_tables_say),
        cmocka_unit_test(chunks_of_a_batch_are_apart),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
