#include "sim/schedule/schedule_messages.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/schedule/schedule_check.h"

enum { REASON_BYTES = 128 };

/* A stage's part of a microbatch: where the passes stand in the list of its rank that make, and
 * need, what is sent; and what messages it has, a bit a kind. */
struct pass_pair {
    uint32_t forward, back;
    uint8_t seen;
};

struct check {
    const struct schedule *schedule;
    const struct schedule_messages *messages;
    struct pass_pair *pair; /* [stage][microbatch] */
    const char *where;
    struct error *reterr;
};

const char *schedule_message_word(enum schedule_message_kind kind)
{
    static const char *const words[] = {
#define X(name, word) word,
        SCHEDULE_MESSAGE_TABLE(X)
#undef X
    };
    SIM_ASSERT((uint32_t)kind < SCHEDULE_MESSAGE_KIND_COUNT);
    return words[kind];
}

static bool is_send(enum schedule_message_kind kind)
{
    return kind == SCHEDULE_SEND_FORWARD || kind == SCHEDULE_SEND_BACKWARD;
}

static bool is_forward(enum schedule_message_kind kind)
{
    return kind == SCHEDULE_SEND_FORWARD || kind == SCHEDULE_RECEIVE_FORWARD;
}

static struct pass_pair *pair_of(const struct check *check, uint32_t stage, uint32_t microbatch)
{
    return &check->pair[(uint64_t)stage * check->schedule->microbatch_count + microbatch];
}

/* What answers a message, which a stage has at the other end. */
static enum schedule_message_kind answer_kind(enum schedule_message_kind kind)
{
    static const enum schedule_message_kind answers[] = {
        [SCHEDULE_SEND_FORWARD] = SCHEDULE_RECEIVE_FORWARD,
        [SCHEDULE_SEND_BACKWARD] = SCHEDULE_RECEIVE_BACKWARD,
        [SCHEDULE_RECEIVE_FORWARD] = SCHEDULE_SEND_FORWARD,
        [SCHEDULE_RECEIVE_BACKWARD] = SCHEDULE_SEND_BACKWARD};
    return answers[kind];
}

/* Results go to higher stages, gradients to lower ones. */
static bool is_other_higher(enum schedule_message_kind kind)
{
    return is_send(kind) == is_forward(kind);
}

/* The stage at the other end; false: there is none. */
static bool other_stage(const struct check *check, enum schedule_message_kind kind, uint32_t stage,
                        uint32_t *ret_other)
{
    bool const is_higher = is_other_higher(kind);
    if (is_higher ? stage + 1 >= check->schedule->stage_count : stage == 0) return false;
    *ret_other = is_higher ? stage + 1 : stage - 1;
    return true;
}

static enum status refuse(const struct check *check, uint32_t rank,
                          const struct schedule_message *message, const char *reason)
{
    return error_set(check->reterr, STATUS_INVALID, check->where, "line %u, cell %u, %u%s%u: %s",
                     rank + 1, message->cell + 1, message->stage,
                     schedule_message_word((enum schedule_message_kind)message->kind),
                     message->microbatch, reason);
}

/* Why a message may not stand where it does; NULL if it may. What passes it is of is taken down. */
static const char *message_refused(const struct check *check, uint32_t rank,
                                   const struct schedule_message *message,
                                   char reason[REASON_BYTES])
{
    const struct schedule *schedule = check->schedule;
    enum schedule_message_kind const kind = (enum schedule_message_kind)message->kind;
    uint32_t const stage = message->stage;
    uint32_t other = 0;
    if (stage >= schedule->stage_count) {
        (void)snprintf(reason, REASON_BYTES, "no line has a pass of stage %u", stage);
        return reason;
    }
    if (message->microbatch >= schedule->microbatch_count) {
        (void)snprintf(reason, REASON_BYTES, "no line has a pass of microbatch %u",
                       message->microbatch);
        return reason;
    }
    if (schedule->rank_of[stage] != rank) {
        (void)snprintf(reason, REASON_BYTES, "stage %u is in line %u", stage,
                       schedule->rank_of[stage] + 1u);
        return reason;
    }
    if (!other_stage(check, kind, stage, &other)) {
        (void)snprintf(reason, REASON_BYTES, "stage %u is the %s and has none to %s", stage,
                       is_other_higher(kind) ? "last" : "first",
                       is_send(kind) ? "send to" : "receive from");
        return reason;
    }
    if (schedule->rank_of[other] == rank) {
        (void)snprintf(reason, REASON_BYTES,
                       "stage %u is in this line too, and a rank sends no message to itself",
                       other);
        return reason;
    }
    struct pass_pair *pair = pair_of(check, stage, message->microbatch);
    uint32_t const at = is_forward(kind) ? pair->forward : pair->back;
    char text[SCHEDULE_PASS_TEXT_BYTES];
    if ((pair->seen >> kind & 1) != 0) return "comes for the second time";
    if (is_send(kind) && message->before <= at) {
        (void)snprintf(reason, REASON_BYTES, "%s, whose result it sends, comes later",
                       schedule_pass_text(&schedule->rank[rank].pass[at], text));
        return reason;
    }
    if (!is_send(kind) && message->before > at) {
        (void)snprintf(reason, REASON_BYTES, "%s, which needs it, comes before it",
                       schedule_pass_text(&schedule->rank[rank].pass[at], text));
        return reason;
    }
    pair->seen |= (uint8_t)(1U << kind);
    return NULL;
}

