/* What ops read and write: every row is found, by the name that it has. */
#include <string.h>

#include "sim/step/reads.h"
#include "tests/support/case.h"

static void rows_are_ordered_by_name_and_found(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const struct reads *row; (row = reads_at(count)) != NULL; count++) {
        if (count > 0 && strcmp(reads_at(count - 1)->name, row->name) >= 0)
            fail_msg("\"%s\" does not belong behind \"%s\"", row->name, reads_at(count - 1)->name);
        if (reads_find(row->name) != row) fail_msg("\"%s\" is not found", row->name);
    }
    assert_true(count > 100);
    assert_null(reads_find("no such op"));
}

/* reads_meet() has room for an array of so many bytes. */
static void arrays_are_short_and_stand_in_their_own_list(void **state)
{
    (void)state;
    char array[READS_ARRAY_BYTES];
    for (uint32_t i = 0; reads_at(i) != NULL; i++) {
        const char *const lists[] = {reads_at(i)->reads, reads_at(i)->writes};
        for (uint32_t l = 0; l < 2; l++)
            for (const char *at = lists[l]; *at != '\0';) {
                size_t const length = strcspn(at, " ");
                if (length == 0 || length >= READS_ARRAY_BYTES)
                    fail_msg("%s: an array of %zu bytes in \"%s\"", reads_at(i)->name, length,
                             lists[l]);
                memcpy(array, at, length);
                array[length] = '\0';
                assert_true(reads_have(lists[l], array));
                at += length + (at[length] == ' ');
            }
    }
}

static void a_repeated_op_and_a_unit_have_the_row_of_their_kind(void **state)
{
    (void)state;
    assert_ptr_equal(reads_find("mlp.Tmp again"), reads_find("mlp.Tmp"));
    assert_ptr_equal(reads_find("AllGather W_mlp"), reads_find("AllGather W"));
    assert_ptr_equal(reads_find("update layer"), reads_find("update"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_ordered_by_name_and_found),
        cmocka_unit_test(arrays_are_short_and_stand_in_their_own_list),
        cmocka_unit_test(a_repeated_op_and_a_unit_have_the_row_of_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
