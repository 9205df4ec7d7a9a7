/*
 * counts_case.h: what workload_count() takes from the layers' graphs, compared with the closed
 * formulas of tests/oracle and with sums over a lowered program.
 */
#ifndef TESTS_UNIT_COUNTS_CASE_H
#define TESTS_UNIT_COUNTS_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "sim/step/counts.h"
#include "tests/oracle/oracle.h"
#include "tests/support/counts.h"
#include "tests/support/templates.h"
#include "tests/unit/workload_case.h"

static inline void near(const char *name, const char *what, double counted, double summed)
{
    double const difference = counted > summed ? counted - summed : summed - counted;
    if (difference > 1e-6 * (counted > 1 ? counted : 1)) {
        fail_msg("%s: %s is counted as %.9g and %.9g in the program", name, what, counted, summed);
    }
}

static inline double padded_flop(const struct workload_case *made)
{
    double flop = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++) {
        const struct program_template *template = &made->program.templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            if (template->op[i].kind != PROGRAM_OP_COMPUTE) continue;
            const struct work *work = &made->program.works[template->op[i].index];
            flop += (double)case_repeats(&made->program, t) *
                    (double)compute_time(&made->machine.chip, work, PPM_ONE, PPM_ONE).padded_flop;
        }
    }
    return flop;
}

/* Of the matmuls in a format that only linear layers have, padded or not. */
static inline double linear_flop(const struct workload_case *made, bool padded)
{
    double flop = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++) {
            const struct program_op *op = &made->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COMPUTE) continue;
            const struct work *work = &made->program.works[op->index];
            if (work->math_format != made->plan.formats.matmuls) continue;
            flop +=
                (double)case_repeats(&made->program, t) *
                (double)(padded
                             ? compute_time(&made->machine.chip, work, PPM_ONE, PPM_ONE).padded_flop
                             : work_matmul_flop(work));
        }
    return flop;
}

static inline double compute_ops(const struct workload_case *made)
{
    double count = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++)
            if (made->program.templates[t].op[i].kind == PROGRAM_OP_COMPUTE)
                count += (double)case_repeats(&made->program, t);
    return count;
}

/* What is kept for the backward pass; of frameworks with what they keep beside it, but where they
 * make it again. */
static inline bool is_saved(enum program_memory memory, enum graph_remat remat)
{
    bool const all = remat == GRAPH_REMAT_NONE;
    if (memory == PROGRAM_MEMORY_ACTIVATED) return all;
    if (memory == PROGRAM_MEMORY_MASKS) return all || remat == GRAPH_REMAT_NORMS;
    return memory == PROGRAM_MEMORY_ACTIVATIONS;
}

static inline double saved_bytes(const struct program *program, enum graph_remat remat)
{
    double bytes = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            for (uint32_t e = 0; e < op->effect_count; e++) {
                bool const taken = op->effect[e].bytes > 0;
                if (!taken || !is_saved(op->effect[e].memory, remat)) continue;
                bytes += (double)case_repeats(program, t) * (double)op->effect[e].bytes;
            }
        }
    }
    return bytes;
}

static inline void traffic_near(const char *name, const struct workload_case *made,
                                const char *group, const struct workload_traffic *traffic)
{
    struct case_sums const sums = case_sum(&made->program, group);
    near(name, group, traffic->gather_bytes, sums.bytes[COLLECTIVE_ALL_GATHER]);
    near(name, group, traffic->scatter_bytes, sums.bytes[COLLECTIVE_REDUCE_SCATTER]);
    near(name, group, traffic->all_reduce_bytes, sums.bytes[COLLECTIVE_ALL_REDUCE]);
    assert_int_equal(traffic->gather_count, sums.collectives[COLLECTIVE_ALL_GATHER]);
    assert_int_equal(traffic->scatter_count, sums.collectives[COLLECTIVE_REDUCE_SCATTER]);
    near(name, group, traffic->all_to_all_bytes, sums.bytes[COLLECTIVE_ALL_TO_ALL]);
    near(name, group, traffic->permute_bytes, sums.bytes[COLLECTIVE_PERMUTE]);
    assert_int_equal(traffic->all_reduce_count, sums.collectives[COLLECTIVE_ALL_REDUCE]);
    assert_int_equal(traffic->all_to_all_count, sums.collectives[COLLECTIVE_ALL_TO_ALL]);
    assert_int_equal(traffic->permute_count, sums.collectives[COLLECTIVE_PERMUTE]);
}

/* Gradients go over all ranks that hold the same parameters. */
static const char *replicas(const struct workload_case *made)
{
    static const char *const names[] = {"dp", "dp",    "ep",    "dp,ep",
                                        "cp", "dp,cp", "ep,cp", "dp,ep,cp"};
    const struct mesh_axis *axis = made->mesh.axis;
    return names[(axis[MESH_DP].size > 1) + 2 * (made->mesh.own_ep.size > 1) +
                 4 * (axis[MESH_CP].size > 1)];
}

/* Streams are called by the ranks that they join: what tokens do over ep is beside gradients that
 * are reduced over ep alone. */
