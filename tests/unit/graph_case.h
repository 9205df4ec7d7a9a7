/*
 * graph_case.h: graphs of all parts of a model: steps read what is there, bytes lie in memory as
 * long as they are used (graph_values.h), and ops of the layers' templates that workload_lower()
 * makes wait for what their steps read (graph_needs.h).
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

/* All parts that the model has, layers first. */
struct graph_cases {
    struct ranks ranks;
    struct graph_case part[STEP_PARTS_MAX];
    uint32_t count;
};

static uint32_t graph_steps_held;

static inline void graph_layer_terms(const struct ranks *ranks, uint64_t layer,
                                     struct graph_terms *ret_terms)
{
    struct step_part const part = {.part = BLOCK_LAYER, .kind = ranks_kind_at(ranks, layer)};
    graph_terms_of_part(ranks, &part, ret_terms);
}

static inline void graph_cases_build(const struct ranks *ranks, struct graph_cases *ret_cases)
{
    struct step_part parts[STEP_PARTS_MAX];
    ret_cases->ranks = *ranks;
    ret_cases->count = step_parts(&ret_cases->ranks, parts);
    for (uint32_t i = 0; i < ret_cases->count; i++) {
        struct graph_case *made = &ret_cases->part[i];
        made->which = parts[i];
        graph_terms_of_part(&ret_cases->ranks, &parts[i], &made->terms);
        block_write_part(&made->terms, &ranks->plan->model, parts[i].part, &made->graph);
        graph_shard(&made->graph, &made->sharded);
        graph_backward(&made->sharded, &made->backward);
        graph_remat(&made->sharded, &made->backward, &made->kept);
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
    return &cases.part[0];
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

/* Whether ops of the template come as the steps do, computes and collectives: which is which. */
static inline bool graph_template_is(const struct program *program, struct graph_matched *matched)
{
    const struct program_template *template = matched->template;
    uint32_t at = 0;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        matched->step_of[i] = GRAPH_NEEDS_NONE;
        if (!graph_op_is_ours(program, op)) continue;
        if (at == matched->steps->count ||
            matched->steps->step[at].is_compute != (op->kind == PROGRAM_OP_COMPUTE))
            return false;
        matched->step_of[i] = at;
        matched->op_of[at++] = i;
    }
    return at == matched->steps->count;
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
        {"layer forward", {.backward = false}},
        {"layer forward again", {.again = true}},
        {"layer backward", {.backward = true}},
        {"layer input gradient", {.backward = true, .half = GRAPH_INPUT_HALF}},
        {"layer weight gradient", {.backward = true, .half = GRAPH_WEIGHT_HALF}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* Words behind a comma tell layers apart by remat, or name a second pass. */
        size_t const length = strcspn(template->name, ",");
        const char *words = template->name + length;
        bool const pair =
            *words != '\0' && strstr(words, "recomputed") == NULL && strstr(words, "group") == NULL;
        if (pair || strlen(rows[i].name) != length ||
            strncmp(template->name, rows[i].name, length) != 0)
            continue;
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

/* Whether it is a layer's. */
static inline bool graph_template_hold(const char *name, const struct graph_cases *cases,
                                       const struct program *program,
                                       const struct program_template *template)
{
    static struct graph_steps steps;
    static struct graph_matched matched;
    struct graph_request request;
    matched.name = name;
    matched.template = template;
    matched.steps = &steps;
    if (!graph_request_of(program, template, &request)) return false;
    for (uint32_t i = 0; i < cases->count; i++) {
        const struct graph_case *made = &cases->part[i];
        if (made->which.part != BLOCK_LAYER ||
            made->terms.layer.experts != graph_template_has_experts(template))
            continue;
        graph_steps(&made->sharded, &made->backward, &made->kept, request, &steps);
        if (!graph_template_is(program, &matched)) continue;
        graph_needs_hold(&matched);
        return true;
    }
    fail_msg("%s, %s: no graph of a layer has such steps", name, template->name);
    return false;
}

static inline void graph_hold(const char *name, const struct ranks *ranks,
                              const struct program *program)
{
    static struct graph_cases cases;
    bool summed = !ranks_sums_parts(ranks), layers = false;
    graph_cases_build(ranks, &cases);
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        layers = graph_template_hold(name, &cases, program, template) || layers;
        for (uint32_t i = 0; i < template->op_count; i++)
            summed = summed || graph_sums_parts(program, &template->op[i]);
    }
    for (uint32_t i = 0; i < cases.count; i++) {
        graph_values_hold(name, &cases.part[i]);
        graph_steps_are_read(name, &cases.part[i]);
        graph_lives_hold(name, &cases.part[i]);
    }
    if (!layers) fail_msg("%s: layers have no templates", name);
    if (!summed) fail_msg("%s: gradients in parts are never summed", name);
    graph_steps_held++;
}

/* Holds the graphs of a step that was lowered against its program. */
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
