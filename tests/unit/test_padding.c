/*
 * Shapes that no number of ranks divides: drawn steps whose heads, widths, vocabularies, shards and
 * sequences do not. Formulas count what programs execute, memory included; graphs derive it; what
 * MFU counts is what one chip would do.
 */
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

enum { DRAWS = 400, VARIANTS = 36 };

/* Lengths that powers of two do not divide. */
static const struct {
    const char *shape, *parts[3]; /* dp, fsdp, tp */
    uint32_t data, tp, shared;    /* Of the data ranks, those that may share a sequence. */
} places[] = {
    {"12", {NULL, "x", NULL}, 12, 1, 12}, {"12", {"x", NULL, NULL}, 12, 1, 12},
    {"6", {NULL, NULL, "x"}, 1, 6, 1},    {"4x3", {NULL, "x", "y"}, 4, 3, 4},
    {"6x5", {NULL, "x", "y"}, 6, 5, 6},   {"3x2x7", {"x", "y", "z"}, 6, 7, 2},
    {"5x6", {"x", NULL, "y"}, 5, 6, 5},   {"4x3x12", {NULL, "x y", "z"}, 12, 12, 3},
    {"3x16", {"x", NULL, "y"}, 3, 16, 3}, {"48", {"x", NULL, NULL}, 48, 1, 48},
};

static uint64_t state;

static uint64_t draw(uint64_t count)
{
    return case_random(&state) % count;
}

static struct model model_drawn(uint32_t tp)
{
    struct model model = draw(4) == 0 ? case_mlp : case_llama_70b;
    bool const has_experts = draw(5) == 0;
    model.width = 40 * tp + draw(60 * tp);
    model.mlp_width = 100 + draw(1900);
    if (model.kind == MODEL_MLP) return model;
    model.kv_heads = 1 + draw(12);
    model.heads = model.kv_heads * (1 + draw(5));
    if (model.heads < tp) model.heads = model.kv_heads * units_ceil_divide(tp, model.kv_heads);
    model.head_width = 16 + 8 * draw(4);
    model.vocabulary = 500 + draw(3500);
    if (has_experts)
        model.experts = (struct model_experts){.count = 4, .top_k = 2, .width = 50 + draw(900)};
    return model;
}

/* As many sequences as some of the ranks that may share one divide. */
static void batch_draw(struct workload_plan *plan, uint32_t data, uint32_t shared, uint32_t tp)
{
    uint64_t sequences = 1 + draw(3 * (uint64_t)data), parts = 0;
    for (;; sequences++) {
        parts = data / units_common_divisor(data, sequences);
        if (shared % parts == 0) break;
    }
    plan->sequence_length = 2 * parts * tp * (3 + draw(20));
    plan->batch_tokens = plan->accumulate * sequences * plan->sequence_length;
}

/* What all chips do for the model, and what one would do without the others. */
static void useful_is_what_one_chip_does(const char *name, const struct workload_case *made)
{
    struct workload_case one;
    struct workload_counts counts, alone;
    assert_int_equal(case_build(&one, &made->plan.model, "1", NULL, NULL, NULL), STATUS_OK);
    one.plan = made->plan;
    one.plan.zero = 0;
    one.plan.tp_inputs = WORKLOAD_TP_INPUTS_SHARDS;
    assert_int_equal(case_lower(&one), STATUS_OK);
    counts_make(&made->plan, &made->machine, &made->mesh, &counts);
    counts_make(&one.plan, &one.machine, &one.mesh, &alone);
    double const chips = made->machine.chip_count;
    near(name, "FLOP of attention", counts.useful_attention_flop, alone.useful_attention_flop);
    if (made->plan.model.experts.count == 0) /* Whose rows are rounded up on each rank. */
        near(name, "useful FLOP", counts.matmul_useful * chips, alone.matmul_useful);
    if (counts.matmul_flop * chips < alone.matmul_flop * (1 - 1e-12))
        fail_msg("%s: less is executed than on one chip", name);
    if (counts.spare.padding < -1e-9 * counts.matmul_flop)
        fail_msg("%s: %g FLOP of padding", name, counts.spare.padding);
    case_free(&one);
}

