/* columns.c: the figures of rows and of sets, as JSON and as CSV. */
#include "tools/podsim/validate/columns.h"

#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"

static struct table_figure figure(const char *format, double value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, format, value);
    return figure;
}

struct table_figure validate_signed(struct column_value value)
{
    return figure("%+.1f %%", 100 * value.real);
}

struct table_figure validate_share(struct column_value value)
{
    return figure("%.1f %%", 100 * value.real);
}

struct table_figure validate_factor(struct column_value value)
{
    return figure("%.3f", value.real);
}

struct table_figure validate_rank(struct column_value value)
{
    return figure("%.2f", value.real);
}

const char *validate_state_word(enum validate_state state)
{
    static const char *const words[] = {[VALIDATE_LEFT] = "left out",
                                        [VALIDATE_PLAYED] = "simulated",
                                        [VALIDATE_REFUSED] = "not run"};
    return words[state];
}

const char *validate_subject_word(enum validate_subject subject)
{
    static const char *const words[] = {[VALIDATE_OF_CHIP] = "chip",
                                        [VALIDATE_OF_TEST] = "test",
                                        [VALIDATE_OF_WORK] = "work",
                                        [VALIDATE_OF_LEVEL] = "level"};
    return words[subject];
}

const struct column validate_rows[ROWS_TOTAL] = {VALIDATE_ROWS(COLUMN_ENTRY)};
const struct column validate_sets[SETS_TOTAL] = {VALIDATE_SETS(COLUMN_ENTRY)};
const struct column validate_coverages[COVERAGES_TOTAL] = {VALIDATE_COVERAGES(COLUMN_ENTRY)};
const struct column_line validate_cells = COLUMN_ALL(validate_rows);

void validate_find_row(const struct validate *validate, uint32_t s, uint32_t r,
                       struct column_value ret_values[ROWS_TOTAL])
{
    const struct published_set *set = &validate->published.set[s];
    const struct validate_score *score = &validate->score[s];
    const struct published_row *row = set->row[r];
    const struct validate_result *result = validate_result_of(validate, row);
    VALIDATE_ROWS(COLUMN_FIND)
}

void validate_find_set(const struct validate *validate, uint32_t s,
                       struct column_value ret_values[SETS_TOTAL])
{
    const struct published_set *set = &validate->published.set[s];
    const struct validate_score *score = &validate->score[s];
    VALIDATE_SETS(COLUMN_FIND)
}

void validate_find_coverage(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct validate_coverage *coverage = &((const struct validate *)owner)->coverage[index];
    VALIDATE_COVERAGES(COLUMN_FIND)
}

static const struct column_table coverage_table = {
    .columns = validate_coverages, .count = COVERAGES_TOTAL, .find = validate_find_coverage};

#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(KIND, "kind", WORDS("validate"), HIDDEN)

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };
static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void find_head(struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

void validate_write_csv(const struct validate *validate, struct strbuf *text)
{
    column_add_keys(&validate_cells, text);
    strbuf_add(text, "\n");
    for (uint32_t s = 0; s < validate->published.set_count; s++)
        for (uint32_t r = 0; validate->wanted[s] && r < validate->published.set[s].row_count; r++) {
            struct column_value values[ROWS_TOTAL];
            validate_find_row(validate, s, r, values);
            column_add_cells(&validate_cells, values, text);
            strbuf_add(text, "\n");
        }
}

static void rows_put(const struct validate *validate, uint32_t s, struct json_writer *json)
{
    json_put_array(json, "rows");
    for (uint32_t r = 0; r < validate->published.set[s].row_count; r++) {
        struct column_value values[ROWS_TOTAL];
        validate_find_row(validate, s, r, values);
        json_write_object(json);
        column_put(validate_rows, values, 0, ROWS_TOTAL - 1, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void validate_write_json(const struct validate *validate, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    struct column_value values[HEAD_TOTAL];
    find_head(values);
    column_put(head, values, 0, HEAD_TOTAL - 1, &json);
    json_put_array(&json, "tests");
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        struct column_value figures[SETS_TOTAL];
        if (!validate->wanted[s]) continue;
        validate_find_set(validate, s, figures);
        json_write_object(&json);
        column_put(validate_sets, figures, 0, SETS_TOTAL - 1, &json);
        rows_put(validate, s, &json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    if (validate->coverage_count > 0) {
        json_write_key(&json, "intervals");
        column_put_rows(&coverage_table, validate, validate->coverage_count, &json);
    }
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
