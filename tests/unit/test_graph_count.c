/* Sums over a layer's steps: by hand, by what holds of all products, and of all shipped scenarios
 * against the oracle. */
#include <math.h>

#include "sim/base/arena.h"
#include "sim/graph/print.h"
#include "sim/kernels/fusion.h"
#include "sim/kernels/kernels.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"
#include "tools/podsim/common/scenarios.h"

enum { MATH_FLOP_PER_S = 1000000 };
static const uint64_t math_flop_per_s[FORMAT_COUNT] = {
#define X(name, text, nccl, bits) [FORMAT_##name] = MATH_FLOP_PER_S,
    FORMAT_TABLE(X)
#undef X
};
static const struct graph_units units = {.edges = {WORK_EDGE_ROWS, 128, 128},
                                         .math_flop_per_s = math_flop_per_s,
                                         .vector_flop_per_s = 1,
                                         .vmem_bytes_per_s = 1};

static void layer_count(const struct graph_case *layer, struct graph_count *ret_count)
{
    graph_count(&layer->sharded, &layer->backward, &layer->kept, &units, ret_count);
}

/* 2^16 rows, D = 2^13, F = 2^15 over 4: a product has 2·2^16·2^13·2^13 = 2^43 FLOP, reads and
 * writes arrays of 2^30, 2^27 and 2^30 bytes. In, Out and their gradients are 2^30 bytes each; of
 * In a quarter is kept, and Tmp. */
static void a_layer_is_counted(void **state)
{
    static const char wanted[] =
        "forward, 2 bf16 matmul                    17.6 TFLOP   4.56 GB   17.6 TFLOP useful\n"
        "d weights, 2 bf16 matmul                  17.6 TFLOP   4.56 GB   17.6 TFLOP useful\n"
        "d inputs, 2 bf16 matmul                   17.6 TFLOP   4.56 GB   17.6 TFLOP useful\n"
        "forward, 1 AllGather tp of matmul                      1.07 GB\n"
        "forward, 1 ReduceScatter tp of matmul                  1.07 GB\n"
        "d inputs, 1 AllGather tp of matmul                     1.07 GB\n"
        "again, 1 AllGather tp of matmul                        1.07 GB\n"
        "d inputs, 1 ReduceScatter tp of matmul                 1.07 GB\n"
        "kept                                                   1.34 GB\n";
    static struct graph_count count;
    struct workload_case made;
    struct strbuf text = {0};
    (void)state;
    layer_count(graph_mlp_layer(&made), &count);
    graph_print_count(&count, &text);
    assert_string_equal(text.bytes, wanted);
    for (uint32_t i = 0; i < count.compute_count; i++) {
        assert_int_equal(count.compute[i].flop, 2 * (UINT64_C(1) << 43));
        assert_int_equal(count.compute[i].useful_flop, 2 * (UINT64_C(1) << 43));
        assert_int_equal(count.compute[i].hbm_bytes, 2 * ((UINT64_C(1) << 31) + (1 << 27)));
        /* A byte a second goes through VMEM, while the products go on. */
        assert_true(count.compute[i].scarce.vmem_bytes >= count.compute[i].hbm_bytes);
        assert_true(count.compute[i].scarce.vmem_longer_bytes ==
                    count.compute[i].scarce.vmem_bytes -
                        2 * ((UINT64_C(1) << 43) / MATH_FLOP_PER_S));
    }
    for (uint32_t i = 0; i < count.move_count; i++)
        assert_int_equal(count.move[i].bytes, UINT64_C(1) << 30);
    assert_int_equal(count.kept_bytes, UINT64_C(5) << 28);
    strbuf_free(&text);
    case_free(&made);
}

/* --- All shipped scenarios --- */

struct step {
    struct scenario of;
    struct machine machine;
    struct mesh mesh;
};

