/*
 * Steps with experts: routing that is drawn costs what its most loaded rank costs, capacity bounds
 * it, and ep stands beside cp, and beside pp and dp, folded as in full.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 2048 };

/* A small Qwen3-MoE's shape: 16 experts, 4 a token. */
static const char config[] = "tests/property/experts.json";

struct step {
    const char *mesh, *workload; /* Members. */
    uint32_t nodes, gpus, seed;
    bool full;
};

static void step_play(struct play *play, const struct step *step)
{
    char text[TEXT_BYTES];
    struct play_options const options = {.full = step->full, .engine = "fast"};
    (void)snprintf(text, sizeof text,
                   "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": %u, "
                   "\"gpus\": %u}, \"mesh\": {%s}, \"workload\": {\"kind\": \"train_step\", "
                   "\"model\": \"%s\", \"batch_tokens\": 65536, \"sequence_length\": 1024%s}, "
                   "\"run\": {\"seed\": %u}}",
                   step->nodes, step->gpus, step->mesh, config, step->workload, step->seed);
    play_run(play, text, &options);
}

static int64_t step_ps(const struct step *step)
{
    struct play play;
    step_play(&play, step);
    int64_t const end_ps = play.trace.step_ps;
    assert_true(play.roofline.lower_s * 1e12 <= (double)end_ps * (1 + 1e-9));
    /* What tokens take on switches is in the bound of one of their levels, over how many they go.
     */
    for (uint32_t g = 0; g < play.roofline.group_count; g++)
        if (play.roofline.group[g].of == MESH_EP)
            assert_true(play.roofline.lower_s >= play.roofline.group[g].all_to_all_s * (1 - 1e-9));
    play_close(&play);
    return end_ps;
}

static const char in_node[] = "\"dp\": [\"node\"], \"ep\": [\"gpu\"]";
static const char over_nodes[] = "\"ep\": [\"node\", \"gpu\"]";

static void time_grows_with_the_skew(void **state)
{
    (void)state;
    static const char *const meshes[] = {in_node, over_nodes};
    static const char *const skews[] = {"0.001", "0.4", "0.8", "1"};
    for (uint32_t m = 0; m < 2; m++) {
        struct step step = {meshes[m], "", 2, 4, 7, false};
        int64_t const even_ps = step_ps(&step);
        int64_t before_ps = 0;
        for (uint32_t s = 0; s < 4; s++) {
            char keys[64];
            (void)snprintf(keys, sizeof keys, ", \"routing_skew\": %s", skews[s]);
            step.workload = keys;
            int64_t const drawn_ps = step_ps(&step);
            /* Alike to the router, experts have even rows but for chance. */
            if (s == 0) case_near((double)drawn_ps, (double)even_ps, 0.02);
            assert_true(drawn_ps > before_ps);
            before_ps = drawn_ps;
        }
        assert_true(before_ps > even_ps + even_ps / 10);
        step.workload = ", \"routing_skew\": 0";
        assert_int_equal(step_ps(&step), even_ps);
    }
}

static void another_seed_gives_another_step(void **state)
{
    (void)state;
    struct step step = {over_nodes, ", \"routing_skew\": 0.7", 2, 4, 1, false};
    int64_t const first_ps = step_ps(&step);
    assert_int_equal(step_ps(&step), first_ps);
    step.seed = 2;
    assert_int_not_equal(step_ps(&step), first_ps);
}

static void drawn_routing_folds_beside_ep_only(void **state)
{
    (void)state;
    struct step step = {in_node, ", \"routing_skew\": 0.7", 4, 4, 3, false};
    struct play play;
    step_play(&play, &step);
    assert_int_equal(play.fold.chip_count, 4);
    assert_non_null(strstr(play.fold.reason[0], "its own tokens"));
    int64_t const folded_ps = play.trace.step_ps;
    play_close(&play);
    step.full = true;
    assert_int_equal(step_ps(&step), folded_ps);
}

/* The experts' matmuls are as long as the capacity; beside it only the exchange grows. */
static void capacity_bounds_what_experts_compute(void **state)
{
    (void)state;
    double dropped = -1;
    static const char *const keys[] = {", \"capacity_factor\": 1.25",
                                       ", \"capacity_factor\": 1.25, \"routing_skew\": 0.5",
                                       ", \"capacity_factor\": 1.25, \"routing_skew\": 1",
                                       ", \"capacity_factor\": 0.5, \"routing_skew\": 1"};
    double flop[4] = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct step const step = {over_nodes, keys[i], 2, 4, 5, false};
        struct play play;
        step_play(&play, &step);
        const struct workload_counts *counts = &play.roofline.counts;
        flop[i] = counts->matmul_flop;
        assert_true(counts->rows.dropped > dropped);
        assert_true(counts->rows.dropped < counts->rows.assigned);
        dropped = i == 0 ? counts->rows.dropped : dropped;
        if (i == 0) assert_true(dropped == 0);
        if (i > 0) dropped = counts->rows.dropped;
        assert_true(play.roofline.lower_s * 1e12 <= (double)play.trace.step_ps);
        play_close(&play);
    }
    assert_true(flop[0] == flop[1] && flop[1] == flop[2] && flop[3] < flop[2]);
}

