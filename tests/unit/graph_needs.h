/*
 * graph_needs.h: what ops of a template wait for, held against what the steps that are derived read
 * and write. An op waits, by way of others if need be, for each step of its template that writes
 * what it reads; and where it waits for data, it reads what is written there.
 */
#ifndef TESTS_UNIT_GRAPH_NEEDS_H
#define TESTS_UNIT_GRAPH_NEEDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/graph/steps.h"
#include "sim/program/program.h"

static const uint32_t GRAPH_NEEDS_NONE = UINT32_MAX;

/* [op]: ops of the template that have ended, or at least begun to give chunks, before it begins. */
struct graph_waits {
    bool of[PROGRAM_OPS_MAX][PROGRAM_OPS_MAX];
};

static inline void graph_wait_add(struct graph_waits *waits, uint32_t op, uint32_t target)
{
    for (uint32_t i = 0; i < target; i++)
        waits->of[op][i] = waits->of[op][i] || waits->of[target][i];
    waits->of[op][target] = true;
}

/* The op before `end` in which a count of a stream's parts is reached. */
static inline uint32_t graph_op_of_part(const struct program_template *template, uint32_t stream,
                                        uint32_t part)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->stream == stream && op->part_first < part && part <= op->part_first + op->parts)
            return i;
    }
    return GRAPH_NEEDS_NONE;
}

static inline bool graph_need_is_local(const struct program_need *need)
{
    return need->slot == 0 && need->part != 0;
}

static inline void graph_waits_fill(const struct program_template *template,
                                    struct graph_waits *ret_waits)
{
    memset(ret_waits, 0, sizeof *ret_waits);
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        for (uint32_t before = i; before-- > 0;) {
            if (template->op[before].stream != op->stream) continue;
            graph_wait_add(ret_waits, i, before); /* A stream is in order. */
            break;
        }
        for (uint32_t n = 0; n < op->need_count; n++) {
            if (!graph_need_is_local(&op->need[n])) continue;
            uint32_t const target =
                graph_op_of_part(template, op->need[n].stream, op->need[n].part);
            if (target < i) graph_wait_add(ret_waits, i, target);
        }
    }
}

/* `op_of` [step], `step_of` [op]: which is which; ops that are no steps have GRAPH_NEEDS_NONE. */
struct graph_matched {
    const char *name;
    const struct program_template *template;
    const struct graph_steps *steps;
    uint32_t op_of[GRAPH_STEPS_MAX], step_of[PROGRAM_OPS_MAX];
};

static inline void graph_reads_wait(const struct graph_matched *matched,
                                    const struct graph_waits *waits, uint32_t at)
{
    const struct graph_step *step = &matched->steps->step[at];
    uint32_t const op = matched->op_of[at];
    for (uint8_t k = 0; k < step->read_count; k++)
        for (uint32_t before = at; before-- > 0;) {
            if (!graph_step_writes(&matched->steps->step[before], step->read[k])) continue;
            uint32_t const writer = matched->op_of[before];
            if (!waits->of[op][writer])
                fail_msg("%s, %s: %s does not wait for %s", matched->name, matched->template->name,
                         matched->template->op[op].name, matched->template->op[writer].name);
            break;
        }
}

static inline void graph_data_is_read(const struct graph_matched *matched, uint32_t at)
{
    const struct program_template *template = matched->template;
    const struct program_op *op = &template->op[matched->op_of[at]];
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (!graph_need_is_local(need) || need->reason != PROGRAM_REASON_DATA) continue;
        uint32_t const target = graph_op_of_part(template, need->stream, need->part);
        if (target == GRAPH_NEEDS_NONE || matched->step_of[target] == GRAPH_NEEDS_NONE) continue;
        if (!graph_step_met(&matched->steps->step[at],
                            &matched->steps->step[matched->step_of[target]]))
            fail_msg("%s, %s: %s waits for data of %s, and reads none", matched->name,
                     template->name, op->name, template->op[target].name);
    }
}

static inline void graph_needs_hold(const struct graph_matched *matched)
{
    static struct graph_waits waits;
    graph_waits_fill(matched->template, &waits);
    for (uint32_t at = 0; at < matched->steps->count; at++) {
        graph_reads_wait(matched, &waits, at);
        graph_data_is_read(matched, at);
    }
}

#endif
