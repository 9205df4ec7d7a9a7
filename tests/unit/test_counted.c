/* A number and the noun that it counts. */
#include "sim/base/counted.h"

#include "tests/support/case.h"

static void one_is_singular(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        const char *noun, *text, *alone;
    } rows[] = {
        {1, "data rank", "1 data rank", "data rank"},
        {0, "token", "0 tokens", "tokens"},
        {2, "NVSwitch", "2 NVSwitches", "NVSwitches"},
        {1, "switch", "1 switch", "switch"},
        {1, "axis", "1 axis", "axis"},
        {3, "mesh axis", "3 mesh axes", "mesh axes"},
        {12, "microbatch", "12 microbatches", "microbatches"},
        {UINT64_MAX, "byte", "18446744073709551615 bytes", "bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(counted(rows[i].count, rows[i].noun).text, rows[i].text);
        assert_string_equal(counted_noun(rows[i].count, rows[i].noun).text, rows[i].alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_is_singular)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
