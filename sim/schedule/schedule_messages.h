/*
 * schedule_messages.h: sends and receives as a schedule's file lists them. Passes alone say what
 * goes from rank to rank and when, so messages are not kept: they are held to the passes.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_MESSAGES_H
#define SIM_SCHEDULE_SCHEDULE_MESSAGES_H

#include "sim/schedule/schedule.h"

/* F: results, to the stage behind; B: gradients, to the stage before. */
enum schedule_message_kind {
    SCHEDULE_SEND_FORWARD,
    SCHEDULE_SEND_BACKWARD,
    SCHEDULE_RECEIVE_FORWARD,
    SCHEDULE_RECEIVE_BACKWARD,
    SCHEDULE_MESSAGE_KIND_COUNT,
};

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
