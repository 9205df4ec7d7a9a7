/*
 * graph_case.h: what a layer's graph derives held against the templates that workload_lower()
 * makes: each compute op's whole work, each collective's kind, group and bytes, in order, and the
 * bytes that a layer keeps. No tolerance.
 *
 * Left out of the templates: gathers and reductions of weights by buckets, updates, messages and
 * copies, which are not of the graph.
 */
#ifndef TESTS_UNIT_GRAPH_CASE_H
#define TESTS_UNIT_GRAPH_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/graph/block.h"
#include "sim/graph/steps.h"
#include "sim/step/graph_terms.h"
#include "sim/step/lower.h"
#include "sim/step/ranks.h"
#include "tests/unit/graph_needs.h"
#include "tests/unit/graph_values.h"
#include "tests/unit/workload_case.h"

/* A layer of each kind that the model has. */
struct graph_cases {
    struct ranks ranks;
    struct graph_case layer[4];
    uint32_t count;
};

struct graph_compared {
    uint32_t steps, templates, ops;
    uint32_t framework; /* Forward passes of which frameworks keep more arrays. */
};
static struct graph_compared graph_compared;

/* What follows from a graph. */
static inline void graph_case_pass(struct graph_case *made)
{
    graph_shard(&made->graph, &made->sharded);
    graph_backward(&made->sharded, &made->backward);
    graph_remat(&made->sharded, &made->backward, &made->kept);
    made->forward_matched = made->backward_matched = 0;
}

static inline void graph_case_derive(struct graph_case *made, const struct model *model,
                                     uint64_t layer)
{
    block_write_layer(&made->terms, model, layer, &made->graph);
    graph_case_pass(made);
    made->experts = layer >= model_dense_layers(model);
}

static inline void graph_layer_terms(const struct ranks *ranks, uint64_t layer,
                                     struct graph_terms *ret_terms)
{
    struct step_part const part = {.part = BLOCK_LAYER,
                                   .windowed = ranks_layer_is_windowed(ranks, layer)};
    graph_terms_of_part(ranks, &part, ret_terms);
}

static inline void graph_cases_build(const struct ranks *ranks, struct graph_cases *ret_cases)
{
    const struct model *model = &ranks->plan->model;
    ret_cases->ranks = *ranks;
    ret_cases->count = 0;
    bool seen[4] = {false};
    for (uint64_t layer = 0; layer < model->layers; layer++) {
        bool const experts = layer >= model_dense_layers(model);
        uint32_t const which = 2U * experts + ranks_layer_is_windowed(ranks, layer);
        if (seen[which]) continue;
        seen[which] = true;
        struct graph_case *made = &ret_cases->layer[ret_cases->count++];
        graph_layer_terms(&ret_cases->ranks, layer, &made->terms);
        graph_case_derive(made, model, layer);
    }
}

