/* What single ops of a step of inference ask of a chip, by hand, and the rank that has most. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/step/ranks.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/walk.h"
#include "tests/unit/workload_case.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES };

static void lower_step(struct play *play, const char *mesh, const char *workload, const char *run)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 1, \"gpus\": 8, "
              "\"profile\": \"ideal\"}, \"mesh\": %s, \"workload\": {%s, "
              "\"allow_oversubscription\": true}, \"run\": {%s}}",
              mesh, workload, run);
    play_run(play, text, &lower_only);
}

/* The first op of the last pass with this name. */
static const struct work *work_of(const struct play *play, const char *name)
{
    struct walk_op walk = {.program = &play->program};
    const struct work *found = NULL;
    while (walk_next(&walk))
        if (walk.op->kind == PROGRAM_OP_COMPUTE && strcmp(walk.op->name, name) == 0)
            found = &play->program.works[walk.op->index];
    if (found == NULL) fail_msg("no op is called %s", name);
    return found;
}

/* A row of 6,144 numbers for each token, and one for its position, of which there are 8,192. */
static void positions_are_looked_up_row_by_row(void **state)
{
    static const struct {
        const char *mesh, *workload;
        uint64_t rows; /* Of both tables. */
        uint64_t ranks;
    } steps[] = {
        {"{\"dp\": [\"gpu\"]}", "\"kind\": \"decode\", \"batch\": 8, \"context\": 8", 1 + 1, 1},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"decode\", \"batch\": 40, \"context\": 8", 40 + 40, 8},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"prefill\", \"batch\": 5, \"prompt\": 1000",
         5000 + 5000, 8},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"prefill\", \"batch\": 5, \"prompt\": 2000",
         10000 + 8192, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char workload[TEXT_BYTES];
        struct play play;
        case_text(workload, sizeof workload, "\"model\": \"starcoder-15b\", %s", steps[i].workload);
        lower_step(&play, steps[i].mesh, workload, "");
        assert_int_equal(work_of(&play, "embedding.lookup")->hbm_read_bytes,
                         steps[i].rows * 6144 / steps[i].ranks * 2);
        play_close(&play);
    }
}

/* On one of 8 GPUs with 8 heads of keys, and without splits, a sequence has 8 of 132 cores; a
 * prompt of one token is no more than a decode, and of 131,072 keys the others' are none. A prompt
 * of 2,112 tokens has 66 tiles of 128 rows for each of 8 heads. */
static void prompts_fill_cores_if_they_are_long(void **state)
{
    static const struct {
        const char *workload;
        uint64_t busy; /* Cores. */
    } steps[] = {
        {"\"kind\": \"decode\", \"batch\": 8, \"context\": 131072", 8},
        {"\"kind\": \"prefill\", \"batch\": 8, \"cached\": 131071, \"prompt\": 1", 8},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 131072, \"prompts\": 8, \"prompt\": 1",
         8},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 131072, \"prompts\": 8, "
         "\"cached\": 131071, \"prompt\": 1",
         16},
        {"\"kind\": \"prefill\", \"batch\": 8, \"prompt\": 2112", 132},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 512, \"prompts\": 8, \"prompt\": 2112",
         132},
    };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char workload[TEXT_BYTES];
        struct play play;
        case_text(workload, sizeof workload, "\"model\": \"llama-3-8b\", %s", steps[i].workload);
        lower_step(&play, "{\"dp\": [\"gpu\"]}", workload, "\"split_attention\": false");
        uint64_t const idle_ppm = work_of(&play, "attention.attention")->idle_core_ppm;
        /* Cores that read the keys of decodes leave their matrix units idle. */
        case_near((double)(PPM_ONE - idle_ppm) * 132 / PPM_ONE, (double)steps[i].busy, 1e-2);
        play_close(&play);
    }
}

/* On one of two ranks, a decode of 10 tokens and a prompt; on the other, a decode of 100,000 and a
 * prompt of 10. The second keeps and reads 100,010 rows. By its scores, 8,002,000 and 10, a prompt
 * of 4,000 takes longer than these rows, and one of 1,000 does not. With a window of 128 the first
 * rank has more of all. */
