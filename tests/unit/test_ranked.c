/* Numbers by their rank, equal ones and the widest among them. */
#include "sim/base/ranked.h"
#include "tests/support/case.h"

static void a_number_has_as_many_below_as_its_rank(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {7, UINT64_MAX, 7, 0, 1 << 20};
    static const uint64_t in_order[] = {0, 7, 7, 1 << 20, UINT64_MAX};
    for (uint32_t rank = 0; rank < 5; rank++)
        assert_int_equal(ranked_number(numbers, 5, rank), in_order[rank]);
    assert_int_equal(ranked_number(numbers, 1, 0), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_as_many_below_as_its_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
