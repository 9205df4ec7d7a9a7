/* The points of `podsim pareto` on a terminal. */
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/report/frontier.h"
#include "sim/report/table_fit.h"
#include "sim/step/inference.h"
#include "tools/podsim/pareto/pareto.h"

enum { MARK = 2, BATCH_END = MARK + 6, TABLE_END = BATCH_END + 63, COST = 8 };

static bool is_priced(const struct pareto *pareto)
{
    return pareto->usd_per_chip_h > 0;
}

static const struct column_table *table_of(const struct pareto *pareto)
{
    return is_priced(pareto) ? &pareto_priced_table : &pareto_table;
}

static void write_head(const struct pareto *pareto, struct strbuf *text)
{
    const struct workload_plan *plan = &pareto->base.scenario.workload;
    uint32_t const unfit = pareto_count(pareto, PARETO_UNFIT);
    uint32_t const refused = pareto_count(pareto, PARETO_REFUSED);
    strbuf_add(text, "%s, %s on %s (%s profile); weights %s, cache %s\n", plan->model.name,
               inference_phase(plan), pareto->chip.name, pareto->chip.profile,
               format_name(plan->formats.weights), format_name(plan->inference.cache));
    strbuf_add(text, "%s: %u simulated", counted(pareto->done_count, "point").text,
               pareto_count(pareto, PARETO_PLAYED));
    if (unfit > 0) strbuf_add(text, ", %u do%s not fit the memory", unfit, unfit == 1 ? "es" : "");
    if (refused > 0) strbuf_add(text, ", %u refused", refused);
    strbuf_add(text, "\n");
    if (is_priced(pareto))
        strbuf_add(text, "a chip costs %.6g USD an hour: %s\n", pareto->usd_per_chip_h,
                   pareto->price_source);
}

static void write_length(const struct pareto *pareto, const struct pareto_curve *curve,
                         struct strbuf *text)
{
    if (curve->chip_count == 0 && curve->length->word == NULL) return;
    strbuf_add(text, "\n");
    pareto_add_length(pareto, curve, text);
    strbuf_add(text, "\n");
}

/* Where the curve bends, where products would bound it, where memory ends. */
static void write_landmarks(const struct pareto_curve *curve, struct strbuf *text)
{
    struct strbuf sentence = {0};
    strbuf_add(&sentence, "%s",
               pareto_shape(curve)[0] == '\0' ? "the scenario's machine" : pareto_shape(curve));
    if (curve->chip_count != 0)
        strbuf_add(&sentence, " (%s)", counted(curve->chip_count, "chip").text);
    if (pareto_mesh(curve)[0] != '\0') strbuf_add(&sentence, ", %s", pareto_mesh(curve));
    if (curve->knee != frontier_none)
        strbuf_add(&sentence, "; knee at batch %u", curve->point[curve->knee].batch);
    if (curve->chip_count != 0)
        strbuf_add(&sentence, "; B_crit %s; %s, by the formula %s",
                   table_count((uint64_t)curve->critical_tokens).text, pareto_wall(curve).text,
                   curve->book_wall == INFERENCE_ANY_BATCH ? "any number"
                                                           : table_count(curve->book_wall).text);
    text->failed = text->failed || sentence.failed;
    if (!sentence.failed) table_wrap(text, 2, sentence.bytes);
    strbuf_free(&sentence);
}

static void write_played(const struct pareto *pareto, uint32_t row,
                         const struct pareto_point *point, struct strbuf *text)
{
    strbuf_add(text, "%s", point->is_on_frontier ? "*" : "");
    column_add_row(table_of(pareto), pareto, row, MARK, text);
    strbuf_add(text, "%s\n", point->is_knee ? " <" : "");
}

static void write_unfit(const struct pareto *pareto, const struct pareto_curve *curve,
                        const struct pareto_point *point, struct strbuf *text)
{
    char batch[16];
    (void)snprintf(batch, sizeof batch, "%u", point->batch);
    table_right(text, BATCH_END, batch);
    strbuf_add(text, "  does not fit: at least %s of %s", table_bytes(point->memory_bytes).text,
               table_bytes((double)curve->hbm_bytes).text);
    table_right(text, TABLE_END + (is_priced(pareto) ? COST : 0),
                table_seconds(point->book.step_s).text);
    strbuf_add(text, "\n");
}

