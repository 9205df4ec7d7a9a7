/*
 * notes_case.h: a step to explain whose every figure is made by hand: 64 TPUs, one second, a mesh
 * of one rank an axis, no collectives. A test fills in what its notes are of.
 */
#ifndef TESTS_UNIT_NOTES_CASE_H
#define TESTS_UNIT_NOTES_CASE_H

#include <string.h>

#include "sim/report/notes.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"

enum { NOTES_CASE_CLASSES = 64 };

static struct {
    struct machine machine;
    struct mesh mesh;
    struct workload_plan plan;
    struct roofline roofline;
    struct trace trace;
    struct program program;
    struct program_role role;
    struct program_block block;
    struct analysis_class class[NOTES_CASE_CLASSES];
    struct analysis analysis;
    struct report_input input;
    struct notes notes;
} made;

static inline int notes_case_up(void **state)
{
    (void)case_arena_up(state);
    memset(&made, 0, sizeof made);
    made.machine = case_machine("tpu-v5p:4x4x4");
    made.mesh.keys_differ_on = MACHINE_AXES_MAX;
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) made.mesh.axis[role].size = 1;
    made.plan = (struct workload_plan){
        .accumulate = 1, .prefetch_layers = 1, .algorithm = algorithm_read("auto")};
    made.roofline.bound =
        (struct roofline_bound){.resource = ROOFLINE_MXU, .by = "mxu", .axis = -1};
    made.roofline.lower_s = made.roofline.math_s = 0.75;
    made.roofline.upper_s = 10;
    made.block = (struct program_block){.name = "layer", .repeat = 4, .layer_step = 1};
    made.role = (struct program_role){.block = &made.block, .block_count = 1, .slot_count = 4};
    made.program.roles = &made.role;
    made.program.role_count = 1;
    made.trace.memory.peak_slot = 2;
    made.trace.memory.peak_bytes = UINT64_C(24000000000);
    made.trace.memory.peak_at_ps = INT64_C(250000000000);
    for (uint32_t i = 0; i < NOTES_CASE_CLASSES; i++) /* Who looks beyond the last will say so. */
        made.class[i] = (struct analysis_class){.name = "beyond the last",
                                                .collective = i % 2 != 0,
                                                .of = STREAM_OF_FSDP,
                                                .verb = STREAM_REDUCE,
                                                .axis_bits = ANALYSIS_HOST_BIT,
                                                .count = 1,
                                                .time_s = 100,
                                                .exposed_s = 100,
                                                .hbm_excess_s = 100};
    made.analysis =
        (struct analysis){.step_s = 1, .compute_s = 1, .classes = made.class, .phase_count = 0};
    made.input = (struct report_input){.machine = &made.machine,
                                       .mesh = &made.mesh,
                                       .workload = &made.plan,
                                       .roofline = &made.roofline,
                                       .program = &made.program,
                                       .trace = &made.trace};
    return 0;
}

/* One more class of ops, to be filled in. */
static inline struct analysis_class *notes_case_class(const char *name)
{
    struct analysis_class *row = &made.class[made.analysis.class_count++];
    *row = (struct analysis_class){.name = name, .count = 1};
    return row;
}

/* One more collective of a stream, which takes a time and is exposed for another. */
static inline struct analysis_class *notes_case_collective(const char *name, uint32_t of,
                                                           double time_s, double exposed_s)
{
    struct analysis_class *row = notes_case_class(name);
    row->collective = true;
    row->runs = COLLECTIVE_ALL_REDUCE;
    row->of = of;
    row->time_s = time_s;
    row->exposed_s = exposed_s;
    return row;
}

/* One more group of a mesh axis, of so many ranks along an axis of the machine. */
static inline struct roofline_group *notes_case_group(uint32_t of, const char *name, uint32_t axis,
                                                      uint32_t ranks)
{
    struct roofline_group *group = &made.roofline.group[made.roofline.group_count++];
    *group = (struct roofline_group){.of = of, .name = name, .rank_count = ranks, .axes = 1};
    group->group.dimension_count = 1;
    group->group.dimension[0] =
        (struct group_dimension){.axis = axis,
                                 .size = ranks,
                                 .stride = 1,
                                 .ring = true,
                                 .name = machine_axis_name(&made.machine, axis)};
    return group;
}

static inline void notes_case_again(void)
{
    made.notes.count = made.notes.part_count = 0;
}

static inline void notes_case_print(void)
{
    for (uint32_t i = 0; i < made.notes.count; i++) print_error("said: %s\n", made.notes.text[i]);
    for (uint32_t i = 0; i < made.notes.part_count; i++)
        print_error("part: %s %g s\n", made.notes.part[i].name, made.notes.part[i].seconds);
}

/* The notes are these and no others; NULL ends them. */
#define notes_case_are(...)                                                                        \
    notes_case_are_at((const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)

static inline void notes_case_are_at(const char *const *wanted, const char *file, int line)
{
    for (uint32_t i = 0; wanted[i] != NULL || i < made.notes.count; i++) {
        if (wanted[i] != NULL && i < made.notes.count && strcmp(wanted[i], made.notes.text[i]) == 0)
            continue;
        notes_case_print();
        print_error("wanted: %s\n", wanted[i] == NULL ? "no more" : wanted[i]);
        _fail(file, line);
    }
}

#endif
