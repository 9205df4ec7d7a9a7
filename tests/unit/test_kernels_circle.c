/* Files of kernels that take each other's tables. None that is shipped does so in a circle. */
#include "sim/base/embed.h"
#include "sim/kernels/kernel_files.h"
#include "tests/support/case.h"

#define HEAD "{\"podsim_kernels\": 1, \"chip\": \"chip\", \"stack\": \"x\", \"title\": \"X\", "
#define TABLE                                                                                      \
    "{\"format\": \"bf16\", \"layout\": \"NT\", \"flop_rate\": \"1TFLOP/s\", "                     \
    "\"hbm_rate\": \"1TB/s\", \"source\": \"x\", \"rows\": 1, \"error_median_ppm\": 1, "           \
    "\"error_ninetieth_ppm\": 1, \"m\": [1], \"n\": [1], \"k\": [1], \"share_ppm\": [1000000]}"
#define FILE_OF(name, rest)                                                                        \
    {                                                                                              \
        name, HEAD rest, sizeof HEAD rest - 1                                                      \
    }

static const struct embed_file files[] = {
    FILE_OF("chip.measured", "\"matmul\": [" TABLE "]}"),
    FILE_OF("chip.taken", "\"tables_of\": \"chip.measured\"}"),
    FILE_OF("chip.taken_again", "\"tables_of\": \"chip.taken\"}"),
    FILE_OF("chip.own", "\"tables_of\": \"chip.own\"}"),
    FILE_OF("chip.one", "\"tables_of\": \"chip.other\"}"),
    FILE_OF("chip.other", "\"tables_of\": \"chip.one\"}"),
    FILE_OF("chip.lost", "\"tables_of\": \"chip.none\"}"),
};

static enum status stack_read(const char *name, struct kernel_stack *ret_stack)
{
    return kernel_files_read(case_arena, files, sizeof files / sizeof *files, name, ret_stack,
                             &case_error);
}

static void stacks_may_take_what_others_have_taken(void **state)
{
    (void)state;
    struct kernel_stack stack;
    case_ok(stack_read("chip.taken_again", &stack));
    assert_int_equal(stack.table_count, 1);
    assert_int_equal(stack.table[0].flop_per_s, INT64_C(1000000000000));
    assert_string_equal(stack.table[0].of, "chip.measured");
    assert_false(stack.table[0].is_carried_over);
}

static void stacks_in_a_circle_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"chip.own", "chip.one", "chip.other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct kernel_stack stack;
        case_refused(stack_read(names[i], &stack), STATUS_INVALID, "/tables_of",
                     "or they name each other in a circle");
    }
}

static void stacks_that_are_in_no_file_are_refused(void **state)
{
    (void)state;
    struct kernel_stack stack;
    case_refused(stack_read("chip.lost", &stack), STATUS_NOT_FOUND, "/tables_of", "chip.none");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_may_take_what_others_have_taken),
        cmocka_unit_test(stacks_in_a_circle_are_refused),
        cmocka_unit_test(stacks_that_are_in_no_file_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
