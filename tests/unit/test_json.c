/* JSON: strict reading, places in errors, settings, writing. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tests/support/case.h"

/* read() as the library calls it: after a signal it may have to be called again. */
static uint32_t interruptions;

ssize_t read(int file, void *memory, size_t bytes)
{
    if (interruptions == 0) return readv(file, &(struct iovec){memory, bytes}, 1);
    interruptions--;
    errno = EINTR;
    return -1;
}

static struct error error;
static struct json *read_bytes(const char *bytes, uint64_t count)
{
    struct json *json = NULL;
    memset(&error, 0, sizeof error);
    if (json_read_text(case_arena, "file.json", bytes, count, &json, &error) != STATUS_OK)
        return NULL;
    return json;
}

static struct json *parse(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void refused_at(const char *text, const char *where, const char *why)
{
    if (parse(text) != NULL) fail_msg("%s was read", text);
    if (strcmp(error.where, where) != 0 || strstr(error.message, why) == NULL)
        fail_msg("%s: %s: %s", text, error.where, error.message);
}

static void bad_syntax_names_file_line_and_column(void **state)
{
    (void)state;
    refused_at("{\"a\": 1,\n \"b\" 2}", "file.json:2:6", "':' expected");
    refused_at("", "file.json:1:1", "ends too early: '[' or '{' expected");
    refused_at("{", "file.json:1:2", "ends too early: string or '}' expected");
    refused_at("{\"\xc3\xa4\": [\n 1, \n\n", "file.json:2:4", "ends too early");
    refused_at("{\"a\": \"b", "file.json:1:9", "ends too early");
    refused_at("{\"a\": [1, 2", "file.json:1:12", "ends too early: ']' expected");
    refused_at("{\"a\": 1} x", "file.json:1:10", "something follows the end, near 'x'");
    refused_at("{\"a\": 1}{}", "file.json:1:9", "something follows the end");
    refused_at("{\"a\": NaN}", "file.json:1:9", "invalid token");
    refused_at("{\"a\": Infinity}", "file.json:1:14", "invalid token");
    refused_at("{\"a\": 01}", "file.json:1:7", "invalid token");
    refused_at("{\"a\": 1, \"a\": 2}", "file.json:1:12", "a key is given twice, near '\"a\"'");
    refused_at("{\"a\": 9223372036854775808}", "file.json:1:25", "a number is too large");
    refused_at("{\"a\": 1e999}", "file.json:1:11", "a number is too large");
    refused_at("{'a': 1}", "file.json:1:2", "expected");
    refused_at("// no\n{}", "file.json:1:1", "expected");
    refused_at("\"text\"", "file.json:1:6", "'[' or '{' expected");
    refused_at("\xef\xbb\xbf{}", "file.json:1:1", "byte order mark");
    refused_at("{\n\"a\": \"\xff\"}", "file.json:2:7", "UTF-8");
    refused_at("{\"a\": \"\xed\xa0\x80\"}", "file.json:1:8", "UTF-8"); /* A surrogate. */
    refused_at("{\"a\": \"\xc0\x80\"}", "file.json:1:8", "UTF-8");     /* Overlong. */
    refused_at("{\"a\": \"\xf0\x9f\x98\"}", "file.json:1:8", "UTF-8"); /* Cut. */
    refused_at("{\"a\": \"\\u0000\"}", "file.json:1:14", "a text cannot contain \\u0000, near");
    refused_at("{\"\\u0000\": 1}", "file.json:1:9", "a key cannot contain \\u0000");
    refused_at("{\"a\": \"\\ud800\"}", "file.json:1:14", "invalid Unicode");
    assert_null(read_bytes("{\"a\": \"b\0c\"}", 12));
    assert_string_equal(error.where, "file.json:1:9");
    assert_non_null(strstr(error.message, "NUL"));
}

static void every_cut_of_a_document_is_refused(void **state)
{
    (void)state;
    const char *whole = "{\"a\": [1, -2.5e3, \"\\u00b7·\", true, null], \"b\": {\"c\": false}}";
    for (uint64_t length = 0; length < strlen(whole); length++) {
        assert_null(read_bytes(whole, length));
        assert_int_equal(strncmp(error.where, "file.json:1:", 12), 0);
    }
    assert_non_null(parse(whole));
}

static void nesting_of_64_is_read_and_65_is_not(void **state)
{
    (void)state;
    char text[200] = "";
    for (int i = 0; i < 64; i++) text[i] = '[', text[127 - i] = ']';
    struct json *deepest = parse(text);
    assert_non_null(deepest);
    while (json_count(deepest) > 0) deepest = json_at(deepest, 0);
    assert_int_equal(strlen(json_where(deepest)), 2 * 63);
    for (int i = 0; i < 65; i++) text[i] = '[', text[129 - i] = ']';
    assert_null(parse(text));
    assert_string_equal(error.where, "file.json:1:65");
    assert_non_null(
        parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\"]"));
}

