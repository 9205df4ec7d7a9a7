/*
 * blocks_case.h: steps whose layers have other blocks than attention and then an MLP: formulas and
 * programs agree for every combination of mesh, remat, gather, ZeRO stage, accumulation, order and
 * formats, graphs derive the programs, and one layer can be looked at.
 */
#ifndef TESTS_UNIT_BLOCKS_CASE_H
#define TESTS_UNIT_BLOCKS_CASE_H

#include "sim/graph/derive.h"
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

/* Makes a model's layers the n-th that a test is about. */
typedef void blocks_set(struct model *model, uint32_t kind);

/* Layers of a decoder: in series, parallel to one norm, and with experts. */
enum blocks_kind { BLOCKS_SERIAL, BLOCKS_PARALLEL, BLOCKS_EXPERTS, BLOCKS_KINDS };

static inline void blocks_kind_set(struct model *model, uint32_t kind)
{
    if (kind == BLOCKS_EXPERTS)
        model->experts = (struct model_experts){.count = 8, .top_k = 2, .width = 4096};
    model->parallel = kind == BLOCKS_PARALLEL;
}

static inline void blocks_build(struct workload_case *ret_made, uint32_t place, blocks_set *set,
                                uint32_t kind)
{
    drawn_build(ret_made, &drawn_blocks[place]);
    ret_made->plan.sequence_length = 8192;
    set(&ret_made->plan.model, kind);
}

static inline void blocks_agree(blocks_set *set, uint32_t kinds)
{
    enum { VARIANTS = 36 };
    uint32_t walked = 0;
    for (uint32_t p = 0; p < DRAWN_BLOCKS; p++)
        for (uint32_t variant = 0; variant < kinds * VARIANTS; variant++) {
            const char *const *parts = drawn_blocks[p].parts;
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %u, variant %u", p, variant);
            blocks_build(&made, p, set, variant / VARIANTS);
            made.plan.zero = drawn_has_zero(parts) ? variant / 3 % 4 : 0;
            drawn_vary(&made, variant % VARIANTS);
            if (model_has_experts(&made.plan.model)) made.plan.model.matrices = 3;
            if (parts[MESH_CP] != NULL)
                made.plan.attention.context = (enum workload_context)(variant / 12 % 3);
            compare(name, &made);
            graph_step_hold(name, &made);
            case_free(&made);
        }
}

struct blocks_layer {
    struct ranks ranks;
    struct graph_terms terms;
    struct graph_derived of;
};

static inline void blocks_derive(const struct workload_case *made, struct blocks_layer *ret_layer)
{
    struct blocks_layer *layer = ret_layer;
    graph_ranks(&made->plan, &made->machine, &made->mesh, &layer->ranks);
    graph_layer_terms(&layer->ranks, 0, &layer->terms);
    graph_derive(&layer->terms, &made->plan.model, BLOCK_LAYER, &layer->of);
}

static inline void blocks_steps(const struct blocks_layer *layer, bool backward,
                                struct graph_steps *ret_steps)
{
    struct graph_request const request = {.backward = backward};
    graph_steps(&layer->of.sharded, &layer->of.backward, &layer->of.kept, request, ret_steps);
}

/* What the ops of a layer's pass ask for together. */
struct blocks_sums {
    uint64_t flop, vector_flop, hbm_bytes, collective_bytes;
    uint32_t computes, collectives;
};

static inline struct blocks_sums blocks_sums_of(const struct blocks_layer *layer, bool backward)
{
    struct graph_steps steps;
    struct blocks_sums sums = {0};
    blocks_steps(layer, backward, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        sums.flop += work_matmul_flop(&step->work);
        sums.vector_flop += step->work.vector_flop;
        sums.hbm_bytes += step->work.hbm_read_bytes + step->work.hbm_write_bytes;
        sums.computes += step->is_compute;
        sums.collectives += !step->is_compute;
        sums.collective_bytes += step->is_compute ? 0 : step->move.bytes;
    }
    return sums;
}

/* A decode of sequences of 1,024 tokens. */
static inline void blocks_decode_of(struct workload_case *made, uint32_t sequences)
{
    static const uint64_t context[] = {1024};
    made->plan.kind = WORKLOAD_DECODE;
    made->plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made->plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    made->plan.inference =
        (struct inference_plan){.decodes = {sequences, lengths_given(context, 1), 1}};
}

/* 64 of them. */
static inline void blocks_decode(struct workload_case *made)
{
    blocks_decode_of(made, 64);
}

/* Parts of a decode of 32 sequences of serial layers, over 2 ranks on x and 4 on y: `tp` names the
 * axis of tp, `tp_d` that of tp_d. The caller frees the case. */
static inline void blocks_decode_on_axes(struct workload_case *made, blocks_set *set,
                                         const char *tp, const char *tp_d, struct ranks *ranks,
                                         struct graph_cases *ret_cases)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_TP] = tp, [MESH_TP_D] = tp_d};
    assert_int_equal(case_build_roles(made, &case_llama_70b, "2x4x1", parts), STATUS_OK);
    set(&made->plan.model, BLOCKS_SERIAL);
    blocks_decode_of(made, 32);
    graph_ranks(&made->plan, &made->machine, &made->mesh, ranks);
    graph_cases_build(ranks, ret_cases);
}

/* FLOP of the vector unit that a chip has in one part of a decode, of serial layers: each of 16
 * data ranks has 4 of them, each rank of tp 16 of the heads, and a quarter of the vocabulary. */
static inline uint64_t blocks_decode_vector_flop(blocks_set *set, enum block_part part)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    struct workload_case made;
    uint64_t flop = 0;
    blocks_build(&made, 1, set, BLOCKS_SERIAL);
    blocks_decode(&made);
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct graph_case *of = &cases.part[i];
        if (of->which.part != part) continue;
        for (uint8_t k = 0; k < of->graph.op_count; k++)
            if (!of->graph.op[k].fused) /* Its reader has its work. */
                flop += op_work(&of->sharded, &of->graph.op[k], OP_FORWARD).vector_flop;
    }
    case_free(&made);
    return flop;
}

#endif
