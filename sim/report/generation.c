#include "sim/report/generation.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/column_table.h"
#include "sim/report/table_fit.h"

enum { ROWS_SHOWN = 12, LABEL_COLUMNS = 17, PERCENT_HALF = 50, PERCENT_TAIL = 99 };

static uint64_t steps_of(const struct generation_page *page)
{
    return page->last == 0 ? 0 : page->last - page->first + 1;
}

/* --- Times --- */

enum status generation_begin(struct arena *arena, const struct report_input *input, uint64_t output,
                             uint32_t pages, struct generation *ret_generation,
                             struct error *reterr)
{
    struct analysis analysis;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, pages, sizeof *ret_generation->page, &memory, reterr));
    *ret_generation = (struct generation){.page = memory,
                                          .infers = input->roofline != NULL,
                                          .output = output,
                                          .chips = input->machine->chip_count};
    if (!ret_generation->infers) return STATUS_OK;
    STATUS_TRY(analysis_build(arena, input, &analysis, reterr));
    struct inference_analysis const inference = inference_analysis_of(input, &analysis);
    ret_generation->fit = inference.fit;
    ret_generation->fit_of_gib = inference.fit_of_gib;
    ret_generation->page_steps = input->workload->inference.generation.page;
    ret_generation->sequences = input->workload->inference.prompts.count;
    return STATUS_OK;
}

/* The clock ends at TIME_PS_END, and so does the sum of what it has told. */
static enum status end_set(const struct generation *generation, struct generation_page *page,
                           const struct generation_page *former, struct error *reterr)
{
    uint64_t const step_ps = (uint64_t)page->step_ps;
    uint64_t const room_ps = (uint64_t)(TIME_PS_END - (former == NULL ? 0 : former->end_ps));
    if (former == NULL || steps_of(page) <= room_ps / (step_ps > 0 ? step_ps : 1)) {
        page->end_ps =
            former == NULL ? page->step_ps : former->end_ps + (int64_t)(steps_of(page) * step_ps);
        return STATUS_OK;
    }
    uint64_t const fit = former->last + room_ps / step_ps;
    char nearest[64] = "";
    if (fit > 0)
        (void)snprintf(nearest, sizeof nearest, "; an output of %llu goes",
                       (unsigned long long)fit);
    return error_set(reterr, STATUS_LIMIT, generation->infers ? "/workload/output" : "",
                     "%s would take longer than %lld days, which is more than a run can count%s",
                     counted(page->last, "step").text,
                     (long long)(TIME_PS_END / (86400 * TIME_PS_PER_S)), nearest);
}

enum status generation_add(struct arena *arena, const struct report_input *input, uint64_t last,
                           struct generation *generation, struct error *reterr)
{
    struct generation_page *page = &generation->page[generation->page_count];
    uint64_t const before = generation->page_count == 0 ? 0 : page[-1].last;
    struct analysis analysis;
    STATUS_TRY(analysis_build(arena, input, &analysis, reterr));
    *page = (struct generation_page){.first = last == 0 ? 0 : before + 1,
                                     .last = last,
                                     .step_ps = input->trace->step_ps,
                                     .compute_s = analysis.compute_s,
                                     .exposed_s = analysis.exposed_s,
                                     .idle_s = analysis.idle_s};
    if (generation->infers)
        page->inference = inference_analysis_of(input, &analysis);
    else /* A step gives a token to each. */
        generation->sequences = input->program->tokens;
    STATUS_TRY(end_set(generation, page, last == 0 ? NULL : page - 1, reterr));
    if (last == 0)
        (void)snprintf(page->name, sizeof page->name, "prefill");
    else if (page->first == last)
        (void)snprintf(page->name, sizeof page->name, "%s", table_count(last).text);
    else
        (void)snprintf(page->name, sizeof page->name, "%.24s to %.24s",
                       table_count(page->first).text, table_count(last).text);
    generation->page_count++;
    return STATUS_OK;
}

static uint64_t steps_within(const struct generation *generation, int64_t most_ps)
{
    uint64_t steps = 0;
    for (uint32_t i = 1; i < generation->page_count; i++)
        if (generation->page[i].step_ps <= most_ps) steps += steps_of(&generation->page[i]);
    return steps;
}

/* The shortest time that `percent` of the steps do not exceed: by halves, so that nothing has to be
 * sorted. It is some step's. */
