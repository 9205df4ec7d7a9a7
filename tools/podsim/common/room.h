/*
 * room.h: how many sequences would fit a step of inference.
 */
#ifndef TOOLS_PODSIM_COMMON_ROOM_H
#define TOOLS_PODSIM_COMMON_ROOM_H

#include "sim/report/inference_fit.h"
#include "tools/podsim/common/largest_batch.h"
#include "tools/podsim/common/session.h"

struct worker;

/* The largest batch that fits, by the memory of batches that are simulated: what a rank is padded
 * to and buffers of a pass do not grow in proportion. `session` was played and does not fit;
 * `room`: what its own memory lets expect. It becomes one number, unless those of a batch have
 * lengths given one by one, routing is drawn, or a step has more than `events_most` events; else it
 * stays. Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find(const struct session *session, uint64_t events_most, struct worker *worker,
                      struct inference_room *room, struct error *reterr);

/* Whether a chip of a step that was built up to the program holds no more than `hbm_bytes`, as far
 * as that is known: without playing it, or else by its first `events_most` events. `*ret_bytes`:
 * what it holds at least.
 * Errors: as session_replay(). */
enum status room_holds(struct session *built, double hbm_bytes, uint64_t events_most,
                       struct worker *worker, double *ret_bytes, bool *ret_holds,
                       struct error *reterr);

/* What is known before the largest batches are looked for. */
struct room_known {
    struct batch_held held[3]; /* Batches that were played or looked at. */
    uint32_t count;
    struct report_largest expected; /* By the memory of one step; 0: nothing is known of it. */
};

/* The largest batches of a step of inference that was built: by what batches hold, which is known
 * without playing them where their ops follow one another. Else they are played, if the steps have
 * at most a million events; for longer steps the memory held in the first million gives an
 * estimate. Prompts that are drawn and come in chunks differ with each number of sequences, so
 * these batches are estimated too: from the passes that hold most, to one part in 128.
 * Experts that are drawn take long, so that batches are those of an even load, which is an
 * estimate, too. `batch_of_gib` is left 0 unless `known` expects something. Nothing is found where
 * the lengths of the sequences that a batch counts are given one by one. Errors: STATUS_INTERRUPTED
 * if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find_largest(const struct session *session, const struct room_known *known,
                              struct worker *worker, struct report_largest *ret_largest,
                              struct error *reterr);

#endif
