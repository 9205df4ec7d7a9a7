/* Kinds of layers: which a model has, in which order, and of which kind a layer is; how many are
 * modelled; what layers of several kinds have in common in a step. */
#include <string.h>

#include "sim/model/model.h"
#include "sim/step/graph_terms.h"
#include "sim/step/lower.h"
#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

enum { LAYERS = 8 };

static bool none[LAYERS] = {0};
static bool odd[LAYERS] = {0, 1, 0, 1, 0, 1, 0, 1};
static bool pairs[LAYERS] = {0, 0, 1, 1, 0, 0, 1, 1};

/* The first `dense` layers have an MLP. */
static struct model model_of(uint64_t dense, bool *windowed, bool *borrows)
{
    struct model model = case_llama_70b;
    model.layers = LAYERS;
    model.experts =
        (struct model_experts){.count = 8, .top_k = 2, .width = 1024, .dense_layers = dense};
    model.attends.window = 1024;
    model.by_layer = (struct layer_arrays){.windowed = windowed, .borrows = borrows};
    return model;
}

static bool kind_is(struct layer_kind kind, bool experts, bool borrows, bool windowed)
{
    return kind.experts == experts && kind.borrows == borrows && kind.windowed == windowed;
}

static void kinds_are_in_the_order_of_their_flags(void **state)
{
    (void)state;
    struct model const model = model_of(3, odd, none);
    struct layer_kinds const kinds = model_layer_kinds(&model, 2048);
    static const uint32_t of[LAYERS] = {0, 1, 0, 3, 2, 3, 2, 3};
    static const uint64_t layers[] = {2, 1, 2, 3}, first[] = {0, 1, 4, 3};
    assert_int_equal(kinds.count, 4);
    assert_true(kind_is(kinds.kind[0], false, false, false));
    assert_true(kind_is(kinds.kind[1], false, false, true));
    assert_true(kind_is(kinds.kind[2], true, false, false));
    assert_true(kind_is(kinds.kind[3], true, false, true));
    assert_int_equal(kinds.changes, 7);
    for (uint32_t kind = 0; kind < kinds.count; kind++) {
        assert_int_equal(kinds.layers[kind], layers[kind]);
        assert_int_equal(kinds.first[kind], first[kind]);
    }
    for (uint64_t layer = 0; layer < LAYERS; layer++)
        assert_int_equal(layer_kinds_at(&kinds, &model, layer), of[layer]);
}

/* A window that holds whole sequences is none. */
static void windows_count_where_a_sequence_is_longer(void **state)
{
    (void)state;
    struct model const model = model_of(0, odd, none);
    assert_int_equal(model_layer_kinds(&model, 1024).count, 1);
    assert_int_equal(model_layer_kinds(&model, 1025).count, 2);
    assert_true(model_layer_kind(&model, 1, 1025).windowed);
    assert_false(model_layer_kind(&model, 1, 1024).windowed);
}

/* With experts, windows and borrowed keys by turns of 4, 1 and 2 layers, all eight differ. */
static void more_kinds_than_are_modelled_are_refused(void **state)
{
    (void)state;
    struct model const six = model_of(6, odd, pairs);
    struct workload_case made;
    struct ranks ranks;
    case_ok(model_layer_kinds_check(&six, "", &case_error));
    assert_int_equal(model_layer_kinds(&six, 2048).count, 6);
    struct model const eight = model_of(4, odd, pairs);
    case_refused(model_layer_kinds_check(&eight, "/here", &case_error), STATUS_LIMIT, "/here",
                 "layers of llama-3-70b are of more than 6 kinds: layer 6 is like none before it");
    assert_int_equal(case_build(&made, &eight, "16", "x", NULL, NULL), STATUS_OK);
    case_refused(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error),
                 STATUS_LIMIT, "/workload/model", "models with layers of 6 kinds or fewer");
    case_free(&made);
}

/* Layers that differ in windows alone have the same weights, and one update; experts have their
 * own. */
static void layers_with_equal_weights_are_updated_alike(void **state)
{
    (void)state;
    struct model const model = model_of(4, odd, NULL);
    static const uint8_t weights[] = {0, 0, 2, 2};
    struct workload_case made;
    struct ranks ranks;
    uint32_t updates = 0, forwards = 0;
    assert_int_equal(case_build(&made, &model, "16", "x", NULL, NULL), STATUS_OK);
    case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
    assert_int_equal(ranks.kinds.count, 4);
    for (uint32_t kind = 0; kind < ranks.kinds.count; kind++)
        assert_int_equal(ranks.layer[kind].weights, weights[kind]);
    assert_int_equal(case_lower(&made), STATUS_OK);
    for (uint32_t t = 0; t < made.program.template_count; t++) {
        const char *name = made.program.templates[t].name;
        updates += strcmp(name, "update layer") == 0;
        forwards += strcmp(name, "layer forward") == 0;
    }
    assert_int_equal(updates, 2);
    assert_int_equal(forwards, 4);
    case_free(&made);
}

/* A layer that attends to another's cache has buckets without K and V, and writes no rows. */
static void a_borrower_has_buckets_of_its_own(void **state)
{
    static const uint64_t context[] = {1024};
    (void)state;
    struct model model = model_of(LAYERS, NULL, odd);
    model.experts.count = 0;
    struct workload_case made;
    struct ranks ranks;
    uint64_t elements[2] = {0};
    assert_int_equal(case_build(&made, &model, "16", NULL, NULL, "x"), STATUS_OK);
    made.plan.kind = WORKLOAD_DECODE;
    made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    made.plan.inference = (struct inference_plan){.decodes = {64, lengths_given(context, 1), 1}};
    case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
    assert_int_equal(ranks.kinds.count, 2);
    for (uint32_t kind = 0; kind < 2; kind++) {
        assert_int_equal(ranks.layer[kind].weights, kind);
        for (uint32_t u = 0; u < ranks.layer[kind].bucket_count; u++)
            elements[kind] += ranks.layer[kind].bucket[u].elements;
    }
    /* 8 KV heads are on 16 ranks of tp, two of which hold each. */
    assert_int_equal(elements[0] - elements[1], 2 * 8192 * 128);
    assert_int_equal(inference_cache_bytes(&ranks, 1, 1), 0);
    assert_int_equal(inference_cache_bytes(&ranks, 0, LAYERS),
                     LAYERS / 2 * inference_cache_bytes(&ranks, 2, 1));
    case_free(&made);
}

static void words_say_what_layers_have(void **state)
{
    (void)state;
    assert_string_equal(layer_kind_text((struct layer_kind){.experts = false}).text, "");
    struct layer_kind const all = {.experts = true, .borrows = true, .windowed = true};
    assert_string_equal(layer_kind_text(all).text,
                        ", with experts, with keys of another, with windows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_in_the_order_of_their_flags),
        cmocka_unit_test(windows_count_where_a_sequence_is_longer),
        cmocka_unit_test(more_kinds_than_are_modelled_are_refused),
        cmocka_unit_test(layers_with_equal_weights_are_updated_alike),
        cmocka_unit_test(a_borrower_has_buckets_of_its_own),
        cmocka_unit_test(words_say_what_layers_have),
    };
    return cmocka_run_group_tests_name("layer kinds", tests, case_arena_up, case_arena_down);
}
