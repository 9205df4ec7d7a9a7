#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_csv.h"
#include "sim/schedule/schedule_play.h"

static void add_pass(const struct schedule_pass *pass, struct text *text)
{
    char buffer[SCHEDULE_PASS_TEXT_BYTES];
    text_add(text, "%s", schedule_pass_text(pass, buffer));
}

/* A pass, or a pair; returns how many passes that was. */
static uint32_t add_action(const struct schedule_pass *pass, struct text *text)
{
    if (!pass->paired) {
        add_pass(pass, text);
        return 1;
    }
    text_add(text, "(");
    add_pass(pass, text);
    text_add(text, ";");
    add_pass(pass + 1, text);
    text_add(text, ")OVERLAP_F_B");
    return 2;
}

/* Idle slots as they are if every action takes one: so columns are instants. */
static void line_alone(const struct schedule_rank *rank, const struct schedule_lane *lane,
                       struct text *text)
{
    int64_t column = 0;
    for (uint32_t i = 0; i < rank->count;) {
        for (; column < lane->begin[i]; column++) text_add(text, ",");
        i += add_action(&rank->pass[i], text);
        column++;
        if (i < rank->count) text_add(text, ",");
    }
    text_add(text, "\n");
}

struct comms {
    const struct schedule *schedule;
    uint32_t *left;  /* [stage]: backward passes, or weight gradients, still to come. */
    bool *unsharded; /* [stage] */
    struct text *text;
};

static bool elsewhere(const struct schedule *schedule, const struct schedule_pass *pass, int step)
{
    int64_t const other = (int64_t)pass->stage + step;
    if (other < 0 || other >= schedule->stage_count) return false;
    return schedule_rank_of(schedule, (uint32_t)other, pass->microbatch) !=
           schedule_rank_of(schedule, pass->stage, pass->microbatch);
}

static void add_message(const struct comms *comms, const struct schedule_pass *pass,
                        const char *word)
{
    text_add(comms->text, "%u%s%u,", pass->stage, word, pass->microbatch);
}

/* What a pass needs before it: its weights, and what comes from other ranks. */
static void add_before(struct comms *comms, const struct schedule_pass *pass)
{
    bool const back = pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT;
    if (!comms->unsharded[pass->stage]) text_add(comms->text, "%uUNSHARD,", pass->stage);
    comms->unsharded[pass->stage] = true;
    if (pass->kind == SCHEDULE_FORWARD && elsewhere(comms->schedule, pass, -1))
        add_message(comms, pass, "RECV_F");
    if (back && elsewhere(comms->schedule, pass, 1)) add_message(comms, pass, "RECV_B");
}

static void add_after(struct comms *comms, const struct schedule_pass *pass)
{
    bool const back = pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT;
    if (pass->kind == SCHEDULE_FORWARD && elsewhere(comms->schedule, pass, 1))
        add_message(comms, pass, "SEND_F");
    if (back && elsewhere(comms->schedule, pass, -1)) add_message(comms, pass, "SEND_B");
    if (pass->kind != SCHEDULE_BACKWARD && pass->kind != SCHEDULE_WEIGHT) return;
    if (--comms->left[pass->stage] > 0) return;
    text_add(comms->text, "%uRESHARD,%uREDUCE_GRAD,", pass->stage, pass->stage);
    comms->unsharded[pass->stage] = false;
}

static void line_with_comms(struct comms *comms, const struct schedule_rank *rank)
{
    for (uint32_t i = 0; i < rank->count;) {
        uint32_t const count = rank->pass[i].paired ? 2 : 1;
        for (uint32_t k = 0; k < count; k++) add_before(comms, &rank->pass[i + k]);
        (void)add_action(&rank->pass[i], comms->text);
        text_add(comms->text, ",");
        for (uint32_t k = 0; k < count; k++) add_after(comms, &rank->pass[i + k]);
        i += count;
    }
    if (comms->text->size_bytes > 0 && !comms->text->failed) {
        comms->text->bytes[comms->text->size_bytes - 1] = '\n'; /* The last comma. */
    }
}

enum status schedule_csv_write(struct arena *arena, const struct schedule *schedule,
                               enum schedule_dialect dialect, struct text *text,
                               struct error *reterr)
{
    static const struct schedule_times slots = {
        .forward = 1, .input = 1, .weight = 1, .pair = 1, .backward = 1};
    if (schedule->copy_count > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, schedule->name,
                         "a stage of two copies lies on two ranks, which these files cannot say; "
                         "\"dualpipev\" is the same with one copy");
    void *memory = NULL;
    struct comms comms = {.schedule = schedule, .text = text};
    STATUS_TRY(arena_try(arena, schedule->stage_count, sizeof *comms.left, &memory, reterr));
    comms.left = memory;
    STATUS_TRY(arena_try(arena, schedule->stage_count, sizeof *comms.unsharded, &memory, reterr));
    comms.unsharded = memory;
    for (uint32_t s = 0; s < schedule->stage_count; s++) comms.left[s] = schedule->microbatch_count;
    struct schedule_played played;
    STATUS_TRY(schedule_play(arena, schedule, &slots, NULL, schedule->name, &played, reterr));
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        if (dialect == SCHEDULE_COMPUTE_ONLY)
            line_alone(&schedule->rank[r], &played.lane[r], text);
        else
            line_with_comms(&comms, &schedule->rank[r]);
    return STATUS_OK;
}
