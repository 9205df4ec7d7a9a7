/* Options: a command line against what a verb knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/podsim/common/options.h"

static const struct option known[] = {
    {"--json", "FILE", "", false},
    {"--set", "/P=V", "", true},
    {"--full", NULL, "", false},
    {"-n", "N", "", false},
    {0},
};

static struct options options;
static struct error error;

static enum status read(uint32_t count, const char *const *arguments)
{
    error = (struct error){0};
    return options_read(&options, known, count, arguments, &error);
}

static void values_follow_or_are_joined_by_an_equals_sign(void **state)
{
    (void)state;
    const char *const arguments[] = {"--json", "-",     "a.json", "--set=/x=1",
                                     "--full", "--set", "/y=2",   "b"};
    assert_int_equal(read(8, arguments), STATUS_OK);
    assert_string_equal(options_value(&options, "--json"), "-");
    assert_string_equal(options_value_at(&options, "--set", 0), "/x=1");
    assert_string_equal(options_value_at(&options, "--set", 1), "/y=2");
    assert_null(options_value_at(&options, "--set", 2));
    assert_true(options_has(&options, "--full"));
    assert_int_equal(options.operand_count, 2);
    assert_string_equal(options.operand[1], "b");
}

static void a_number_may_follow_a_letter_at_once(void **state)
{
    (void)state;
    const char *const joined[] = {"-n12"}, *apart[] = {"-n", "12"}, *equal[] = {"-n=12"};
    const char *const word[] = {"-name"};
    assert_int_equal(read(1, joined), STATUS_OK);
    assert_string_equal(options_value(&options, "-n"), "12");
    assert_int_equal(read(2, apart), STATUS_OK);
    assert_string_equal(options_value(&options, "-n"), "12");
    assert_int_equal(read(1, equal), STATUS_OK);
    assert_string_equal(options_value(&options, "-n"), "12");
    assert_int_equal(read(1, word), STATUS_INVALID);
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    const char *const arguments[] = {"--", "--full", "-"};
    assert_int_equal(read(3, arguments), STATUS_OK);
    assert_false(options_has(&options, "--full"));
    assert_int_equal(options.operand_count, 2);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[4];
        uint32_t count;
        const char *message;
    } cases[] = {
        {{"--fulll"}, 1, "unknown option --fulll; the nearest known one is --full"},
        {{"-j"}, 1, "unknown option -j"},
        {{"--jsno=x"}, 1, "unknown option --jsno; the nearest known one is --json"},
        {{"--json"}, 1, "--json needs a value: --json FILE"},
        {{"--json", ""}, 2, "--json is given nothing: --json FILE"},
        {{"--json="}, 1, "--json is given nothing: --json FILE"},
        {{"--full=1"}, 1, "--full takes no value"},
        {{"--full", "--full"}, 2, "--full is given twice"},
        {{"--json", "a", "--json", "b"}, 4, "--json is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read(cases[i].count, cases[i].arguments), STATUS_INVALID);
        assert_non_null(strstr(error.message, cases[i].message));
    }
}

static void too_many_are_refused(void **state)
{
    (void)state;
    static const char *arguments[OPTIONS_GIVEN_MAX + 1];
    for (size_t i = 0; i <= OPTIONS_GIVEN_MAX; i++) arguments[i] = "file";
    assert_int_equal(read(OPTIONS_GIVEN_MAX, arguments), STATUS_OK);
    assert_int_equal(read(OPTIONS_GIVEN_MAX + 1, arguments), STATUS_LIMIT);
    for (size_t i = 0; i <= OPTIONS_GIVEN_MAX; i++) arguments[i] = "--set=/a=1";
    assert_int_equal(read(OPTIONS_GIVEN_MAX, arguments), STATUS_OK);
    assert_int_equal(read(OPTIONS_GIVEN_MAX + 1, arguments), STATUS_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_or_are_joined_by_an_equals_sign),
        cmocka_unit_test(a_number_may_follow_a_letter_at_once),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
