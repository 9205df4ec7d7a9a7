/*
 * p2p.h: messages between ranks of different roles, and what waits for them.
 *
 * A SEND is sent as a message of its plan. Its receiver runs no collective for it: the message is
 * counted on the stream of RECEIVEs that its own stream names, whatever the chip does at that
 * instant. A RECEIVE ends when its number has been counted.
 *
 * A chip that waits for a RECEIVE without other work is idle. While the message that ends the wait
 * is in flight, the chip waits for a transfer; before that the wait is a bubble, since the sender
 * has not come so far. The instant at which each message was ready to leave is kept, and the
 * receiver looks it up: it was written before and never changes.
 */
#ifndef SIM_REPLAY_P2P_H
#define SIM_REPLAY_P2P_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/program/program.h"

struct arena;
struct replay;

/* The idle time of a chip. */
struct p2p_wait {
    int64_t idle_ps; /* Since the chip last computed, less the parts of earlier waits. */
    int64_t phase_ps[PROGRAM_PHASE_COUNT]; /* The parts of idle_ps by the compute stream's phase. */
    int64_t transfer_ps; /* Transfer time of the wait that ended last, if `ended`. */
    bool ended;          /* A wait ended at the last instant of idle_ps. */
    bool received; /* The wait that ended last was for a RECEIVE, not for a SEND of the chip. */
    int64_t waiting_ps; /* Waits for transfers, in all. */
    uint64_t sent_bytes;
};

struct p2p {
    uint32_t *came;   /* [stream][chip]: of a stream of SENDs, messages that came to the chip, also
                         of later steps than its own; of a stream of RECEIVEs, messages of its own
                         step that it has counted. */
    uint32_t *sender; /* [stream][chip]: of a stream of SENDs, the sender of the messages. */
    uint64_t *first;  /* [stream][chip]: index in `left_ps` of the chip's first message. */
    int64_t *left_ps; /* Instant at which each message was ready to leave. */
    int64_t *transfer_ps;   /* [stream][chip]: of the message that ended the last RECEIVE. */
    struct p2p_wait *waits; /* [chip] */
};

/* Leaves replay->p2p NULL where no stream sends or receives. Needs the tables. */
enum status p2p_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* A SEND begins. */
void p2p_send(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A message of a stream of SENDs has come to a chip. */
void p2p_arrive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A RECEIVE begins. */
void p2p_receive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A chip begins its next step: messages of the ended one, all of which have come, are no longer
 * counted, and those of the next that came early are. */
void p2p_again(struct replay *replay, uint32_t chip);
/* A SEND or RECEIVE ends. */
void p2p_waited(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A chip has been in one state for `span_ps`, until now. */
void p2p_account(struct replay *replay, uint32_t chip, int64_t span_ps);
/* The most messages of a lane of SENDs that one chip may have in flight: all of its step, and of
 * all earlier steps where steps follow one another, as a sender need not wait for its receiver. */
uint64_t p2p_bound(const struct replay *replay, uint32_t stream);

#endif
