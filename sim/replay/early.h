/*
 * early.h: pipelines that are alike until reductions between them tell them apart, replayed as one
 * until then.
 *
 * A fold may name an early fold of fewer chips, and the plans that end it (fold.h). Then two
 * replays are set up: the early one plays until a rank comes near to such a plan, and all that it
 * knows is copied to every chip that its chips stand for: counters, queues, events under way. Up to
 * there no event of the whole run can tell those chips apart: their messages meet in units of the
 * switches that hold a whole group, and ties between messages that meet are decided by where in
 * such a unit they come from. So the whole run goes on as if it had played from the beginning, with
 * its digest, which counts what the early run plays once for each of them.
 *
 * Should a late plan begin before its time has been seen to come, all is played from the beginning.
 */
#ifndef SIM_REPLAY_EARLY_H
#define SIM_REPLAY_EARLY_H

#include "sim/replay/replay_internal.h"

/* Into the digest, as all the chips that this one stands for. */
void early_digest_add(struct replay *early, int64_t now_ps, uint64_t order, uint32_t chip);

static inline void digest_add(struct replay *replay, int64_t now_ps, uint64_t order, uint32_t chip)
{
    if (replay->spread != NULL)
        early_digest_add(replay, now_ps, order, chip);
    else
        replay->digest += digest_record(now_ps, order, chip);
}

/* Makes `early`, set up for whole->fold->early, the beginning of `whole`. False: a late plan comes
 * too soon for that. */
enum status early_prepare(struct arena *arena, struct replay *early, struct replay *whole,
                          bool *ret_worthwhile, struct error *reterr);
/* An op with a plan begins. */
void early_op_begin(struct replay *early, const struct program_op *op);
/* Once the engine of `early` has stopped: whether the whole run can go on from here. */
bool early_holds(const struct replay *early);
/* Copies its state, and its events, into the whole run's. */
void early_spread(struct replay *early);

#endif