static inline void traffics_near(const char *name, const struct workload_case *made,
                                 const struct workload_counts *counts)
{
    struct workload_traffic role[MESH_ROLE_COUNT];
    const char *gradients = replicas(made);
    memcpy(role, counts->role, sizeof role);
    if (strcmp(gradients, "ep") == 0) {
        role[MESH_DP].all_to_all_bytes = role[MESH_EP].all_to_all_bytes;
        role[MESH_DP].all_to_all_count = role[MESH_EP].all_to_all_count;
    } else {
        traffic_near(name, made, "ep", &role[MESH_EP]);
    }
    traffic_near(name, made, gradients, &role[MESH_DP]);
    traffic_near(name, made, "experts", &counts->experts);
    traffic_near(name, made, "tp", &role[MESH_TP]);
    traffic_near(name, made, "fsdp", &role[MESH_FSDP]);
}

/* Of attention and MLP side by side, of norms behind and inside blocks, behind the embedding and of
 * Q and K, of latent attention without a latent for Q, of gates of shared experts, of capped scores
 * and logits, of biases of scores, and of xIELU, the oracle, which is frozen, knows nothing. */
static inline bool oracle_knows(const struct model *model)
{
    bool const direct = model_has_mla(model) && model->mla.query_rank == 0;
    bool const norms = model->norms.behind || model->norms.inside || model->norms.embedding ||
                       model->norms.qk != MODEL_QK_NORMS_NONE;
    bool const capped = model->attends.caps_scores || model->caps_logits;
    bool const scores = capped || model->attends.biases_scores;
    bool const functions = model->experts.shared_gated || model->xielu;
    return !model->parallel && !norms && !direct && !functions && !scores;
}

/* Of the same step. */
static inline void oracle_hold(const char *name, const struct workload_plan *plan,
                               const struct machine *machine, const struct mesh *mesh,
                               struct workload_counts counts)
{
    struct workload_counts oracle;
    oracle_count(plan, machine, mesh, &oracle);
    if (plan->formats.matmuls == plan->formats.activations) {
        counts.linear.flop = oracle.linear.flop; /* Of an only format, it is of no use. */
        counts.linear.padded_flop = oracle.linear.padded_flop;
    }
    struct oracle_difference const found = oracle_compare(&counts, &oracle);
    if (found.field != NULL)
        fail_msg("%s: %s is counted as %.12g, and %.12g by the oracle", name, found.field,
                 found.counted, found.oracle);
}

static inline void compare(const char *name, struct workload_case *made)
{
    struct workload_counts counts;
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    counts_make(&made->plan, &made->machine, &made->mesh, &counts);
    if (oracle_knows(&made->plan.model))
        oracle_hold(name, &made->plan, &made->machine, &made->mesh, counts);
    struct case_sums const sums = case_sum(&made->program, "");
    near(name, "matmul FLOP", counts.matmul_flop, sums.matmul_flop);
    near(name, "useful FLOP", counts.matmul_useful, sums.useful_flop);
    if (made->plan.remat == GRAPH_REMAT_NONE)
        near(name, "scores again, copies, padding and rows",
             counts.spare.flash + counts.spare.waiting + counts.spare.duplicated +
                 counts.spare.padding + counts.spare.uneven,
             sums.matmul_flop - sums.useful_flop);
    near(name, "padded FLOP", counts.padded_flop, padded_flop(made));
    if (made->plan.formats.matmuls != made->plan.formats.activations) {
        near(name, "linear FLOP", counts.linear.flop, linear_flop(made, false));
        near(name, "padded linear FLOP", counts.linear.padded_flop, linear_flop(made, true));
    }
    near(name, "vector FLOP", counts.vector_flop, sums.vector_flop);
    near(name, "HBM bytes", counts.hbm_bytes, sums.hbm_bytes);
    near(name, "compute ops", counts.ops.count, compute_ops(made));
    near(name, "saved activations", counts.memory.activation_bytes * made->plan.accumulate,
         saved_bytes(&made->program, made->plan.remat));
    const uint64_t *resident = made->program.roles[0].resident_bytes;
    near(name, "parameters", counts.memory.parameter_bytes,
         (double)resident[PROGRAM_MEMORY_PARAMETERS]);
    near(name, "moments", counts.memory.optimizer_bytes,
         (double)resident[PROGRAM_MEMORY_OPTIMIZER]);
    if (made->plan.accumulate > 1) {
        near(
            name, "gradients", counts.memory.gradient_bytes,
            (double)(resident[PROGRAM_MEMORY_GRADIENTS] + resident[PROGRAM_MEMORY_MAIN_GRADIENTS]));
    }
    near(name, "master weights", counts.memory.master_bytes,
         (double)resident[PROGRAM_MEMORY_MASTER]);
    near(name, "fixed", counts.held_anyway.fixed_bytes,
         (double)(resident[PROGRAM_MEMORY_AUTOGRAD] + resident[PROGRAM_MEMORY_NCCL] +
                  resident[PROGRAM_MEMORY_CUBLAS] + resident[PROGRAM_MEMORY_CONTEXT]));
    traffics_near(name, made, &counts);
    traffic_near(name, made, "kv", &counts.kv);
    traffic_near(name, made, "sequence", &counts.sequence);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
    }
}

/* Compares the counts of a step with its program, and its templates with the kept ones. */
static inline void compare_kept(const char *name, struct workload_case *made)
{
    compare(name, made);
    templates_hold(name, &made->program, &made->machine);
}

#endif
