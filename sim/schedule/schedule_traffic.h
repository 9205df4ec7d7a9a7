/*
 * schedule_traffic.h: when a rank gathers the weights of its stages, gives them up and reduces
 * their gradients, where they are kept for more than a pass.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_TRAFFIC_H
#define SIM_SCHEDULE_SCHEDULE_TRAFFIC_H

#include "sim/schedule/schedule.h"

/* Stages of a rank that PyTorch's runtime has gathered at a time: one that runs forward, one that
 * runs backward, and one that comes next. */
enum { SCHEDULE_STAGES_KEPT = 3 };

/* Whether the rank does the backward pass of a stage and microbatch right behind the forward pass,
 * and pairs neither pass with another. `index` may be of either pass. */
bool schedule_turns_at_once(const struct schedule_rank *list, uint32_t index);

/* Of a schedule that does not gather yet, which gets lists of ranks of its own.
 *
 * Every stage is gathered at the start, in the order of first passes, and given up behind its last
 * pass. Gradients are reduced with it, unless actions of the schedule say when; so below. */
enum status schedule_gather_once(struct arena *arena, struct schedule *schedule,
                                 struct error *reterr);

/* As PyTorch does: before each pass the next `kept` stages that passes will be of are gathered, as
 * far as they are not, and others are given up; gradients are reduced behind a stage's last. */
enum status schedule_gather_ahead(struct arena *arena, struct schedule *schedule, uint32_t kept,
                                  struct error *reterr);

/* Of actions out of a file: passes are of gathered stages, if any is gathered; no stage is gathered
 * twice, or for nothing; gradients are reduced once, behind all that adds to them. Errors:
 * STATUS_INVALID with line, cell and reason. */
enum status schedule_traffic_check(const struct schedule *schedule, const char *where,
                                   struct error *reterr);

#endif
