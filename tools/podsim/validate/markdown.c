/* markdown.c: the tables of docs/accuracy-published.md. */
#include "sim/base/strbuf.h"
#include "tools/podsim/validate/columns.h"

static const uint8_t test_scores[] = {SET_NAME,   SET_TITLE,    SET_RAN,         SET_REFUSED,
                                      SET_MEAN,   SET_ABSOLUTE, SET_AIM,         SET_WORST,
                                      SET_BEHIND, SET_INSIDE,   SET_OUTSIDE_SAID};
static const uint8_t group_scores[] = {SET_GROUP,  SET_TITLE,    SET_RAN,         SET_REFUSED,
                                       SET_MEAN,   SET_ABSOLUTE, SET_AIM,         SET_WORST,
                                       SET_BEHIND, SET_INSIDE,   SET_OUTSIDE_SAID};
static const uint8_t layouts[] = {SET_NAME,   SET_LAYOUTS,     SET_RANK,
                                  SET_REGRET, SET_BASE,        SET_RATIO_AIM,
                                  SET_MEMORY, SET_MEMORY_MEAN, SET_MEMORY_ABSOLUTE};
static const uint8_t played[] = {ROW_SET,   ROW_ID,    ROW_MEASURED, ROW_PREDICTED,
                                 ROW_ERROR, ROW_RATIO, ROW_ASSUMED};
static const uint8_t refused[] = {ROW_SET, ROW_ID, ROW_WHY};

static const uint8_t chip_coverages[] = {COVERAGE_NAME, COVERAGE_ROWS, COVERED,
                                         HALF_WIDTH,    COVERED_MODEL, HALF_WIDTH_MODEL};
static const uint8_t work_coverages[] = {COVERAGE_WORK, COVERAGE_ROWS, PUBLICATIONS,
                                         COVERED,       HALF_WIDTH,    COVERED_ONCE};
static const uint8_t level_coverages[] = {COVERAGE_LEVEL, COVERAGE_ROWS, COVERED,
                                          HALF_WIDTH,     COVERED_MODEL, HALF_WIDTH_MODEL};
static const uint8_t test_coverages[] = {COVERAGE_TEST, COVERAGE_ROWS, COVERED, HALF_WIDTH};

static const struct column_line coverage_lines[] = {
    [VALIDATE_OF_CHIP] = COLUMN_LINE(validate_coverages, chip_coverages),
    [VALIDATE_OF_TEST] = COLUMN_LINE(validate_coverages, test_coverages),
    [VALIDATE_OF_WORK] = COLUMN_LINE(validate_coverages, work_coverages),
    [VALIDATE_OF_LEVEL] = COLUMN_LINE(validate_coverages, level_coverages)};
static const struct column_line score_lines[2] = {COLUMN_LINE(validate_sets, test_scores),
                                                  COLUMN_LINE(validate_sets, group_scores)};
static const struct column_line layout_line = COLUMN_LINE(validate_sets, layouts);
static const struct column_line played_line = COLUMN_LINE(validate_rows, played);
static const struct column_line refused_line = COLUMN_LINE(validate_rows, refused);

static void head_add(const struct column_line *line, struct strbuf *text)
{
    strbuf_add(text, "|");
    for (uint32_t i = 0; i < line->count; i++) {
        const char *const *heading = line->columns[line->order[i]].heading;
        const char *word = heading[0][0] != '\0' ? heading[0] : heading[1];
        strbuf_add(text, word[0] == '\0' ? " |" : " %s |", word);
    }
    strbuf_add(text, "\n|");
    for (uint32_t i = 0; i < line->count; i++) strbuf_add(text, "---|");
    strbuf_add(text, "\n");
}

/* A place of words has its blanks without words, too. */
static void cells_add(const struct column_line *line, const struct column_value *values,
                      struct strbuf *text)
{
    strbuf_add(text, "|");
    for (uint32_t i = 0; i < line->count; i++) {
        const struct column *column = &line->columns[line->order[i]];
        struct table_figure room;
        const char *cell = column_cell(column, values[line->order[i]], &room);
        strbuf_add(text, cell[0] == '\0' && column->look != column_words ? " |" : " %s |", cell);
    }
    strbuf_add(text, "\n");
}

static void scores_add(const struct validate *validate, bool learned, struct strbuf *text)
{
    head_add(&score_lines[learned], text);
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        struct column_value values[SETS_TOTAL];
        if (!validate->wanted[s] || validate->published.set[s].learned != learned) continue;
        validate_find_set(validate, s, values);
        cells_add(&score_lines[learned], values, text);
    }
}

static void layouts_add(const struct validate *validate, struct strbuf *text)
{
    strbuf_add(text, "\n");
    head_add(&layout_line, text);
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        struct column_value values[SETS_TOTAL];
        if (!validate->wanted[s]) continue;
        validate_find_set(validate, s, values);
        if (values[SET_RANK].kind != COLUMN_NONE || values[SET_MEMORY_MEAN].kind != COLUMN_NONE)
            cells_add(&layout_line, values, text);
    }
}

/* Rows in a state, of sets that podsim may learn from, or of the others, or (-1) of all. */
static void rows_add(const struct validate *validate, enum validate_state state, int learned,
                     const struct column_line *line, struct strbuf *text)
{
    const struct published *published = &validate->published;
    head_add(line, text);
    for (uint32_t s = 0; s < published->set_count; s++) {
        const struct published_set *set = &published->set[s];
        bool const wanted = learned < 0 || set->learned == (learned != 0);
        for (uint32_t r = 0; validate->wanted[s] && wanted && r < set->row_count; r++) {
            struct column_value values[ROWS_TOTAL];
            if (validate_result_of(validate, set->row[r])->state != state) continue;
            validate_find_row(validate, s, r, values);
            cells_add(line, values, text);
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

static void coverages_add(const struct validate *validate, struct strbuf *text)
{
    strbuf_add(text, "\n## Intervals\n");
    for (int of = 0; of < VALIDATE_SUBJECTS; of++) {
        strbuf_add(text, "\n");
        head_add(&coverage_lines[of], text);
        for (uint32_t i = 0; i < validate->coverage_count; i++) {
            struct column_value values[COVERAGES_TOTAL];
            if ((int)validate->coverage[i].of != of) continue;
            validate_find_coverage(validate, i, values);
            cells_add(&coverage_lines[of], values, text);
        }
    }
}

void validate_write_markdown(const struct validate *validate, struct strbuf *text)
{
    strbuf_add(text, "## Tests\n\n");
    scores_add(validate, false, text);
    layouts_add(validate, text);
    strbuf_add(text, "\n## Rows that podsim may learn from\n\n");
    scores_add(validate, true, text);
    if (validate->coverage_count > 0) coverages_add(validate, text);
    strbuf_add(text, "\n## Kernels\n\n");
    stacks_add(validate, text);
    strbuf_add(text, "\n## Rows that are not run\n\n");
    rows_add(validate, VALIDATE_REFUSED, -1, &refused_line, text);
    strbuf_add(text, "\n## Rows of the tests\n\n");
    rows_add(validate, VALIDATE_PLAYED, false, &played_line, text);
    strbuf_add(text, "\n## Rows that are learned from\n\n");
    rows_add(validate, VALIDATE_PLAYED, true, &played_line, text);
}
