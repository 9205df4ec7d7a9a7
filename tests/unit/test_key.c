/* Keys as rows: what the example of a row is good for. */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/key.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario_parts.h"
#include "tests/support/case.h"

struct shelf {
    const char *label, *shape;
};

static const struct key shelf_keys[] = {
    KEY_ROW(struct shelf, "label", key_text, label, .word = "", .values.words = "text, `\"a\"`",
            .help = "what it is called"),
    KEY_ROW(struct shelf, "shape", key_text, shape, .word = "", .values.words = "letters",
            .values.example = "\"a|b*2\"", .help = "what is in it"),
    {0},
};

static enum status shelf_read(const char *text)
{
    struct shelf shelf;
    struct json *json = NULL;
    case_ok(json_read_text(case_arena, "shelf", text, strlen(text), &json, &case_error));
    struct key_reader const reader = {.arena = case_arena, .object = json, .base = &shelf};
    return keys_read(shelf_keys, &reader, &case_error);
}

static void a_refusal_has_the_example_and_not_the_words(void **state)
{
    (void)state;
    case_ok(shelf_read("{\"label\": \"a\", \"shape\": \"a|b\"}"));
    case_refused(shelf_read("{\"shape\": 3}"), STATUS_INVALID, "/shape",
                 "must be a string such as \"a|b*2\", but is ");
    case_refused(shelf_read("{\"label\": 3}"), STATUS_INVALID, "/label",
                 "must be a string, but is ");
}

static void a_table_has_the_example_behind_the_words(void **state)
{
    (void)state;
    struct strbuf text = {0};
    keys_table(&text, shelf_keys);
    assert_non_null(strstr(text.bytes, "| `label` | text, `\"a\"` | "));
    assert_non_null(strstr(text.bytes, "| `shape` | letters such as `\"a\\|b*2\"` | "));
    strbuf_free(&text);
}

/* Of rows and of the objects in them. Returns how many examples there are. */
static unsigned examples_check(const struct key *rows, const char *of)
{
    unsigned seen = 0;
    for (const struct key *row = rows; row->name != NULL; row++) {
        const char *const example = row->values.example;
        if (row->members != NULL) seen += examples_check(row->members, row->name);
        if (example == NULL) continue;
        if (example[0] != row->kind->begin) fail_msg("%s of %s: %s", row->name, of, example);
        struct json *json = NULL;
        char text[256];
        case_text(text, sizeof text, "[%s]", example);
        case_ok(json_read_text(case_arena, row->name, text, strlen(text), &json, &case_error));
        seen++;
    }
    return seen;
}

static void examples_are_values_of_their_kind(void **state)
{
    (void)state;
    assert_in_range(examples_check(scenario_keys, "a scenario"), 10, 100);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_has_the_example_and_not_the_words),
        cmocka_unit_test(a_table_has_the_example_behind_the_words),
        cmocka_unit_test(examples_are_values_of_their_kind),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
