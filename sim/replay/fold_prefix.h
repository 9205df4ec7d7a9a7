/*
 * fold_prefix.h: pipelines that are alike until a reduction between them, replayed as one until
 * then.
 *
 * What is replayed. A fold keeps chips apart that any plan of the step distinguishes. A reduction
 * at the end of the step can thus distinguish pipelines that were alike until then. Such a plan
 * refines the fold. So fold_build() folds the program once more, as it would be without refining
 * plans: to fewer chips, each of which stands for several of the whole run's, its images. Two
 * replays are set up. The prefix replays that fold until a rank comes near to a refining plan. Then
 * the whole replay takes over its state, and goes on.
 *
 * Why that is exact. A fold changes no instant of the program that it was made for (fold.h), and
 * until a refining plan begins the step is the program without them. So when the prefix stops,
 * each chip of the whole run would be in the state of the one that stands for it: counters, clocks,
 * links and inboxes (state_copy()). The events that wait for a chip would wait for each of its
 * images, under the same keys but for the discriminator, which says where a sender stands
 * (routed.h): the image's place is put for the chip's (event_key_of_image()). Counts hold for each
 * image: sums are multiplied, and the digest, whose records name the chip, takes a record for each
 * image during the prefix (prefix_digest_add()). Trees keep sums by replayed member, which
 * cannot be copied in this way; their plans count as refining.
 *
 * Where it stops. Before the slots in which an op with a refining plan may begin by its needs
 * (end_slots_find()). An error there cannot change a result: if such an op begins in the prefix,
 * the prefix is dropped, and the whole replay starts anew (prefix_op_begin(), prefix_holds()).
 */
#ifndef SIM_REPLAY_FOLD_PREFIX_H
#define SIM_REPLAY_FOLD_PREFIX_H

#include "sim/replay/stretch.h"

/* Adds a record to the digest for each chip that this one stands for. */
void prefix_digest_add(struct replay *prefix, int64_t now_ps, uint64_t key, uint32_t chip);
/* Of a prefix fold, and of further steps, which have no digest. */
void digest_add_apart(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip);

static inline void digest_add(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip)
{
    if (replay->breakdowns.digest_apart) {
        digest_add_apart(replay, now_ps, key, chip);
        return;
    }
    replay->tally.digest += digest_record(now_ps, key, chip);
    if (replay->recurrence.keeps) recur_digest_add(replay, now_ps, key, chip);
}

/* Of an event that a stretch may have: an op of compute, or a collective, ends. */
static inline void digest_add_own(struct replay *replay, int64_t now_ps, uint64_t key,
                                  uint32_t chip)
{
    digest_add(replay, now_ps, key, chip);
    if (stretch_is_recorded(replay, chip)) stretch_note_digest(replay, chip, now_ps, key);
}

/* Makes `prefix`, set up for whole->fold->prefix, the beginning of `whole`. False: a refining
 * plan comes too soon for that. */
enum status prefix_prepare(struct arena *arena, struct replay *prefix, struct replay *whole,
                           bool *ret_worthwhile, struct error *reterr);
/* An op with a plan begins. */
void prefix_op_begin(struct replay *prefix, const struct program_op *op);
/* Once the engine of `prefix` has stopped: whether the whole run can go on from here. */
bool prefix_holds(const struct replay *prefix);
/* Copies its state, and its events, into the whole run's. */
void prefix_continue(struct replay *prefix);
/* Where the first chip has ended its step, the run of further steps has been the same so far:
 * `further` goes on from here, and so does `first`. `ret_shared` false: not all state can be
 * copied, and nothing has been done. */
enum status prefix_share(struct arena *arena, struct replay *first, struct replay *further,
                         bool *ret_shared, struct error *reterr);

#endif
