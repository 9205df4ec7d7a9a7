/*
 * roofline_case.h: a step of the bare MLP on a mesh, its roofline from counts made by hand.
 */
#ifndef TESTS_UNIT_ROOFLINE_CASE_H
#define TESTS_UNIT_ROOFLINE_CASE_H

#include <stdlib.h>
#include <string.h>

#include "sim/roofline/roofline.h"
#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

struct step {
    struct workload_case made;
    struct workload_counts counts;
    struct roofline roofline;
};

/* A machine of rings (or lines), with an fsdp and a tp axis on it, either of them NULL. */
static struct step *step_of(const char *shape, bool rings, const char *fsdp, const char *tp)
{
    struct step *step = calloc(1, sizeof *step);
    assert_non_null(step);
    assert_int_equal(case_build(&step->made, &case_mlp, shape, NULL, fsdp, tp), STATUS_OK);
    for (uint32_t i = 0; i < step->made.machine.axis_count; i++) step->made.machine.wrap[i] = rings;
    const char *const texts[] = {fsdp, tp};
    struct mesh_plan plan = {0};
    for (uint32_t i = 0; i < 2; i++) {
        if (texts[i] == NULL) continue;
        struct mesh_axis_plan *axis = &plan.axis[plan.axis_count++];
        axis->role = plan.order[plan.order_count++] = i == 0 ? MESH_FSDP : MESH_TP;
        char *text = arena_text(step->made.arena, texts[i]);
        for (char *rest = NULL, *part = strtok_r(text, " ", &rest); part != NULL;
             part = strtok_r(NULL, " ", &rest))
            axis->part[axis->part_count++] = part;
    }
    assert_int_equal(mesh_build(&plan, &step->made.machine, &step->made.mesh, &step->made.error),
                     STATUS_OK);
    return step;
}

static void step_free(struct step *step)
{
    case_free(&step->made);
    free(step);
}

/* The forward pass of the bare MLP: each of 8 layers' two matrices is gathered over fsdp, and over
 * tp the input is gathered and the output reduced. */
static void forward_counts(struct step *step, double tokens_per_chip)
{
    struct workload_counts *counts = &step->counts;
    const struct mesh *mesh = &step->made.mesh;
    double const layers = 8, width = 8192, mlp = 32768;
    double const tp = mesh->axis[MESH_TP].size, fsdp = mesh->axis[MESH_FSDP].size;
    double const chips = tp * fsdp, array = 2 * tokens_per_chip * chips / fsdp * width;
    uint32_t const microbatches = step->made.plan.accumulate;
    step->made.plan.batch_tokens = (uint64_t)(tokens_per_chip * chips + 0.5);
    counts->weights = (struct workload_weights){
        .gathers = microbatches, .reductions = step->made.plan.zero <= 1 ? 1 : microbatches};
    counts->matmul_flop = 4 * tokens_per_chip * width * mlp * layers;
    counts->padded_flop = counts->matmul_useful = counts->matmul_flop;
    counts->role[MESH_FSDP].group = mesh->axis[MESH_FSDP].group;
    counts->role[MESH_FSDP].gather_bytes = 2 * 2 * width * mlp / tp * layers;
    counts->role[MESH_FSDP].gather_count = fsdp > 1 ? 16 : 0;
    struct workload_traffic *of_tp = &counts->role[MESH_TP];
    of_tp->group = mesh->axis[MESH_TP].group;
    of_tp->gather_bytes = of_tp->scatter_bytes = array * layers;
    of_tp->gather_count = of_tp->scatter_count = tp > 1 ? 8 : 0;
    of_tp->critical_passes = tp > 1 ? 16 : 0;
    roofline_from_counts(&step->made.plan, &step->made.machine, mesh, counts, &step->roofline);
}

#endif
