/* What a step holds at least is known before it is played, and never more than it holds. */
#include "sim/program/least_memory.h"

#include <string.h>

#include "sim/base/embed.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

extern const struct embed_file embed_scenarios[];
extern const uint32_t embed_scenarios_count;

/* Scenarios with a setting each, and how much of the peak is known at least. */
static const struct {
    const char *path, *setting;
    uint32_t percent;
} rows[] = {
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/schedule=1f1b", 95},
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/schedule=gpipe", 75},
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/schedule=interleaved:4", 95},
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/schedule=zb-v", 95},
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/schedule=dualpipe", 95},
    {"scenarios/pipeline/llama3-8b-pp4-h100-32.json", "/workload/remat=block", 95},
    {"scenarios/pipeline/llama3-8b-pp4-fsdp-h100-32.json", "/workload/schedule=zb-h1", 75},
    {"scenarios/pipeline/llama3-8b-pp4-h100-a100-32.json", "/workload/schedule=1f1b", 95},
    {"scenarios/megatron/megatron-3.6b-a100-64.json", "/title=a", 65},
    {"scenarios/train/llama3-8b-fsdp-v5e-16x16.json", "/title=a", 45},
    {"scenarios/train/llama3-70b-fsdp-tp-v5p-16x16x16.json", "/title=a", 55},
    {"scenarios/gpu/llama3-70b-fsdp-offload-h100-8.json", "/title=a", 75},
    {"scenarios/train/llama3-8b-fsdp-offload-v5e-2x4.json", "/title=a", 40},
    {"scenarios/moe/qwen3-30b-a3b-ep32-h100-32.json", "/title=a", 80},
    {"scenarios/moe/mixtral-8x7b-dp-ep8-h100-32.json", "/title=a", 85},
    {"scenarios/context/llama3-8b-ring-v5p-16x4x4.json", "/title=a", 75},
};

static void what_is_known_before_is_never_more_than_what_is_held(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario_setting const settings[] = {
            {.text = rows[i].setting}, {.text = "/workload/allow_oversubscription=true"}};
        struct play_options const options = {.settings = settings, .setting_count = 2};
        struct play play;
        play_run_file(&play, rows[i].path, &options);
        struct least_memory least;
        case_ok(least_memory_of(play.arena, &play.program, &least, &case_error));
        const struct trace_role *role = &play.trace.roles[least.role];
        uint64_t sum = 0;
        assert_true(least.total_bytes <= role->memory.peak_bytes);
        for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++) {
            assert_true(least.bytes[kind] <= role->memory.each_peak_bytes[kind]);
            sum += least.bytes[kind];
        }
        assert_int_equal(sum, least.total_bytes);
        assert_true(100 * least.total_bytes >= rows[i].percent * play.trace.memory.peak_bytes);
        play_close(&play);
    }
}

/* A scenario as a user runs it, with nothing said of memory: what it holds at least fits its chip.
 * That is asked before anything is replayed, so it is cheap. The question of one says that it does
 * not fit. */
static void what_is_shipped_fits_as_it_is(void **state)
{
    (void)state;
    static const char refused[] = "llama3-70b-dp-v5p-16x16x16";
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        struct play_options const options = {.lower_only = true};
        const struct embed_file *file = &embed_scenarios[i];
        struct play play;
        struct least_memory least;
        play_run(&play, file->bytes, &options);
        case_ok(least_memory_of(play.arena, &play.program, &least, &case_error));
        bool const fits = least.total_bytes <= play.machine.chip.hbm_capacity_bytes;
        bool const asks = !play.scenario.workload.allow_oversubscription;
        if (fits != (strcmp(file->name, refused) != 0) && asks)
            fail_msg("%s holds %llu of %llu bytes at least", file->name,
                     (unsigned long long)least.total_bytes,
                     (unsigned long long)play.machine.chip.hbm_capacity_bytes);
        play_close(&play);
    }
}

