/* Blocks that no model of ours has, written here as a new one would be: what is derived of them
 * holds together, with every policy. Each is one function. */
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"
#include "workloads/blocks/mlp.h"

/* Attention and MLP side by side off one norm: PaLM, arXiv 2204.02311, 2. */
static void parallel_write(struct graph *g, const struct model *model)
{
    static const struct mlp_texts texts = {
        .weight_gate = "W_gate[D_X, F_Y]",
        .gate = "Gate[B_ZX, F_Y]",
        .weight_up = "W_up[D_X, F_Y]",
        .up = "Up[B_ZX, F_Y]",
        .tmp = "Tmp[B_ZX, F_Y]",
        .weight_out = "W_out[F_Y, D_X]",
        .out = "MLP",
        .name_gated = "Gate,Up",
        .name_out = "Out",
    };
    tensor const x = graph_residual(g);
    graph_norm(g, "norm");
    tensor const in = graph_normed(g, x, "In");
    graph_set_linear(g, in);

    graph_matmul(g, "QKV");
    tensor const q = graph_product(g, in, "W_Q[D_X, N_Y, H]", "Q[B_ZX, N_Y, H]");
    tensor const k = graph_product(g, in, "W_K[D_X, K_Y, H]", "K[B_ZX, K_Y, H]");
    tensor const v = graph_product(g, in, "W_V[D_X, K_Y, H]", "V[B_ZX, K_Y, H]");
    graph_set_all_joined(g);
    graph_rotating(g, &op_kind_attention, "flash", 3, (const tensor[]){q, k, v},
                   graph_rotated(q, k));
    tensor const a = graph_result(g, "A[B_ZX, N_Y, H]");
    (void)graph_statistic(g, "S[B_ZX, N_Y]");
    graph_matmul(g, "O");
    tensor const attended = graph_product(g, a, "W_O[N_Y, H, D_X]", "Attended");

    struct mlp_shape const shape = {.gated = model->matrices == 3};
    tensor const mapped = mlp_write(g, &texts, shape, in);
    graph_op(g, &op_kind_merge, "Merge", 2, (const tensor[]){attended, mapped});
    graph_block_output(g, graph_result(g, "Out"));
}

static const struct block parallel = {
    .name = "parallel", .prefix = "parallel.", .write = parallel_write};

/* --- What is derived --- */

static struct graph_case made_case;

static void derive(const struct ranks *ranks, const struct block *const *blocks)
{
    struct graph_case *made = &made_case;
    graph_layer_terms(ranks, 0, &made->terms);
    made->graph = (struct graph){.terms = &made->terms};
    for (; *blocks != NULL; blocks++) block_write(*blocks, &ranks->plan->model, &made->graph);
    graph_shard(&made->graph, &made->sharded);
    graph_backward(&made->sharded, &made->backward);
    graph_remat(&made->sharded, &made->backward, &made->kept);
}

struct sums {
    uint64_t flop, gathers, scatters;
};

static struct sums sums_of(bool backward)
{
    static struct graph_steps steps;
    struct sums sums = {0};
    graph_steps(&made_case.sharded, &made_case.backward, &made_case.kept,
                (struct graph_request){.backward = backward}, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        sums.flop += work_matmul_flop(&step->work);
        sums.gathers += !step->is_compute && step->move.kind == COLLECTIVE_ALL_GATHER;
        sums.scatters += !step->is_compute && step->move.kind == COLLECTIVE_REDUCE_SCATTER;
    }
    return sums;
}

static void hold(const char *name)
{
    graph_values_hold(name, &made_case);
    graph_steps_are_read(name, &made_case);
    graph_lives_hold(name, &made_case);
}

/* Other blocks have the same products, and as many FLOP. With one norm In is gathered once. */
static void variant_hold(uint32_t variant)
{
    static const struct block *const plain[] = {&block_attention, &block_mlp, NULL};
    static const struct block *const side_by_side[] = {&parallel, NULL};
    static struct ranks ranks;
    struct workload_case made;
    char name[64];
    (void)snprintf(name, sizeof name, "variant %u", variant);
    assert_int_equal(case_build(&made, &case_llama_70b, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    drawn_vary(&made, variant);
    made.plan.model.matrices = 3;
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    derive(&ranks, plain);
    struct sums const forward = sums_of(false);
    assert_int_equal(forward.gathers, 2);
    derive(&ranks, side_by_side);
    hold(name);
    assert_int_equal(sums_of(false).flop, forward.flop);
    assert_int_equal(sums_of(false).gathers, 1);
    assert_int_equal(sums_of(false).scatters, 2);
    case_free(&made);
}

static void new_blocks_are_one_function_each(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 60; variant++) variant_hold(variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_blocks_are_one_function_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
