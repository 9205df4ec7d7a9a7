/*
 * mail.h: messages between ranks of different roles, and what waits for them.
 *
 * A SEND travels as a message of its plan does, but whom it reaches expects nothing: it is counted
 * there, on the stream of RECEIVEs that its own stream names, whatever the chip does at that
 * instant. A RECEIVE ends when its number has been counted.
 *
 * Who waits for a RECEIVE with nothing to do is idle. For as long as the message that ends the
 * wait was on its way that is waiting for a transfer, and before that a bubble: the sender had not
 * come so far. When a message could leave is kept for each; the receiver looks it up, an instant
 * that was written before and never changes.
 */
#ifndef SIM_REPLAY_MAIL_H
#define SIM_REPLAY_MAIL_H

#include "sim/replay/replay_internal.h"

/* The idle time of a chip. */
struct mail_wait {
    int64_t idle_ps;     /* Since it last computed, less what an earlier wait had of it. */
    int64_t transfer_ps; /* Of the wait that ended at the last instant of it, */
    bool ended;          /* if one did. */
    bool received;       /* It was for a RECEIVE, not for an own SEND. */
    int64_t waiting_ps;  /* For transfers, in all. */
    uint64_t sent_bytes;
};

struct mail {
    uint32_t *came;   /* [stream][chip]: messages of a stream of SENDs that came to the chip; those
                         that a stream of RECEIVEs has counted. */
    uint32_t *sender; /* [stream][chip]: whose messages come, of a stream of SENDs. */
    uint64_t *first;  /* [stream][chip]: in `left_ps`, of the chip's first message. */
    int64_t *left_ps; /* When each message was ready to leave. */
    int64_t *transfer_ps;    /* [stream][chip]: of the message that ended the last RECEIVE. */
    struct mail_wait *waits; /* [chip] */
};

/* Leaves replay->mail NULL where no stream sends or receives. Once the tables are there. */
enum status mail_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* A SEND begins. */
void mail_send(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A message of a stream of SENDs has come to a chip. */
void mail_arrive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A RECEIVE begins. */
void mail_receive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A chip begins its next step: messages of the ended one are no longer counted. */
void mail_again(struct replay *replay, uint32_t chip);
/* A SEND or RECEIVE ends. */
void mail_waited(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* A chip has done for so long what it does until now. */
void mail_account(struct replay *replay, uint32_t chip, int64_t span_ps);
/* How many messages of a lane of SENDs one chip may have under way: all of its step, and of the one
 * before where steps follow one another. */
uint64_t mail_bound(const struct replay *replay, uint32_t stream);

#endif
