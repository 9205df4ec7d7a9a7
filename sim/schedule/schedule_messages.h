/*
 * schedule_messages.h: sends and receives as a schedule's file lists them. Passes alone say what
 * goes from rank to rank and when, so messages are not kept: they are held to the passes. Neither
 * end blocks its rank; a pass waits for what it needs, wherever the receive stands before it.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_MESSAGES_H
#define SIM_SCHEDULE_SCHEDULE_MESSAGES_H

#include "sim/schedule/schedule.h"

/* Results go to the stage behind, gradients to the stage before. */
#define SCHEDULE_MESSAGE_TABLE(X)                                                                  \
    X(SEND_FORWARD, "SEND_F")                                                                      \
    X(SEND_BACKWARD, "SEND_B")                                                                     \
    X(RECEIVE_FORWARD, "RECV_F")                                                                   \
    X(RECEIVE_BACKWARD, "RECV_B")

enum schedule_message_kind {
#define X(name, word) SCHEDULE_##name,
    SCHEDULE_MESSAGE_TABLE(X)
#undef X
        SCHEDULE_MESSAGE_KIND_COUNT,
};

const char *schedule_message_word(enum schedule_message_kind kind); /* "SEND_F" */

struct schedule_message {
    uint32_t microbatch;
    uint32_t cell;   /* Of its line, from 0. */
    uint32_t before; /* The pass of the list that it stands before; the count: behind the last. */
    uint16_t stage;  /* Of the rank that sends or receives. */
    uint8_t kind;    /* enum schedule_message_kind */
};

/* Of one line, in order. */
struct schedule_messages {
    struct schedule_message *message;
    uint32_t count;
};

/* `messages`: [rank], of one whose passes hold (schedule_check.h), out of a file. None at all, or:
 * each result or gradient that another rank needs is sent once, by the rank of its stage behind the
 * pass, and received once, by the rank of the other stage before the pass that needs it; nothing
 * else is. Errors: STATUS_INVALID with line, cell and reason. */
enum status schedule_messages_check(const struct schedule *schedule,
                                    const struct schedule_messages *messages, const char *where,
                                    struct error *reterr);

#endif