static inline void graph_ranks(const struct workload_plan *plan, const struct machine *machine,
                               const struct mesh *mesh, struct ranks *ret_ranks)
{
    struct error error;
    if (ranks_make(plan, machine, mesh, ret_ranks, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
}

/* The book, chapter 5, 5.3: a layer of an MLP with FSDP over X and tensor parallelism over Y. */
static inline const struct graph_case *graph_mlp_layer(struct workload_case *ret_made)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    assert_int_equal(case_build(ret_made, &case_mlp, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    ret_made->plan.remat = GRAPH_REMAT_BIG_MATMULS;
    graph_ranks(&ret_made->plan, &ret_made->machine, &ret_made->mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    return &cases.layer[0];
}

static inline bool graph_works_equal(const struct work *a, const struct work *b)
{
    bool equal = a->matmul_count == b->matmul_count && a->masked_rows == b->masked_rows &&
                 a->math_format == b->math_format && a->vector_flop == b->vector_flop &&
                 a->hbm_read_bytes == b->hbm_read_bytes &&
                 a->hbm_write_bytes == b->hbm_write_bytes &&
                 a->vmem_read_bytes == b->vmem_read_bytes && a->useful_flop == b->useful_flop;
    for (uint32_t i = 0; equal && i < a->matmul_count; i++)
        equal = a->matmul[i].rows == b->matmul[i].rows &&
                a->matmul[i].inner == b->matmul[i].inner &&
                a->matmul[i].columns == b->matmul[i].columns &&
                a->matmul[i].count == b->matmul[i].count;
    return equal;
}

static inline const char *graph_work_text(const struct work *work, char buffer[512])
{
    size_t used = (size_t)snprintf(
        buffer, 512, "%s vector %llu read %llu write %llu useful %llu masked %llu",
        format_name(work->math_format), (unsigned long long)work->vector_flop,
        (unsigned long long)work->hbm_read_bytes, (unsigned long long)work->hbm_write_bytes,
        (unsigned long long)work->useful_flop, (unsigned long long)work->masked_rows);
    for (uint32_t i = 0; i < work->matmul_count; i++)
        used += (size_t)snprintf(
            buffer + used, 512 - used, " [%llu %llu %llu x%llu]",
            (unsigned long long)work->matmul[i].rows, (unsigned long long)work->matmul[i].inner,
            (unsigned long long)work->matmul[i].columns, (unsigned long long)work->matmul[i].count);
    return buffer;
}

static inline bool graph_stream_is(const struct program *program, const struct program_op *op,
                                   const char *word)
{
    char of[STREAM_USE_BYTES];
    return strcmp(stream_of_text(program->stream[op->stream].use.of, of), word) == 0;
}

/* The sum of gradients of weights that ranks of tp have parts of. */
static inline bool graph_sums_parts(const struct program *program, const struct program_op *op)
{
    const struct program_stream *stream = &program->stream[op->stream];
    return graph_stream_is(program, op, "kv") ||
           (stream->use.verb == STREAM_SUM && stream->urgency == LOWER_URGENCY_GRADIENTS);
}

/* An op that is the graph's to derive. */
static inline bool graph_op_is_ours(const struct program *program, const struct program_op *op)
{
    bool const weights = program->stream[op->stream].urgency != LOWER_URGENCY_ACTIVATIONS;
    if (op->kind == PROGRAM_OP_COMPUTE) return strncmp(op->name, "update", 6) != 0;
    if (op->kind != PROGRAM_OP_COLLECTIVE) return false;
    return !weights || graph_sums_parts(program, op);
}

static inline const struct group *graph_group_of(const struct ranks *ranks, enum op_axis axis)
{
    switch (axis) {
    case OP_AXIS_TP:
        return &ranks->mesh->axis[MESH_TP].group;
    case OP_AXIS_EP:
        return &ranks->mesh->axis[MESH_EP].group;
    case OP_AXIS_SEQUENCE:
        return &ranks->sequences.group;
    case OP_AXIS_HOLDERS:
        return &ranks->heads.group;
    }
    return NULL;
}

/* Whether a step is an op; `ret_why` says what differs. */
static inline bool graph_step_is(const struct graph_cases *cases, const struct program *program,
                                 const struct graph_step *step, const struct program_op *op,
                                 char ret_why[1200])
{
    char own[512], theirs[512];
    if (step->is_compute != (op->kind == PROGRAM_OP_COMPUTE)) {
        (void)snprintf(ret_why, 1200, "%s is %sa compute", op->name,
                       step->is_compute ? "not " : "");
        return false;
    }
    if (step->is_compute) {
        const struct work *work = &program->works[op->index];
        (void)snprintf(ret_why, 1200, "%s:\n  derived %s\n  lowered %s", op->name,
                       graph_work_text(&step->work, own), graph_work_text(work, theirs));
        return graph_works_equal(&step->work, work);
    }
    const struct plan *plan = &program->plans[op->index];
    (void)snprintf(ret_why, 1200, "%s: derived %s of %llu bytes, lowered %s of %llu", op->name,
                   collective_kind_name(step->move.kind), (unsigned long long)step->move.bytes,
                   collective_kind_name(plan->kind), (unsigned long long)plan->size_bytes);
    return plan->kind == step->move.kind && plan->size_bytes == step->move.bytes &&
           group_equal(&plan->group, graph_group_of(&cases->ranks, step->move.axis));
}

static inline bool graph_template_is(const struct graph_cases *cases, const struct program *program,
                                     struct graph_matched *matched, char ret_why[1200])
{
    const struct program_template *template = matched->template;
    uint32_t at = 0;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        matched->step_of[i] = GRAPH_NEEDS_NONE;
        if (!graph_op_is_ours(program, op)) continue;
        if (at == matched->steps->count) {
            (void)snprintf(ret_why, 1200, "%s is not derived", op->name);
            return false;
        }
        matched->step_of[i] = at;
        matched->op_of[at] = i;
        if (!graph_step_is(cases, program, &matched->steps->step[at++], op, ret_why)) return false;
    }
    if (at == matched->steps->count) return true;
    (void)snprintf(ret_why, 1200, "derived %u steps, lowered %u", matched->steps->count, at);
    return false;
}

static inline int64_t graph_template_kept(const struct program_template *template)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
            const struct program_effect *effect = &template->op[i].effect[e];
            if (effect->memory == PROGRAM_MEMORY_ACTIVATIONS && effect->bytes > 0)
                bytes += effect->bytes;
        }
    return bytes;
}

/* Bytes that only frameworks keep when the template has ended. */
static inline int64_t graph_template_framework(const struct program_template *template)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
            const struct program_effect *effect = &template->op[i].effect[e];
            if (effect->memory == PROGRAM_MEMORY_ACTIVATED ||
                effect->memory == PROGRAM_MEMORY_MASKS)
                bytes += effect->bytes;
        }
    return bytes;
}