static void the_end_of_a_long_path_is_kept_in_the_place(void **state)
{
    (void)state;
    char path[1000];
    struct json *json = NULL;
    memset(path, 'd', sizeof path);
    (void)snprintf(path + 900, 100, "/scenario.json");
    assert_int_equal(json_read_text(case_arena, path, "{", 1, &json, &error), STATUS_INVALID);
    assert_non_null(strstr(error.where, "/scenario.json:1:2"));
}

static void values_know_their_place(void **state)
{
    (void)state;
    struct json *json = parse("{\"a\": [{\"b/c~\": 1}]}");
    struct json *element = json_at(json_take(json, "a"), 0);
    assert_string_equal(json_where(json), "");
    assert_string_equal(json_where(element), "/a/0");
    assert_string_equal(json_where(json_take(element, "b/c~")), "/a/0/b~1c~0");
    assert_null(json_at(element, 0));
    assert_null(json_at(json_take(json, "a"), 1));
    assert_null(json_take(json_take(json, "a"), "a"));
}

static void typed_values_refuse_other_kinds_and_ranges(void **state)
{
    (void)state;
    struct json *json =
        parse("{\"i\": 7, \"r\": 0.5, \"w\": 4e6, \"s\": \"x\", \"t\": true, \"n\": null}");
    int64_t integer = 0;
    double real = 0;
    bool boolean = false;
    const char *text = NULL;
    assert_int_equal(json_as_integer(json_take(json, "i"), 7, 7, &integer, &error), STATUS_OK);
    assert_int_equal(integer, 7);
    assert_int_equal(json_as_integer(json_take(json, "i"), 8, 9, &integer, &error), STATUS_INVALID);
    assert_string_equal(error.message, "7 is below the minimum 8");
    assert_string_equal(error.where, "/i");
    assert_int_equal(json_as_integer(json_take(json, "i"), 1, 6, &integer, &error), STATUS_INVALID);
    assert_string_equal(error.message, "7 is above the maximum 6");
    case_ok(json_as_integer(json_take(json, "w"), 0, INT64_MAX, &integer, &error));
    assert_int_equal(integer, 4000000);
    assert_int_equal(json_as_integer(json_take(json, "r"), 0, 9, &integer, &error), STATUS_INVALID);
    assert_string_equal(error.message, "0.5 is not a whole number");
    assert_int_equal(json_as_integer(json_take(json, "s"), 0, 9, &integer, &error), STATUS_INVALID);
    assert_string_equal(error.message, "must be an integer, but is a string");
    assert_int_equal(json_as_real(json_take(json, "i"), 0, 9, &real, &error), STATUS_OK);
    assert_int_equal(json_as_real(json_take(json, "r"), 0.6, 1, &real, &error), STATUS_INVALID);
    assert_string_equal(error.message, "0.5 is below the minimum 0.6");
    assert_int_equal(json_as_boolean(json_take(json, "t"), &boolean, &error), STATUS_OK);
    assert_true(boolean);
    assert_int_equal(json_as_boolean(json_take(json, "i"), &boolean, &error), STATUS_INVALID);
    assert_int_equal(json_as_string(json_take(json, "n"), &text, &error), STATUS_INVALID);
    assert_string_equal(error.message, "must be a string, but is null");
    assert_int_equal(json_as_object(json_take(json, "s"), &error), STATUS_INVALID);
}

