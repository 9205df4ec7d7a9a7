/*
 * record_owner.h: the op that a recorded message belongs to, for the timeline of the link that it
 * crosses.
 *
 * The op is one of the sender, which may be elsewhere in its step than the chip at the link. A
 * message that names its receiver has the number of its collective in the stream (its epoch) in its
 * key. The ops of a stream follow one another, so the epoch leads from the sender's running op (in
 * a tree from the receiver's) to the message's op. A message on a fixed route has no room for an
 * epoch in its key. One lane's messages from one sender pass a link in order, so the shown chip
 * counts them: an op sends a known number of messages, and the count leads to the op.
 */
#ifndef SIM_REPLAY_RECORD_OWNER_H
#define SIM_REPLAY_RECORD_OWNER_H

#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct lane_table;
struct replay;

struct record_owner {
    uint16_t template_index;
    uint16_t op;
};

/* The ends and number of a message for a timeline: trace_record has the same fields. */
struct record_ends {
    uint32_t from, to, at; /* Chips of the machine. */
    uint32_t number;
};

/* Messages of a lane on a later link of their route. */
struct record_passing {
    uint32_t sender; /* UINT32_MAX: no message passes. */
    uint32_t count;  /* Messages that have passed. */
};

/* Builds nothing unless something is recorded. */
enum status record_owner_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* A chip begins an op with a plan. */
void record_owner_op_begin(struct replay *replay, uint32_t plan, uint32_t chip);
/* The owner of the collective or SEND that the chip runs on a stream. */
struct record_owner record_owner_running(struct replay *replay, uint32_t stream, uint32_t chip);
/* The owner of the `epoch`-th op of a stream, modulo 64. */
struct record_owner record_owner_of_epoch(struct replay *replay, uint32_t stream, uint32_t chip,
                                          uint32_t epoch);
/* The owner of the message that now takes the `hop`-th link of its route, hop > 0; a shown chip
 * owns the link. */
struct record_owner record_passing(struct replay *replay, const struct lane_table *lane,
                                   uint32_t chip, uint32_t hop);
/* The ends of a message that takes the `hop`-th link of a fixed route; a shown chip owns the link.
 * Where hop > 0, call after record_passing(). */
struct record_ends record_ends_fixed(const struct replay *replay, const struct lane_table *lane,
                                     uint32_t chip, uint32_t hop);

#endif