/* One line for neighbours with one reason. Returns the place behind the last of them. */
static uint32_t write_refused(const struct pareto *pareto, const struct pareto_curve *curve,
                              uint32_t first, struct strbuf *text)
{
    const struct pareto_point *point = &curve->point[first];
    uint32_t end = first + 1;
    struct strbuf sentence = {0};
    while (end < pareto->batch_count && curve->point[end].state == PARETO_REFUSED &&
           strcmp(curve->point[end].why, point->why) == 0)
        end++;
    strbuf_add(&sentence, "%s %u", end > first + 1 ? "batches" : "batch", point->batch);
    if (end > first + 1) strbuf_add(&sentence, " to %u", curve->point[end - 1].batch);
    strbuf_add(&sentence, " refused: %s", point->why);
    text->failed = text->failed || sentence.failed;
    strbuf_add(text, "  ");
    if (!sentence.failed) table_wrap(text, MARK + 2, sentence.bytes);
    strbuf_free(&sentence);
    return end;
}

static void write_points(const struct pareto *pareto, uint32_t index, struct strbuf *text)
{
    const struct pareto_curve *curve = &pareto->curve[index];
    if (curve->chip_count != 0) {
        for (uint32_t line = 0; line < 2; line++) {
            column_add_headings(&table_of(pareto)->screen, line, MARK, text);
            strbuf_add(text, "\n");
        }
    }
    for (uint32_t b = 0; b < pareto->batch_count;) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_REFUSED) {
            b = write_refused(pareto, curve, b, text);
            continue;
        }
        if (point->state == PARETO_PLAYED)
            write_played(pareto, index * pareto->batch_count + b, point, text);
        else
            write_unfit(pareto, curve, point, text);
        b++;
    }
}

static void write_sentence(struct strbuf *sentence, struct strbuf *text)
{
    text->failed = text->failed || sentence->failed;
    if (!sentence->failed) table_wrap(text, 2, sentence->bytes);
    strbuf_free(sentence);
}

/* Tokens that rates and costs count, and that a reader may not expect. */
static void write_counted(const struct pareto *pareto, struct strbuf *text)
{
    const struct workload_plan *plan = &pareto->base.scenario.workload;
    uint64_t const new_tokens = plan->inference.decodes.new_tokens;
    struct strbuf drafts = {0}, prompts = {0};
    if (plan->kind == WORKLOAD_MIXED) {
        uint64_t const tokens = inference_sum(plan, INFERENCE_PROMPTS).tokens;
        strbuf_add(&prompts,
                   "tokens/s a chip%s count the new tokens of the prompts too, %s a step; "
                   "tokens/s a user are those of a decode alone",
                   is_priced(pareto) ? " and USD" : "", table_count(tokens).text);
        write_sentence(&prompts, text);
    }
    if (new_tokens < 2) return;
    strbuf_add(&drafts,
               "tokens/s%s count all %s new tokens of a sequence: a ceiling, which is reached if "
               "every draft is accepted",
               is_priced(pareto) ? " and USD" : "", table_count(new_tokens).text);
    write_sentence(&drafts, text);
}

static void write_terms(const struct pareto *pareto, struct strbuf *text)
{
    bool const decodes = pareto_part(pareto) == INFERENCE_DECODES;
    strbuf_add(text, "\n");
    table_wrap(text, 2,
               "*: no other point of that length is faster and at least as cheap; <: the knee, "
               "where tokens/s a chip over latency are most: beyond it latency grows more than "
               "they do");
    table_wrap(text, 2,
               "shares: of the step, products bound by reading weights, attention by reading the "
               "cache, both by math; exposed collectives, their hops and their bytes; the rest is "
               "launches, norms and look-ups");
    table_wrap(text, 2,
               decodes ? "formula: B KV / (N W) + the larger of 2 B P / (N C) and P / (N W) "
                         "(book 7.1.5), without collectives; B_crit: where math takes over"
                       : "formula: 2 P T / (N C) (book 8.1.2), without collectives; B_crit: the "
                         "tokens from which on math takes longer than reading weights");
    if (decodes) write_counted(pareto, text);
}

void pareto_write_text(const struct pareto *pareto, struct strbuf *text)
{
    write_head(pareto, text);
    for (uint32_t c = 0; c < pareto->curve_count; c++) {
        if (c == 0 || pareto->curve[c].length != pareto->curve[c - 1].length)
            write_length(pareto, &pareto->curve[c], text);
        strbuf_add(text, "\n");
        write_landmarks(&pareto->curve[c], text);
        uint64_t const table = table_open(text);
        write_points(pareto, c, text);
        table_close(text, table, BATCH_END);
    }
    if (pareto_count(pareto, PARETO_REFUSED) < pareto->done_count) write_terms(pareto, text);
}