static void choices_and_quantities_say_what_is_near(void **state)
{
    (void)state;
    static const char *const choices[] = {"full", "causal", NULL};
    struct json *json = parse("{\"a\": \"casual\", \"b\": 3, \"r\": \"90GB\", \"d\": \"1us\"}");
    uint32_t index = 9;
    uint64_t amount = 0;
    assert_int_equal(json_choice(json_take(json, "a"), choices, &index, &error), STATUS_INVALID);
    assert_string_equal(error.message,
                        "\"casual\" is not one of \"full\", \"causal\"; the nearest is \"causal\"");
    assert_int_equal(json_choice(json_take(json, "b"), choices, &index, &error), STATUS_INVALID);
    assert_int_equal(index, 9);
    assert_int_equal(json_as_quantity(json_take(json, "r"), QUANTITY_RATE, &amount, &error),
                     STATUS_INVALID);
    assert_string_equal(error.where, "/r");
    assert_int_equal(json_as_quantity(json_take(json, "b"), QUANTITY_RATE, &amount, &error),
                     STATUS_INVALID);
    assert_non_null(strstr(error.message, "\"90GB/s\""));
    assert_int_equal(json_as_quantity(json_take(json, "d"), QUANTITY_DURATION, &amount, &error),
                     STATUS_OK);
    assert_int_equal(amount, 1000000);
}

static void no_key_is_ignored(void **state)
{
    (void)state;
    static const char *const known[] = {"chip", "shape", NULL};
    struct json *json = parse("{\"m\": {\"chip\": 1, \"shap\": 2}}");
    struct json *machine = json_take(json, "m"), *value = NULL;
    assert_non_null(json_take(machine, "chip"));
    assert_int_equal(json_end(machine, known, &error), STATUS_INVALID);
    assert_string_equal(error.where, "/m/shap");
    assert_string_equal(error.message, "unknown key \"shap\"; the nearest known is \"shape\"");
    assert_int_equal(json_need(machine, "shape", &value, &error), STATUS_INVALID);
    assert_string_equal(error.where, "/m");
    assert_string_equal(error.message, "\"shape\" is missing");
    assert_int_equal(json_end(json, known, &error), STATUS_OK);
    assert_string_equal(json_key_at(machine, 1), "shap");
    assert_null(json_key_at(machine, 2));
}

static void set(struct json *json, const char *setting)
{
    if (json_set(json, setting, &error) != STATUS_OK) fail_msg("%s: %s", setting, error.message);
}

static void settings_change_add_and_replace(void **state)
{
    (void)state;
    struct json *json = parse("{\"a\": {\"b\": 1}, \"l\": [1, {\"x\": 2}]}");
    int64_t integer = 0;
    const char *text = NULL;
    bool boolean = true;
    set(json, "/a/b=2");
    set(json, "/a/b=3");
    set(json, "/new/deep/er=false");
    set(json, "/l/1/x=a string, as it does not parse");
    set(json, "/l/0={\"k\": [10, 11]}");
    set(json, "/q=\"4\"");
    set(json, "/e=");
    set(json, "/t=a=b/c");
    set(json, "/shape=16x16x16");
    set(json, "/long=99999999999999999999999x4");
    assert_int_equal(json_as_integer(json_take(json_take(json, "a"), "b"), 3, 3, &integer, &error),
                     STATUS_OK);
    struct json *er = json_take(json_take(json_take(json, "new"), "deep"), "er");
    assert_int_equal(json_as_boolean(er, &boolean, &error), STATUS_OK);
    assert_string_equal(json_where(er), "/new/deep/er");
    struct json *list = json_take(json, "l");
    assert_int_equal(json_as_string(json_take(json_at(list, 1), "x"), &text, &error), STATUS_OK);
    assert_string_equal(text, "a string, as it does not parse");
    assert_string_equal(json_where(json_at(json_take(json_at(list, 0), "k"), 1)), "/l/0/k/1");
    assert_int_equal(json_as_string(json_take(json, "q"), &text, &error), STATUS_OK);
    assert_string_equal(text, "4");
    assert_int_equal(json_as_string(json_take(json, "e"), &text, &error), STATUS_OK);
    assert_string_equal(text, "");
    assert_int_equal(json_as_string(json_take(json, "t"), &text, &error), STATUS_OK);
    assert_string_equal(text, "a=b/c");
    assert_int_equal(json_count(json), 8);
}