/* Each send has its receive. */
static enum status answers_check(const struct check *check, uint32_t rank)
{
    const struct schedule_messages *list = &check->messages[rank];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_message *message = &list->message[i];
        enum schedule_message_kind const kind = (enum schedule_message_kind)message->kind;
        enum schedule_message_kind const answer = answer_kind(kind);
        uint32_t other = 0;
        char reason[REASON_BYTES];
        bool const found = other_stage(check, kind, message->stage, &other);
        SIM_ASSERT(found);
        if ((pair_of(check, other, message->microbatch)->seen >> answer & 1) != 0) continue;
        (void)snprintf(reason, sizeof reason, "line %u has no %u%s%u for it",
                       check->schedule->rank_of[other] + 1u, other, schedule_message_word(answer),
                       message->microbatch);
        return refuse(check, rank, message, reason);
    }
    return STATUS_OK;
}

/* Each pass has received what it needs of another rank. */
static enum status passes_check(const struct check *check, uint32_t rank)
{
    const struct schedule *schedule = check->schedule;
    const struct schedule_rank *list = &schedule->rank[rank];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        enum schedule_message_kind const kind =
            pass->kind == SCHEDULE_FORWARD ? SCHEDULE_RECEIVE_FORWARD : SCHEDULE_RECEIVE_BACKWARD;
        uint32_t other = 0;
        char text[SCHEDULE_PASS_TEXT_BYTES], place[SCHEDULE_PLACE_BYTES];
        if (pass->kind == SCHEDULE_WEIGHT || !other_stage(check, kind, pass->stage, &other) ||
            schedule->rank_of[other] == rank ||
            (pair_of(check, pass->stage, pass->microbatch)->seen >> kind & 1) != 0)
            continue;
        return error_set(check->reterr, STATUS_INVALID, check->where,
                         "%s, %s: needs a %u%s%u before it, and a %u%s%u in line %u, as others of "
                         "this file have",
                         schedule_place_text(schedule, rank, i, place),
                         schedule_pass_text(pass, text), pass->stage, schedule_message_word(kind),
                         pass->microbatch, other, schedule_message_word(answer_kind(kind)),
                         pass->microbatch, schedule->rank_of[other] + 1u);
    }
    return STATUS_OK;
}

static enum status all_check(const struct check *check)
{
    const struct schedule *schedule = check->schedule;
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[r].pass[i];
            struct pass_pair *pair = pair_of(check, pass->stage, pass->microbatch);
            if (pass->kind == SCHEDULE_FORWARD) pair->forward = i;
            if (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT) pair->back = i;
        }
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < check->messages[r].count; i++) {
            const struct schedule_message *message = &check->messages[r].message[i];
            char buffer[REASON_BYTES];
            const char *reason = message_refused(check, r, message, buffer);
            if (reason != NULL) return refuse(check, r, message, reason);
        }
    for (uint32_t r = 0; r < schedule->rank_count; r++) STATUS_TRY(answers_check(check, r));
    for (uint32_t r = 0; r < schedule->rank_count; r++) STATUS_TRY(passes_check(check, r));
    return STATUS_OK;
}

enum status schedule_messages_check(const struct schedule *schedule,
                                    const struct schedule_messages *messages, const char *where,
                                    struct error *reterr)
{
    void *memory = NULL;
    bool any = false;
    for (uint32_t r = 0; r < schedule->rank_count; r++) any = any || messages[r].count > 0;
    if (!any) return STATUS_OK;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the check");
    enum status status =
        arena_try(arena, (uint64_t)schedule->stage_count * schedule->microbatch_count,
                  sizeof(struct pass_pair), &memory, reterr);
    struct check const check = {schedule, messages, memory, where, reterr};
    if (status == STATUS_OK) status = all_check(&check);
    arena_destroy(arena);
    return status;
}
