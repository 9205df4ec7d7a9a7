#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/letter.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/run/advise.h"
#include "tools/podsim/run/advise_row.h"

enum { SHOWN_MAX = 8, CHANGE_COLUMN = 31 };

enum { STATES = ADVISE_REFUSED + 1, EVENTS_MILLIONS = ADVISE_EVENTS_MAX / 1000000 };

static const char *const states[STATES] = {"simulated", "does not fit", "too many events",
                                           "refused"};

static struct table_figure look_least(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, ">%.1f%%", value.real);
    return figure;
}

/* What a screen has in place of the figures of JSON. */
struct shown {
    struct table_figure time;   /* The period, or else the step. */
    struct table_figure memory; /* The share of a chip's HBM. */
};

#define TABLE(X)                                                                                   \
    X(STATE, "state", WORDS(states[of->state]), SHOWN("", "MFU", 8, column_words))                 \
    X(FITS, "fits", WHERE(played || of->state == ADVISE_UNFIT, FLAG(played && of->fits)), HIDDEN)  \
    X(STEP, "step_time_s",                                                                         \
      WHERE(played, COLUMN_VALUE(COLUMN_REAL, .real = units_seconds(of->step_ps),                  \
                                 .said = shown->time.text)),                                       \
      SHOWN("", "step", 11, column_seconds))                                                       \
    X(PERIOD, "period_time_s", WHERE(played && of->has_period, SECONDS(of->time_ps)),              \
      SHOWN("", "period", 11, column_seconds))                                                     \
    X(MFU, "mfu", WHERE(played && of->mfu > 0, REAL(of->mfu)), SHOWN("", "MFU", 8, column_share))  \
    X(MEMORY, "memory_bytes", WHERE(played, HELD), SHOWN("", "memory", 9, column_bytes))           \
    X(LEAST, "least_bytes", WHERE(is_least, HELD), SHOWN("", "memory", 9, column_bytes))           \
    X(WHY, "why", WHERE(of->why != NULL, WORDS(of->why)), HIDDEN)
#define HELD COLUMN_VALUE(COLUMN_WHOLE, .whole = of->memory_bytes, .said = shown->memory.text)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t steps[] = {STEP, MFU, MEMORY};
static const uint8_t periods[] = {PERIOD, MFU, MEMORY};      /* The headings alone. */
static const uint8_t not_simulated[] = {STEP, STATE, LEAST}; /* Which says why. */
static const struct column_line steps_line = COLUMN_LINE(columns, steps);
static const struct column_line periods_line = COLUMN_LINE(columns, periods);
static const struct column_line not_simulated_line = COLUMN_LINE(columns, not_simulated);

static void find(const struct advise *advise, uint32_t row, struct shown *shown,
                 struct column_value *ret_values)
{
    const struct advise_row *of = &advise->row[row];
    bool const played = of->state == ADVISE_PLAYED;
    bool const is_least = !played && of->memory_bytes > 0;
    struct column_value const share = PERCENT(of->memory_bytes, advise->hbm_bytes);
    shown->time = column_seconds(SECONDS(of->time_ps));
    shown->memory = played ? column_percent(share) : look_least(share);
    TABLE(COLUMN_FIND)
}

/* Whether a row stands before another: simulated ones first, the faster before the slower; else as
 * they were tried. */
