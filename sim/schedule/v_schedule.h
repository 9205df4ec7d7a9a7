/*
 * v_schedule.h: schedules of two stages a rank in a V that repeat a building block: every sixth
 * slot begins a microbatch, whose passes keep fixed distances from rank to rank. Short distances
 * mean a short life of activations.
 *
 * Source: Qi et al., Pipeline Parallelism with Controllable Memory (arXiv 2405.15362).
 */
#ifndef SIM_SCHEDULE_V_SCHEDULE_H
#define SIM_SCHEDULE_V_SCHEDULE_H

#include "sim/schedule/schedule.h"

/* The slots of the first microbatch's passes on a rank: forward down and up, input gradient down
 * and up; no two may be equal modulo 6 on one rank. */
struct v_schedule_block {
    uint32_t slot[4];
};

typedef struct v_schedule_block v_schedule_block_fn(uint32_t rank_count, uint32_t rank);

/* Repeats the block, then draws passes of the beginning and the end together as far as memory
 * allows: no rank holds more than the repeated block does. */
enum status v_schedule_list(struct arena *arena, const struct schedule_request *request,
                            v_schedule_block_fn *block, struct schedule_list *lists,
                            struct error *reterr);

/* No closed form: `text` says about what it is. */
struct schedule_formula v_schedule_formula(const char *text);

/* Of `shares` whole shares of a rank, or all there are: the same on every rank. */
struct schedule_peak v_schedule_peak(const struct schedule_request *request, uint32_t shares);

#endif