/* Where ops follow one another, what is held at least is the peak, whatever the run. */
static void of_a_chain_the_least_is_the_peak(void **state)
{
    (void)state;
    static const char *const settings[] = {"/title=a", "/workload/activations=replicated",
                                           "/run/collective_matmul=true"};
    uint32_t chains = 0, others = 0;
    for (uint32_t i = 0; i < embed_scenarios_count * 3; i++) {
        const struct embed_file *file = &embed_scenarios[i / 3];
        struct scenario_setting const setting = {.text = settings[i % 3]};
        struct play_options options = {.settings = &setting, .setting_count = 1};
        struct least_memory least;
        struct play play;
        if (strstr(file->bytes, "\"train_step\"") != NULL) continue;
        if (i % 3 == 1 && strstr(file->bytes, "\"tp\"") == NULL) continue;
        play_run(&play, file->bytes, &options);
        case_ok(least_memory_of(play.arena, &play.program, &least, &case_error));
        uint64_t const peak_bytes = play.trace.memory.peak_bytes;
        if (least.is_peak ? least.total_bytes != peak_bytes : least.total_bytes > peak_bytes)
            fail_msg("%s with %s: %llu of %llu bytes", file->name, settings[i % 3],
                     (unsigned long long)least.total_bytes, (unsigned long long)peak_bytes);
        /* Shared experts compute while tokens are on their way to others. */
        if (strstr(file->name, "deepseek-v3-decode-h800-320") != NULL && i % 3 == 0)
            assert_true(least.is_peak);
        chains += least.is_peak;
        others += !least.is_peak;
        play_close(&play);
    }
    print_message("%u chains, %u others\n", (unsigned)chains, (unsigned)others);
    assert_true(chains > 20 && others > 0);
}

/* LLaMA 3 was trained on sequences of 8,192 tokens without activation checkpointing, with sharded
 * gradients (The Llama 3 Herd of Models, arXiv 2407.21783, 3.3.2); whole ones would not fit. */
static void the_published_run_fits_without_remat(void **state)
{
    (void)state;
    static const char *const stages[] = {"/workload/zero=1", "/workload/zero=2"};
    for (uint32_t s = 0; s < 2; s++) {
        struct scenario_setting const settings[] = {
            {.text = stages[s]},
            {.text = "/workload/remat=none"},
            {.text = "/workload/allow_oversubscription=true"}};
        struct play_options const options = {.settings = settings, .setting_count = 3};
        struct play play;
        play_run_file(&play, "scenarios/pipeline/llama3-405b-pp16-h100-16384.json", &options);
        assert_int_equal(play.trace.memory.peak_bytes <= play.machine.chip.hbm_capacity_bytes,
                         s == 1);
        play_close(&play);
    }
}

/* An op that keeps 100 bytes and needs 50 more while it runs, three times: the last one is highest.
 * One that gives 100 back each time is highest at first. */
static void what_repeats_is_highest_at_one_of_its_ends(void **state)
{
    (void)state;
    for (uint32_t gives = 0; gives < 2; gives++) {
        struct program_op op = {.stream = PROGRAM_COMPUTE,
                                .effect = {{PROGRAM_MEMORY_ACTIVATIONS, false, 150},
                                           {PROGRAM_MEMORY_ACTIVATIONS, true, -50}},
                                .effect_count = 2};
        if (gives == 1) op.effect[1].bytes = -250;
        struct program_template template = {.name = "t", .op = &op, .op_count = 1};
        struct program_block block = {.repeat = 3};
        struct program_role role = {.block = &block, .block_count = 1};
        role.resident_bytes[PROGRAM_MEMORY_PARAMETERS] = 1000;
        struct program const program = {
            .templates = &template, .template_count = 1, .roles = &role, .role_count = 1};
        struct arena *arena = arena_create(0);
        struct least_memory least;
        case_ok(least_memory_of(arena, &program, &least, &case_error));
        assert_int_equal(least.total_bytes, gives == 0 ? 1000 + 2 * 100 + 150 : 1000 + 150);
        arena_destroy(arena);
    }
}