static void step_build(const struct embed_file *file, struct arena *arena, struct step *ret_step)
{
    struct error error = {0};
    if (scenario_read_text(arena, file->name, file->bytes, file->size_bytes, NULL, 0, &ret_step->of,
                           &error) != STATUS_OK ||
        machine_build(arena, &ret_step->of.machine, &ret_step->machine, &error) != STATUS_OK ||
        mesh_build(&ret_step->of.mesh, &ret_step->machine, &ret_step->mesh, &error) != STATUS_OK)
        fail_msg("%s: %s: %s", file->name, error.where, error.message);
}

static void shipped_each(void (*hold)(const char *name, const struct step *step))
{
    static struct step step;
    assert_true(embed_scenarios_count > 40);
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        struct arena *arena = arena_create(0);
        assert_non_null(arena);
        step_build(&embed_scenarios[i], arena, &step);
        if (step.of.workload.kind == WORKLOAD_TRAIN_STEP) /* The oracle knows no other. */
            hold(embed_scenarios[i].name, &step);
        arena_destroy(arena);
    }
}

static void oracle_holds(const char *name, const struct step *step)
{
    struct workload_counts counts;
    if (!oracle_knows(&step->of.workload.model)) return;
    counts_make(&step->of.workload, &step->machine, &step->mesh, &counts);
    oracle_hold(name, &step->of.workload, &step->machine, &step->mesh, counts);
}

static void the_oracle_counts_the_same(void **state)
{
    (void)state;
    shipped_each(oracle_holds);
}

/* What goes through HBM goes through VMEM, updates of weights too. */
static void vmem_holds(const char *name, const struct step *step)
{
    struct workload_counts counts;
    counts_make(&step->of.workload, &step->machine, &step->mesh, &counts);
    case_that(counts.scarce.vmem_bytes >= counts.hbm_bytes * (1 - 1e-9), name);
    case_that(counts.scarce.vmem_longer_bytes <= counts.scarce.vmem_bytes * (1 + 1e-9), name);
}

/* What kernels of a stack of software move in addition goes through both. */
static void kernels_hold(const char *name, const struct step *step)
{
    static struct step by_kernels;
    struct workload_counts without, with;
    uint32_t fusion = 0;
    while (fusion_pass(fusion_at(fusion), WORK_FUNCTION_UPDATE, false).read_bytes == 0) fusion++;
    struct kernel_stack const stack = {.between = {.fusion = fusion_at(fusion)}};
    by_kernels = *step;
    by_kernels.machine.chip.kernels.stack = &stack;
    counts_make(&step->of.workload, &step->machine, &step->mesh, &without);
    counts_make(&by_kernels.of.workload, &by_kernels.machine, &by_kernels.mesh, &with);
    double const more = with.hbm_bytes - without.hbm_bytes;
    double const vmem_more = with.scarce.vmem_bytes - without.scarce.vmem_bytes;
    case_that(more > 0 && fabs(vmem_more - more) <= 1e-9 * more, name);
}

static void vmem_has_what_hbm_has(void **state)
{
    (void)state;
    shipped_each(vmem_holds);
    shipped_each(kernels_hold);
}

static uint64_t products_flop(const struct graph_count *count, enum op_pass pass)
{
    uint64_t flop = 0;
    for (uint32_t i = 0; i < count->compute_count; i++)
        if (count->compute[i].kind == &op_kind_matmul && count->compute[i].pass == pass)
            flop += count->compute[i].flop;
    return flop;
}

static uint64_t dots_flop(const struct graph_count *count, enum op_pass pass)
{
    uint64_t flop = 0;
    for (uint32_t i = 0; i < count->compute_count; i++)
        if (count->compute[i].kind == &op_kind_dot && count->compute[i].pass == pass)
            flop += count->compute[i].flop;
    return flop;
}

/* Each gradient of a product has as many FLOP as the product. Repetitions have no more, and nothing
 * of them is useful; nor is what gives ranks equal shares. */
