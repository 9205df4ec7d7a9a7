/* Pictures: escaping, numbers, colours for light and dark, series that differ. */
#include <stdio.h>
#include <string.h>

#include "sim/base/svg.h"
#include "tests/support/case.h"

static void words_are_escaped(void **state)
{
    (void)state;
    struct strbuf text = {0};
    svg_words(&text, 1, 2.5, "small end", "<a & b>");
    assert_string_equal(text.bytes,
                        "<text x=\"1\" y=\"2.5\" class=\"small end\">&lt;a &amp; b&gt;</text>\n");
    strbuf_free(&text);
}

/* Words are whole however many there are: one that is cut in a letter is no document. */
static void words_are_never_cut(void **state)
{
    (void)state;
    enum { LETTERS = 400 };
    char words[2 * LETTERS + 1] = "";
    for (uint32_t i = 0; i < LETTERS; i++) memcpy(words + (size_t)2 * i, "\xc3\xa9", 3);
    struct strbuf said = {0}, written = {0};
    svg_say(&said, 1, 2, "mid", "x%s<", words);
    strbuf_add(&written, "<text x=\"1\" y=\"2\" class=\"mid\">x%s&lt;</text>\n", words);
    assert_string_equal(said.bytes, written.bytes);
    strbuf_free(&said);
    strbuf_free(&written);
}

/* Numbers are to a hundredth of a pixel, without zeros at the end, and never "-0". */
static void numbers_are_short(void **state)
{
    (void)state;
    struct strbuf text = {0};
    svg_line(&text, 0.125, 10.0, -0.001, 1234.567, "axis");
    assert_string_equal(text.bytes,
                        "<line x1=\"0.12\" y1=\"10\" x2=\"0\" y2=\"1234.57\" class=\"axis\"/>\n");
    strbuf_free(&text);
    svg_path_begin(&text, "l0");
    svg_path_to(&text, 1, 2);
    svg_path_to(&text, 3, 4);
    svg_path_end(&text);
    assert_string_equal(text.bytes, "<path class=\"l0\" d=\"M1 2L3 4\"/>\n");
    strbuf_free(&text);
}

/* A document: one element, a title, colours for light and dark, nothing from elsewhere. */
static void a_page_stands_by_itself(void **state)
{
    (void)state;
    struct strbuf text = {0};
    svg_begin(&text, &(struct svg_page){.width = 10,
                                        .height = 20,
                                        .title = "a < b",
                                        .classes = ".own { fill: #123456 }\n",
                                        .dark = ".own { fill: #abcdef }\n",
                                        .series_count = 17});
    svg_end(&text);
    assert_non_null(strstr(text.bytes, "<title>a &lt; b</title>"));
    const char *dark = strstr(text.bytes, "prefers-color-scheme: dark");
    assert_non_null(dark);
    assert_true(strstr(text.bytes, "#123456") < dark);
    assert_true(strstr(text.bytes, "#abcdef") > dark);
    assert_null(strstr(text.bytes, "href"));
    assert_non_null(strstr(text.bytes, "id=\"p16\""));
    assert_null(strstr(text.bytes, "id=\"p17\""));
    assert_null(strstr(text.bytes, "id=\"p7\"")); /* The first eight are plain colours. */
    assert_string_equal(text.bytes + text.size_bytes - 7, "</svg>\n");
    strbuf_free(&text);
}

/* No two series look alike: the pair of colour and pattern is each one's own. */
static void series_are_told_apart(void **state)
{
    (void)state;
    char fill[SVG_CLASS_BYTES], stroke[SVG_CLASS_BYTES];
    assert_string_equal(svg_fill(fill, 9), "f9");
    assert_string_equal(svg_stroke(stroke, 23), "l23");
    struct strbuf text = {0};
    svg_begin(&text, &(struct svg_page){.width = 1, .height = 1, .title = "", .series_count = 24});
    for (uint32_t a = 0; a < SVG_SERIES_MAX; a++)
        for (uint32_t b = 0; b < a; b++) {
            char first[80], second[80];
            (void)snprintf(first, sizeof first, ".l%u { ", a);
            (void)snprintf(second, sizeof second, ".l%u { ", b);
            const char *one = strstr(text.bytes, first) + strlen(first);
            const char *two = strstr(text.bytes, second) + strlen(second);
            assert_memory_not_equal(one, two, (size_t)(strchr(one, '}') - one));
        }
    strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_escaped),     cmocka_unit_test(words_are_never_cut),
        cmocka_unit_test(numbers_are_short),     cmocka_unit_test(a_page_stands_by_itself),
        cmocka_unit_test(series_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