static void null_takes_away_what_is_there(void **state)
{
    (void)state;
    struct json *json = parse("{\"a\": {\"b\": 1, \"c\": 2, \"d\": 3}, \"l\": [1]}");
    set(json, "/a/c=null");
    set(json, "/a/d=null");
    set(json, "/a/e=5");
    struct json *const a = json_take(json, "a");
    assert_int_equal(json_count(a), 2);
    assert_string_equal(json_key_at(a, 0), "b");
    assert_string_equal(json_key_at(a, 1), "e");
    set(json, "/a/b=null");
    set(json, "/a/e=null");
    assert_int_equal(json_count(a), 0);
    assert_null(json_key_at(a, 0));
    set(json, "/a/f=6");
    assert_string_equal(json_key_at(a, 0), "f");
    set(json, "/a/g=null"); /* Was not there: stays, to be refused as any other. */
    assert_int_equal(json_count(a), 2);
    set(json, "/l/0=null");
    assert_int_equal(json_count(json_take(json, "l")), 1);
    set(json, "/a=null");
    assert_int_equal(json_count(json), 1);
}

static void settings_add_elements_behind_the_last(void **state)
{
    (void)state;
    struct json *json = parse("{\"l\": [[1], {\"x\": [2]}], \"m\": {}}");
    set(json, "/l/2={\"k\": 3}");
    set(json, "/l/3/deep=4");
    set(json, "/new/0/x=5");
    set(json, "/new/1=6");
    set(json, "/text=7a");
    set(json, "/m/0=an object stays one");
    struct json *list = json_take(json, "l");
    assert_int_equal(json_count(list), 4);
    assert_string_equal(json_where(json_at(json_at(list, 0), 0)), "/l/0/0");
    assert_string_equal(json_where(json_at(json_take(json_at(list, 1), "x"), 0)), "/l/1/x/0");
    assert_string_equal(json_where(json_take(json_at(list, 2), "k")), "/l/2/k");
    assert_string_equal(json_where(json_take(json_at(list, 3), "deep")), "/l/3/deep");
    struct json *made = json_take(json, "new");
    assert_int_equal(json_kind(made), JSON_ARRAY);
    assert_int_equal(json_count(made), 2);
    assert_string_equal(json_where(json_take(json_at(made, 0), "x")), "/new/0/x");
    assert_int_equal(json_kind(json_take(json, "m")), JSON_OBJECT);
    assert_int_equal(json_set(json, "/text/0=8", &error), STATUS_INVALID);
}