static void the_rank_that_attends_longest_has_its_own_sequences(void **state)
{
    static const struct {
        uint64_t prompts[2],
            rows[2]; /* [rank]; of decodes and of prompts on the one that counts. */
    } cases[] = {{{4000, 10}, {10, 4000}}, {{1000, 10}, {100000, 10}}};
    static const uint64_t contexts[] = {10, 100000};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    static bool windowed[32] = {[3] = true};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload_case made;
        struct ranks ranks;
        uint64_t const *prompts = cases[i].prompts;
        struct model const model = catalogue_model("llama-3-8b");
        assert_int_equal(case_build_roles(&made, &model, "2x1x1", parts), STATUS_OK);
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
        made.plan.kind = WORKLOAD_MIXED;
        made.plan.inference =
            (struct inference_plan){.decodes = {2, lengths_given(contexts, 2), 1},
                                    .prompts = {2, lengths_given(prompts, 2), 0, 0}};
        made.plan.model.by_layer.windowed = windowed;
        made.plan.model.attends.window = 128;
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        const struct inference_ranks *of = &ranks.inference;
        const struct graph_served *decodes = of->served[INFERENCE_DECODES],
                                  *asked = of->served[INFERENCE_PROMPTS];
        assert_int_equal(of->held_rows[0], 100010);
        assert_int_equal(decodes[0].read, cases[i].rows[0]);
        assert_int_equal(decodes[0].columns, cases[i].rows[0]);
        assert_int_equal(asked[0].read, cases[i].rows[1]);
        assert_int_equal(asked[0].rows, cases[i].rows[1]);
        assert_int_equal(of->held_rows[1], 10 + prompts[0]);
        assert_int_equal(decodes[1].read, 10);
        assert_int_equal(decodes[1].columns, 10);
        assert_int_equal(asked[1].read, prompts[0]);
        assert_int_equal(asked[1].rows, prompts[0]);
        case_free(&made);
    }
}

/* The same on 16 ranks of tp with 8 heads of keys, two to a head. Where both keep it, each reads
 * 100,010 rows of its head, 51 MB, in 18.5 us; of 2 of 32 heads a prompt of 3,500 tokens takes 13.7
 * us and one of 4,500 takes 22.6. Where each keeps a half, it reads 25.6 MB in 9.3 us, and a prompt
 * of 2,500 takes 7.0 us. */
static void ranks_with_the_same_keys_read_them_each(void **state)
{
    static const struct {
        enum inference_sharding sharding;
        uint64_t prompt;
        uint64_t read; /* Rows of decodes on the rank that counts. */
    } cases[] = {{INFERENCE_REPLICATED, 3500, 100000},
                 {INFERENCE_REPLICATED, 4500, 10},
                 {INFERENCE_AUTO, 2500, 50000},
                 {INFERENCE_AUTO, 3500, 5}};
    static const uint64_t contexts[] = {10, 100000};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x", [MESH_TP] = "y z"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t const prompts[] = {cases[i].prompt, 10};
        struct workload_case made;
        struct ranks ranks;
        struct model const model = catalogue_model("llama-3-8b");
        assert_int_equal(case_build_roles(&made, &model, "2x4x4", parts), STATUS_OK);
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
        made.plan.kind = WORKLOAD_MIXED;
        made.plan.inference =
            (struct inference_plan){.ways = {.sharding = cases[i].sharding},
                                    .decodes = {2, lengths_given(contexts, 2), 1},
                                    .prompts = {2, lengths_given(prompts, 2), 0, 0}};
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        assert_int_equal(ranks.inference.served[INFERENCE_DECODES][0].read, cases[i].read);
        case_free(&made);
    }
}

/* QKV of 8 tokens on one GPU: 6,144 columns of 4,096 weights, and 8 rows of 4,096, which a norm has
 * narrowed where it writes them. Numbers in
 * another format than those that are multiplied take a FLOP each. */
static void numbers_are_widened_or_narrowed_for_a_product(void **state)
{
    static const struct {
        const char *formats;
        uint64_t weights, tokens; /* Of a FLOP each. */
    } steps[] = {
        {"\"weights\": \"bf16\"", 0, 0},
        {"\"weights\": \"int4\"", 1, 0},
        {"\"weights\": \"fp8\", \"matmuls\": \"fp8\"", 0, 1},
        {"\"weights\": \"bf16\", \"matmuls\": \"fp8\"", 1, 1},
        {"\"weights\": \"int4\", \"matmuls\": \"fp8\"", 1, 1},
    };
    uint64_t norm_flop = 0; /* Where it narrows nothing. */
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char workload[TEXT_BYTES];
        struct play play;
        case_text(workload, sizeof workload,
                  "\"kind\": \"decode\", \"model\": \"llama-3-8b\", \"batch\": 64, \"context\": 9, "
                  "\"formats\": {%s}",
                  steps[i].formats);
        lower_step(&play, "{\"dp\": [\"gpu\"]}", workload, "");
        uint64_t const flop = work_of(&play, "attention.norm")->vector_flop;
        if (i == 0) norm_flop = flop;
        assert_int_equal(flop - norm_flop, 4096 * 8 * steps[i].tokens);
        assert_int_equal(work_of(&play, "attention.QKV")->vector_flop,
                         4096 * 6144 * steps[i].weights);
        /* What attention has found is no array that only products read: 8 rows of 4,096. */
        assert_int_equal(work_of(&play, "attention.O")->vector_flop,
                         4096 * (4096 * steps[i].weights + 8 * steps[i].tokens));
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_looked_up_row_by_row),
        cmocka_unit_test(prompts_fill_cores_if_they_are_long),
        cmocka_unit_test(the_rank_that_attends_longest_has_its_own_sequences),
        cmocka_unit_test(ranks_with_the_same_keys_read_them_each),
        cmocka_unit_test(numbers_are_widened_or_narrowed_for_a_product),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
