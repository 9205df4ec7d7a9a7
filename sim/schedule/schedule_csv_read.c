#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/blank.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_csv.h"
#include "sim/schedule/schedule_messages.h"
#include "sim/schedule/schedule_traffic.h"

enum { SHOWN_BYTES = 40, STAGE_NOWHERE = 0xffff, CELLS_LOOKED_UP = 1 << 22 };

/* What a cell may say behind the number of its stage. */
enum word_sort { WORD_PASS, WORD_ACTION, WORD_MESSAGE, WORD_OLD };

static const struct word {
    const char *text;
    enum word_sort sort;
    uint32_t value; /* Of the enumeration of its sort. */
} words[] = {
#define X(word) {word, WORD_OLD, 0},
    X("BW") /* Before "B", with which "BW" begins. */
#undef X
#define X(name, letter, text) {letter, WORD_PASS, SCHEDULE_##name},
    SCHEDULE_KIND_TABLE(X)
#undef X
#define X(name, word) {word, WORD_ACTION, SCHEDULE_##name},
        SCHEDULE_ACT_TABLE(X)
#undef X
#define X(name, word) {word, WORD_MESSAGE, SCHEDULE_##name},
            SCHEDULE_MESSAGE_TABLE(X)
#undef X
};
enum { WORD_COUNT = sizeof words / sizeof *words };

static const char no_word[] = "no action; these are"
#define X(name, letter, text) " " letter
    SCHEDULE_KIND_TABLE(X)
#undef X
#define X(name, word) " " word
        SCHEDULE_ACT_TABLE(X) SCHEDULE_MESSAGE_TABLE(X)
#undef X
    ;

static const char old_word[] =
    "\"BW\" is an older letter for a whole backward pass; files of that age write \"B\" for the "
    "input gradient: write B for BW and I for B";

struct reader {
    struct arena *arena;
    const char *name;
    struct error *reterr;
    struct schedule *schedule;
    uint32_t line, cell; /* From 0. */
    struct schedule_list list;
    uint32_t *cells; /* Of the passes of the list. */
    struct schedule_action *action;
    uint32_t *action_cells;
    uint32_t action_count;
    struct schedule_messages *messages; /* [line] */
};

static enum status refuse(const struct reader *reader, const char *at, const char *end,
                          const char *reason)
{
    char shown[SHOWN_BYTES];
    size_t length = (size_t)(end - at);
    if (length >= sizeof shown) length = sizeof shown - 1;
    memcpy(shown, at, length);
    shown[length] = '\0';
    return error_set(reader->reterr, STATUS_INVALID, reader->name, "line %u, cell %u, \"%s\": %s",
                     reader->line + 1, reader->cell + 1, shown, reason);
}

/* A number at `at`, which then lies behind it, of what a cell `needs`. */
static enum status parse_uint(const struct reader *reader, const char *begin, const char *end,
                              const char *needs, uint32_t most, const char **at,
                              uint32_t *ret_number)
{
    const char *c = *at;
    const char *const of = *at == begin ? "stage" : "microbatch";
    char reason[80];
    uint64_t number = 0;
    for (; c < end && *c >= '0' && *c <= '9' && number <= most; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == *at) return refuse(reader, begin, end, needs);
    if (number > most) {
        (void)snprintf(reason, sizeof reason, "the number of its %s is more than the limit of %u",
                       of, most);
        return refuse(reader, begin, end, reason);
    }
    if (**at == '0' && c - *at > 1) {
        (void)snprintf(reason, sizeof reason, "the number of its %s begins with a needless 0", of);
        return refuse(reader, begin, end, reason);
    }
    *at = c;
    *ret_number = (uint32_t)number;
    return STATUS_OK;
}

static enum status pass_take(struct reader *reader, const char *begin, const char *end,
                             enum schedule_kind kind, uint32_t stage, uint32_t microbatch)
{
    struct schedule *schedule = reader->schedule;
    if (schedule->rank_of[stage] != STAGE_NOWHERE && schedule->rank_of[stage] != reader->line) {
        char reason[80];
        (void)snprintf(reason, sizeof reason, "stage %u is in line %u already", stage,
                       schedule->rank_of[stage] + 1u);
        return refuse(reader, begin, end, reason);
    }
    schedule->rank_of[stage] = (uint16_t)reader->line;
    if (stage >= schedule->stage_count) schedule->stage_count = stage + 1;
    if (microbatch >= schedule->microbatch_count) schedule->microbatch_count = microbatch + 1;
    reader->cells[reader->list.count] = reader->cell;
    schedule_add(&reader->list, kind, stage, microbatch);
    return STATUS_OK;
}

static void action_take(struct reader *reader, enum schedule_act act, uint32_t stage)
{
    reader->action_cells[reader->action_count] = reader->cell;
    reader->action[reader->action_count++] = (struct schedule_action){
        .before = reader->list.count, .stage = (uint16_t)stage, .act = (uint8_t)act};
    if (act == SCHEDULE_UNSHARD) reader->schedule->has_gathers = true;
    if (act == SCHEDULE_REDUCE) reader->schedule->has_reductions = true;
}