/* Neither 3 nor 6 ranks of tp divide D, so a row travels in padded parts. */
static void padded_rows_cost_the_same_folded(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {"\"tp\": [\"gpu\"], \"ep\": [\"node\"]", "", 2, 6, 0, false},
        {"\"tp\": [\"gpu:3\"], \"ep\": [\"gpu:2\", \"node\"]",
         ", \"accumulate\": 2, \"remat\": \"none\"", 2, 6, 0, false},
        {"\"tp\": [\"gpu:3\"], \"ep\": [\"gpu:2\"], \"fsdp\": [\"node\"]", "", 2, 6, 0, false},
    };
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct step step = steps[i];
        int64_t const folded_ps = step_ps(&step);
        step.full = true;
        assert_int_equal(step_ps(&step), folded_ps);
    }
}

/* Even routing: all chips of an axis are alike, and fold to what the whole machine does. */
static void ep_stands_beside_cp_and_beside_pp_and_dp(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {"\"cp\": [\"node\"], \"ep\": [\"gpu\"]", "", 2, 4, 0, false},
        {"\"cp\": [\"gpu:2\"], \"ep\": [\"gpu:2\", \"node\"]", ", \"context\": \"all_gather\"", 2,
         4, 0, false},
        {"\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]"
         ", \"order\": [\"pp\", \"dp\", \"ep\"]",
         ", \"accumulate\": 4", 4, 4, 0, false},
        {"\"pp\": [\"node\"], \"dp\": [\"gpu:2\"], \"ep\": [\"gpu:2\"]"
         ", \"order\": [\"pp\", \"dp\", \"ep\"]",
         ", \"accumulate\": 2, \"routing_skew\": 1", 2, 4, 4, false},
    };
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct step step = steps[i];
        int64_t const folded_ps = step_ps(&step);
        step.full = true;
        assert_int_equal(step_ps(&step), folded_ps);
    }
}

/* Ranks of tp, cp and dp that have experts, alone and with ranks of ep's own. */
static void ep_lies_over_other_axes(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {"\"tp\": [\"gpu\"], \"ep\": [\"tp\"], \"dp\": [\"node\"]", "", 2, 4, 0, false},
        {"\"tp\": [\"gpu:2\"], \"ep\": [\"gpu:2\", \"tp\"], \"dp\": [\"node\"]",
         ", \"accumulate\": 2, \"zero\": 1, \"remat\": \"block\"", 2, 4, 0, false},
        {"\"tp\": [\"gpu\"], \"ep\": [\"dp\", \"tp\"], \"dp\": [\"node\"]",
         ", \"zero\": 2, \"remat\": \"big_matmuls\"", 2, 4, 0, false},
        {"\"tp\": [\"gpu\"], \"ep\": [\"tp\"], \"fsdp\": [\"node\"]", ", \"remat\": \"layer\"", 2,
         4, 0, false},
        {"\"tp\": [\"gpu:2\"], \"cp\": [\"gpu:2\"], \"ep\": [\"node\", \"cp\", \"tp\"]",
         ", \"context\": \"all_gather\"", 2, 4, 0, false},
        {"\"tp\": [\"gpu:2\"], \"cp\": [\"gpu:2\"], \"ep\": [\"cp\"], \"dp\": [\"node\"]",
         ", \"context\": \"ulysses\"", 2, 4, 0, false},
        {"\"tp\": [\"gpu:2\"], \"ep\": [\"gpu:2\", \"tp\"], \"pp\": [\"node\"]",
         ", \"accumulate\": 4", 2, 4, 0, false},
        {"\"tp\": [\"gpu:2\"], \"ep\": [\"gpu:2\", \"tp\"], \"dp\": [\"node\"]",
         ", \"routing_skew\": 0.8, \"capacity_factor\": 1.5", 2, 4, 3, false},
        {"\"tp\": [\"gpu:2\"], \"ep\": [\"node\", \"gpu:2\", \"tp\"]",
         ", \"token_copies\": \"expert\"", 2, 4, 3, false},
    };
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char keys[256];
        struct step step = steps[i];
        (void)snprintf(keys, sizeof keys, "%s, \"activations\": \"tokens\"", step.workload);
        step.workload = keys;
        int64_t const folded_ps = step_ps(&step);
        step.full = true;
        assert_int_equal(step_ps(&step), folded_ps);
    }
}

