/*
 * TOML as a list of keys with their lines. What is expected follows from TOML 1.0.
 */
#include "tests/unit/import_case.h"

static void read_as(const char *text, const char *expected)
{
    import_case_reads(settings_read_toml, text, expected);
}

static void refused(const char *text, const char *expected)
{
    import_case_refuses(settings_read_toml, text, expected);
}

static void tables_and_values(void **state)
{
    (void)state;
    read_as("a = 1\n[t] # heading\nb = true\nc.d = 'x # y'\n[t.u]\n\"e f\" = 1_000\n",
            "1 a=1\n3 t.b=true\n4 t.c.d=x # y\n6 t.u.e f=1_000\n");
    read_as("a = [\"x\",\n  \"y\", # last\n]\nb = [[1, 2], [3]]\nc = {d = -1.5e3, e = []}\n",
            "1 a=x y\n4 b.0=1 2\n4 b.1=3\n4 b\n5 c.d=-1.5e3\n5 c.e\n");
    read_as("[[x]]\na = 1\n[[x]]\na = 2\n", "2 x.0.a=1\n4 x.1.a=2\n");
    read_as("a = \"q\\\"\\u00e9\\\\\"\nb = \"\"\"\none \\\n  two\"\"\"\nc = 2020-01-02\n",
            "1 a=q\"\xc3\xa9\\\n2 b=one two\n5 c=2020-01-02\n");
    read_as("a = 1\r\nb = 2", "1 a=1\n2 b=2\n");
    read_as("a = 0o17\nb = 0b101\n", "1 a=0o17\n2 b=0b101\n");
    read_as("", "");
}

/* Of the specification's chapter "Array of Tables": a heading below one is the last element's. */
static void tables_of_an_array_are_its_last_elements(void **state)
{
    (void)state;
    read_as("[[job.x]]\n[job.x.y]\na = 1\n[[job.x]]\n[job.x.y]\na = 2\n",
            "3 job.x.0.y.a=1\n6 job.x.1.y.a=2\n");
    read_as("[[f]]\n[[f.v]]\nn = 1\n[[f.v]]\nn = 2\n[[f]]\n[[f.v]]\nn = 3\n",
            "3 f.0.v.0.n=1\n5 f.0.v.1.n=2\n8 f.1.v.0.n=3\n");
    refused("[[x]]\n[x.y]\n[x.y]\n", "script:3: the table \\[x.0.y] is given twice");
    refused("[[x]]\n[x]\n", "script:2: \\[x] is a table in one line and an array *");
    refused("[x]\n[[x]]\n", "script:2: \\[x] is a table in one line and an array *");
}

/* The examples of the specification's chapters on dates and times. */
static void dates_are_texts(void **state)
{
    (void)state;
    read_as("a = 1979-05-27 07:32:00\nb = 1979-05-27 00:32:00.9-07:00 # a comment\n",
            "1 a=1979-05-27 07:32:00\n2 b=1979-05-27 00:32:00.9-07:00\n");
    read_as("a = [1979-05-27 07:32:00Z, 07:32:00, 1979-05-27T07:32:00]\nb = 1979-05-27 # 12:\n",
            "1 a=1979-05-27 07:32:00Z 07:32:00 1979-05-27T07:32:00\n2 b=1979-05-27\n");
    refused("a = 1979-05-27 7\n", "script:1: something follows the end of a value*");
    refused("a = 1979-may-27\n", "script:1: \"1979-may-27\" is no value*");
    refused("a = 07:32:00Z\n", "script:1: \"07:32:00Z\" is no value*");
    refused("a = 1979-05-27 07:32:00 07:32:00\n", "script:1: something follows the end*");
}

static void two_quotes_may_stand_before_the_three_that_end_a_text(void **state)
{
    (void)state;
    read_as("a = \"\"\"x\"\"\"\"\"\nb = '''y'''''\n", "1 a=x\"\"\n2 b=y''\n");
    refused("a = \"\"\"x\"\"\"\"\"\"\n", "script:1: something follows the end of a value*");
    refused("a = '''x''''''\n", "script:1: something follows the end of a value*");
}

static void wrong_texts_are_refused_at_their_line(void **state)
{
    (void)state;
    refused("a = 1\na = 2\n", "script:2: \"a\" is given twice, first in line 1");
    refused("[t]\n[t]\n", "script:2: the table * is given twice");
    refused("\na = \"x\n", "script:2: a text whose quotes are not closed");
    refused("a = '''x\n\n", "script:1: a text whose quotes are not closed");
    refused("a = [1,\n2\n", "script:*: *in an array");
    refused("a = [1,\n", "script:1: an array that is not closed");
    refused("a = {b = 1\n", "script:1: *in a table");
    refused("[t\na = 1\n", "script:1: a heading that is not closed");
    refused("a\n", "script:1: \"=\" is expected behind a key");
    refused("a =\n", "script:1: a value is expected here");
    refused("a = x\n", "script:1: \"x\" is no value; a text has quotes");
    refused("a = 1 2\n", "script:1: something follows the end of a value*");
    refused("a = \"\\q\"\n", "script:1: an unknown escape in a text");
    refused("a = \"\\ud800\"\n", "script:1: a \\\\u that is no character");
    refused("= 1\n", "script:1: a key is expected here");
    refused("a = 1111111111111111111111111111111111111111111\n", "script:1: a number of too many*");
}

static void hostile_texts_meet_limits(void **state)
{
    (void)state;
    struct strbuf arrays = {.bytes = NULL}, keys = {.bytes = NULL}, tables = {.bytes = NULL};
    strbuf_add(&arrays, "a = ");
    for (uint32_t i = 0; i < 5000; i++) strbuf_add(&arrays, "[");
    refused(arrays.bytes, "script:1: arrays and tables within one another more than 32 deep");
    for (uint32_t i = 0; i < 5000; i++) strbuf_add(&keys, "a%u = 1\n", i);
    refused(keys.bytes, "script:4097: more than 4096 settings");
    for (uint32_t i = 0; i < 600; i++) strbuf_add(&tables, "[t%u]\n", i);
    refused(tables.bytes, "script:513: more than 512 tables");
    strbuf_free(&arrays);
    strbuf_free(&keys);
    strbuf_free(&tables);
}

/* Every beginning of a text that has all kinds of values is read or refused. */
static void cut_texts_end(void **state)
{
    (void)state;
    static const char whole[] = "[t]\na = [1, {b = \"\\u0041\"}]\nc = '''x'''\n[[u]]\nd.e = true\n";
    for (size_t length = 0; length < sizeof whole; length++) {
        struct arena *arena = arena_create(0);
        struct import_file file;
        struct error error = {.status = STATUS_OK};
        const char *text = arena_format(arena, "%.*s", (int)length, whole);
        enum status const status = import_case_read(arena, settings_read_toml, text, &file, &error);
        assert_true(status == STATUS_OK || strncmp(error.where, "script:", 7) == 0);
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_values),
        cmocka_unit_test(tables_of_an_array_are_its_last_elements),
        cmocka_unit_test(dates_are_texts),
        cmocka_unit_test(two_quotes_may_stand_before_the_three_that_end_a_text),
        cmocka_unit_test(wrong_texts_are_refused_at_their_line),
        cmocka_unit_test(hostile_texts_meet_limits),
        cmocka_unit_test(cut_texts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