static void errors_do_not_command_the_terminal(void **state)
{
    (void)state;
    struct json *json = parse("{\"\\u001b[31m\\u009b\\u007f\\u0000e4\": 1}");
    assert_null(json);
    json = parse("{\"\\u001b[31m\\u009bm\\u007f\\u00e4\": 1}");
    const char *const known[] = {"a", NULL};
    assert_int_equal(json_end(json, known, &error), STATUS_INVALID);
    assert_non_null(strstr(error.message, "unknown key \"?[31m??m?\xc3\xa4\""));
    for (const char *c = error.where; *c != '\0'; c++) assert_true((unsigned char)*c >= 0x20);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *where, *why;
    } cases[] = {
        {"run/seed=2", "--set", "/run/seed=2"},
        {"/run/seed", "--set", "is not a setting"},
        {"=3", "--set", "is not a setting"},
        {"", "--set", "is not a setting"},
        {"/a/b/c=1", "/a/b", "neither an object nor an array"},
        {"/l/3=1", "/l", "has no element"},
        {"/a={\"b\": 1, \"b\": 2}", "/a", "the value given: a key is given twice"},
        {"/a/b=[1, 2", "/a/b", "the value given: ends too early: ']' expected"},
        {"/a=[NaN]", "/a", "invalid token near 'NaN'"},
        {"/a=\"b", "/a", "ends too early"},
        {"/a=99999999999999999999999", "/a", "a number is too large"},
        {"/a=-1e999", "/a", "a number is too large"},
        {"/l/-=1", "/l", "has no element"},
        {"/l/01=1", "/l", "has no element"},
        {"/l/=1", "/l", "has no element"},
        {"/l/99999999999999999999999=1", "/l", "has no element"},
        {"/a~2=1", "--set", "neither ~0 nor ~1"},
        {"/a~=1", "--set", "neither ~0 nor ~1"},
        {"/a=\xff", "--set", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json *json = parse("{\"a\": {\"b\": 1}, \"l\": [1, 2]}");
        if (json_set(json, cases[i].setting, &error) != STATUS_INVALID)
            fail_msg("%s was taken", cases[i].setting);
        if (strcmp(error.where, cases[i].where) != 0 || !strstr(error.message, cases[i].why))
            fail_msg("%s: %s: %s", cases[i].setting, error.where, error.message);
    }
    char deep[200] = "";
    for (int i = 0; i < 65; i++) memcpy(deep + 2 * i, "/a", 3);
    memcpy(deep + 128, "=1", 3);
    assert_int_equal(json_set(parse("{}"), deep, &error), STATUS_OK);
    memcpy(deep + 128, "/a=1", 5);
    assert_int_equal(json_set(parse("{}"), deep, &error), STATUS_INVALID);
    assert_string_equal(error.message, "is nested deeper than 64");
}

static void a_text_of_16_mib_is_read_and_no_longer_one(void **state)
{
    (void)state;
    char *text = malloc(JSON_FILE_BYTES_MAX + 1);
    assert_non_null(text);
    memset(text, ' ', JSON_FILE_BYTES_MAX + 1);
    (void)memcpy(text, "{}", 2);
    assert_non_null(read_bytes(text, JSON_FILE_BYTES_MAX));
    assert_null(read_bytes(text, JSON_FILE_BYTES_MAX + 1));
    assert_int_equal(error.status, STATUS_LIMIT);
    assert_string_equal(error.message, "is longer than 16777216 bytes, the maximum");
    free(text);
}

static void odd_files_are_refused_unread(void **state)
{
    (void)state;
    struct json *json = NULL;
    char folder[] = "podsim-json-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(json_read_file(case_arena, folder, &json, &error), STATUS_IO);
    assert_non_null(strstr(error.message, "folder"));
    assert_int_equal(json_read_file(case_arena, "/dev/zero", &json, &error), STATUS_IO);
    (void)snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_IO);
    assert_non_null(strstr(error.message, "regular file"));
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/none.json", folder);
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_IO);
    assert_string_equal(error.message, "cannot be read: no such file");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fprintf(file, "[1]"), 3);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_OK);
    assert_int_equal(json_count(json), 1);
    interruptions = 2;
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_OK);
    assert_int_equal(interruptions, 0);
    assert_int_equal(json_count(json), 1);
    assert_int_equal(ftruncate(fileno(file), 16 * 1024 * 1024), 0); /* "[1]", then NULs. */
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_INVALID);
    assert_int_equal(ftruncate(fileno(file), 16 * 1024 * 1024 + 1), 0);
    assert_int_equal(json_read_file(case_arena, path, &json, &error), STATUS_LIMIT);
    assert_string_equal(error.where, path);
    assert_string_equal(error.message, "is longer than 16777216 bytes, the maximum");
    (void)fclose(file);
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

