/* Whole numbers: where their digits end, and what stays too large. */
#include "sim/base/parse_uint.h"
#include "tests/support/case.h"

static void digits_are_read_up_to_the_first_other_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t most, number, length;
    } rows[] = {
        {"", 9, 0, 0},
        {"x1", 9, 0, 0},
        {"-1", 9, 0, 0},
        {" 1", 9, 0, 0},
        {"0", 9, 0, 1},
        {"007x", 9, 7, 3},
        {"9", 9, 9, 1},
        {"10", 9, 10, 2},
        {"7", 5, 6, 1},
        {"99999", 9, 10, 5},
        {"255", 255, 255, 3},
        {"256", 255, 256, 3},
        {"2560y", 255, 256, 4},
        {"9223372036854775807", INT64_MAX, INT64_MAX, 19},
        {"9223372036854775808", INT64_MAX, UINT64_C(1) << 63, 19},
        {"99999999999999999999999", INT64_MAX, UINT64_C(1) << 63, 23},
        {"9223372036854775809", UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, 19},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t number = 77;
        const char *end = parse_uint(rows[i].text, rows[i].most, &number);
        assert_int_equal(end - rows[i].text, rows[i].length);
        assert_int_equal(number, rows[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_read_up_to_the_first_other_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
