/* JSON: strict reading, places in errors, writing. */
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
#include "tests/support/refusals.h"
#include "tests/unit/json_case.h"

/* read() as the library calls it: after a signal it may have to be called again. */
static uint32_t interruptions;

ssize_t read(int file, void *memory, size_t bytes)
{
    if (interruptions == 0) return readv(file, &(struct iovec){memory, bytes}, 1);
    interruptions--;
    errno = EINTR;
    return -1;
}

static void refused_at(const char *text, const char *where, const char *why)
{
    if (parse(text) != NULL) fail_msg("%s was read", text);
    if (strcmp(error.where, where) != 0 || strstr(error.message, why) == NULL)
        fail_msg("%s: %s: %s", text, error.where, error.message);
    refusals_hold(&error, __FILE__);
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
    refusals_hold(&error, __FILE__);
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
    refusals_hold(&error, __FILE__);
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

static void errors_do_not_command_the_terminal(void **state)
{
    (void)state;
    struct json *json = parse("{\"\\u001b[31m\\u009b\\u007f\\u0000e4\": 1}");
    assert_null(json);
    json = parse("{\"\\u001b[31m\\u009bm\\u007f\\u00e4\": 1}");
    const char *const known[] = {"a", NULL};
    assert_int_equal(json_end(json, known, &error), STATUS_INVALID);
    assert_non_null(strstr(error.message, "unknown key \"?[31m?m?\xc3\xa4\""));
    for (const char *c = error.where; *c != '\0'; c++) assert_true((unsigned char)*c >= 0x20);
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

static void long_lines_are_folded_between_members(void **state)
{
    (void)state;
    static const char flat[] = "{\n"
                               "  \"a\": {\"b\": \"x, \\\"y, z\", \"c\": [1, 2], \"d\": 3},\n"
                               "  \"e\": 4\n"
                               "}\n";
    static const char *const folded[] = {
        [20] = "{\n"
               "  \"a\": {\"b\": \"x, \\\"y, z\",\n"
               "    \"c\": [1, 2],\n"
               "    \"d\": 3},\n"
               "  \"e\": 4\n"
               "}\n",
        [37] = "{\n"
               "  \"a\": {\"b\": \"x, \\\"y, z\", \"c\": [1,\n"
               "    2], \"d\": 3},\n"
               "  \"e\": 4\n"
               "}\n",
        [80] = flat,
    };
    struct strbuf json = {.bytes = NULL};
    strbuf_add(&json, "%s", flat);
    for (uint32_t columns = 0; columns < sizeof folded / sizeof *folded; columns++) {
        struct strbuf text = {.bytes = NULL};
        if (folded[columns] == NULL) continue;
        json_fold(&json, columns, &text);
        assert_string_equal(text.bytes, folded[columns]);
        strbuf_free(&text);
    }
    strbuf_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lines_are_folded_between_members),
        cmocka_unit_test(bad_syntax_names_file_line_and_column),
        cmocka_unit_test(every_cut_of_a_document_is_refused),
        cmocka_unit_test(nesting_of_64_is_read_and_65_is_not),
        cmocka_unit_test(the_end_of_a_long_path_is_kept_in_the_place),
        cmocka_unit_test(values_know_their_place),
        cmocka_unit_test(typed_values_refuse_other_kinds_and_ranges),
        cmocka_unit_test(choices_and_quantities_say_what_is_near),
        cmocka_unit_test(errors_do_not_command_the_terminal),
        cmocka_unit_test(no_key_is_ignored),
        cmocka_unit_test(a_text_of_16_mib_is_read_and_no_longer_one),
        cmocka_unit_test(odd_files_are_refused_unread),
        cmocka_unit_test(too_little_memory_is_said_never_a_crash),
        cmocka_unit_test(writing_is_laid_out_and_escaped),
        cmocka_unit_test(reals_are_short_and_come_back),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
