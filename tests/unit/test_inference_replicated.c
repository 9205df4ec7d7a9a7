/*
 * Experts over tp where each rank has all of D between blocks: one AllReduce a block, of what a
 * rank's columns of all experts give, shared ones among them; each rank scores all tokens.
 */
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, TOKENS = 32, RANKS = 8, BF16 = 2, PICK_BYTES = 8 };

/* Sizes as their config.json says them. */
static const struct {
    const char *name;
    double layers, dense, width, experts;
} models[] = {
    {"mixtral-8x7b", 32, 0, 4096, 8},
    {"qwen3-30b-a3b", 48, 0, 2048, 128},
    {"deepseek-v2-lite", 27, 1, 2048, 64}, /* With shared experts. */
};

static void step_lower(struct play *play, const char *model, const char *activations)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 1}, \"mesh\": "
              "{\"tp\": [\"gpu\"]}, \"workload\": {\"kind\": \"decode\", \"model\": \"%s\", "
              "\"batch\": %d, \"context\": 1000, \"kv_sharding\": \"replicated\", "
              "\"activations\": \"%s\", \"allow_oversubscription\": true}}",
              model, TOKENS, activations);
    play_run(play, text, &lower_only);
}

static double moved(const struct play *play, enum collective_kind kind)
{
    return walk_moved_bytes(&play->program, STREAM_OF_TP, kind);
}

static void a_block_of_experts_ends_in_one_all_reduce(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct play whole, parts;
        step_lower(&whole, models[i].name, "replicated");
        step_lower(&parts, models[i].name, "model");
        double const sums = 2 * models[i].layers + 1; /* And one of the embedding. */
        double const routers =
            2 * TOKENS * models[i].width * models[i].experts * (models[i].layers - models[i].dense);
        const struct workload_counts *one = &whole.roofline.counts, *other = &parts.roofline.counts;
        case_near(moved(&whole, COLLECTIVE_ALL_REDUCE),
                  sums * TOKENS * models[i].width * BF16 + TOKENS * PICK_BYTES, 1e-9);
        assert_true(moved(&whole, COLLECTIVE_ALL_GATHER) == 0);
        assert_true(moved(&whole, COLLECTIVE_REDUCE_SCATTER) == 0);
        /* Of a chip; the products of scores are as many on each rank. */
        double const more = routers * (RANKS - 1) / RANKS;
        case_near(one->matmul_flop - other->matmul_flop, more, 1e-9);
        case_near(one->spare.duplicated - other->spare.duplicated, more, 1e-9);
        play_close(&parts);
        play_close(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_of_experts_ends_in_one_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
