/* Stacks of the catalogue that take each other's tables. None that is shipped does so in a circle:
 * meson.build builds sim/kernels/kernels.c with the catalogue below. */
#include "sim/base/embed.h"
#include "sim/kernels/kernels.h"
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

extern const struct embed_file case_kernel_files[];
extern const unsigned case_kernel_files_count;

const struct embed_file case_kernel_files[] = {
    FILE_OF("chip.measured", "\"matmul\": [" TABLE "]}"),
    FILE_OF("chip.taken", "\"tables_of\": \"chip.measured\"}"),
    FILE_OF("chip.taken_again", "\"tables_of\": \"chip.taken\"}"),
    FILE_OF("chip.own", "\"tables_of\": \"chip.own\"}"),
    FILE_OF("chip.one", "\"tables_of\": \"chip.other\"}"),
    FILE_OF("chip.other", "\"tables_of\": \"chip.one\"}"),
};
const unsigned case_kernel_files_count = sizeof case_kernel_files / sizeof *case_kernel_files;

static void stacks_may_take_what_others_have_taken(void **state)
{
    (void)state;
    struct kernel_stack stack;
    case_ok(kernel_stack_find(case_arena, "taken_again", "chip", "", &stack, &case_error));
    assert_int_equal(stack.table_count, 1);
    assert_int_equal(stack.table[0].flop_per_s, INT64_C(1000000000000));
    assert_string_equal(stack.table[0].of, "chip.measured");
}

static void stacks_in_a_circle_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"own", "one", "other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct kernel_stack stack;
        case_refused(kernel_stack_find(case_arena, names[i], "chip", "", &stack, &case_error),
                     STATUS_INVALID, "/tables_of", "or each other in a circle");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_may_take_what_others_have_taken),
        cmocka_unit_test(stacks_in_a_circle_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