static bool is_before(const struct advise *advise, uint32_t one, uint32_t other)
{
    const struct advise_row *a = &advise->row[one], *b = &advise->row[other];
    bool const a_good = a->state == ADVISE_PLAYED && a->fits;
    bool const b_good = b->state == ADVISE_PLAYED && b->fits;
    if (a_good != b_good) return a_good;
    if (a->state == ADVISE_PLAYED && b->state == ADVISE_PLAYED && a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps;
    return one < other;
}

static void rows_sort(const struct advise *advise, uint32_t ret_order[ADVISE_ROWS_MAX])
{
    for (uint32_t i = 0; i < advise->count; i++) {
        uint32_t at = i;
        for (; at > 0 && is_before(advise, i, ret_order[at - 1]); at--)
            ret_order[at] = ret_order[at - 1];
        ret_order[at] = i;
    }
}

/* A mesh without the signs of JSON: "fsdp x,y,z:8 tp z:2". */
static void add_mesh(const char *json, struct strbuf *text)
{
    for (const char *c = json; *c != '\0'; c++) {
        if (c[0] == ':' && c[1] == '[')
            strbuf_add(text, " ");
        else if (c[0] == ']' && c[1] == ',')
            strbuf_add(text, " "), c++;
        else if (strchr("{}[]\"", *c) == NULL)
            strbuf_add_bytes(text, c, 1);
    }
}

/* "fsdp x,y tp z; remat=none": what is set, without the pointers to it. */
static void add_change(const struct advise_row *row, struct strbuf *text)
{
    static const char mesh[] = "/mesh=";
    if (row->setting_count == 0) strbuf_add(text, "as it is");
    for (uint32_t i = 0; i < row->setting_count; i++) {
        const char *from = row->setting[i], *const equals = strchr(from, '=');
        strbuf_add(text, "%s", i == 0 ? "" : "; ");
        if (strncmp(from, mesh, sizeof mesh - 1) == 0) {
            add_mesh(equals + 1, text);
            continue;
        }
        for (const char *c = row->setting[i]; c < equals; c++)
            if (*c == '/') from = c + 1;
        strbuf_add(text, "%s", from);
    }
}

static void add_row(const struct advise *advise, uint32_t index, struct strbuf *text)
{
    const struct advise_row *row = &advise->row[index];
    struct column_value values[COLUMN_TOTAL];
    struct shown shown;
    strbuf_add(text, index == advise->best ? " >" : "  ");
    find(advise, index, &shown, values);
    column_add_figures(row->state == ADVISE_PLAYED ? &steps_line : &not_simulated_line, values, 0,
                       false, text);
    strbuf_pad(text, CHANGE_COLUMN);
    add_change(row, text);
    if (row->why != NULL) strbuf_add(text, ": %s", row->why);
    strbuf_add(text, "\n");
}

/* One word of a shell, between quotes. */
static void add_quoted(const char *word, struct strbuf *text)
{
    strbuf_add(text, "'");
    for (const char *c = word; *c != '\0'; c++) {
        if (*c == '\'')
            strbuf_add(text, "'\\''");
        else
            strbuf_add_bytes(text, c, 1);
    }
    strbuf_add(text, "'");
}

/* The scenario as one word of a shell. A name stands for standard input, which was read and is
 * gone, and for a name that would command the terminal. */
static void add_operand(const char *operand, struct strbuf *text)
{
    bool is_plain = true, is_word = strcmp(operand, "-") != 0 && letters_are_plain(operand);
    for (const char *c = operand; *c != '\0'; c++) {
        bool const is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        is_plain =
            is_plain && (is_letter || (*c >= '0' && *c <= '9') || strchr("/._-+,:@%", *c) != NULL);
    }
    if (!is_word) {
        strbuf_add(text, "FILE");
        return;
    }
    if (*operand == '-') strbuf_add(text, "./"); /* Else it were an option. */
    if (is_plain)
        strbuf_add(text, "%s", operand);
    else
        add_quoted(operand, text);
}

/* A command that a shell takes as it stands, so no terminal breaks it elsewhere. */
static void add_setting(const char *setting, struct strbuf *text)
{
    uint32_t const width = (uint32_t)strlen(setting) + 9; /* And " \\" behind. */
    if (text->columns > 0 && strbuf_column(text) + width + 2 > text->columns)
        strbuf_add(text, " \\\n   ");
    strbuf_add(text, " --set ");
    add_quoted(setting, text);
}

/* Whether one of a row's settings says again what the command line has set. */
static bool is_overridden(const struct advise_row *row, const char *setting)
{
    for (uint32_t i = 0; i < row->setting_count; i++) {
        size_t const length = strcspn(row->setting[i], "=");
        if (strncmp(row->setting[i], setting, length) == 0 &&
            (setting[length] == '=' || setting[length] == '/'))
            return true;
    }
    return false;
}

static void add_command(const struct advise *advise, const struct advise_row *row,
                        const char *operand, struct strbuf *text)
{
    const struct session_source *source = advise->source;
    strbuf_add(text, "  podsim run ");
    add_operand(operand, text);
    for (uint32_t i = 0; i < source->setting_count; i++)
        if (!is_overridden(row, source->settings[i].text))
            add_setting(source->settings[i].text, text);
    for (uint32_t i = 0; i < row->setting_count; i++) add_setting(row->setting[i], text);
    strbuf_add(text, "\n");
}

/* The row with too many events that holds least; ADVISE_NONE: there is none. */
static uint32_t least_unknown(const struct advise *advise, uint32_t *ret_count)
{
    uint32_t least = ADVISE_NONE;
    *ret_count = 0;
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (row->state != ADVISE_TOO_LONG) continue;
        ++*ret_count;
        if (least == ADVISE_NONE || row->memory_bytes < advise->row[least].memory_bytes) least = i;
    }
    return least;
}

static bool any_played(const struct advise *advise)
{
    for (uint32_t i = 0; i < advise->count; i++)
        if (advise->row[i].state == ADVISE_PLAYED) return true;
    return false;
}

/* Whether those with too many events fit is not known: what they hold at least does. */
static void add_none(const struct advise *advise, const char *operand, struct strbuf *text)
{
    uint32_t count = 0;
    uint32_t const least = least_unknown(advise, &count);
    if (least == ADVISE_NONE) {
        strbuf_add(text, "none of them fits the memory of a chip\n");
        return;
    }
    strbuf_add(
        text,
        "%s; %u ha%s more than %d million events and may fit\n\n"
        "> the least memory of those (%s at least):\n",
        any_played(advise) ? "none of those simulated fits the memory of a chip"
                           : "none was simulated to its end",
        count, count == 1 ? "s" : "ve", EVENTS_MILLIONS,
        table_percent((double)advise->row[least].memory_bytes, (double)advise->hbm_bytes).text);
    add_command(advise, &advise->row[least], operand, text);
}

