#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_csv.h"
#include "sim/schedule/schedule_messages.h"
#include "sim/schedule/schedule_play.h"
#include "sim/schedule/schedule_traffic.h"

static void add_pass(const struct schedule_pass *pass, struct strbuf *text)
{
    char buffer[SCHEDULE_PASS_TEXT_BYTES];
    strbuf_add(text, "%s", schedule_pass_text(pass, buffer));
}

/* A pass, or a pair; returns how many passes that was. */
static uint32_t add_action(const struct schedule_pass *pass, struct strbuf *text)
{
    if (!pass->paired) {
        add_pass(pass, text);
        return 1;
    }
    strbuf_add(text, "(");
    add_pass(pass, text);
    strbuf_add(text, ";");
    add_pass(pass + 1, text);
    strbuf_add(text, ")" SCHEDULE_CSV_OVERLAP);
    return 2;
}

/* Idle slots as they are if every action takes one: so columns are instants. */
static void line_alone(const struct schedule_rank *rank, const struct schedule_lane *lane,
                       struct strbuf *text)
{
    int64_t column = 0;
    for (uint32_t i = 0; i < rank->count;) {
        for (; column < lane->begin[i]; column++) strbuf_add(text, ",");
        i += add_action(&rank->pass[i], text);
        column++;
        if (i < rank->count) strbuf_add(text, ",");
    }
    strbuf_add(text, "\n");
}

static bool elsewhere(const struct schedule *schedule, const struct schedule_pass *pass, int step)
{
    int64_t const other = (int64_t)pass->stage + step;
    if (other < 0 || other >= schedule->stage_count) return false;
    return schedule_rank_of(schedule, (uint32_t)other, pass->microbatch) !=
           schedule_rank_of(schedule, pass->stage, pass->microbatch);
}

static void add_message(const struct schedule *schedule, const struct schedule_pass *pass, int step,
                        enum schedule_message_kind kind, struct strbuf *text)
{
    if (!elsewhere(schedule, pass, step)) return;
    strbuf_add(text, "%u%s%u,", pass->stage, schedule_message_word(kind), pass->microbatch);
}

/* What comes from other ranks for a pass, and what they get of it. */
static void add_receives(const struct schedule *schedule, const struct schedule_pass *pass,
                         struct strbuf *text)
{
    if (pass->kind == SCHEDULE_FORWARD)
        add_message(schedule, pass, -1, SCHEDULE_RECEIVE_FORWARD, text);
    else if (pass->kind != SCHEDULE_WEIGHT)
        add_message(schedule, pass, 1, SCHEDULE_RECEIVE_BACKWARD, text);
}

static void add_sends(const struct schedule *schedule, const struct schedule_pass *pass,
                      struct strbuf *text)
{
    if (pass->kind == SCHEDULE_FORWARD)
        add_message(schedule, pass, 1, SCHEDULE_SEND_FORWARD, text);
    else if (pass->kind != SCHEDULE_WEIGHT)
        add_message(schedule, pass, -1, SCHEDULE_SEND_BACKWARD, text);
}

static void line_with_comms(const struct schedule *schedule, const struct schedule_rank *rank,
                            struct strbuf *text)
{
    uint32_t next = 0;
    for (uint32_t i = 0;;) {
        for (; next < rank->action_count && rank->action[next].before == i; next++)
            strbuf_add(text, "%u%s,", rank->action[next].stage,
                       schedule_act_word((enum schedule_act)rank->action[next].act));
        if (i == rank->count) break;
        uint32_t const count = rank->pass[i].paired ? 2 : 1;
        for (uint32_t k = 0; k < count; k++) add_receives(schedule, &rank->pass[i + k], text);
        (void)add_action(&rank->pass[i], text);
        strbuf_add(text, ",");
        for (uint32_t k = 0; k < count; k++) add_sends(schedule, &rank->pass[i + k], text);
        i += count;
    }
    if (text->size_bytes > 0 && !text->failed) {
        text->bytes[text->size_bytes - 1] = '\n'; /* The last comma. */
    }
}

/* Idle slots are told from a play in which every action takes one. */
static enum status lines_alone(struct arena *arena, const struct schedule *schedule,
                               struct strbuf *text, struct error *reterr)
{
    static const struct schedule_times slots = {
        .forward = 1, .input = 1, .weight = 1, .pair = 1, .backward = 1};
    struct schedule_played played;
    STATUS_TRY(schedule_play(arena, schedule, &slots, NULL, schedule->name, &played, reterr));
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        line_alone(&schedule->rank[r], &played.lane[r], text);
    return STATUS_OK;
}

enum status schedule_csv_check(const char *name, uint32_t copy_count, struct error *reterr)
{
    if (copy_count == 1) return STATUS_OK;
    return error_set(reterr, STATUS_UNSUPPORTED, name,
                     "a stage of two copies lies on two ranks, which these files cannot say; "
                     "\"dualpipev\" is the same with one copy");
}

enum status schedule_csv_write(struct arena *arena, const struct schedule *schedule,
                               enum schedule_dialect dialect, struct strbuf *text,
                               struct error *reterr)
{
    STATUS_TRY(schedule_csv_check(schedule->name, schedule->copy_count, reterr));
    if (dialect == SCHEDULE_COMPUTE_ONLY) return lines_alone(arena, schedule, text, reterr);
    struct schedule gathering = *schedule;
    if (!schedule->has_gathers && !schedule->has_reductions)
        STATUS_TRY(schedule_gather_ahead(arena, &gathering, SCHEDULE_STAGES_KEPT, reterr));
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        line_with_comms(&gathering, &gathering.rank[r], text);
    return STATUS_OK;
}
