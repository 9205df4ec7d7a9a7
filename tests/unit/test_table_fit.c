/* Text on a terminal: lines that are too wide are broken, tables lose blanks or come in parts. */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/table_fit.h"
#include "tests/support/case.h"

static void broken(uint32_t columns, const char *line, const char *wanted)
{
    struct strbuf text = {.columns = columns};
    strbuf_add(&text, "%s", line);
    table_break(&text);
    assert_false(text.failed);
    assert_string_equal(text.bytes, wanted);
    strbuf_free(&text);
}

/* Signs are counted, not bytes, and colours take no room. */
static void further_lines_stand_below_the_last_column_of_the_left_half(void **state)
{
    (void)state;
    broken(0, "name  a sentence of several words\n", "name  a sentence of several words\n");
    broken(33, "name  a sentence of several words\n", "name  a sentence of several words\n");
    broken(32, "name  a sentence of several words\n", "name  a sentence of several\n      words\n");
    broken(20, "name  a sentence of several words\n", "name  a sentence of\n      several words\n");
    broken(20, "αβγδ  a sentence of several words\n", "αβγδ  a sentence of\n      several words\n");
    broken(20, "\x1b[1mname\x1b[0m  a sentence of several words\n",
           "\x1b[1mname\x1b[0m  a sentence of\n      several words\n");
    broken(20, "- a sentence of several words\n", "- a sentence of\n  several words\n");
    broken(20, "a sentence of several words\n", "a sentence of\n  several words\n");
    broken(20, "# a sentence of several words\n", "# a sentence of\n# several words\n");
    /* The longest word just fits there, or does not. */
    broken(20, "name  a sentence fourteenletter\n", "name  a sentence\n      fourteenletter\n");
    broken(19, "name  a sentence fourteenletter\n", "name  a sentence\n  fourteenletter\n");
    broken(20, "far  from the   left a sentence\n", "far  from the   left\n     a sentence\n");
}

static void fitted(uint32_t columns, uint32_t label, const char *table, const char *wanted)
{
    struct strbuf text = {.columns = columns};
    strbuf_add(&text, "before\n");
    uint64_t const begin = table_open(&text);
    strbuf_add(&text, "%s", table);
    table_close(&text, begin, label);
    assert_false(text.failed);
    assert_true(strncmp(text.bytes, "before\n", 7) == 0);
    assert_string_equal(text.bytes + 7, wanted);
    strbuf_free(&text);
}

static void tables_lose_blanks_and_then_come_in_parts(void **state)
{
    (void)state;
    static const char table[] = "name    first    second    third\n"
                                "β           1         2        3\n";
    fitted(0, 4, table, table);
    fitted(32, 4, table, table);
    fitted(27, 4, table, "name  first  second   third\nβ         1       2       3\n");
    fitted(26, 4, table, "name  first  second  third\nβ         1       2      3\n");
    fitted(23, 4, table, "name first second third\nβ        1      2     3\n");
    fitted(22, 4, table, "name  first  second\nβ         1       2\n\nname  third\nβ         3\n");
    fitted(19, 4, table, "name  first  second\nβ         1       2\n\nname  third\nβ         3\n");
    fitted(20, 4, table, "name  first  second\nβ         1       2\n\nname  third\nβ         3\n");
}

/* A heading between rows goes on behind the label of further parts to the end of its word. */
static void headings_between_rows_are_not_cut_within_a_word(void **state)
{
    (void)state;
    fitted(20, 4,
           "name  first  second  third\nb         1       2      3\n"
           "a heading between\nc         4       5      6\n",
           "name  first  second\nb         1       2\na heading between\nc         4       5\n\n"
           "name  third\nb         3\na heading\nc         6\n");
}

/* Words at the end of a row stay in one part, whose lines table_break() wraps; figures with one
 * blank between them do not. */
