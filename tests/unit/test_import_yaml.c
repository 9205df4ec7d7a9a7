/*
 * YAML and JSON as lists of keys with their lines. What is expected follows from YAML 1.2's core
 * schema.
 */
#include "tests/unit/import_case.h"

static void read_as(const char *text, const char *expected)
{
    import_case_reads(settings_read_yaml, text, expected);
}

static void refused(const char *text, const char *expected)
{
    import_case_refuses(settings_read_yaml, text, expected);
}

static void json_refused(const char *text, const char *expected)
{
    import_case_refuses(settings_read_json, text, expected);
}

static void maps_and_lists(void **state)
{
    (void)state;
    read_as("a: 1 # one\nb:\n  c: true\n  d: 'x # y'\ne: [p, 'q']\n",
            "1 a=1\n3 b.c=true\n4 b.d=x # y\n5 e=p q\n");
    read_as("a:\n- 1\n- [2, 3]\n- {b: 4}\n", "3 a.1=2 3\n4 a.2.b=4\n2 a=1\n");
    read_as("---\na: null\nb:\nc: \"\\u00e9\"\n...\n", "2 a=null\n3 b\n4 c=\xc3\xa9\n");
    read_as("", "");
    read_as("# nothing\n", "");
}

static void json_is_read_with_its_lines(void **state)
{
    (void)state;
    import_case_reads(settings_read_json,
                      "{\n\t\"a\": 1,\n\t\"b\": {\"c\": [1, 2],\n\t\"d\": \"\\/x\"}\n}\n",
                      "2 a=1\n3 b.c=1 2\n4 b.d=/x\n");
}

static void wrong_texts_are_refused_at_their_line(void **state)
{
    (void)state;
    refused("a: 1\na: 2\n", "script:2: \"a\" is given twice, first in line 1");
    refused("a: 1\nb: \"x\n", "script:*: *");
    refused("a: [1, 2\nb: 3\n", "script:2: *");
    refused("a: &x 1\nb: *x\n", "script:2: \\*x: a part that is used again*");
    refused("a: 1\n---\nb: 2\n", "script:2: a second document in the file");
    refused("- 1\n- 2\n", "script:1: keys with values are expected*");
    refused("just text\n", "script:1: keys with values are expected*");
    refused("a: 1\n\tb: 2\n", "script:2: *");
    refused("? [a]\n: 1\n", "script:1: a key that is no text");
    refused("a: \"x\\0y\"\n", "script:1: a text with a character 0");
    refused("a: \xff\n", "script:1: *");
    json_refused("{\"a\": 1,\n}\n", "script:2:*");
    json_refused("{\"a\": 1\n", "script:*");
    json_refused("{\"a\": 1, \"a\": 2}\n", "script:1:*");
    json_refused("a: 1\n", "script:1:*");
    json_refused("[1]\n", "*");
}

static void hostile_texts_meet_limits(void **state)
{
    (void)state;
    struct strbuf lists = {.bytes = NULL}, keys = {.bytes = NULL};
    strbuf_add(&lists, "a: ");
    for (uint32_t i = 0; i < 5000; i++) strbuf_add(&lists, "[");
    refused(lists.bytes, "script:1: *");
    for (uint32_t i = 0; i < 5000; i++) strbuf_add(&keys, "a%u: 1\n", i);
    refused(keys.bytes, "script:4097: more than 4096 settings");
    strbuf_free(&lists);
    strbuf_free(&keys);
}

/* Every beginning of a text is read or refused. */
static void cut_texts_end(void **state)
{
    (void)state;
    static const char whole[] = "a:\n  - {b: \"\\u0041\", c: [1, 2]}\nd: 'x'\ne: |\n  long\n";
    for (size_t length = 0; length < sizeof whole; length++) {
        struct arena *arena = arena_create(0);
        struct import_file file;
        struct error error = {.status = STATUS_OK};
        const char *text = arena_format(arena, "%.*s", (int)length, whole);
        enum status const status = import_case_read(arena, settings_read_yaml, text, &file, &error);
        assert_true(status == STATUS_OK || strncmp(error.where, "script:", 7) == 0);
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_and_lists),
        cmocka_unit_test(json_is_read_with_its_lines),
        cmocka_unit_test(wrong_texts_are_refused_at_their_line),
        cmocka_unit_test(hostile_texts_meet_limits),
        cmocka_unit_test(cut_texts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
