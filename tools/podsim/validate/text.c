/* text.c: rows and scores on a terminal. */
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "tools/podsim/validate/validate.h"

enum { ID_COLUMNS = 56, FIGURE_COLUMNS = 11, PERCENT_BYTES = 16 };

struct percent {
    char text[PERCENT_BYTES];
};

/* "-12.3 %" */
static struct percent signed_percent(double share)
{
    struct percent percent;
    (void)snprintf(percent.text, sizeof percent.text, "%+.1f %%", 100 * share);
    return percent;
}

static struct percent plain_percent(double share)
{
    struct percent percent;
    (void)snprintf(percent.text, sizeof percent.text, "%.1f %%", 100 * share);
    return percent;
}

static void row_add(const struct validate *validate, const struct published_set *set,
                    const struct validate_score *score, const struct published_row *row,
                    struct strbuf *text)
{
    const struct validate_result *result = validate_result_of(validate, row);
    uint32_t at = ID_COLUMNS;
    if (result->state != VALIDATE_PLAYED) return;
    double const error = validate_error(validate, row);
    strbuf_add(text, "  %s%s", row->id, row->assumed == NULL ? "" : " *");
    table_right(text, at += FIGURE_COLUMNS, table_seconds(row->seconds).text);
    table_right(text, at += FIGURE_COLUMNS, table_seconds(result->predicted_s).text);
    table_right(text, at += FIGURE_COLUMNS, signed_percent(error).text);
    table_right(text, at += FIGURE_COLUMNS, signed_percent((1 + error) / score->factor - 1).text);
    (void)set;
    strbuf_add(text, "\n");
}

static void aim_add(double reached, double aim, struct strbuf *text)
{
    if (aim > 0)
        strbuf_add(text, " (aim %s: %s)", plain_percent(aim).text,
                   reached <= aim ? "met" : "missed");
}

static void memory_add(const struct validate_score *score, struct strbuf *text)
{
    if (score->memory_rows == 0) return;
    strbuf_add(text, "  memory      mean %s, mean absolute %s of %s\n",
               signed_percent(score->memory_mean).text, plain_percent(score->memory_absolute).text,
               counted(score->memory_rows, "row").text);
}

static void layouts_add(const struct published_set *set, const struct validate_score *score,
                        struct strbuf *text)
{
    if (score->layout_sets == 0) return;
    strbuf_add(text, "  layouts     rank correlation %.2f, regret %s, means of %s\n", score->rank,
               plain_percent(score->regret).text, counted(score->layout_sets, "choice").text);
    if (score->base_rows == 0) return;
    strbuf_add(text, "              ratios to 1F1B off by %s",
               plain_percent(score->base_absolute).text);
    aim_add(score->base_absolute, set->ratio_aim, text);
    strbuf_add(text, "\n");
}

static void score_add(const struct published_set *set, const struct validate_score *score,
                      struct strbuf *text)
{
    strbuf_add(text, "  errors      mean %s, mean absolute %s", signed_percent(score->mean).text,
               plain_percent(score->mean_absolute).text);
    aim_add(score->mean_absolute, set->learned ? 0 : set->aim, text);
    strbuf_add(text, ", worst %s\n", signed_percent(score->worst).text);
    strbuf_add(text, "  ratios      all have the factor %.3f; mean absolute error behind it %s\n",
               score->factor, plain_percent(score->ratio_absolute).text);
    strbuf_add(text, "  yardsticks  one best share of the peak %s",
               plain_percent(score->inside).text);
    if (score->outside_rows > 0)
        strbuf_add(text, "; the chip's share in other publications %s",
                   plain_percent(score->outside).text);
    strbuf_add(text, "\n");
    layouts_add(set, score, text);
    memory_add(score, text);
}

/* Whose kernels the rows have. */
static void stacks_add(const struct validate *validate, const struct published_set *set,
                       struct strbuf *text)
{
    for (uint32_t r = 0; r < set->row_count; r++) {
        const struct validate_result *result = validate_result_of(validate, set->row[r]);
        if (!validate_names_stack(validate, set, r)) continue;
        strbuf_add(text, "  kernels     %s on %s: %s\n", result->stack, set->row[r]->machine.chip,
                   result->stack_is_missing ? "no tables are shipped; rates of the profile"
                                            : "its tables");
    }
}

static void refused_add(const struct validate *validate, const struct published_set *set,
                        struct strbuf *text)
{
    for (uint32_t r = 0; r < set->row_count; r++) {
        const struct validate_result *result = validate_result_of(validate, set->row[r]);
        struct strbuf sentence = {0};
        if (result->state != VALIDATE_REFUSED) continue;
        strbuf_add(&sentence, "  not run     %s: %s", set->row[r]->id, result->why);
        text->failed = text->failed || sentence.failed;
        if (!sentence.failed) table_wrap(text, 14, sentence.bytes);
        strbuf_free(&sentence);
    }
}

static void set_add(const struct validate *validate, uint32_t s, struct strbuf *text)
{
    const struct published_set *set = &validate->published.set[s];
    const struct validate_score *score = &validate->score[s];
    strbuf_add(text, "%s%s%s%s, %u of %s\n", set->name, set->learned ? "" : ": ",
               set->learned ? "" : set->title, set->learned ? " (learned from)" : "", score->played,
               counted(set->row_count, "row").text);
    if (score->played > 0) {
        uint32_t at = ID_COLUMNS;
        table_right(text, at += FIGURE_COLUMNS, "measured");
        table_right(text, at += FIGURE_COLUMNS, "predicted");
        table_right(text, at += FIGURE_COLUMNS, "error");
        table_right(text, at += FIGURE_COLUMNS, "ratio");
        strbuf_add(text, "\n");
        for (uint32_t r = 0; r < set->row_count; r++)
            row_add(validate, set, score, set->row[r], text);
        score_add(set, score, text);
        stacks_add(validate, set, text);
    }
    refused_add(validate, set, text);
    strbuf_add(text, "\n");
}

void validate_write_text(const struct validate *validate, struct strbuf *text)
{
    for (uint32_t s = 0; s < validate->published.set_count; s++)
        if (validate->wanted[s]) set_add(validate, s, text);
    table_wrap(text, 2,
               "*: the publication leaves something out that was assumed; --json says what. Rows "
               "that podsim may have learned from count in no aim.");
}
