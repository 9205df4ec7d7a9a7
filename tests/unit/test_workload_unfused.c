/* Attention that is not fused: what each of its kernels moves and keeps, score by score. */
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/workload_case.h"

/* In two bytes: S is written, read and written as P, read; dP written, read with P, dS written and
 * read twice, P read. Dropout reads two and writes three, and the other way round. Korthikanti et
 * al. (2022, arXiv 2205.05198) count 5as²b bytes that are saved of a layer. */
static void a_score_costs_the_bytes_of_its_kernels(void **state)
{
    (void)state;
    static const struct {
        enum workload_kernel kernel;
        enum graph_remat remat;
        double moved, saved;
    } rows[] = {
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_NONE, 8 + 14, 2},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_BIG_MATMULS, 2 * 8 + 14, 0},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_BLOCK, 2 * 8 + 14, 0},
        {WORKLOAD_KERNEL_DROPOUT, GRAPH_REMAT_NONE, 13 + 19, 5},
        {WORKLOAD_KERNEL_DROPOUT, GRAPH_REMAT_BLOCK, 2 * 13 + 19, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct workload_counts counts[2];
        assert_int_equal(case_build(&made, &case_llama_70b, "4", NULL, "x", NULL), STATUS_OK);
        made.plan.remat = rows[i].remat;
        made.plan.sequence_length = 2048;
        made.plan.batch_tokens = 8 * 2048;
        for (uint32_t k = 0; k < 2; k++) {
            made.plan.attention.kernel = k == 0 ? WORKLOAD_KERNEL_FLASH : rows[i].kernel;
            counts_make(&made.plan, &made.machine, &made.mesh, &counts[k]);
        }
        double const scores = 80.0 * 2 * 64 * 2048 * 2048; /* Layers, sequences, heads. */
        double const statistics = 80.0 * 2 * 64 * 2048 * 4;
        double const passes = rows[i].remat == GRAPH_REMAT_NONE ? 2 : 3;
        double const kept = rows[i].remat == GRAPH_REMAT_NONE ? statistics : 0;
        case_near(counts[1].hbm_bytes - counts[0].hbm_bytes,
                  rows[i].moved * scores - passes * statistics, 1e-6);
        case_near(counts[1].memory.activation_bytes,
                  counts[0].memory.activation_bytes + rows[i].saved * scores - kept, 1e-6);
        /* Flash computes the scores once more. */
        case_near(counts[0].matmul_flop - counts[1].matmul_flop, 2 * 128 * scores, 1e-6);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_score_costs_the_bytes_of_its_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