static void too_little_memory_is_said_never_a_crash(void **state)
{
    (void)state;
    const char *text = "{\"a\": [1, 2, {\"b\": \"text\"}], \"c\": 1.5}";
    struct json *json = NULL;
    enum status status = STATUS_NO_MEMORY;
    uint64_t limit = 1;
    for (; status == STATUS_NO_MEMORY && limit < 100000; limit += 32) {
        struct arena *small = arena_create(limit);
        status = json_read_text(small, "f", text, strlen(text), &json, &error);
        arena_destroy(small);
    }
    assert_int_equal(status, STATUS_OK);
    assert_true(limit > 200);
}

static void writing_is_laid_out_and_escaped(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct json_writer writer;
    json_write_start(&writer, &text);
    writer.flat = 2;
    json_write_object(&writer);
    json_put_string(&writer, "a\"\\\n", "·\x01\xff");
    json_put_array(&writer, "list");
    json_write_integer(&writer, INT64_MIN);
    json_write_unsigned(&writer, UINT64_MAX);
    json_write_object(&writer);
    json_put_boolean(&writer, "t", true);
    json_write_object_end(&writer);
    json_write_array(&writer);
    json_write_array_end(&writer);
    json_write_array_end(&writer);
    json_put_object(&writer, "last");
    json_write_object_end(&writer);
    json_write_object_end(&writer);
    assert_string_equal(text.bytes, "{\n  \"a\\\"\\\\\\u000a\": \"·\\u0001\xef\xbf\xbd\",\n"
                                    "  \"list\": [-9223372036854775808, 18446744073709551615, "
                                    "{\"t\": true}, []],\n  \"last\": {}\n}\n");
    strbuf_free(&text);
}

static void reals_are_short_and_come_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1, "1.0"},
                 {-0.0, "-0.0"},
                 {1e300, "1e+300"},
                 {5e-324, "5e-324"},
                 {1.0 / 3, "0.3333333333333333"},
                 {__DBL_MAX__, "1.7976931348623157e+308"},
                 {123456789, "123456789.0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct strbuf text = {0};
        struct json_writer writer;
        double back = 0;
        json_write_start(&writer, &text);
        json_write_array(&writer);
        json_write_real(&writer, cases[i].value);
        json_write_array_end(&writer);
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "[\n  %s\n]\n", cases[i].text);
        assert_string_equal(text.bytes, wanted);
        assert_int_equal(
            json_as_real(json_at(parse(text.bytes), 0), -__DBL_MAX__, __DBL_MAX__, &back, &error),
            STATUS_OK);
        assert_memory_equal(&back, &cases[i].value, sizeof back);
        strbuf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_syntax_names_file_line_and_column),
        cmocka_unit_test(every_cut_of_a_document_is_refused),
        cmocka_unit_test(nesting_of_64_is_read_and_65_is_not),
        cmocka_unit_test(the_end_of_a_long_path_is_kept_in_the_place),
        cmocka_unit_test(values_know_their_place),
        cmocka_unit_test(typed_values_refuse_other_kinds_and_ranges),
        cmocka_unit_test(choices_and_quantities_say_what_is_near),
        cmocka_unit_test(null_takes_away_what_is_there),
        cmocka_unit_test(settings_add_elements_behind_the_last),
        cmocka_unit_test(errors_do_not_command_the_terminal),
        cmocka_unit_test(no_key_is_ignored),
        cmocka_unit_test(settings_change_add_and_replace),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
        cmocka_unit_test(a_text_of_16_mib_is_read_and_no_longer_one),
        cmocka_unit_test(odd_files_are_refused_unread),
        cmocka_unit_test(too_little_memory_is_said_never_a_crash),
        cmocka_unit_test(writing_is_laid_out_and_escaped),
        cmocka_unit_test(reals_are_short_and_come_back),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
