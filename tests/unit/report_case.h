/*
 * report_case.h: a step to report on without a replay: a real program, and a trace that is made by
 * hand: ops one after another on their streams, of odd lengths, with consistent totals.
 */
#ifndef TESTS_UNIT_REPORT_CASE_H
#define TESTS_UNIT_REPORT_CASE_H

#include <stdlib.h>

#include "sim/report/report.h"
#include "sim/step/workload.h"
#include "tests/unit/workload_case.h"

enum { REPORT_CASE_RECORDS = 1 << 18 };

struct report_case {
    struct workload_case made;
    struct roofline roofline;
    struct trace trace;
    struct report_input input;
};

static inline void report_case_record(struct report_case *report, struct trace_record record)
{
    if (report->trace.records.count == REPORT_CASE_RECORDS) abort();
    report->trace.records.record[report->trace.records.count++] = record;
}

struct report_case_play {
    int64_t clock_ps[PROGRAM_STREAMS_MAX];
    uint64_t held[PROGRAM_MEMORY_COUNT];
    uint32_t chip;
    bool counts; /* Of the reported chip. */
};

static inline void report_case_memory(struct report_case *report, struct report_case_play *play,
                                      const struct program_op *op, bool at_end, uint32_t slot,
                                      int64_t now_ps)
{
    for (uint32_t i = 0; i < op->effect_count; i++) {
        if (op->effect[i].at_end != at_end) continue;
        uint32_t const memory = op->effect[i].memory;
        /* Without real order a buffer may be given back before it is taken: held at 0. */
        int64_t const held = (int64_t)play->held[memory] + op->effect[i].bytes;
        play->held[memory] = held > 0 ? (uint64_t)held : 0;
        report_case_record(report, (struct trace_record){.kind = TRACE_MEMORY,
                                                         .begin_ps = now_ps,
                                                         .end_ps = now_ps,
                                                         .bytes = play->held[memory],
                                                         .chip = play->chip,
                                                         .lane = (uint16_t)memory});
        uint64_t total = 0;
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) total += play->held[m];
        if (total <= report->trace.memory.peak_bytes) continue;
        report->trace.memory.peak_bytes = total;
        report->trace.memory.peak_at_ps = now_ps;
        report->trace.memory.peak_slot = slot;
        memcpy(report->trace.memory.at_peak_bytes, play->held, sizeof play->held);
    }
}

static inline void report_case_op(struct report_case *report, struct report_case_play *play,
                                  const struct program_op *op, uint32_t slot, uint16_t index)
{
    bool const collective = op->kind == PROGRAM_OP_COLLECTIVE;
    int64_t *clock = &play->clock_ps[op->stream];
    int64_t const compute_ps = play->clock_ps[PROGRAM_COMPUTE];
    if (collective && *clock < compute_ps) *clock = compute_ps;
    int64_t const begin_ps = *clock;
    report_case_memory(report, play, op, false, slot, begin_ps);
    for (uint32_t part = 0; part < (collective ? 1 : op->parts); part++) {
        int64_t const length_ps = 1000001 + 7919 * (index + part % 3);
        struct trace_record record = {.kind = TRACE_OP,
                                      .begin_ps = *clock,
                                      .end_ps = *clock + length_ps,
                                      .chip = play->chip,
                                      .slot = slot,
                                      .op = index,
                                      .stream = op->stream,
                                      .lane = (uint16_t)part};
        *clock += length_ps;
        for (uint16_t port = 0; collective && port < 2; port++) {
            struct trace_record transfer = record;
            const struct plan *plan = &report->made.program.plans[op->index];
            transfer.kind = TRACE_TRANSFER;
            transfer.slot =
                program_slot_block(&report->made.program.roles[0], slot)->template_index;
            transfer.bytes = 4096;
            transfer.port = (uint16_t)machine_port(plan->group.dimension[0].axis, (bool)port);
            if (play->clock_ps[PROGRAM_STREAMS_MAX - 1] <= transfer.begin_ps)
                report_case_record(report, transfer);
        }
        if (collective) play->clock_ps[PROGRAM_STREAMS_MAX - 1] = *clock; /* Links are busy. */
        report_case_record(report, record);
        if (!play->counts) continue;
        struct trace_class *total = &report->trace.classes[op->class_index];
        total->count += part == 0;
        total->busy_ps += length_ps;
        if (collective) total->idle_ps += length_ps / 4;
        if (!collective) report->trace.compute_ps += length_ps;
    }
    report_case_memory(report, play, op, true, slot, *clock);
}