static void formulas_count_what_programs_execute(void **unused)
{
    (void)unused;
    uint32_t walked = 0, padded = 0, taken = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        if (sampling_skips(&walked)) continue;
        state = i;
        struct workload_case made;
        char name[96];
        size_t const place = draw(sizeof places / sizeof *places);
        uint32_t const variant = (uint32_t)draw(VARIANTS);
        struct model const model = model_drawn(places[place].tp);
        (void)snprintf(name, sizeof name, "draw %u, place %zu, variant %u", i, place, variant);
        assert_int_equal(case_build(&made, &model, places[place].shape, places[place].parts[0],
                                    places[place].parts[1], places[place].parts[2]),
                         STATUS_OK);
        if (places[place].parts[1] == NULL && places[place].parts[0] != NULL)
            made.plan.zero = (uint32_t)draw(4);
        drawn_vary(&made, variant);
        bool const may_predict = model.kind == MODEL_DECODER && !made.plan.model.tied;
        if (may_predict && draw(4) == 0) made.plan.model.mtp_modules = 1 + draw(2);
        batch_draw(&made.plan, places[place].data, places[place].shared, places[place].tp);
        compare(name, &made);
        graph_step_hold(name, &made);
        useful_is_what_one_chip_does(name, &made);
        struct workload_counts counts;
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        padded += counts.spare.padding > 0;
        taken++;
        case_free(&made);
    }
    assert_true(padded > taken / 4);
}

/* 40 heads over 16 ranks are 48 that are multiplied: Q, K and V have 48 · 128 columns each, of
 * which a rank has a part, for 16,384 tokens. */
static void padded_heads_run_beside_tp(void **unused)
{
    static struct workload_counts counts;
    struct workload_case made;
    (void)unused;
    assert_int_equal(case_build(&made, &case_llama_70b, "16x16x16", NULL, "x y", "z"), STATUS_OK);
    made.plan.model.width = 5120;
    made.plan.model.heads = made.plan.model.kv_heads = 40;
    made.plan.batch_tokens = 4194304;
    counts_make(&made.plan, &made.machine, &made.mesh, &counts);
    const struct graph_overlap *overlap = counts.tp.overlaps.of;
    double const column_flop = 2.0 * 16384 * 5120 / 16, columns = 48 * 128;
    case_near(counts.tp.column_flop, column_flop, 1e-12);
    assert_string_equal(overlap[0].label.text, "attention.In");
    case_near(overlap[0].flop / (double)overlap[0].count, 3 * columns * column_flop, 1e-12);
    assert_string_equal(overlap[1].label.text, "attention.Out");
    case_near(overlap[1].flop / (double)overlap[1].count, columns * column_flop, 1e-12);
    /* Between them attention multiplies 4096 keys for each query, twice. */
    double const scores = columns * 4096 / 5120, collectives = (double)counts.tp.attention.tp_moves;
    assert_int_equal(counts.tp.attention.tp_moves, 2 * 80);
    case_near(counts.tp.attention.flop / collectives / column_flop, 2 * columns + scores, 1e-12);
    case_near(counts.tp.attention.linear_flop / collectives / column_flop, 2 * columns, 1e-12);
    case_free(&made);
}

#define ON(shape, mesh, work)                                                                      \
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"" shape                     \
    "\", \"unrealisable\": true}, \"mesh\": {" mesh                                                \
    "}, \"workload\": {\"allow_oversubscription\": true, " work "}}"
#define DENSE                                                                                      \
    ", \"model\": {\"model_type\": \"llama\", \"hidden_size\": 1201, \"intermediate_size\": "      \
    "3001, "                                                                                       \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 20, \"num_key_value_heads\": 10, "         \
    "\"head_dim\": 64, \"vocab_size\": 32003, \"tie_word_embeddings\": false}, "
#define EXPERTS                                                                                    \
    ", \"model\": {\"model_type\": \"qwen3_moe\", \"hidden_size\": 1208, \"intermediate_size\": "  \
    "1024, "                                                                                       \
    "\"moe_intermediate_size\": 301, \"num_experts\": 10, \"num_experts_per_tok\": 2, "            \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 24, \"num_key_value_heads\": 8, "          \
    "\"head_dim\": 64, \"vocab_size\": 32003, \"tie_word_embeddings\": false, "                    \
    "\"norm_topk_prob\": true}, "
#define OF_TP_8                                                                                    \
    "attention heads over 8 of tp: 20 are 32\n"                                                    \
    "KV heads over 8 of tp: 10 are 16\n"                                                           \
    "vocabulary over 8 of tp: 32003 are 32008\n"                                                   \
    "columns of the MLP over 8 of tp: 3001 are 3008\n"
#define D_OF_TP_8 "columns between blocks over 8 of tp: 1201 are 1208\n"
#define EXPERTS_OF_TP_8                                                                            \
    "vocabulary over 8 of tp: 32003 are 32008\n"                                                   \
    "columns of an expert over 8 of tp: 301 are 304\n"

