/* The median of figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/podsim/common/median.h"

static void values_are_in_order_and_the_middle_is_the_median(void **state)
{
    (void)state;
    double odd[] = {3, -1, 2}, even[] = {4, 1, 8, 2}, one[] = {5};
    assert_int_equal((int)(2 * median(odd, 3)), 4);
    assert_int_equal((int)odd[0], -1);
    assert_int_equal((int)odd[2], 3);
    assert_int_equal((int)(2 * median(even, 4)), 6);
    assert_int_equal((int)even[3], 8);
    assert_int_equal((int)(2 * median(one, 1)), 10);
    assert_int_equal((int)(2 * median(one, 0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_in_order_and_the_middle_is_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