static int64_t quantile(const struct generation *generation, uint64_t percent)
{
    uint64_t const wanted = units_ceil_divide(generation->output * percent, 100);
    int64_t least = generation->times.least_ps, most = generation->times.most_ps;
    while (least < most) {
        int64_t const middle = least + (most - least) / 2;
        if (steps_within(generation, middle) >= wanted)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}

void generation_end(struct generation *generation)
{
    struct generation_times *times = &generation->times;
    *times = (struct generation_times){.least_ps = INT64_MAX};
    for (uint32_t i = 1; i < generation->page_count; i++) {
        int64_t const step_ps = generation->page[i].step_ps;
        times->least_ps = step_ps < times->least_ps ? step_ps : times->least_ps;
        times->most_ps = step_ps > times->most_ps ? step_ps : times->most_ps;
    }
    times->half_ps = quantile(generation, PERCENT_HALF);
    times->tail_ps = quantile(generation, PERCENT_TAIL);
}

int64_t generation_total_ps(const struct generation *generation)
{
    return generation->page[generation->page_count - 1].end_ps;
}

double generation_book_s(const struct generation *generation)
{
    double book_s = generation->page[0].inference.book.step_s;
    for (uint32_t i = 1; i < generation->page_count; i++)
        book_s +=
            (double)steps_of(&generation->page[i]) * generation->page[i].inference.book.step_s;
    return book_s;
}

uint64_t generation_tokens(const struct generation *generation)
{
    return generation->sequences * (generation->output + 1);
}

static double total_s(const struct generation *generation)
{
    return units_seconds(generation_total_ps(generation));
}

static double mean_s(const struct generation *generation)
{
    int64_t const steps_ps = generation_total_ps(generation) - generation->page[0].step_ps;
    return units_seconds(steps_ps) / (double)generation->output;
}

static double tokens_per_s(const struct generation *generation)
{
    return (double)generation_tokens(generation) / total_s(generation);
}

/* --- Rows --- */

/* Of a sequence, in the mean. */
static uint64_t context_of(const struct generation_page *page)
{
    return page->inference.context_tokens / page->inference.sequences;
}

#define INFERRED(value) WHERE(generation->infers, value)
#define TABLE(X)                                                                                   \
    X(STEPS, NULL, WORDS(page->name), SHOWN("", "steps", -17, column_words))                       \
    X(FIRST, "first_step", WHOLE(page->first), HIDDEN)                                             \
    X(LAST, "last_step", WHOLE(page->last), HIDDEN)                                                \
    X(CONTEXT, NULL, INFERRED(WHOLE(context_of(page))), SHOWN("", "context", 9, column_count))     \
    X(CONTEXTS, "context_tokens", INFERRED(WHOLE(page->inference.context_tokens)), HIDDEN)         \
    X(STEP, "step_time_s", SECONDS(page->step_ps), SHOWN("", "each", 10, column_seconds))          \
    X(END, "end_s", SECONDS(page->end_ps), SHOWN("", "until", 10, column_seconds))                 \
    X(COMPUTE, "compute_s", REAL(page->compute_s), HIDDEN)                                         \
    X(EXPOSED, "exposed_communication_s", REAL(page->exposed_s),                                   \
      SHOWN("", "exposed", 10, column_seconds))                                                    \
    X(IDLE, "idle_s", REAL(page->idle_s), HIDDEN)                                                  \
    X(LINEAR, "linear_s", INFERRED(REAL(page->inference.linear_s)),                                \
      SHOWN("", "linear", 10, column_seconds))                                                     \
    X(ATTENTION, "attention_s", INFERRED(REAL(page->inference.attention_s)),                       \
      SHOWN("", "attention", 10, column_seconds))                                                  \
    X(OTHER, "other_s", INFERRED(REAL(page->inference.other_s)),                                   \
      SHOWN("", "other", 10, column_seconds))                                                      \
    X(BOOK, "book_step_s", INFERRED(REAL(page->inference.book.step_s)),                            \
      SHOWN("", "book", 10, column_seconds))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t screen[] = {STEPS,  CONTEXT,   STEP,  END, EXPOSED,
                                 LINEAR, ATTENTION, OTHER, BOOK};
static const uint8_t of_text[] = {STEPS, STEP, END, EXPOSED};
static const uint8_t csv[] = {FIRST,   LAST, CONTEXTS, STEP,      END,   COMPUTE,
                              EXPOSED, IDLE, LINEAR,   ATTENTION, OTHER, BOOK};
const struct column_line generation_cells = COLUMN_LINE(columns, csv);

static void find(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct generation *generation = owner;
    const struct generation_page *page = &generation->page[row];
    TABLE(COLUMN_FIND)
}

static const struct column_line text_line = COLUMN_LINE(columns, of_text);
static const struct column_table table = {columns, COLUMN_TOTAL, COLUMN_LINE(columns, screen),
                                          find};

void generation_write_csv(const struct generation *generation, struct strbuf *text)
{
    column_add_keys(&generation_cells, text);
    strbuf_add(text, "\n");
    for (uint32_t row = 0; row < generation->page_count; row++) {
        struct column_value values[COLUMN_TOTAL];
        find(generation, row, values);
        column_add_cells(&generation_cells, values, text);
        strbuf_add(text, "\n");
    }
}

/* --- Figures of the whole --- */

#define FIGURES(X)                                                                                 \
    X(SEQUENCES, "sequences", WHOLE(generation->sequences), HIDDEN)                                \
    X(OUTPUT, "output", WHOLE(generation->output), HIDDEN)                                         \
    X(PAGE, "page", INFERRED(WHOLE(generation->page_steps)), HIDDEN)                               \
    X(TOTAL, "total_s", REAL(total_s(generation)), NAMED("total", column_instant))                 \
    X(FIRST_TOKEN, "first_token_s", SECONDS(generation->page[0].step_ps),                          \
      NAMED("first token", column_instant))                                                        \
    X(FIRST_SHARE, NULL, REAL(units_seconds(generation->page[0].step_ps) / total_s(generation)),   \
      IN_WORDS(column_share))                                                                      \
    X(MEAN, "mean_s", REAL(mean_s(generation)), NAMED("each next", column_seconds))                \
    X(LEAST, "least_s", SECONDS(times->least_ps), IN_WORDS(column_seconds))                        \
    X(MOST, "most_s", SECONDS(times->most_ps), IN_WORDS(column_seconds))                           \
    X(HALF, "p50_s", SECONDS(times->half_ps), IN_WORDS(column_seconds))                            \
    X(TAIL, "p99_s", SECONDS(times->tail_ps), IN_WORDS(column_seconds))                            \
    X(TOKENS, NULL, WHOLE(generation_tokens(generation)), IN_WORDS(column_count))                  \
    X(RATE, "tokens_per_s", REAL(tokens_per_s(generation)), IN_WORDS(column_rounded))              \
    X(CHIP_RATE, "tokens_per_s_per_chip",                                                          \
      REAL(tokens_per_s(generation) / (double)generation->chips), IN_WORDS(column_rounded))        \
    X(BOOK_ALL, "book_s", INFERRED(REAL(generation_book_s(generation))),                           \
      NAMED("book", column_seconds))

enum { FIGURES(COLUMN_NAME) FIGURE_TOTAL };
static const struct column figures[] = {FIGURES(COLUMN_ENTRY)};

static void find_figures(const struct generation *generation, struct column_value *ret_values)
{
    const struct generation_times *times = &generation->times;
    FIGURES(COLUMN_FIND)
}

void generation_write(const struct generation *generation, struct json_writer *json)
{
    struct column_value values[FIGURE_TOTAL];
    find_figures(generation, values);
    json_put_object(json, "generation");
    column_put(figures, values, SEQUENCES, FIRST_SHARE, json);
    json_put_object(json, "inter_token");
    column_put(figures, values, MEAN, TAIL, json);
    json_write_object_end(json);
    column_put(figures, values, TOKENS, BOOK_ALL, json);
    if (generation->infers) inference_fit_put(&generation->fit, json);
    json_write_key(json, "steps");
    column_put_rows(&table, generation, generation->page_count, json);
    json_write_object_end(json);
}

/* --- The summary --- */

/* Of many pages some, as far apart as they can be, the last among them. */
static bool is_shown(const struct generation *generation, uint32_t row)
{
    uint32_t const last = generation->page_count - 1;
    uint32_t const every = (uint32_t)units_ceil_divide(last, ROWS_SHOWN);
    return row <= 1 || (last - row) % every == 0;
}

static void rows_print(const struct generation *generation, struct strbuf *text)
{
    uint32_t shown = 0;
    strbuf_add(text, "\n");
    uint64_t const begin = table_open(text);
    const struct column_line *screen_of = generation->infers ? &table.screen : &text_line;
    column_add_heading_line(screen_of, text);
    for (uint32_t row = 0; row < generation->page_count; row++) {
        struct column_value values[COLUMN_TOTAL];
        if (!is_shown(generation, row)) continue;
        find(generation, row, values);
        column_add_figure_line(screen_of, values, text);
        shown++;
    }
    table_close(text, begin, LABEL_COLUMNS);
    if (shown < generation->page_count)
        strbuf_add(text, "and %u more rows with --json or --csv\n", generation->page_count - shown);
}

#define FIGURE(name) CELL(figures, values, name)

/* The name of a line, and its first figure. */
static void line_begin(const struct column_value *values, uint32_t column, struct strbuf *text)
{
    table_line(text, figures[column].heading[1]);
    strbuf_add(text, "%s", figures[column].look(values[column]).text);
}

void generation_print(const struct generation *generation, struct strbuf *text)
{
    struct column_value values[FIGURE_TOTAL];
    struct strbuf line = {0};
    find_figures(generation, values);
    line_begin(values, TOTAL, text);
    strbuf_add(text, "   %s tokens, %s tokens/s, %s a chip\n", FIGURE(TOKENS), FIGURE(RATE),
               FIGURE(CHIP_RATE));
    line_begin(values, FIRST_TOKEN, text);
    strbuf_add(text, "   %s of the total\n", FIGURE(FIRST_SHARE));
    line_begin(values, MEAN, text);
    strbuf_add(&line, "in the mean, %s to %s; half within %s, 99%% within %s", FIGURE(LEAST),
               FIGURE(MOST), FIGURE(HALF), FIGURE(TAIL));
    strbuf_add(text, " ");
    table_wrap_close(text, TABLE_LINE_COLUMNS, &line);
    if (generation->infers) {
        line_begin(values, BOOK_ALL, text);
        strbuf_add(text, "   cache + the larger of weights and math, step by step\n");
        inference_fit_print(&generation->fit, text);
    }
    rows_print(generation, text);
}