/* All that is padded, and nothing else. Of tp a rank has 4001 rows of the vocabulary, four heads of
 * Q and O and two of K and V, 376 columns of the MLP, and 151 scales of each norm:
 *
 *   embedding, with D 1201   4805201
 *   head and the last norm   4805352
 *   attention with its norm   922519
 *   MLP with its norm        1354879
 *
 * which six ranks round up by 1, 0, 5 and 5 elements, five by 4, 3, 1 and 1. Of the model with
 * experts a rank has 4001 · 1208 elements of the embedding, 151 more of the head; 1208 · 64 · 8 of
 * attention, 64 scales of Q and of K, and 1510 of the router, with 151 of a norm each; two experts,
 * which are one unit, of 3 · 1208 · 38 each. */
static void the_whole_list_is_told(void **unused)
{
    static const struct {
        const char *scenario, *told;
    } cases[] = {
        {ON("6x8x1", "\"fsdp\": [\"x\"], \"tp\": [\"y\"]",
            "\"kind\": \"train_step\"" DENSE "\"batch_tokens\": 24576, \"sequence_length\": 512"),
         D_OF_TP_8 OF_TP_8 "flat parameters over 6 of fsdp: 11887951 are 11887962\n"},
        {ON("5x8x1", "\"dp\": [\"x\"], \"tp\": [\"y\"]",
            "\"kind\": \"train_step\"" DENSE "\"batch_tokens\": 20480, \"sequence_length\": 512, "
            "\"zero\": 1"),
         D_OF_TP_8 OF_TP_8 "flat optimizer state over 5 of dp: 11887951 are 11887960\n"},
        {ON("5x8x7", "\"ep\": [\"x\"], \"tp\": [\"y\"], \"fsdp\": [\"z\"]",
            "\"kind\": \"train_step\"" EXPERTS
            "\"batch_tokens\": 286720, \"sequence_length\": 512"),
         EXPERTS_OF_TP_8 "flat parameters of experts over 7 of fsdp: 275424 are 275429\n"
                         "flat parameters over 7 of fsdp: 10287003 are 10287018\n"},
        {ON("5x8x7", "\"ep\": [\"x\"], \"tp\": [\"y\"], \"dp\": [\"z\"]",
            "\"kind\": \"train_step\"" EXPERTS
            "\"batch_tokens\": 286720, \"sequence_length\": 512, \"zero\": 1"),
         EXPERTS_OF_TP_8 "flat state of experts over 7 of dp: 275424 are 275429\n"
                         "flat optimizer state over 35 of dp,ep: 10287003 are 10287060\n"},
        {ON("6x8x1", "\"tp_d\": [\"x\"], \"tp\": [\"y\"]",
            "\"kind\": \"decode\"" DENSE "\"batch\": 32, \"context\": 512"),
         "tokens over 6 of tp_d: 32 are 36\n"
         "columns between blocks over 48 of tp and tp_d: 1201 are 1248\n" OF_TP_8},
        {ON("6x8x1", "\"tp_d\": [\"x\"], \"tp\": [\"y\"]",
            "\"kind\": \"decode\"" EXPERTS "\"batch\": 36, \"context\": 512"),
         "columns between blocks over 48 of tp and tp_d: 1208 are 1248\n" EXPERTS_OF_TP_8},
        {ON("6x8x1", "\"cp\": [\"x\"], \"tp\": [\"y\"]",
            "\"kind\": \"prefill\"" DENSE "\"batch\": 1, \"prompt\": 515"),
         "tokens of prompts over 6 of cp: 515 are 516\n" D_OF_TP_8 OF_TP_8},
    };
    static const struct play_options lower_only = {.lower_only = true};
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct play play;
        struct strbuf text = {0};
        play_run(&play, cases[i].scenario, &lower_only);
        const struct paddings *paddings = &play.roofline.counts.paddings;
        for (uint32_t k = 0; k < paddings->count; k++) {
            const struct padding *of = &paddings->of[k];
            strbuf_add(&text, "%s over %u of %s: %llu are %llu\n", of->what, of->ranks, of->role,
                       (unsigned long long)of->size, (unsigned long long)of->padded);
        }
        assert_string_equal(text.bytes, cases[i].told);
        strbuf_free(&text);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_count_what_programs_execute),
        cmocka_unit_test(padded_heads_run_beside_tp),
        cmocka_unit_test(the_whole_list_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
