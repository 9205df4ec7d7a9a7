/*
 * pass_times.h: what a schedule is told of a step before it is simulated. Internal to
 * sim/step.
 */
#ifndef SIM_STEP_PASS_TIMES_H
#define SIM_STEP_PASS_TIMES_H

#include "sim/schedule/schedule.h"
#include "sim/step/workload.h"

struct arena;
struct ranks;
struct step_part;

/* In picoseconds, for stages of one chunk a rank: a pass of each, and the longest hop between
 * neighbours. Errors: as ranks_make() and stages_build(). */
enum status pass_times_estimate(struct arena *arena, const struct workload_plan *plan,
                                const struct machine *machine, const struct mesh *mesh,
                                struct schedule_times *ret_times, struct error *reterr);

/* The time of a part of the model in a pass of inference, the pass of `ranks`, on one chip, in
 * picoseconds. Each op takes the longer of the times of its math and of its bytes of HBM; to these
 * the collectives over tp that compute waits for are added. */
int64_t pass_part_ps(const struct ranks *ranks, const struct step_part *part);

/* What input gradients leave to weight gradients, in millionths of what the forward pass saves: of
 * each stage, and of the model as a whole. Errors: as workload_lower(). */
enum status pass_memory_estimate(const struct workload_plan *plan, const struct machine *machine,
                                 const struct mesh *mesh, uint32_t stage_count,
                                 struct schedule_kept *ret_kept, uint32_t *ret_mean_ppm,
                                 struct error *reterr);

#endif
