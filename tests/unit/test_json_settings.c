/* Settings of JSON, "/machine/shape=4x4x4": what they change, add and take away, and refusals. */
#include "tests/support/refusals.h"
#include "tests/unit/json_case.h"

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
        {"/a=99999999999999999999999", "/a", " is too large; no key takes more"},
        {"/a=-1e999", "/a", " is too large; no key takes more"},
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
        refusals_hold(&error, __FILE__);
    }
    char deep[200] = "";
    for (int i = 0; i < 65; i++) memcpy(deep + 2 * i, "/a", 3);
    memcpy(deep + 128, "=1", 3);
    assert_int_equal(json_set(parse("{}"), deep, &error), STATUS_OK);
    memcpy(deep + 128, "/a=1", 5);
    assert_int_equal(json_set(parse("{}"), deep, &error), STATUS_INVALID);
    assert_string_equal(error.message, "is nested deeper than 64");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_change_add_and_replace),
        cmocka_unit_test(null_takes_away_what_is_there),
        cmocka_unit_test(settings_add_elements_behind_the_last),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
