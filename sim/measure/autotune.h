/*
 * autotune.h: where estimates lie close together and plans are cheap to play, what "auto" takes is
 * found by playing them.
 *
 * Estimates see no queues between items and no tiers that are oversubscribed for all of them at
 * once; a play does. It is bounded in messages, so that a sweep stays as fast as its own rows.
 */
#ifndef SIM_MEASURE_AUTOTUNE_H
#define SIM_MEASURE_AUTOTUNE_H

#include "sim/base/status.h"
#include "sim/choose/choose.h"

/* Ranks as choose_rank() does, then plays the first few, and puts the fastest before the others if
 * it is not the first already; their candidates then say what was simulated. "auto" takes the
 * first. Not simulated: what a tuner or NCCL's own formulas decide, tokens drawn at random, and
 * rankings whose first is not cheap. */
enum status autotune_choose(struct arena *arena, const struct choose_args *args, const char *where,
                            struct choose_ranking *ret_ranking, struct error *reterr);

#endif