static void words_are_not_cut_where_all_rows_have_a_blank(void **state)
{
    (void)state;
    fitted(20, 4,
           "name  count  way\n"
           "a         1  ring (est. 1.00 us; then line)\n"
           "b         2  line (est. 2.00 us)\n",
           "name  count\na         1\nb         2\n\n"
           "name  way\na     ring (est. 1.00 us; then line)\nb     line (est. 2.00 us)\n");
    fitted(16, 4,
           "name  one two three\n"
           "a       1   2     3\n"
           "b      11  22    33\n",
           "name  one two\na       1   2\nb      11  22\n\n"
           "name three\na        3\nb       33\n");
}

/* The headings of one part leave no empty line in another; a blank line of the table stays. */
static void headings_of_another_part_leave_no_empty_line(void **state)
{
    (void)state;
    fitted(16, 4,
           "#     over two\n"
           "#        a    b    third\n"
           "   1     2    3        4\n"
           "\n"
           "   5     6    7        8\n",
           "#     over two\n#        a    b\n   1     2    3\n\n   5     6    7\n\n"
           "#     third\n   1      4\n\n   5      8\n");
}

/* A sentence between the rows widens no column, and only the first part has it. */
static void sentences_between_rows_are_not_cut(void **state)
{
    static const char heading[] = "name  first  second  third\n";
    static const char row[] = "a         1       2      3\n";
    static const char said[] = "# what one run of many rows did, at length\n";
    static const struct {
        uint32_t columns;
        const char *wanted;
    } cases[] = {
        {0, "name  first  second  third\na         1       2      3\n"
            "# what one run of many rows did, at length\na         1       2      3\n"},
        {26, "name  first  second  third\na         1       2      3\n"
             "# what one run of many rows did, at length\na         1       2      3\n"},
        {20, "name  first  second\na         1       2\n"
             "# what one run of many rows did, at length\na         1       2\n\n"
             "name  third\na         3\na         3\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf text = {.columns = cases[i].columns};
        uint64_t const begin = table_open(&text);
        strbuf_add(&text, "%s%s", heading, row);
        table_sentence(&text);
        strbuf_add(&text, "%s%s", said, row);
        table_close(&text, begin, 4);
        assert_string_equal(text.bytes, cases[i].wanted);
        strbuf_free(&text);
    }
}

/* Columns are told apart in the first 1,024; what is behind them stays whole. */
static void lines_beyond_the_columns_that_are_counted_are_not_cut(void **state)
{
    (void)state;
    static char word[1101], table[1110], wanted[1110];
    memset(word, 'x', sizeof word - 1);
    (void)snprintf(table, sizeof table, "name    %s\n", word);
    (void)snprintf(wanted, sizeof wanted, "name  %s\n", word);
    fitted(1022, 4, table, wanted);
    fitted(20, 4, table, wanted);
}

/* A shape stays in one line, unless it is wider than any. */
static void lines_break_before_brackets(void **state)
{
    static const struct {
        const char *line, *wanted;
    } cases[] = {
        {"Q[B, D] = In[B, D] *_D W[D]  [16384, 4, 128]  16.8 MB",
         "Q[B, D] = In[B, D] *_D W[D]\n  [16384, 4, 128]  16.8 MB"},
        {"shape [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]",
         "shape\n  [1, 2, 3, 4, 5, 6, 7, 8, 9,\n  10, 11, 12]"},
        {"one [ that no other one closes in the line",
         "one [ that no other one closes\n  in the line"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf text = {.columns = 32};
        strbuf_add(&text, "%s", cases[i].line);
        table_break(&text);
        assert_string_equal(text.bytes, cases[i].wanted);
        strbuf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_break_before_brackets),
        cmocka_unit_test(further_lines_stand_below_the_last_column_of_the_left_half),
        cmocka_unit_test(tables_lose_blanks_and_then_come_in_parts),
        cmocka_unit_test(headings_between_rows_are_not_cut_within_a_word),
        cmocka_unit_test(words_are_not_cut_where_all_rows_have_a_blank),
        cmocka_unit_test(headings_of_another_part_leave_no_empty_line),
        cmocka_unit_test(sentences_between_rows_are_not_cut),
        cmocka_unit_test(lines_beyond_the_columns_that_are_counted_are_not_cut),
    };
    return cmocka_run_group_tests_name("text on a terminal", tests, NULL, NULL);
}