/* "12 neighbours of the scenario, simulated"; or how many were, and what became of the others. */
static void add_counts(const struct advise *advise, struct strbuf *text)
{
    uint32_t counts[STATES] = {0};
    for (uint32_t i = 0; i < advise->count; i++) counts[advise->row[i].state]++;
    strbuf_add(text, "\nadvice: %s of the scenario", counted(advise->count, "neighbour").text);
    if (counts[ADVISE_PLAYED] == advise->count) {
        strbuf_add(text, ", simulated\n");
        return;
    }
    strbuf_add(text, ": %u simulated", counts[ADVISE_PLAYED]);
    uint32_t const too_long = counts[ADVISE_TOO_LONG] + counts[ADVISE_UNFIT];
    if (too_long > 0)
        strbuf_add(text, ", %u not to the end, beyond %d million events", too_long,
                   EVENTS_MILLIONS);
    if (counts[ADVISE_UNFIT] > 0)
        strbuf_add(text, " (%u of them do%s not fit)", counts[ADVISE_UNFIT],
                   counts[ADVISE_UNFIT] == 1 ? "es" : "");
    if (counts[ADVISE_REFUSED] > 0) strbuf_add(text, ", %u refused", counts[ADVISE_REFUSED]);
    strbuf_add(text, "\n");
}

/* The first rows, and each that nothing is known of: it could be the best. */
static void add_rows(const struct advise *advise, const uint32_t *order, struct strbuf *text)
{
    uint32_t hidden = 0;
    for (uint32_t i = 0; i < advise->count; i++) {
        enum advise_state const state = advise->row[order[i]].state;
        if (i < SHOWN_MAX || state == ADVISE_TOO_LONG || state == ADVISE_REFUSED)
            add_row(advise, order[i], text);
        else
            hidden++;
    }
    if (hidden > 0) strbuf_add(text, "  %u more with --json\n", hidden);
}

/* What keeps the layout is said wherever its time ranks. */
static void add_turns(const struct advise *advise, struct strbuf *text)
{
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (!row->fits || row->setting_count != 1 || !advise_sets(row, "/run/arbitration"))
            continue;
        strbuf_add(text, "  with %s alone the step fits too: %s, %s of the memory\n",
                   row->setting[0], table_duration(row->time_ps).text,
                   table_percent((double)row->memory_bytes, (double)advise->hbm_bytes).text);
    }
}

/* As the scenario's own screen has it; where it was not simulated, as some neighbour has. */
static bool have_periods(const struct advise *advise)
{
    bool have = false;
    if (advise->row[0].state == ADVISE_PLAYED) return advise->row[0].has_period;
    for (uint32_t i = 0; i < advise->count; i++) have = have || advise->row[i].has_period;
    return have;
}

void advise_write_text(const struct advise *advise, const char *operand, struct strbuf *text)
{
    uint32_t order[ADVISE_ROWS_MAX] = {0};
    rows_sort(advise, order);
    add_counts(advise, text);
    if (advise->page > advise->own_page)
        strbuf_add(text,
                   "  totals use \"page\" %llu, not %llu: each step takes as long as the last of "
                   "its page\n",
                   (unsigned long long)advise->page, (unsigned long long)advise->own_page);
    column_add_headings(have_periods(advise) ? &periods_line : &steps_line, 1, 0, text);
    strbuf_pad(text, CHANGE_COLUMN);
    strbuf_add(text, "change\n");
    add_rows(advise, order, text);
    add_turns(advise, text);
    if (advise->best == ADVISE_NONE) {
        add_none(advise, operand, text);
        return;
    }
    strbuf_add(text, "\n> the best that fits%s:\n",
               order[0] == advise->best ? "" : " (one more change has to gain 0.5 %)");
    add_command(advise, &advise->row[advise->best], operand, text);
}

static const struct column head[] = {{.key = "best"}, {.key = "events_max"}};

void advise_write_json(const struct advise *advise, struct json_writer *json)
{
    json_put_object(json, "advice");
    struct column_value const of_all[] = {WHERE(advise->best != ADVISE_NONE, WHOLE(advise->best)),
                                          WHOLE(ADVISE_EVENTS_MAX)};
    column_put(head, of_all, 0, 1, json);
    json_put_array(json, "neighbours");
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        struct column_value values[COLUMN_TOTAL];
        struct shown shown;
        json_write_object(json);
        find(advise, i, &shown, values);
        column_put(columns, values, 0, WHY, json);
        json_put_array(json, "set");
        for (uint32_t s = 0; s < row->setting_count; s++) json_write_string(json, row->setting[s]);
        json_write_array_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_write_object_end(json);
}
