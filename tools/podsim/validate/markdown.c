/* markdown.c: the tables of docs/accuracy-published.md. */
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "tools/podsim/validate/validate.h"

static void percent_add(bool has, const char *format, double share, struct strbuf *text)
{
    strbuf_add(text, " |");
    if (!has) return;
    strbuf_add(text, " ");
    strbuf_add(text, strcmp(format, "signed") == 0 ? "%+.1f %%" : "%.1f %%", 100 * share);
}

static void score_add(const struct published_set *set, const struct validate_score *score,
                      struct strbuf *text)
{
    bool const has = score->played > 0;
    strbuf_add(text, "| %s | %s | %u | %u", set->name, set->learned ? "" : set->title,
               score->played, score->refused);
    percent_add(has, "signed", score->mean, text);
    percent_add(has, "", score->mean_absolute, text);
    percent_add(set->aim > 0 && !set->learned, "", set->aim, text);
    percent_add(has, "signed", score->worst, text);
    percent_add(has, "", score->ratio_absolute, text);
    percent_add(has, "", score->inside, text);
    percent_add(has && score->outside_rows > 0, "", score->outside, text);
    strbuf_add(text, " |\n");
}

static void scores_add(const struct validate *validate, bool learned, struct strbuf *text)
{
    const struct published *published = &validate->published;
    strbuf_add(text,
               "| %s | | run | not run | mean error | mean absolute | aim | worst | behind one "
               "factor | best share inside | chip's share outside |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|\n",
               learned ? "group" : "test");
    for (uint32_t s = 0; s < published->set_count; s++)
        if (validate->wanted[s] && published->set[s].learned == learned)
            score_add(&published->set[s], &validate->score[s], text);
}

static void layouts_add(const struct validate *validate, struct strbuf *text)
{
    const struct published *published = &validate->published;
    strbuf_add(text, "\n| test | choices | rank correlation | regret | ratios to 1F1B | aim | peak "
                     "memory, rows | mean | mean absolute |\n"
                     "|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t s = 0; s < published->set_count; s++) {
        const struct published_set *set = &published->set[s];
        const struct validate_score *score = &validate->score[s];
        if (!validate->wanted[s] || (score->layout_sets == 0 && score->memory_rows == 0)) continue;
        strbuf_add(text, "| %s | %u |", set->name, score->layout_sets);
        if (score->layout_sets > 0) strbuf_add(text, " %.2f", score->rank);
        percent_add(score->layout_sets > 0, "", score->regret, text);
        percent_add(score->base_rows > 0, "", score->base_absolute, text);
        percent_add(set->ratio_aim > 0, "", set->ratio_aim, text);
        strbuf_add(text, " | %u", score->memory_rows);
        percent_add(score->memory_rows > 0, "signed", score->memory_mean, text);
        percent_add(score->memory_rows > 0, "", score->memory_absolute, text);
        strbuf_add(text, " |\n");
    }
}

static void rows_add(const struct validate *validate, bool learned, struct strbuf *text)
{
    const struct published *published = &validate->published;
    strbuf_add(text, "| test | row | measured | predicted | error | behind the factor | assumed |\n"
                     "|---|---|---|---|---|---|---|\n");
    for (uint32_t s = 0; s < published->set_count; s++) {
        const struct published_set *set = &published->set[s];
        if (!validate->wanted[s] || set->learned != learned) continue;
        for (uint32_t r = 0; r < set->row_count; r++) {
            const struct published_row *row = set->row[r];
            const struct validate_result *result = validate_result_of(validate, row);
            if (result->state != VALIDATE_PLAYED) continue;
            double const error = validate_error(validate, row);
            strbuf_add(text, "| %s | %s | %s | %s | %+.1f %% | %+.1f %% | %s |\n", set->name,
                       row->id, table_seconds(row->seconds).text,
                       table_seconds(result->predicted_s).text, 100 * error,
                       100 * ((1 + error) / validate->score[s].factor - 1),
                       row->assumed == NULL ? "" : row->assumed);
        }
    }
}

static void stacks_add(const struct validate *validate, struct strbuf *text)
{
    const struct published *published = &validate->published;
    strbuf_add(text, "| test | stack | chip | tables |\n|---|---|---|---|\n");
    for (uint32_t s = 0; s < published->set_count; s++)
        for (uint32_t r = 0; validate->wanted[s] && r < published->set[s].row_count; r++) {
            const struct published_set *set = &published->set[s];
            const struct validate_result *result = validate_result_of(validate, set->row[r]);
            if (!validate_names_stack(validate, set, r)) continue;
            strbuf_add(text, "| %s | `%s` | %s | %s |\n", set->name, result->stack,
                       set->row[r]->machine.chip, result->stack_is_missing ? "none" : "its own");
        }
}

static void refused_add(const struct validate *validate, struct strbuf *text)
{
    const struct published *published = &validate->published;
    strbuf_add(text, "| test | row | why it is not run |\n|---|---|---|\n");
    for (uint32_t s = 0; s < published->set_count; s++)
        for (uint32_t r = 0; validate->wanted[s] && r < published->set[s].row_count; r++) {
            const struct published_row *row = published->set[s].row[r];
            const struct validate_result *result = validate_result_of(validate, row);
            if (result->state != VALIDATE_REFUSED) continue;
            strbuf_add(text, "| %s | %s | %s |\n", published->set[s].name, row->id, result->why);
        }
}

void validate_write_markdown(const struct validate *validate, struct strbuf *text)
{
    strbuf_add(text, "## Tests\n\n");
    scores_add(validate, false, text);
    layouts_add(validate, text);
    strbuf_add(text, "\n## Rows that podsim may learn from\n\n");
    scores_add(validate, true, text);
    strbuf_add(text, "\n## Kernels\n\n");
    stacks_add(validate, text);
    strbuf_add(text, "\n## Rows that are not run\n\n");
    refused_add(validate, text);
    strbuf_add(text, "\n## Rows of the tests\n\n");
    rows_add(validate, false, text);
    strbuf_add(text, "\n## Rows that are learned from\n\n");
    rows_add(validate, true, text);
}