static void products_of_hold(const char *name, const struct graph_case *part)
{
    static struct graph_count count;
    layer_count(part, &count);
    uint64_t const forward = products_flop(&count, OP_FORWARD);
    uint64_t const both = products_flop(&count, OP_BOTH_GRADIENTS) / 2;
    if (forward != products_flop(&count, OP_INPUT_GRADIENT) + both ||
        forward != products_flop(&count, OP_WEIGHT_GRADIENT) + both ||
        forward < products_flop(&count, OP_AGAIN))
        fail_msg("%s: gradients of products have other FLOP", name);
    uint64_t const dots = dots_flop(&count, OP_FORWARD);
    if (dots != dots_flop(&count, OP_LEFT_GRADIENT) || dots != dots_flop(&count, OP_RIGHT_GRADIENT))
        fail_msg("%s: gradients of attention's products have other FLOP", name);
    for (uint32_t k = 0; k < count.compute_count; k++) {
        const struct graph_compute_sum *sum = &count.compute[k];
        bool const again = sum->pass == OP_AGAIN || sum->pass == OP_AGAIN_ALONE;
        uint64_t const known = sum->useful_flop + sum->spare.padding + (uint64_t)sum->spare.rows +
                               sum->spare.waiting + sum->spare.again;
        if (known > sum->flop || (again && known != 0) || sum->padded_flop < sum->flop)
            fail_msg("%s: of %llu FLOP %llu are useful or spare", name,
                     (unsigned long long)sum->flop, (unsigned long long)known);
    }
}

static void products_hold(const char *name, const struct step *step)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    graph_ranks(&step->of.workload, &step->machine, &step->mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) products_of_hold(name, &cases.part[i]);
}

static void gradients_of_products_have_as_many_flop(void **state)
{
    (void)state;
    shipped_each(products_hold);
}

/* Passes of inference give a row for each size of an array as long as there is room for other
 * arrays; then one row has the mean of further sizes, and all together what they were. */
static void rows_of_many_sizes_are_as_large_as_their_mean(void **state)
{
    enum { SIZES = 40, TIMES = 3 };
    struct graph_overlaps all = {.count = 0};
    double bytes = 0, flop = 0;
    uint64_t count = 0;
    (void)state;
    for (uint64_t i = 1; i <= SIZES; i++) {
        struct graph_overlap const of = {.of = 1,
                                         .kind = COLLECTIVE_ALL_GATHER,
                                         .count = 2,
                                         .bytes = 1000 * i,
                                         .flop = 5. * (double)i};
        graph_overlap_add(&all, &of, TIMES);
    }
    assert_int_equal(all.count, GRAPH_OVERLAPS_SIZES);
    for (uint32_t i = 0; i < all.count; i++) {
        bytes += (double)all.of[i].bytes * (double)all.of[i].count;
        flop += all.of[i].flop;
        count += all.of[i].count;
    }
    assert_int_equal(count, SIZES * 2 * TIMES);
    case_near(flop, TIMES * 5. * SIZES * (SIZES + 1) / 2, 1e-12);
    case_near(bytes, TIMES * 2 * 1000. * SIZES * (SIZES + 1) / 2, 1e-3);
    struct graph_overlap const other = {
        .of = 2, .kind = COLLECTIVE_ALL_GATHER, .count = 1, .bytes = 8};
    graph_overlap_add(&all, &other, 1);
    assert_int_equal(all.count, GRAPH_OVERLAPS_SIZES + 1);
    assert_int_equal(all.of[GRAPH_OVERLAPS_SIZES].bytes, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_many_sizes_are_as_large_as_their_mean),
        cmocka_unit_test(a_layer_is_counted),
        cmocka_unit_test(the_oracle_counts_the_same),
        cmocka_unit_test(vmem_has_what_hbm_has),
        cmocka_unit_test(gradients_of_products_have_as_many_flop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