/* Of a role that holds 1000 bytes of activations from the start and repeats one template. */
static struct least_memory least_of(struct program_op *ops, uint32_t count, uint32_t repeat)
{
    struct program_template template = {.name = "t", .op = ops, .op_count = count};
    struct program_block block = {.repeat = repeat};
    struct program_role role = {
        .block = &block,
        .block_count = 1,
        .resident_bytes = {[PROGRAM_MEMORY_ACTIVATIONS] = 1000},
    };
    struct program const program = {
        .templates = &template, .template_count = 1, .roles = &role, .role_count = 1};
    struct arena *arena = arena_create(0);
    struct least_memory least;
    case_ok(least_memory_of(arena, &program, &least, &case_error));
    arena_destroy(arena);
    return least;
}

/* When an op of another stream gives back is not known, so of that kind of memory only what is
 * there from the start counts, whichever op stands first. */
static void what_others_give_back_is_not_counted(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct program_op ops[2] = {{.stream = PROGRAM_COMPUTE}, {.stream = PROGRAM_COMPUTE}};
        struct program_op *taker = &ops[1 - first], *giver = &ops[first];
        taker->effect[0] = (struct program_effect){PROGRAM_MEMORY_ACTIVATIONS, false, 100};
        taker->effect[1] = (struct program_effect){PROGRAM_MEMORY_GRADIENTS, false, 7};
        taker->effect_count = 2;
        giver->stream = PROGRAM_COMPUTE + 1;
        giver->effect[0] = (struct program_effect){PROGRAM_MEMORY_ACTIVATIONS, true, -100};
        giver->effect_count = 1;
        struct least_memory const least = least_of(ops, 2, 3);
        assert_int_equal(least.bytes[PROGRAM_MEMORY_ACTIVATIONS], 1000);
        assert_int_equal(least.total_bytes, 1000 + 3 * 7);
    }
}

/* Nor when one does that waits for compute of a slot before, or for another stream of its own: what
 * is known to stand behind an op of compute is what waits for one of its own slot. */
static void only_compute_of_the_same_slot_says_when(void **state)
{
    (void)state;
    static const struct program_need needs[] = {
        {.stream = PROGRAM_COMPUTE, .slot = -1, .part = 1},
        {.stream = PROGRAM_COMPUTE + 2, .slot = 0, .part = 1},
        {.stream = PROGRAM_COMPUTE, .slot = 0, .part = 1},
    };
    for (uint32_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        struct program_op ops[] = {
            {.stream = PROGRAM_COMPUTE, .parts = 1, .effect_count = 1},
            {.stream = PROGRAM_COMPUTE, .part_first = 1, .parts = 1, .effect_count = 1},
            {.stream = PROGRAM_COMPUTE + 1, .need_count = 1, .effect_count = 1},
        };
        ops[0].effect[0] = (struct program_effect){PROGRAM_MEMORY_ACTIVATIONS, false, 100};
        ops[1].effect[0] = (struct program_effect){PROGRAM_MEMORY_ACTIVATIONS, false, 80};
        ops[2].effect[0] = (struct program_effect){PROGRAM_MEMORY_ACTIVATIONS, true, -150};
        ops[2].need[0] = needs[i];
        struct least_memory const least = least_of(ops, 3, 1);
        assert_int_equal(least.total_bytes, i < 2 ? 1000 : 1000 + 100 + 80 - 150);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_before_is_never_more_than_what_is_held),
        cmocka_unit_test(what_is_shipped_fits_as_it_is),
        cmocka_unit_test(of_a_chain_the_least_is_the_peak),
        cmocka_unit_test(the_published_run_fits_without_remat),
        cmocka_unit_test(what_repeats_is_highest_at_one_of_its_ends),
        cmocka_unit_test(what_others_give_back_is_not_counted),
        cmocka_unit_test(only_compute_of_the_same_slot_says_when),
    };
    return cmocka_run_group_tests_name("least memory", tests, NULL, NULL);
}
