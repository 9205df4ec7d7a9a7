/* The table of `podsim pipeline FILE`: a row a schedule. */
#include <stdio.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/report.h"
#include "tools/podsim/staged.h"

enum {
    COLUMN_MICROBATCHES = 23,
    MEGA = 1000000,
    GIGA = 1000000000,
};

#define CELL_TABLE(X)                                                                              \
    X(PERIOD, 11, "", "period")                                                                    \
    X(STEP, 11, "", "step")                                                                        \
    X(MFU, 7, "", "MFU")                                                                           \
    X(BUBBLE, 11, "", "bubble")                                                                    \
    X(BUSIEST, 11, "of the", "busiest")                                                            \
    X(PER_STAGE, 11, "", "per stage")                                                              \
    X(SHARE_BUBBLE, 8, "idle:", "bubble")                                                          \
    X(SHARE_TRANSFER, 8, "trans-", "fer")                                                          \
    X(SHARE_EXPOSED, 8, "exposed", "coll.")                                                        \
    X(ACTIVATIONS, 10, "acti-", "vations")                                                         \
    X(MEMORY, 10, "all", "memory")                                                                 \
    X(PARAMETERS, 8, "para-", "meters")                                                            \
    X(SENT, 10, "sent a", "chip")                                                                  \
    X(FORMULA, 10, "bubble by", "formula")

enum cell {
#define X(name, width, above, title) CELL_##name,
    CELL_TABLE(X)
#undef X
        CELL_COUNT,
};

static const struct {
    uint32_t width;
    const char *above, *title;
} cells[] = {
#define X(name, width, above, title) {width, above, title},
    CELL_TABLE(X)
#undef X
};

struct staged_shares staged_shares(const struct staged_row *row)
{
    struct staged_shares shares = {0};
    uint32_t const ranks = row->of->schedule.rank_count;
    for (uint32_t r = 0; r < ranks; r++) {
        shares.bubble_s += units_seconds(row->role[r].bubble_ps) / ranks;
        shares.waiting_s += units_seconds(row->role[r].waiting_ps) / ranks;
        shares.exposed_s += units_seconds(row->role[r].exposed_ps) / ranks;
    }
    return shares;
}

/* "1.23 G" */
struct table_figure staged_parameters_text(uint64_t count)
{
    struct table_figure figure;
    bool const large = count >= GIGA;
    (void)snprintf(figure.text, sizeof figure.text, "%.3g %s",
                   (double)count / (large ? GIGA : MEGA), large ? "G" : "M");
    return figure;
}

static void fill(const struct staged_row *row, struct table_figure figure[CELL_COUNT])
{
    struct staged_shares const shares = staged_shares(row);
    double const step_s = units_seconds(row->step_ps);
    uint64_t activations = 0, sent = 0, parameters = 0;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++) {
        if (row->parameter_count[r] > parameters) parameters = row->parameter_count[r];
        const struct trace_role *role = &row->role[r];
        uint64_t const held = role->memory_each_peak_bytes[PROGRAM_MEMORY_ACTIVATIONS];
        activations = held > activations ? held : activations;
        sent = role->sent_bytes > sent ? role->sent_bytes : sent;
    }
    bool const has_formula = row->of->formula.measure != SCHEDULE_NO_FORMULA;
    figure[CELL_PERIOD] = table_duration(staged_period_ps(row));
    figure[CELL_STEP] = table_seconds(step_s);
    figure[CELL_MFU] = table_percent(row->mfu, 1);
    figure[CELL_BUBBLE] = table_duration(row->bubble.makespan_ps);
    figure[CELL_BUSIEST] = table_duration(row->bubble.busiest_ps);
    figure[CELL_PER_STAGE] = table_duration(row->bubble.per_rank_ps);
    figure[CELL_SHARE_BUBBLE] = table_percent(shares.bubble_s, step_s);
    figure[CELL_SHARE_TRANSFER] = table_percent(shares.waiting_s, step_s);
    figure[CELL_SHARE_EXPOSED] = table_percent(shares.exposed_s, step_s);
    figure[CELL_ACTIVATIONS] = table_bytes((double)activations);
    figure[CELL_MEMORY] = table_bytes((double)staged_peak_bytes(row));
    figure[CELL_PARAMETERS] = staged_parameters_text(parameters);
    figure[CELL_SENT] = table_bytes((double)sent);
    figure[CELL_FORMULA] = has_formula ? table_duration(row->of->formula.bubble_ticks)
                                       : (struct table_figure){.text = "-"};
}

static void write_head(uint32_t wider, struct text *text)
{
    for (uint32_t line = 0; line < 2; line++) {
        uint32_t at = wider + COLUMN_MICROBATCHES;
        text_add(text, line == 0 ? "" : "  schedule");
        table_right(text, at, line == 0 ? "micro-" : "batches");
        for (uint32_t c = 0; c < CELL_COUNT; c++)
            table_right(text, at += cells[c].width, line == 0 ? cells[c].above : cells[c].title);
        text_add(text, "\n");
    }
}

static void write_row(const struct staged_row *row, uint32_t wider, bool colour, struct text *text)
{
    struct table_figure figure[CELL_COUNT];
    uint32_t at = wider + COLUMN_MICROBATCHES;
    fill(row, figure);
    table_colour(text, colour && row->of->best, TABLE_GREEN);
    text_add(text, "%s", comparison_label(row->of).text);
    table_colour(text, colour && row->of->best, TABLE_PLAIN);
    table_right(text, at, table_count(row->of->microbatch_count).text);
    for (uint32_t c = 0; c < CELL_COUNT; c++) {
        bool const too_much = c == CELL_MEMORY && !row->fits;
        char cell[TABLE_FIGURE_BYTES + 2];
        (void)snprintf(cell, sizeof cell, "%s%s", figure[c].text, too_much ? "!" : "");
        table_colour(text, colour && too_much, TABLE_RED);
        table_right(text, at += cells[c].width, cell);
        table_colour(text, colour && too_much, TABLE_PLAIN);
    }
    text_add(text, "\n");
}

static uint32_t microbatches_columns(const struct comparison_row *row)
{
    return table_columns(table_count(row->microbatch_count).text);
}

uint32_t staged_table_write(const struct comparison *comparison,
                            const struct report_terminal *terminal, struct text *text)
{
    const struct staged *staged = comparison->owner;
    const struct comparison_row *rows = comparison->row;
    uint32_t const wider =
        comparison_widening(comparison, COLUMN_MICROBATCHES, microbatches_columns);
    text_add(text, "\n");
    uint64_t const table = table_open(text);
    write_head(wider, text);
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (rows[comparison->order[i]].refused.status == STATUS_OK)
            write_row(&staged->row[comparison->order[i]], wider, terminal->colour, text);
    table_close(text, table, wider + COLUMN_MICROBATCHES);
    return wider;
}
