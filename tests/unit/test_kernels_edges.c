/* Tables that are another stack's at some of its edges. */
#include <math.h>

#include "sim/kernels/kernels.h"
#include "tests/support/case.h"
#include "tests/support/kernel_stack.h"

enum { CORES = 132 };

/* A stack with SGLang's products of an H100 at some edges: members of `of`. */
static enum status stack_read(const char *edges, struct kernel_stack *ret_stack)
{
    return kernel_stack_made(arena_format(case_arena,
                                          ", \"matmul\": [{\"format\": \"bf16\", \"layout\": "
                                          "\"TN\", \"of\": {\"stack\": \"h100-sxm.sglang\"%s}}]",
                                          edges),
                             ret_stack);
}

static const struct kernel_table *products_of(const struct kernel_stack *stack)
{
    return kernel_table_of(stack, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN);
}

/* Two edges of m, three of n and all of k: points that stay are the other table's, and halfway
 * between them is the mean of their logarithms, whatever the other table has there. */
static void a_table_may_have_some_edges_of_another(void **state)
{
    (void)state;
    struct kernel_stack mine, sglang;
    case_ok(stack_read(", \"m\": [1024, 4096], \"n\": [2048, 4096, 8192]", &mine));
    case_ok(kernel_stack_find("sglang", "h100-sxm", "", &sglang, &case_error));
    const struct kernel_table *table = products_of(&mine), *of = products_of(&sglang);
    assert_int_equal(table->edge_count[KERNEL_M], 2);
    assert_int_equal(table->edge_count[KERNEL_N], 3);
    assert_int_equal(table->edge_count[KERNEL_K], of->edge_count[KERNEL_K]);
    assert_string_equal(table->of, "h100-sxm.sglang");
    for (uint32_t k = 0; k < of->edge_count[KERNEL_K]; k++) {
        double product = 1;
        for (uint64_t m = 1024; m <= 4096; m *= 4) {
            for (uint64_t n = 2048; n <= 8192; n *= 2) {
                uint64_t const side[KERNEL_SIDES_MAX] = {m, n, of->edge[KERNEL_K][k]};
                assert_int_equal(kernel_table_share(table, side, CORES).ppm,
                                 kernel_table_share(of, side, CORES).ppm);
            }
            uint64_t const side[KERNEL_SIDES_MAX] = {m, 4096, of->edge[KERNEL_K][k]};
            product *= kernel_table_share(of, side, CORES).ppm;
        }
        uint64_t const between[KERNEL_SIDES_MAX] = {2048, 4096, of->edge[KERNEL_K][k]};
        case_near((double)kernel_table_share(table, between, CORES).ppm, sqrt(product), 1e-4);
    }
}

static void edges_that_the_other_table_lacks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *edges, *where, *words;
    } rows[] = {
        {", \"m\": [1024, 1100]", "/matmul/0/of/m/1", "1100 is no edge of that table"},
        {", \"n\": [8192, 131072]", "/matmul/0/of/n/1", "131072 is no edge of that table"},
        {", \"k\": []", "/matmul/0/of/k", "1 to 128 sides"},
        {", \"k\": [64, 32]", "/matmul/0/of/k/1", "sides ascend"},
        {", \"tokens\": [64]", "/matmul/0/of/tokens", "unknown key"},
    };
    struct kernel_stack stack;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        case_refused(stack_read(rows[i].edges, &stack), STATUS_INVALID, rows[i].where,
                     rows[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_may_have_some_edges_of_another),
        cmocka_unit_test(edges_that_the_other_table_lacks_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