static inline void graph_bytes_hold(const char *name, const struct graph_case *made,
                                    const struct program_template *template)
{
    uint64_t const kept = graph_kept_bytes(&made->sharded, &made->kept);
    uint64_t const framework = graph_framework_bytes(&made->graph);
    if (graph_template_kept(template) != (int64_t)kept ||
        graph_template_framework(template) != (int64_t)framework)
        fail_msg("%s: a layer keeps %lld bytes and %lld of frameworks, derived %llu and %llu", name,
                 (long long)graph_template_kept(template),
                 (long long)graph_template_framework(template), (unsigned long long)kept,
                 (unsigned long long)framework);
    graph_compared.framework += framework != 0;
}

/* What of a layer's graph a template is, by its name; false: it is no layer's. */
static inline bool graph_request_of(const struct program *program,
                                    const struct program_template *template,
                                    struct graph_request *ret_request)
{
    static const struct {
        const char *name;
        struct graph_request request;
    } rows[] = {
        {"layer forward", {false, GRAPH_WHOLE, false}},
        {"layer backward", {true, GRAPH_WHOLE, false}},
        {"layer input gradient", {true, GRAPH_INPUT_HALF, false}},
        {"layer weight gradient", {true, GRAPH_WEIGHT_HALF, false}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(template->name, rows[i].name) != 0) continue;
        *ret_request = rows[i].request;
        for (uint32_t o = 0; o < template->op_count; o++)
            if (graph_sums_parts(program, &template->op[o])) ret_request->sums_partial = true;
        return true;
    }
    return false;
}

static inline bool graph_template_has_experts(const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (strncmp(template->op[i].name, "moe.", 4) == 0) return true;
    return false;
}

static inline void graph_template_hold(const char *name, struct graph_cases *cases,
                                       const struct program *program,
                                       const struct program_template *template)
{
    static struct graph_steps steps;
    static struct graph_matched matched;
    struct graph_request request;
    char why[1200] = "no layer of this kind";
    matched.name = name;
    matched.template = template;
    matched.steps = &steps;
    if (!graph_request_of(program, template, &request)) return;
    for (uint32_t i = 0; i < cases->count; i++) {
        struct graph_case *made = &cases->layer[i];
        if (made->experts != graph_template_has_experts(template)) continue;
        graph_steps(&made->sharded, &made->backward, &made->kept, request, &steps);
        if (!graph_template_is(cases, program, &matched, why)) continue;
        graph_needs_hold(&matched);
        if (!request.backward) graph_bytes_hold(name, made, template);
        *(request.backward ? &made->backward_matched : &made->forward_matched) += 1;
        graph_compared.templates++;
        graph_compared.ops += steps.count;
        return;
    }
    fail_msg("%s, %s: %s", name, template->name, why);
}

/* Every template of a layer is what some layer's graph derives, and every layer has templates. */
static inline void graph_hold(const char *name, const struct ranks *ranks,
                              const struct program *program)
{
    static struct graph_cases cases;
    bool summed = !ranks_sums_parts(ranks);
    graph_cases_build(ranks, &cases);
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        graph_template_hold(name, &cases, program, template);
        for (uint32_t i = 0; i < template->op_count; i++)
            summed = summed || graph_sums_parts(program, &template->op[i]);
    }
    for (uint32_t i = 0; i < cases.count; i++) {
        graph_values_hold(name, &cases.layer[i]);
        graph_steps_are_read(name, &cases.layer[i]);
        graph_lives_hold(name, &cases.layer[i]);
    }
    for (uint32_t i = 0; i < cases.count; i++)
        if (cases.layer[i].forward_matched == 0 || cases.layer[i].backward_matched == 0)
            fail_msg("%s: a kind of layer has no templates", name);
    if (!summed) fail_msg("%s: gradients in parts are never summed", name);
    graph_compared.steps++;
}

/* The same of a step that was lowered. */
static inline void graph_step_hold(const char *name, const struct workload_case *made)
{
    static struct ranks ranks;
    graph_ranks(&made->plan, &made->machine, &made->mesh, &ranks);
    graph_hold(name, &ranks, &made->program);
}

/* Lowers the step first, and frees it. */
static inline void graph_step_lower(const char *name, struct workload_case *made)
{
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    graph_step_hold(name, made);
    case_free(made);
}

#endif
