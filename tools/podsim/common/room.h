/*
 * room.h: how many sequences would fit a step of inference.
 */
#ifndef TOOLS_PODSIM_COMMON_ROOM_H
#define TOOLS_PODSIM_COMMON_ROOM_H

#include "sim/report/inference_fit.h"
#include "tools/podsim/common/largest_batch.h"
#include "tools/podsim/common/session.h"

struct worker;

/* What a chip of a step holds. */
struct room_held {
    double bytes;     /* At least. */
    bool fits;        /* No more than the chip has, as far as is known. */
    bool is_estimate; /* The step has more events than were simulated, and may hold more. */
};

/* What a chip with `hbm_bytes` holds of a step that was built up to the program: known without
 * playing it, or else by its first `events_most` events. Errors: as session_replay(). */
enum status room_holds(struct session *built, double hbm_bytes, uint64_t events_most,
                       struct worker *worker, struct room_held *ret_held, struct error *reterr);

/* What is known before the largest batches are looked for. */
struct room_known {
    struct batch_held held[3]; /* Batches that were simulated or looked at. */
    uint32_t count;
    struct report_largest expected; /* By the memory of one step; 0: nothing is known of it. */
};

/* Finds the largest batches of a step of inference that was built, by the memory of batches. Where
 * the ops of a batch follow one another, its memory is known without a simulation. Other batches
 * are simulated, if the steps have at most a million events; for longer steps the memory held in
 * the first million gives an estimate. Drawn prompts that come in chunks differ with each number of
 * sequences, so their batches are estimated too: from the passes that hold most, to one part in
 * 128. To draw experts takes long, so batches with drawn experts have an even load, which is an
 * estimate, too. `batch_of_gib` is left 0 unless `known` expects something. Nothing is found where
 * the lengths of the sequences that a batch counts are given one by one. Errors: STATUS_INTERRUPTED
 * if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find_largest(const struct session *session, const struct room_known *known,
                              struct worker *worker, struct report_largest *ret_largest,
                              struct error *reterr);

#endif
