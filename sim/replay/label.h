/*
 * label.h: whose bytes a recorded message carries, for the timeline of the link that it crosses.
 *
 * That is an op of its sender, whatever the chip at the link does: it may be elsewhere in its step,
 * or finished. A message that names its receiver says in its key which collective of the stream it
 * is part of (its epoch), and the ops of a stream follow one another: so from where the sender is,
 * or the receiver in a tree, that op is a number of ops back or ahead. A message on a fixed route
 * has no room for that in its key. But one lane's messages from one sender pass a link in their
 * order, so the shown chip counts them: an op sends a known number, and the count says whose turn
 * it is.
 */
#ifndef SIM_REPLAY_LABEL_H
#define SIM_REPLAY_LABEL_H

#include "sim/replay/replay_internal.h"

struct label {
    uint16_t template_index;
    uint16_t op;
};

/* What a timeline says of a message besides its op: trace_record has the same fields. */
struct label_ends {
    uint32_t from, to, at; /* Of the machine. */
    uint32_t number;
};

/* Messages of a lane on a later link of their route. */
struct label_passing {
    uint32_t sender; /* UINT32_MAX: none come by. */
    uint32_t count;  /* That have passed. */
};

/* Once it is known whether anything is recorded; else nothing is taken. */
enum status label_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* A chip begins an op with a plan. */
void label_op_begin(struct replay *replay, uint32_t plan, uint32_t chip);
/* Of the collective or SEND that the chip runs on a stream. */
struct label label_running(struct replay *replay, uint32_t stream, uint32_t chip);
/* Of the op that was its stream's `epoch`-th, modulo 64. */
struct label label_of_epoch(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t epoch);
/* Of the message that now takes the `hop`-th link of its route, hop > 0, which a shown chip owns.
 */
struct label label_passing(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                           uint32_t hop);
/* Ends of a message that takes the `hop`-th link of a fixed route, which a shown chip owns; where
 * hop > 0, after label_passing(). */
struct label_ends label_ends_fixed(const struct replay *replay, const struct lane_table *lane,
                                   uint32_t chip, uint32_t hop);

#endif
