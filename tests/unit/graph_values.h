/*
 * graph_values.h: what steps of a layer's passes read is there: each value was written or kept
 * before. And how long it lies in memory.
 */
#ifndef TESTS_UNIT_GRAPH_VALUES_H
#define TESTS_UNIT_GRAPH_VALUES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/graph/live.h"
#include "sim/step/graph_terms.h"

/* A part of a model with all that follows from its graph. */
struct graph_case {
    struct step_part which;
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
    struct graph_backward backward;
    struct graph_kept kept;
};

/* --- What steps read is there --- */

/* [full] */
struct graph_there {
    bool value[2][GRAPH_TENSORS_MAX], gradient[2][GRAPH_TENSORS_MAX];
};

static inline bool *graph_there_at(struct graph_there *there, struct graph_value value)
{
    return &(value.gradient ? there->gradient : there->value)[value.full][value.of];
}

static inline void graph_steps_play(const char *name, const struct graph_case *made,
                                    struct graph_request request, struct graph_there *there)
{
    static struct graph_steps steps;
    graph_steps(&made->sharded, &made->backward, &made->kept, request, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        for (uint8_t k = 0; k < step->read_count; k++) {
            struct graph_value const read = step->read[k];
            if (*graph_there_at(there, read)) continue;
            fail_msg("%s, %s pass, half %d, step %u: %s, pass %d, reads %s%s%s, which is not there",
                     name, request.backward ? "backward" : "forward", (int)request.half, i,
                     made->graph.op[step->op].name, (int)step->pass, read.full ? "full " : "",
                     read.gradient ? "d" : "", made->graph.tensor[read.of].at.name);
        }
        for (uint8_t k = 0; k < step->written_count; k++)
            *graph_there_at(there, step->written[k]) = true;
    }
}

static inline bool graph_is_read_from(const struct graph_steps *steps, uint32_t from,
                                      struct graph_value value)
{
    for (uint32_t s = from; s < steps->count; s++)
        for (uint8_t i = 0; i < steps->step[s].read_count; i++) {
            struct graph_value const read = steps->step[s].read[i];
            if (read.of == value.of && read.gradient == value.gradient &&
                (read.full == value.full || value.full))
                return true;
        }
    return false;
}

/* Whether a list asks for the repetition of an op, or of one behind it that moves and computes
 * nothing. */
static inline bool graph_op_is_listed(const struct graph_case *made, uint8_t op)
{
    const struct graph *graph = &made->graph;
    for (uint8_t i = 0; i < graph->op[op].out_count; i++)
        if (graph->tensor[graph->op[op].out[i]].repeated) return true;
    for (uint8_t behind = op + 1; behind < graph->op_count; behind++)
        for (uint8_t i = 0; i < graph->op[behind].in_count; i++)
            if (graph->tensor[graph->op[behind].in[i]].made_by == op &&
                graph_is_silent(&made->sharded, behind) && graph_op_is_listed(made, behind))
                return true;
    return false;
}

/* Nothing is computed in vain: gradients are read by a later step, but for weights' and what other
 * layers get; something of what is repeated is, too, unless all of a layer is. */
static inline void graph_steps_are_read(const char *name, const struct graph_case *made)
{
    static struct graph_steps steps;
    const struct graph *graph = &made->graph;
    graph_steps(&made->sharded, &made->backward, &made->kept,
                (struct graph_request){.backward = true}, &steps);
    for (uint32_t s = 0; s < steps.count; s++) {
        const struct graph_step *step = &steps.step[s];
        bool any =
            graph->terms->policy.remat == GRAPH_REMAT_LAYER || graph_op_is_listed(made, step->op);
        for (uint8_t i = 0; i < step->written_count; i++) {
            const struct graph_value value = step->written[i];
            bool const ends = graph->tensor[value.of].role == GRAPH_WEIGHT ||
                              graph->tensor[value.of].made_by == GRAPH_NONE;
            bool const read = graph_is_read_from(&steps, s + 1, value);
            any = any || read || value.gradient;
            if (value.gradient && !ends && !read)
                fail_msg("%s: d%s is given and not read", name, graph->tensor[value.of].at.name);
        }
        if (!any) fail_msg("%s: %s is repeated for nothing", name, graph->op[step->op].name);
    }
}

/* Weights, and forward what comes from before the layer; backward what was kept, and gradients from
 * above. */
static inline struct graph_there graph_there_first(const struct graph_case *made, bool backward)
{
    const struct graph *graph = &made->graph;
    struct graph_there there = {{{false}}, {{false}}};
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        bool const before = graph->tensor[t].made_by == GRAPH_NONE;
        there.value[false][t] = graph->tensor[t].role == GRAPH_WEIGHT ||
                                (backward ? made->kept.kept[t] != GRAPH_NOTHING : before);
        there.value[true][t] = backward && made->kept.kept[t] == GRAPH_GATHERED;
    }
    there.gradient[false][graph->stream] = backward;
    there.gradient[false][graph->added] = backward;
    return there;
}

