/*
 * Tokens on their way to experts: once to each rank, by its node; or once for each expert, straight
 * to its GPU.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { LAYERS = 58, WIDTH = 7168, TOP_K = 8 };

static void text_of(const char *machine, const char *mesh, uint32_t batch, const char *copies,
                    char text[WALK_TEXT_BYTES])
{
    (void)snprintf(text, WALK_TEXT_BYTES,
                   "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
                   "\"decode\", \"model\": \"deepseek-v3\", \"batch\": %u, \"context\": 64, "
                   "\"allow_oversubscription\": true, \"token_copies\": \"%s\", \"formats\": "
                   "{\"weights\": \"fp8\", \"matmuls\": \"fp8\", \"dispatch\": \"fp8\"}}}",
                   machine, mesh, batch, copies);
}

/* Of both exchanges of a layer: rows of fp8 go, rows of bf16 come back. */
static void exchange_check(const struct play *play, uint64_t row_bytes, const char *algorithm)
{
    struct walk_op walk = {.program = &play->program};
    uint64_t bytes = 0, count = 0;
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const struct plan *plan = &play->program.plans[walk.op->index];
        bytes += walk.times * plan->size_bytes;
        count += walk.times;
        assert_string_equal(plan->algorithm_name, algorithm);
    }
    assert_int_equal(count, 2 * LAYERS);
    assert_int_equal(bytes, LAYERS * row_bytes * 3);
}

static void a_copy_travels_for_each_expert(void **state)
{
    static const struct {
        const char *machine, *mesh, *algorithm;
        uint32_t batch;
    } rows[] = {
        {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"ep\": [\"gpu\"]}", "direct", 64},
        {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"ep\": [\"node\", \"gpu\"]}", "flat-direct",
         128},
        {"\"chip\": \"h800-sxm\", \"nodes\": 4", "{\"ep\": [\"node\", \"gpu\"]}", "flat-direct",
         32 * 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[WALK_TEXT_BYTES];
        struct play play;
        text_of(rows[i].machine, rows[i].mesh, rows[i].batch, "expert", text);
        play_run(&play, text, NULL);
        exchange_check(&play, (uint64_t)rows[i].batch * TOP_K * WIDTH, rows[i].algorithm);
        walk_alike(&play, text, "reference");
        assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s * (1 + 1e-9));
        play_close(&play);
    }
}

/* Over four nodes a token's 8 copies are more than its nodes; in either case a GPU's experts have
 * the same rows. */
static void copies_a_rank_are_fewer(void **state)
{
    static const char nodes[] = "\"chip\": \"h800-sxm\", \"nodes\": 4";
    static const char mesh[] = "{\"ep\": [\"node\", \"gpu\"]}";
    char text[WALK_TEXT_BYTES];
    struct play once, each;
    (void)state;
    text_of(nodes, mesh, 1024, "rank", text);
    play_run(&once, text, NULL);
    text_of(nodes, mesh, 1024, "expert", text);
    play_run(&each, text, NULL);
    assert_true(once.trace.step_ps < each.trace.step_ps);
    assert_true(once.roofline.counts.role[MESH_EP].all_to_all_bytes <
                each.roofline.counts.role[MESH_EP].all_to_all_bytes);
    case_near(once.roofline.math_s, each.roofline.math_s, 1e-9);
    play_close(&once);
    play_close(&each);
}

/* Four exchanges of a layer in a training step: rows and results, and the gradients of both. The
 * roofline counts them as the program has them, and both engines and the fold agree. */
static void a_copy_travels_in_training(void **state)
{
    enum { TRAINED_LAYERS = 48, TRAINED_WIDTH = 2048, TOKENS = 65536 };
    struct play play;
    struct walk_op walk = {.program = &play.program};
    uint64_t bytes = 0;
    char text[WALK_TEXT_BYTES];
    (void)state;
    (void)snprintf(
        text, WALK_TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": "
        "{\"ep\": [\"gpu\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": "
        "\"qwen3-30b-a3b\", \"batch_tokens\": %u, \"sequence_length\": 4096, \"zero\": 1, "
        "\"allow_oversubscription\": true, \"token_copies\": \"expert\"}}",
        TOKENS);
    play_run(&play, text, NULL);
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const struct plan *plan = &play.program.plans[walk.op->index];
        if (plan->kind == COLLECTIVE_ALL_TO_ALL) bytes += walk.times * plan->size_bytes;
    }
    assert_int_equal(bytes, (uint64_t)TRAINED_LAYERS * 4 * TOKENS * TOP_K * TRAINED_WIDTH * 2);
    case_near(play.roofline.counts.role[MESH_EP].all_to_all_bytes, (double)bytes, 1e-9);
    walk_alike(&play, text, "reference");
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_travels_for_each_expert),
        cmocka_unit_test(a_copy_travels_in_training),
        cmocka_unit_test(copies_a_rank_are_fewer),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
