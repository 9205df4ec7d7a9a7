/*
 * analysis_case.h: a program and a trace that are made by hand, for what reports say of a step.
 */
#ifndef TESTS_UNIT_ANALYSIS_CASE_H
#define TESTS_UNIT_ANALYSIS_CASE_H

#include <string.h>

#include "sim/base/units.h"
#include "sim/report/analysis.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"

enum { OPS_MAX = 8, CLASSES_MAX = 8, PLANS_MAX = 4, STREAMS = 8 };

#define PER_SECOND INT64_C(1000000000000)
#define MEGABYTE UINT64_C(1000000)

/* Three slots forward, two backward, of one template; one more template that nothing plays. */
static struct {
    struct machine machine;
    struct mesh mesh;
    struct workload_plan workload;
    struct program program;
    struct program_role roles[4];
    struct program_block block[4][2];
    struct program_template templates[2];
    struct program_op op[OPS_MAX];
    struct work work;
    struct plan plan[PLANS_MAX];
    struct program_copy copy[2];
    const char *class_names[CLASSES_MAX];
    struct trace_class classes[CLASSES_MAX];
    struct trace trace;
    struct report_input input;
    struct analysis analysis;
} made;

static inline void on(const char *machine)
{
    memset(&made, 0, sizeof made);
    made.machine = case_machine(machine);
    made.machine.chip.launch.message_ps = 500000;
    made.workload.algorithm = algorithm_read("auto");
    for (uint32_t role = 0; role < 4; role++) {
        made.block[role][0] = (struct program_block){.phase = PROGRAM_PHASE_FORWARD, .repeat = 3};
        made.block[role][1] = (struct program_block){.phase = PROGRAM_PHASE_BACKWARD, .repeat = 2};
        made.roles[role] = (struct program_role){.block = made.block[role], .block_count = 2};
    }
    made.templates[0] = (struct program_template){.op = made.op};
    made.templates[1] = (struct program_template){.op = made.op, .op_count = 1};
    struct program *program = &made.program;
    program->templates = made.templates;
    program->roles = made.roles;
    program->template_count = 2;
    program->role_count = program->role_stride = 1;
    program->works = &made.work;
    program->plans = made.plan;
    program->copies = made.copy, program->copy_count = 2;
    program->class_names = made.class_names;
    program->stream_count = STREAMS;
    program->stream[1] = (struct program_stream){.name = "gather fsdp"};
    program->stream[1].use = (struct stream_use){STREAM_GATHER, STREAM_OF_FSDP};
    program->stream[1].urgency = 1;
    program->stream[2].use = (struct stream_use){STREAM_GATHER, STREAM_OF_TP};
    program->stream[3].use = (struct stream_use){STREAM_GATHER, STREAM_OF_SEQUENCE};
    program->stream[4] = (struct program_stream){.name = "a stream of a file"};
    made.trace = (struct trace){.step_ps = PER_SECOND,
                                .compute_ps = PER_SECOND,
                                .classes = made.classes,
                                .class_count = program->class_count = 1,
                                .phase_count = PROGRAM_PHASE_COUNT};
    made.input = (struct report_input){.machine = &made.machine,
                                       .mesh = &made.mesh,
                                       .workload = &made.workload,
                                       .program = program,
                                       .trace = &made.trace};
}

/* One more op, of a class of its own. */
static inline struct program_op *op_add(enum program_op_kind kind, uint8_t stream, uint16_t index)
{
    uint32_t const at = made.templates[0].op_count++;
    made.class_names[at] = "a class";
    made.program.class_count = made.trace.class_count = at + 1;
    made.op[at] = (struct program_op){
        .kind = kind, .stream = stream, .index = index, .class_index = (uint16_t)at};
    return &made.op[at];
}

static inline struct plan *plan_on(const char *axes, enum collective_kind kind,
                                   const char *algorithm)
{
    struct plan_request request = {.kind = kind,
                                   .algorithm = algorithm_read(algorithm),
                                   .group = case_group(&made.machine, axes),
                                   .size_bytes = MEGABYTE};
    plan_request_links(&made.machine, &request);
    made.plan[0] = case_plan(&request);
    return &made.plan[0];
}

static inline void build(void)
{
    case_ok(analysis_build(case_arena, &made.input, &made.analysis, &case_error));
}

#endif