static void message_take(struct reader *reader, enum schedule_message_kind kind, uint32_t stage,
                         uint32_t microbatch)
{
    struct schedule_messages *messages = &reader->messages[reader->line];
    messages->message[messages->count++] = (struct schedule_message){.microbatch = microbatch,
                                                                     .cell = reader->cell,
                                                                     .before = reader->list.count,
                                                                     .stage = (uint16_t)stage,
                                                                     .kind = (uint8_t)kind};
}

/* One action, without brackets. */
static enum status action_read(struct reader *reader, const char *begin, const char *end,
                               bool must_be_pass)
{
    const char *at = begin;
    uint32_t stage = 0, microbatch = 0;
    STATUS_TRY(parse_uint(reader, begin, end, "does not begin with the number of a stage",
                          SCHEDULE_STAGES_MAX - 1, &at, &stage));
    for (uint32_t i = 0; i < WORD_COUNT; i++) {
        const struct word *word = &words[i];
        size_t const length = strlen(word->text);
        if ((size_t)(end - at) < length || memcmp(at, word->text, length) != 0) continue;
        at += length;
        if (word->sort == WORD_OLD) return refuse(reader, begin, end, old_word);
        if (word->sort != WORD_ACTION)
            STATUS_TRY(parse_uint(reader, begin, end, "needs the number of a microbatch at its end",
                                  SCHEDULE_MICROBATCHES_MAX - 1, &at, &microbatch));
        if (at != end) return refuse(reader, begin, end, "has text after its action");
        if (word->sort == WORD_PASS)
            return pass_take(reader, begin, end, (enum schedule_kind)word->value, stage,
                             microbatch);
        if (must_be_pass) break;
        if (word->sort == WORD_ACTION)
            action_take(reader, (enum schedule_act)word->value, stage);
        else
            message_take(reader, (enum schedule_message_kind)word->value, stage, microbatch);
        return STATUS_OK;
    }
    return refuse(reader, begin, end, must_be_pass ? "only passes overlap" : no_word);
}

/* "(0F2;3B0)OVERLAP_F_B" */
static enum status overlap_read(struct reader *reader, const char *begin, const char *end)
{
    static const char tail[] = ")" SCHEDULE_CSV_OVERLAP;
    size_t const length = sizeof tail - 1;
    const char *middle = memchr(begin, ';', (size_t)(end - begin));
    if (middle == NULL || (size_t)(end - begin) < length + 2 ||
        memcmp(end - length, tail, length) != 0)
        return refuse(reader, begin, end, "two passes overlap as in \"(0F2;3B0)OVERLAP_F_B\"");
    STATUS_TRY(action_read(reader, begin + 1, middle, true));
    reader->list.pass[reader->list.count - 1].paired = true;
    return action_read(reader, middle + 1, end - length, true);
}

static void blanks_trim(const char **begin, const char **end)
{
    while (*begin < *end && is_blank(**begin)) (*begin)++;
    while (*begin < *end && is_blank((*end)[-1])) (*end)--;
}

static enum status cell_read(struct reader *reader, const char *begin, const char *end)
{
    blanks_trim(&begin, &end);
    if (end - begin >= 2 && *begin == '"' && end[-1] == '"') {
        begin++;
        end--;
        blanks_trim(&begin, &end);
    }
    if (begin == end) return STATUS_OK;
    return *begin == '(' ? overlap_read(reader, begin, end)
                         : action_read(reader, begin, end, false);
}

/* What of a text may need memory, at most: idle slots do not, however many there are. */
struct contents {
    uint64_t cells, pairs, messages;
};

static struct contents contents_of(const char *begin, const char *end)
{
    struct contents contents = {0};
    bool is_filled = false;
    for (const char *c = begin; c < end; c++) {
        bool const ends = *c == ',' || *c == '\n';
        contents.cells += !ends && !is_filled && !is_blank(*c);
        is_filled = !ends && (is_filled || !is_blank(*c));
        contents.pairs += *c == ';';
        contents.messages += *c == '_'; /* Of "SEND_F0"; others have one as well. */
    }
    if (contents.messages > contents.cells) contents.messages = contents.cells;
    return contents;
}

/* Makes room for what a line has. */
static enum status line_open(struct reader *reader, const char *begin, const char *end)
{
    struct contents const contents = contents_of(begin, end);
    uint64_t const passes = contents.cells + contents.pairs;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(reader->arena, passes, sizeof *reader->list.pass, &memory, reader->reterr));
    reader->list = (struct schedule_list){memory, 0, (uint32_t)passes, SCHEDULE_MICROBATCHES_MAX};
    STATUS_TRY(arena_try(reader->arena, passes, sizeof *reader->cells, &memory, reader->reterr));
    reader->cells = memory;
    STATUS_TRY(arena_try(reader->arena, contents.cells, sizeof *reader->action_cells, &memory,
                         reader->reterr));
    reader->action_cells = memory;
    STATUS_TRY(
        arena_try(reader->arena, contents.cells, sizeof *reader->action, &memory, reader->reterr));
    reader->action = memory;
    reader->action_count = 0;
    if (contents.messages == 0) return STATUS_OK;
    STATUS_TRY(arena_try(reader->arena, contents.messages, sizeof(struct schedule_message), &memory,
                         reader->reterr));
    reader->messages[reader->line].message = memory;
    return STATUS_OK;
}

