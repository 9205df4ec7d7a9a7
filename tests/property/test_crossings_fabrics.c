/*
 * Where the bare MLP of the book turns from compute bound to communication bound on GPU nodes, on
 * several of them, and on slices joined by DCN, played (tests/support/crossing.h says how), beside
 * the exact finite form of the book's rules (chapter 12, 12.4.1 and 12.4.2; chapter 5, 5.1.6).
 *
 * The book's C/W counts neither (N-1)/N nor the way through the switches; the exact form does:
 * a layer gathers two matrices of 2·D·F bytes, each in bytes·(N-1)/(N·W) and one latency, and a
 * token's math takes 4·D·F/C. Over several levels the slowest binds; what the other levels add is
 * the shortest portion or piece, which nothing overlaps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/crossing.h"

static const double h100_flop_per_s = 990e12, v5p_flop_per_s = 459e12;
static const double nvlink_bytes_per_s = 450e9, node_bytes_per_s = 400e9, dcn_bytes_per_s = 6.25e9;

#define SIZES 8192, 32768, 32768, NULL /* D, F; no crossing lies beyond so many tokens a chip. */

static const struct crossing_setup in_node = {
    "8 H100 of a node", "\"chip\": \"h100-sxm\"", "{\"fsdp\": [\"gpu\"]}", "tensor", 8, SIZES};
static const struct crossing_setup across = {"32 nodes",
                                             "\"chip\": \"h100-sxm\", \"nodes\": 32",
                                             "{\"fsdp\": [\"node\", \"gpu\"]}",
                                             "tensor",
                                             256,
                                             SIZES};
static const struct crossing_setup two_nodes = {"2 nodes",
                                                "\"chip\": \"h100-sxm\", \"nodes\": 2",
                                                "{\"fsdp\": [\"node\", \"gpu\"]}",
                                                "tensor",
                                                16,
                                                SIZES};
/* TP in the node: each GPU holds an eighth, and its card carries an eighth. */
static const struct crossing_setup rails[] = {
    {"32 nodes, TP inside", "\"chip\": \"h100-sxm\", \"nodes\": 32",
     "{\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]}", "tensor", 256, SIZES},
    {"2 nodes, TP inside", "\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]}", "tensor", 16, SIZES},
};
static const struct crossing_setup slices = {
    "4 slices of 2x2x1",
    "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\", \"slices\": 4",
    "{\"dp\": [\"slice\"], \"fsdp\": [\"x\", \"y\"]}",
    "tensor",
    16,
    SIZES};

/* C/W·(n-1)/n */
static double exact(double flop_per_s, double bytes_per_s, double units)
{
    return flop_per_s / bytes_per_s * (units - 1) / units;
}

static void in_a_node_fsdp_crosses_at_c_over_nvlink(void **state)
{
    (void)state;
    crossing_assert_near("the book's 2200", 2200, h100_flop_per_s / nvlink_bytes_per_s, 1e-9);
    crossing_assert_near(in_node.name, exact(h100_flop_per_s, nvlink_bytes_per_s, 8),
                         crossing_tokens(&in_node, CROSSING_FORWARD), 0.005);
}

static void across_nodes_it_crosses_at_c_over_what_leaves_a_node(void **state)
{
    (void)state;
    crossing_assert_near("the book's 2475", 2475, h100_flop_per_s / node_bytes_per_s, 1e-9);
    crossing_assert_near(across.name, exact(h100_flop_per_s, node_bytes_per_s, 32),
                         crossing_tokens(&across, CROSSING_FORWARD), 0.006);
    crossing_assert_near(rails[0].name, exact(h100_flop_per_s, node_bytes_per_s, 32),
                         crossing_tokens(&rails[0], CROSSING_FORWARD), 0.002);
}

/* Half of the bytes cross. With TP inside that halves the threshold; without it NVLink binds. */
static void between_two_nodes_half_as_many_tokens_do(void **state)
{
    (void)state;
    crossing_assert_near(rails[1].name, exact(h100_flop_per_s, node_bytes_per_s, 2),
                         crossing_tokens(&rails[1], CROSSING_FORWARD), 0.003);
    crossing_assert_near(two_nodes.name, exact(h100_flop_per_s, nvlink_bytes_per_s, 8),
                         crossing_tokens(&two_nodes, CROSSING_FORWARD), 0.004);
}

static void between_slices_dp_crosses_at_c_over_dcn(void **state)
{
    (void)state;
    double const chips = 4;
    crossing_assert_near("the book's 73440", 73440, v5p_flop_per_s / dcn_bytes_per_s, 1e-9);
    crossing_assert_near(slices.name, exact(v5p_flop_per_s, dcn_bytes_per_s, 4) / chips,
                         crossing_tokens(&slices, CROSSING_BACKWARD), 0.02);
}

/* Y·C/W·(N-1)/N = 15,400 columns over 8 GPUs. Below, a pass takes as long as its gathers and
 * reductions, and an eighth of the math that nothing hides: the matmul of the last chunk to arrive,
 * and that of the first to be sent. Above, they hide behind the matmuls chunk by chunk, and only
 * there. */
static void tensor_parallelism_crosses_at_f_times_w_over_c(void **state)
{
    (void)state;
    static const struct crossing_setup node = {
        "TP over 8 H100", "\"chip\": \"h100-sxm\"", "{\"tp\": [\"gpu\"]}", "block", 8, SIZES};
    double const critical = 8 * exact(h100_flop_per_s, nvlink_bytes_per_s, 8);
    static const struct {
        const char *name;
        uint64_t f;
        bool collective_matmul;
    } rows[] = {{"F = 0.75 F*, collective matmul", 11520, true},
                {"F = 1.25 F*, collective matmul", 19200, true},
                {"F = 2 F*, collective matmul", 30720, true},
                {"F = 1.25 F*", 19200, false}};
    uint64_t const tokens = 65536;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct crossing_pass const pass =
            crossing_layer(&node, tokens, rows[i].f, rows[i].collective_matmul).forward;
        double const share = critical / (double)rows[i].f;
        double const wanted = !rows[i].collective_matmul ? 1 + share
                              : share > 1                ? share + 1.0 / 8
                                                         : 1;
        crossing_assert_near(rows[i].name, wanted, pass.time_s / pass.math_s, 0.005);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_node_fsdp_crosses_at_c_over_nvlink),
        cmocka_unit_test(across_nodes_it_crosses_at_c_over_what_leaves_a_node),
        cmocka_unit_test(between_two_nodes_half_as_many_tokens_do),
        cmocka_unit_test(tensor_parallelism_crosses_at_f_times_w_over_c),
        cmocka_unit_test(between_slices_dp_crosses_at_c_over_dcn),
    };
    return cmocka_run_group_tests_name("crossings on fabrics", tests, NULL, NULL);
}