/* Tokens that hide the sums of experts' gradients: as for those of the other weights, but a rank of
 * ep has only its share of the experts, of which a token goes to 4 of 16. */
static void rules_count_a_rank_s_share_of_the_experts(void **state)
{
    (void)state;
    static const struct step step = {
        "\"dp\": [\"node\"], \"fsdp\": [\"gpu:2\"], \"ep\": [\"gpu:4\"]", "", 4, 8, 0, false};
    struct play play;
    step_play(&play, &step);
    const struct roofline_rules *rules = &play.roofline.rules;
    const struct roofline_group *dp = roofline_group_find(&play.roofline, MESH_DP);
    const struct roofline_group *experts = roofline_group_find(&play.roofline, ROOFLINE_EXPERTS);
    assert_non_null(dp);
    assert_non_null(experts);
    assert_true(rules->dp_critical_tokens > 0);
    case_near(rules->experts_critical_tokens * experts->axes,
              rules->dp_critical_tokens * dp->axes * 16 / 4 / 4, 1e-9);
    case_near(rules->experts_exact_tokens, rules->experts_critical_tokens * experts->finite_share,
              1e-9);
    play_close(&play);
}

/* Every AllToAll's hops are on the critical path, and the first gather's and the last sum's. */
static void latency_counts_what_waits_for_experts(void **state)
{
    (void)state;
    static const char *const meshes[] = {in_node, "\"fsdp\": [\"node\"], \"ep\": [\"gpu\"]"};
    for (uint32_t i = 0; i < 2; i++) {
        struct step const step = {meshes[i], "", 2, 4, 0, false};
        struct play play;
        step_play(&play, &step);
        const struct roofline_group *ep = roofline_group_find(&play.roofline, MESH_EP);
        const struct roofline_group *fsdp = roofline_group_find(&play.roofline, MESH_FSDP);
        uint64_t exchanges = 0;
        struct walk_op walk = {.program = &play.program};
        while (walk_next(&walk))
            if (walk.op->kind == PROGRAM_OP_COLLECTIVE &&
                play.program.plans[walk.op->index].kind == COLLECTIVE_ALL_TO_ALL)
                exchanges += walk.times;
        assert_true(exchanges > 0 && ep->hop_s > 0);
        case_near(play.roofline.latency_s,
                  (double)exchanges * ep->hop_s + (fsdp == NULL ? 0 : 2 * fsdp->hop_s), 1e-9);
        play_close(&play);
    }
}

/* A small DeepSeek's layers, whose shared expert hides tokens on their way, or waits for them: then
 * the exchange is exposed, and all else is the same. */
static void shared_experts_hide_the_exchange_or_wait(void **state)
{
    static const char *const remats[] = {"none", "block"};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct play play[2];
        double step_ps_of[2];
        for (uint32_t beside = 0; beside < 2; beside++) {
            char text[TEXT_BYTES];
            (void)snprintf(text, sizeof text,
                           "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2, "
                           "\"gpus\": 4}, \"mesh\": {%s}, \"workload\": {\"kind\": "
                           "\"train_step\", \"model\": \"tests/property/mla.json\", "
                           "\"batch_tokens\": 65536, \"sequence_length\": 1024, \"remat\": "
                           "\"%s\"}, \"run\": {\"overlap\": {\"ep\": %s}}}",
                           i / 2 == 0 ? over_nodes : in_node, remats[i % 2],
                           beside ? "true" : "false");
            play_run(&play[beside], text, NULL);
            step_ps_of[beside] = (double)play[beside].trace.step_ps;
        }
        const struct workload_counts *one = &play[0].roofline.counts,
                                     *other = &play[1].roofline.counts;
        assert_true(step_ps_of[0] > step_ps_of[1]);
        assert_true(one->matmul_flop == other->matmul_flop && one->hbm_bytes == other->hbm_bytes);
        assert_true(one->role[MESH_EP].all_to_all_bytes == other->role[MESH_EP].all_to_all_bytes);
        assert_true(one->memory.activation_bytes == other->memory.activation_bytes);
        play_close(&play[0]);
        play_close(&play[1]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_grows_with_the_skew),
        cmocka_unit_test(another_seed_gives_another_step),
        cmocka_unit_test(drawn_routing_folds_beside_ep_only),
        cmocka_unit_test(padded_rows_cost_the_same_folded),
        cmocka_unit_test(capacity_bounds_what_experts_compute),
        cmocka_unit_test(ep_stands_beside_cp_and_beside_pp_and_dp),
        cmocka_unit_test(ep_lies_over_other_axes),
        cmocka_unit_test(shared_experts_hide_the_exchange_or_wait),
        cmocka_unit_test(latency_counts_what_waits_for_experts),
        cmocka_unit_test(rules_count_a_rank_s_share_of_the_experts),
    };
    return cmocka_run_group_tests_name("experts", tests, NULL, NULL);
}