static enum status line_read(struct reader *reader, const char *begin, const char *end)
{
    STATUS_TRY(line_open(reader, begin, end));
    reader->cell = 0;
    for (const char *at = begin;; reader->cell++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        STATUS_TRY(cell_read(reader, at, comma == NULL ? end : comma));
        if (comma == NULL) break;
        at = comma + 1;
    }
    if (reader->list.count == 0)
        return error_set(reader->reterr, STATUS_INVALID, reader->name,
                         "line %u: there is no pass in it; each line is a rank", reader->line + 1);
    struct schedule *schedule = reader->schedule;
    schedule->rank[reader->line] = (struct schedule_rank){.pass = reader->list.pass,
                                                          .count = reader->list.count,
                                                          .cell = reader->cells,
                                                          .action = reader->action,
                                                          .action_count = reader->action_count,
                                                          .action_cell = reader->action_cells};
    return STATUS_OK;
}

static enum status whole_check(const struct reader *reader)
{
    struct schedule *schedule = reader->schedule;
    uint32_t most = 0;
    for (uint32_t s = 0; s < schedule->stage_count; s++)
        if (schedule->rank_of[s] == STAGE_NOWHERE)
            return error_set(reader->reterr, STATUS_INVALID, reader->name,
                             "stage %u is in no line, and there is a stage %u", s,
                             schedule->stage_count - 1);
    uint64_t const cells = (uint64_t)schedule->stage_count * schedule->microbatch_count;
    uint64_t passes = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) passes += schedule->rank[r].count;
    /* Which are missing is looked up in a table, of a size that a short file must not choose. */
    if (cells > SCHEDULE_PASSES_MAX || (passes < 2 * cells && cells > CELLS_LOOKED_UP))
        return error_set(reader->reterr, STATUS_LIMIT, reader->name,
                         "%u stages with %u microbatches need at least %llu passes; there are %llu",
                         schedule->stage_count, schedule->microbatch_count,
                         (unsigned long long)(2 * cells), (unsigned long long)passes);
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        uint32_t const count = schedule_rank_chunks(schedule, r);
        most = count > most ? count : most;
    }
    schedule->chunk_count = most;
    STATUS_TRY(schedule_check(schedule, NULL, reader->name, reader->reterr));
    STATUS_TRY(schedule_messages_check(schedule, reader->messages, reader->name, reader->reterr));
    return schedule_traffic_check(schedule, reader->name, reader->reterr);
}

enum status schedule_csv_read(struct arena *arena, const char *text, uint64_t size_bytes,
                              const char *name, struct schedule *ret_schedule, struct error *reterr)
{
    const char *end = text + size_bytes, *at = text;
    void *memory = NULL;
    uint32_t lines = 0;
    if (size_bytes > SCHEDULE_CSV_BYTES_MAX)
        return error_set(reterr, STATUS_LIMIT, name, "more than %d bytes", SCHEDULE_CSV_BYTES_MAX);
    while (end > at && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ')) end--;
    if (end == at) return error_set(reterr, STATUS_INVALID, name, "there is no line in it");
    for (const char *c = at; c < end; c++) lines += *c == '\n';
    if (++lines > SCHEDULE_RANKS_MAX)
        return error_set(reterr, STATUS_LIMIT, name, "%u lines are more than %d ranks", lines,
                         SCHEDULE_RANKS_MAX);
    struct contents const contents = contents_of(at, end);
    if (contents.cells + contents.pairs > SCHEDULE_PASSES_MAX)
        return error_set(reterr, STATUS_LIMIT, name, "%llu cells are more than %d passes",
                         (unsigned long long)contents.cells, SCHEDULE_PASSES_MAX);
    struct schedule schedule = {.name = name, .rank_count = lines, .copy_count = 1};
    STATUS_TRY(arena_try(arena, lines, sizeof *schedule.rank, &memory, reterr));
    schedule.rank = memory;
    STATUS_TRY(arena_try(arena, SCHEDULE_STAGES_MAX, sizeof *schedule.rank_of, &memory, reterr));
    schedule.rank_of = memset(memory, 0xff, SCHEDULE_STAGES_MAX * sizeof *schedule.rank_of);
    struct reader reader = {.arena = arena, .name = name, .reterr = reterr, .schedule = &schedule};
    STATUS_TRY(arena_try(arena, lines, sizeof *reader.messages, &memory, reterr));
    reader.messages = memory;
    for (; reader.line < lines; reader.line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        STATUS_TRY(line_read(&reader, at, newline == NULL ? end : newline));
        at = newline == NULL ? end : newline + 1;
    }
    STATUS_TRY(whole_check(&reader));
    *ret_schedule = schedule;
    return STATUS_OK;
}
