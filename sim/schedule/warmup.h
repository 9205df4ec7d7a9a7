/*
 * warmup.h: what schedules of one stage a rank share whose ranks begin one after the other: a
 * number of microbatches in flight, then a backward pass for each forward pass; and the bubble of
 * the ramp.
 */
#ifndef SIM_SCHEDULE_WARMUP_H
#define SIM_SCHEDULE_WARMUP_H

#include "sim/schedule/schedule.h"

/* `most`, or all microbatches if there are fewer. */
uint32_t warmup_in_flight(const struct schedule_request *request, uint32_t most);

/* Forward passes until `in_flight` microbatches are under way, then alternately, then backward. */
void warmup_list(const struct schedule_request *request, uint32_t rank, uint32_t in_flight,
                 struct schedule_list *list);

/* warmup_list() with backward passes that are split: each weight gradient waits for `late` further
 * input gradients of its rank. */
void warmup_split_list(const struct schedule_request *request, uint32_t rank, uint32_t in_flight,
                       uint32_t late, struct schedule_list *list);

/* What is in flight, and the weight gradients that then wait. */
struct schedule_peak warmup_split_peak(const struct schedule_request *request, uint32_t in_flight,
                                       uint32_t late);

/* (p-1)(F+B), always. */
struct schedule_formula warmup_formula(const struct schedule_request *request);

#endif
