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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_are_not_said_are_an_empty_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
