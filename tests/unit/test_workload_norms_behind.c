/* A norm behind each block: formulas and programs agree for every combination of mesh, remat,
 * gather, ZeRO stage, accumulation, order and formats, whatever the blocks are; the norm reads what
 * a block gives, so remat leaves nothing of a block out; and collectives and products are those of
 * a layer without such norms. */
#include <stdio.h>
#include <string.h>

#include "sim/graph/derive.h"
#include "tests/support/case.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"

static const struct {
    const char *shape, *dp, *fsdp, *tp, *cp;
    uint64_t batch_tokens;
} places[] = {
    {"16", "x", NULL, NULL, NULL, 1 << 20},
    {"4x4x4", NULL, "x y", "z", NULL, 1 << 20},
    {"4x4x4", "y", "x", "z", NULL, 1 << 20},
    {"16x16x16", NULL, "x y", "z", NULL, 1 << 22}, /* More ranks of tp than KV heads. */
    {"16x16x16", NULL, "x y", "z", NULL, 1 << 19}, /* A sequence on several ranks. */
    {"4x4x4", NULL, "y", "z", "x", 1 << 20},
};
enum { PLACES = sizeof places / sizeof *places, VARIANTS = 36 };

/* Of a layer. */
enum blocks { SERIAL, PARALLEL, EXPERTS, BLOCKS };

static const char *const parallel[] = {"parallel", NULL};

static void step_build(struct workload_case *made, uint32_t place, enum blocks blocks)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = places[place].dp,
                                                [MESH_FSDP] = places[place].fsdp,
                                                [MESH_TP] = places[place].tp,
                                                [MESH_CP] = places[place].cp};
    assert_int_equal(case_build_roles(made, &case_llama_70b, places[place].shape, parts),
                     STATUS_OK);
    struct model *model = &made->plan.model;
    made->plan.batch_tokens = places[place].batch_tokens;
    made->plan.sequence_length = 8192;
    model->norms = 4;
    model->norms_behind = true;
    if (blocks == EXPERTS)
        model->experts = (struct model_experts){.count = 8, .top_k = 2, .width = 4096};
    if (blocks != PARALLEL) return;
    model->norms = 3; /* Two of them before. */
    model->blocks = parallel;
}

static void layer_derive(const struct workload_case *made, struct ranks *ranks,
                         struct graph_terms *terms, struct graph_derived *ret_layer)
{
    struct error error = {0};
    assert_int_equal(ranks_make(&made->plan, &made->machine, &made->mesh, ranks, &error),
                     STATUS_OK);
    graph_terms_of(ranks, 0, terms);
    graph_derive(terms, &made->plan.model, BLOCK_LAYER, 0, ret_layer);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t variant = 0; variant < BLOCKS * VARIANTS; variant++) {
            struct workload_case made;
            char name[96];
            (void)snprintf(name, sizeof name, "place %u, variant %u", p, variant);
            step_build(&made, p, (enum blocks)(variant / VARIANTS));
            made.plan.zero = places[p].fsdp == NULL ? variant / 3 % 4 : 0;
            vary(&made, variant % VARIANTS);
            if (model_has_experts(&made.plan.model)) made.plan.model.matrices = 3;
            if (places[p].cp != NULL) made.plan.context = (enum workload_context)(variant / 12 % 3);
            compare(name, &made);
            graph_step_hold(name, &made);
            case_free(&made);
        }
}

/* No gradient reads what the last norm gives. It alone is left out. */
static void a_norm_behind_a_block_needs_all_of_it_again(void **state)
{
    (void)state;
    for (uint32_t blocks = 0; blocks < BLOCKS; blocks++) {
        struct workload_case made;
        struct ranks ranks;
        struct graph_terms terms;
        struct graph_derived layer;
        step_build(&made, 1, (enum blocks)blocks);
        made.plan.remat = WORKLOAD_REMAT_BLOCK;
        layer_derive(&made, &ranks, &terms, &layer);
        uint8_t const last = (uint8_t)(layer.graph.op_count - 1);
        assert_string_equal(layer.graph.op[last].name, "OutNorm");
        for (uint8_t i = 0; i <= last; i++)
            if (!layer.graph.op[i].fused) assert_int_equal(layer.kept.again[i], i != last);
        case_free(&made);
    }
}

struct sums {
    uint64_t flop, vector_flop, hbm_bytes, collective_bytes;
    uint32_t collectives;
};

static struct sums sums_of(const struct graph_derived *layer, bool backward)
{
    struct graph_request const request = {.backward = backward};
    struct graph_steps steps;
    struct sums sums = {0};
    graph_steps(&layer->sharded, &layer->backward, &layer->kept, request, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        sums.flop += work_matmul_flop(&step->work);
        sums.vector_flop += step->work.vector_flop;
        sums.hbm_bytes += step->work.hbm_read_bytes + step->work.hbm_write_bytes;
        sums.collectives += !step->is_compute;
        sums.collective_bytes += step->is_compute ? 0 : step->move.bytes;
    }
    return sums;
}

/* Each norm reads and writes its part of a row once, and backward reads it, reads the gradient of
 * the result, and writes that of its input. */
static void two_norms_are_all_that_a_layer_has_more(void **state)
{
    static const uint64_t arrays[] = {2, 3};
    (void)state;
    for (uint32_t backward = 0; backward < 2; backward++) {
        struct workload_case made;
        struct ranks ranks;
        struct graph_terms terms;
        struct graph_derived layer;
        step_build(&made, 1, SERIAL);
        layer_derive(&made, &ranks, &terms, &layer);
        struct sums const normed = sums_of(&layer, backward == 1);
        made.plan.model.norms_behind = false;
        layer_derive(&made, &ranks, &terms, &layer);
        struct sums const plain = sums_of(&layer, backward == 1);
        uint64_t const elements = (1U << 20) / 16 * 8192 / 4;
        assert_int_equal(normed.flop, plain.flop);
        assert_int_equal(normed.collectives, plain.collectives);
        assert_int_equal(normed.collective_bytes, plain.collective_bytes);
        assert_int_equal(normed.hbm_bytes - plain.hbm_bytes, 2 * arrays[backward] * 2 * elements);
        assert_true(normed.vector_flop > plain.vector_flop);
        case_free(&made);
    }
}

/* Buckets of a layer hold what the model counts, biases of norms included. */
static void weights_travel_as_they_are_counted(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2 * BLOCKS; variant++) {
        struct workload_case made;
        struct ranks ranks;
        struct graph_terms terms;
        struct graph_derived layer;
        uint64_t elements = 0;
        step_build(&made, 0, (enum blocks)(variant / 2));
        made.plan.model.norm_biases = variant % 2;
        layer_derive(&made, &ranks, &terms, &layer);
        bool const experts = model_has_experts(&made.plan.model);
        const struct ranks_layer *weights = &ranks.layer[experts ? 1 : 0];
        for (uint32_t u = 0; u < weights->bucket_count; u++)
            elements += weights->bucket[u].elements;
        struct model_counts const counts = model_count(&made.plan.model);
        uint64_t const channels =
            experts ? counts.router_layer + counts.experts_layer : counts.mlp_layer;
        assert_int_equal(elements, counts.attention_layer + channels + counts.norm_layer);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(a_norm_behind_a_block_needs_all_of_it_again),
        cmocka_unit_test(two_norms_are_all_that_a_layer_has_more),
        cmocka_unit_test(weights_travel_as_they_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
