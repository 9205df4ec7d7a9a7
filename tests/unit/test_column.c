/* Cells of a table's rows, in CSV and on a screen. */
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tests/support/case.h"

/* What is not said is an empty cell, as what is not there. */
static void words_that_are_not_said_are_an_empty_cell(void **state)
{
    static const struct column columns[] = {{.key = "kind"}, {.key = "axes"}, {.key = "count"}};
    static const uint8_t order[] = {0, 1, 2};
    struct column_line const line = COLUMN_LINE(columns, order);
    struct column_value const said[] = {WORDS("a,b"), LIST("x"), WHOLE(3)};
    struct column_value const unsaid[] = {WORDS(NULL), LIST(NULL), WHOLE(3)};
    struct strbuf text = {.columns = 0};
    (void)state;
    column_add_cells(&line, said, &text);
    strbuf_add(&text, "\n");
    column_add_cells(&line, unsaid, &text);
    assert_false(text.failed);
    assert_string_equal(text.bytes, "\"a,b\",\"x\",3\n,,3");
    strbuf_free(&text);
    assert_string_equal(column_words(said[0]).text, "a,b");
    assert_string_equal(column_words(unsaid[0]).text, "");
}

/* A line begins with its first column; a cell that is too long moves none but the next, and words
 * are never cut. */
static void lines_begin_at_the_left(void **state)
{
    static const struct column columns[] = {
        {.heading = {NULL, "name"}, .width = -5},
        {.heading = {NULL, "F"}, .width = -7, .look = column_plain},
        {.heading = {NULL, "rate"}, .width = 10, .look = column_rate, .none = "-"},
        {.heading = {NULL, "help"}, .width = -1},
    };
    static const char help[] = "more words than a figure has room for, and all of them are printed";
    struct column_line const line = COLUMN_ALL(columns);
    struct column_value const rows[][4] = {
        {WORDS("a"), WHOLE(12), REAL(1e9), WORDS("b")},
        {WORDS("too long"), WHOLE(1234567), {.kind = COLUMN_NONE}, WORDS(help)},
    };
    struct strbuf text = {.columns = 0};
    (void)state;
    column_add_heading_line(&line, &text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        column_add_figure_line(&line, rows[i], &text);
    assert_false(text.failed);
    assert_string_equal(text.bytes,
                        "name  F           rate help\n"
                        "a     12     1.00 GB/s b\n"
                        "too long 1234567     - more words than a figure has room for, and all of "
                        "them are printed\n");
    strbuf_free(&text);
}

/* An instant is printed to a thousandth of its unit, for comparisons. */
static void instants_have_units_by_their_size(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        {0, "0.000 us"},           {0.00123456789, "1234.568 us"}, {0.01, "10.000 ms"},
        {2.015921, "2015.921 ms"}, {999.9, "999900.000 ms"},       {1000, "1000.000 s"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(table_instant(rows[i].seconds).text, rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_are_not_said_are_an_empty_cell),
        cmocka_unit_test(lines_begin_at_the_left),
        cmocka_unit_test(instants_have_units_by_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
