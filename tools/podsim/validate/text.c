/* text.c: rows and scores on a terminal. */
#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "tools/podsim/validate/columns.h"

enum { ID_COLUMNS = 56 };

static const uint8_t figures[] = {ROW_MEASURED, ROW_PREDICTED, ROW_ERROR, ROW_RATIO};
static const struct column_line figures_line = COLUMN_LINE(validate_rows, figures);
static const uint8_t coverages[] = {COVERAGE_NAME, COVERAGE_ROWS, COVERED,
                                    HALF_WIDTH,    COVERED_MODEL, HALF_WIDTH_MODEL};
static const struct column_line coverage_line = COLUMN_LINE(validate_coverages, coverages);

#define SET(name) CELL(validate_sets, values, name)

static void row_add(const struct column_value *values, struct strbuf *text)
{
    strbuf_add(text, "  %s%s", CELL(validate_rows, values, ROW_ID),
               values[ROW_ASSUMED].kind == COLUMN_NONE ? "" : " *");
    column_add_figures(&figures_line, values, ID_COLUMNS, false, text);
    strbuf_add(text, "\n");
}

static void memory_add(const struct column_value *values, struct strbuf *text)
{
    if (values[SET_MEMORY_MEAN].kind == COLUMN_NONE) return;
    strbuf_add(text, "  memory      mean %s, mean absolute %s of %s\n", SET(SET_MEMORY_MEAN),
               SET(SET_MEMORY_ABSOLUTE), counted(values[SET_MEMORY].whole, "row").text);
}

/* An error, with a digit more where it is printed like its aim, which it misses or not. */
static void aimed_add(const char *error, const char *aim, double share, struct strbuf *text)
{
    if (name_same(error, aim))
        strbuf_add(text, "%.2f %%", 100 * share);
    else
        strbuf_add(text, "%s", error);
}

static void layouts_add(const struct column_value *values, struct strbuf *text)
{
    if (values[SET_RANK].kind == COLUMN_NONE) return;
    strbuf_add(text, "  layouts     rank correlation %s, regret %s, means of %s\n", SET(SET_RANK),
               SET(SET_REGRET), counted(values[SET_LAYOUTS].whole, "choice").text);
    if (values[SET_BASE].kind == COLUMN_NONE) return;
    strbuf_add(text, "              ratios to 1F1B off by ");
    aimed_add(SET(SET_BASE), SET(SET_RATIO_AIM), values[SET_BASE].real, text);
    if (values[SET_RATIO_MET].kind != COLUMN_NONE)
        strbuf_add(text, " (aim %s: %s)", SET(SET_RATIO_AIM), SET(SET_RATIO_MET));
    strbuf_add(text, "\n");
}

static void score_add(const struct column_value *values, struct strbuf *text)
{
    strbuf_add(text, "  errors      mean %s, mean absolute ", SET(SET_MEAN));
    aimed_add(SET(SET_ABSOLUTE), SET(SET_AIM), values[SET_ABSOLUTE].real, text);
    if (values[SET_AIM_MET].kind != COLUMN_NONE)
        strbuf_add(text, " (aim %s: %s)", SET(SET_AIM), SET(SET_AIM_MET));
    strbuf_add(text, ", worst %s\n", SET(SET_WORST));
    strbuf_add(text, "  ratios      all have the factor %s; mean absolute error behind it %s\n",
               SET(SET_FACTOR), SET(SET_BEHIND));
    strbuf_add(text,
               "  yardsticks  one best share of the peak %s; the chip's share in other "
               "publications %s\n",
               SET(SET_INSIDE), SET(SET_OUTSIDE_SAID));
    layouts_add(values, text);
    memory_add(values, text);
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
    struct column_value values[SETS_TOTAL];
    validate_find_set(validate, s, values);
    strbuf_add(text, "%s%s%s%s, %s of %s\n", SET(SET_NAME), set->learned ? "" : ": ",
               SET(SET_TITLE), set->learned ? " (learned from)" : "", SET(SET_RAN),
               counted(set->row_count, "row").text);
    if (values[SET_RAN].whole > 0) {
        column_add_headings(&figures_line, 1, ID_COLUMNS, text);
        strbuf_add(text, "\n");
        for (uint32_t r = 0; r < set->row_count; r++) {
            struct column_value row[ROWS_TOTAL];
            validate_find_row(validate, s, r, row);
            if (row[ROW_PREDICTED].kind != COLUMN_NONE) row_add(row, text);
        }
        score_add(values, text);
        stacks_add(validate, set, text);
    }
    refused_add(validate, set, text);
    strbuf_add(text, "\n");
}

static void coverages_add(const struct validate *validate, struct strbuf *text)
{
    struct strbuf sentence = {0};
    strbuf_add(&sentence,
               "intervals of `podsim run --uncertainty`, which are to hold %d of 100 measurements: "
               "rows that podsim may learn from, with their publication left out and with their "
               "model in it left out, and rows of tests",
               RESIDUAL_COVERAGE_PERCENT);
    table_wrap_close(text, 2, &sentence);
    column_add_heading_line(&coverage_line, text);
    for (uint32_t i = 0; i < validate->coverage_count; i++) {
        struct column_value values[COVERAGES_TOTAL];
        validate_find_coverage(validate, i, values);
        column_add_figure_line(&coverage_line, values, text);
    }
    strbuf_add(text, "\n");
}

void validate_write_text(const struct validate *validate, struct strbuf *text)
{
    for (uint32_t s = 0; s < validate->published.set_count; s++)
        if (validate->wanted[s]) set_add(validate, s, text);
    if (validate->coverage_count > 0) coverages_add(validate, text);
    table_wrap(text, 2,
               "*: the publication leaves something out that was assumed; --json says what. Rows "
               "that podsim may have learned from count in no aim.");
}