static inline void graph_gradients_hold(const char *name, const struct graph_case *made,
                                        const struct graph_there *there)
{
    const struct graph *graph = &made->graph;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        bool const wanted =
            graph->tensor[t].role == GRAPH_WEIGHT || graph->tensor[t].made_by == GRAPH_NONE;
        if (wanted && !there->gradient[false][t])
            fail_msg("%s: nothing gives d%s", name, graph->tensor[t].at.name);
    }
}

/* Each step of each pass reads what was written before it; all gradients are given, by a backward
 * pass in one and in halves. */
static inline void graph_values_hold(const char *name, const struct graph_case *made)
{
    struct graph_there there = graph_there_first(made, false);
    graph_steps_play(name, made, (struct graph_request){.backward = false}, &there);
    there = graph_there_first(made, true);
    graph_steps_play(
        name, made,
        (struct graph_request){.backward = true, .half = GRAPH_WHOLE, .sums_partial = true},
        &there);
    graph_gradients_hold(name, made, &there);
    there = graph_there_first(made, true);
    graph_steps_play(
        name, made,
        (struct graph_request){.backward = true, .half = GRAPH_INPUT_HALF, .sums_partial = true},
        &there);
    graph_steps_play(
        name, made,
        (struct graph_request){.backward = true, .half = GRAPH_WEIGHT_HALF, .sums_partial = true},
        &there);
    graph_gradients_hold(name, made, &there);
}

/* --- How long they lie in memory --- */

static inline void graph_life_hold(const char *name, const struct graph_live *live,
                                   struct graph_value value, uint32_t step)
{
    bool there = graph_life_of(live, value) == NULL;
    for (uint32_t i = 0; i < live->count && !there; i++) {
        const struct graph_life *life = &live->life[i];
        bool const same = life->value.of == value.of && life->value.gradient == value.gradient &&
                          life->value.full == value.full;
        there = same && life->first <= step && step <= life->last;
    }
    if (!there) fail_msg("%s: step %u uses a value that is not in memory then", name, step);
}

/* Bytes that are there before a pass, or after it. */
static inline uint64_t graph_live_ends(const struct graph_live *live, bool after)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < live->count; i++)
        if (after ? live->life[i].after : live->life[i].before) bytes += live->life[i].bytes;
    return bytes;
}

static inline void graph_pass_live(const char *name, const struct graph_case *made,
                                   const struct graph_steps *steps, const struct graph_steps *later,
                                   struct graph_live *ret_live)
{
    graph_live(&made->sharded, &made->kept, steps, later, ret_live);
    for (uint32_t s = 0; s < steps->count; s++) {
        for (uint8_t i = 0; i < steps->step[s].read_count; i++)
            graph_life_hold(name, ret_live, steps->step[s].read[i], s);
        for (uint8_t i = 0; i < steps->step[s].written_count; i++)
            graph_life_hold(name, ret_live, steps->step[s].written[i], s);
    }
}

static inline void graph_bytes_equal(const char *name, const char *what, uint64_t a, uint64_t b)
{
    if (a != b)
        fail_msg("%s: %s: %llu bytes, and %llu", name, what, (unsigned long long)a,
                 (unsigned long long)b);
}

/* What the forward pass leaves is what is kept, and what the backward pass finds; of a backward
 * pass in halves the first leaves what the second finds. Nothing stays. */
static inline void graph_lives_hold(const char *name, const struct graph_case *made)
{
    static struct graph_steps steps[4];
    static struct graph_live live, other;
    static const struct graph_request requests[4] = {
        {.backward = false},
        {.backward = true, .half = GRAPH_WHOLE},
        {.backward = true, .half = GRAPH_INPUT_HALF},
        {.backward = true, .half = GRAPH_WEIGHT_HALF},
    };
    for (uint32_t i = 0; i < 4; i++)
        graph_steps(&made->sharded, &made->backward, &made->kept, requests[i], &steps[i]);
    uint64_t const kept = graph_kept_bytes(&made->sharded, &made->kept);
    graph_pass_live(name, made, &steps[0], NULL, &live);
    graph_bytes_equal(name, "left by the forward pass", graph_live_ends(&live, true), kept);
    graph_pass_live(name, made, &steps[1], NULL, &live);
    graph_bytes_equal(name, "found by the backward pass", graph_live_ends(&live, false), kept);
    graph_bytes_equal(name, "left by the backward pass", graph_live_ends(&live, true), 0);
    graph_pass_live(name, made, &steps[2], &steps[3], &live);
    graph_pass_live(name, made, &steps[3], NULL, &other);
    graph_bytes_equal(name, "found by the first half", graph_live_ends(&live, false), kept);
    graph_bytes_equal(name, "left between the halves", graph_live_ends(&live, true),
                      graph_live_ends(&other, false));
    graph_bytes_equal(name, "left by the second half", graph_live_ends(&other, true), 0);
}

#endif