static inline void report_case_chip(struct report_case *report, uint32_t chip, bool counts)
{
    const struct program *program = &report->made.program;
    const struct program_role *role = &program->roles[0];
    struct report_case_play play = {.chip = chip, .counts = counts};
    memcpy(play.held, role->resident_bytes, sizeof play.held);
    report->trace.shown.recorded[report->trace.shown.count] = chip;
    report->trace.shown.chip[report->trace.shown.count++] = chip;
    for (uint32_t slot = 0; slot < role->slot_count; slot++) {
        const struct program_block *block = program_slot_block(role, slot);
        const struct program_template *template = &program->templates[block->template_index];
        struct trace_phase *phase = &report->trace.phase[block->phase];
        int64_t const before_ps = play.clock_ps[PROGRAM_COMPUTE];
        for (uint16_t i = 0; i < template->op_count; i++)
            report_case_op(report, &play, &template->op[i], slot, i);
        if (!counts) continue;
        if (phase->end_ps == 0) phase->begin_ps = before_ps;
        phase->end_ps = play.clock_ps[PROGRAM_COMPUTE];
        phase->compute_ps += play.clock_ps[PROGRAM_COMPUTE] - before_ps;
        phase->mxu_ps = phase->compute_ps;
    }
    for (uint32_t s = 0; counts && s < program->stream_count; s++)
        if (play.clock_ps[s] > report->trace.step_ps) report->trace.step_ps = play.clock_ps[s];
}

/* After case_build() and case_lower() on report->made. */
static inline void report_case_play(struct report_case *report)
{
    struct workload_case *made = &report->made;
    struct trace *trace = &report->trace;
    *trace = (struct trace){.fold.chips = made->machine.chip_count,
                            .fold.replayed = 1,
                            .digest = 0xabcdef,
                            .phase_count = PROGRAM_PHASE_COUNT,
                            .class_count = made->program.class_count,
                            .work.events = 1234567,
                            .work.transfers = 7654321};
    trace->classes = arena_take(made->arena, trace->class_count, sizeof *trace->classes);
    trace->records.record =
        arena_take(made->arena, REPORT_CASE_RECORDS, sizeof *trace->records.record);
    report_case_chip(report, 0, true);
    report_case_chip(report, 5, false);
    trace->step_ps += trace->step_ps / 3; /* Some of it neither computes nor communicates. */
    int64_t const rest_ps = trace->step_ps - trace->compute_ps;
    trace->exposed_ps = rest_ps - rest_ps / 3;
    trace->idle_ps = rest_ps / 3;
    int64_t left_ps = trace->exposed_ps; /* Each instant is charged once. */
    struct trace_class *last = trace->classes;
    for (uint32_t i = 0; i < trace->class_count; i++) {
        struct trace_class *class = &trace->classes[i];
        class->exposed_ps = class->idle_ps < left_ps ? class->idle_ps : left_ps;
        left_ps -= class->exposed_ps;
        if (class->idle_ps > 0) last = class;
    }
    last->exposed_ps += left_ps;
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++)
        trace->queue_busy_ps[i] = trace->compute_ps / (i + 1);
    trace->dma_ps = trace->step_ps / 10;
    for (uint32_t port = 0; port < 2 * made->machine.axis_count; port++)
        trace->link[port] = (struct trace_link){.bytes = 4096,
                                                .busy_ps = trace->step_ps / 4,
                                                .sum_bytes = 4096,
                                                .link_count = 1,
                                                .queued_ps = 17};
    report->input = (struct report_input){.title = "a step",
                                          .question = "",
                                          .machine = &made->machine,
                                          .mesh = &made->mesh,
                                          .workload = &made->plan,
                                          .program = &made->program,
                                          .trace = trace,
                                          .roofline = &report->roofline};
    for (uint32_t i = 0; i < made->machine.axis_count; i++)
        report->input.fold[i] = (struct report_fold){1, "every chip along it does the same"};
}

#endif
