/* What kinds of ops state of graphs that no block of ours writes. */
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/graph/count.h"
#include "sim/graph/list_parts.h"
#include "sim/graph/op.h"
#include "sim/graph/print.h"
#include "sim/graph/write.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

static struct graph_case made_case;
static struct ranks ranks;

static void case_begin(struct workload_case *ret_made)
{
    assert_int_equal(case_build(ret_made, &case_llama_70b, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    graph_ranks(&ret_made->plan, &ret_made->machine, &ret_made->mesh, &ranks);
    graph_layer_terms(&ranks, 0, &made_case.terms);
    made_case.graph = (struct graph){.terms = &made_case.terms};
}

static struct work work_of(const struct graph_op *op, enum op_pass pass)
{
    return op_work(&made_case.sharded, op, pass);
}

/* Products of In with Q's and K's weights, which differ in width, in one kernel. */
static void unlike_write(struct graph *g, const struct model *model)
{
    (void)model;
    tensor const in = graph_block_input(g);
    graph_matmul(g, "QK");
    (void)graph_product(g, in, "W_Q[D_X, N_Y, H]", "Q[B_ZX, N_Y, H]");
    graph_block_output(g, graph_product(g, in, "W_K[D_X, K_Y, H]", "K[B_ZX, K_Y, H]"));
}

static const struct block unlike = {.name = "unlike", .prefix = "unlike.", .write = unlike_write};

static const struct graph_op *unlike_make(struct workload_case *ret_made)
{
    case_begin(ret_made);
    block_write(&unlike, &ranks.plan->model, &made_case.graph);
    graph_shard(&made_case.graph, &made_case.sharded);
    return &made_case.graph.op[0];
}

static void unlike_products_are_counted_each(void **state)
{
    struct workload_case made;
    const struct graph_op *op = unlike_make(&made);
    struct work const work = work_of(op, OP_FORWARD);
    (void)state;
    assert_int_equal(work.matmul_count, 2);
    assert_int_equal(work.matmul[0].columns, 8 * work.matmul[1].columns); /* 64 heads, 8 of KV. */
    assert_int_equal(work_matmul_flop(&work), work.useful_flop);
    case_free(&made);
}

static void both_gradients_are_the_sum_of_each(void **state)
{
    struct workload_case made;
    const struct graph_op *op = unlike_make(&made);
    struct work const both = work_of(op, OP_BOTH_GRADIENTS);
    struct work const input = work_of(op, OP_INPUT_GRADIENT);
    struct work const weight = work_of(op, OP_WEIGHT_GRADIENT);
    (void)state;
    assert_int_equal(work_matmul_flop(&both), work_matmul_flop(&input) + work_matmul_flop(&weight));
    assert_int_equal(both.useful_flop, input.useful_flop + weight.useful_flop);
    case_free(&made);
}

/* A sum of the stream is computed by a norm alone, and would cost a product nothing. */
static void of_unnormed_write(struct graph *g)
{
    tensor const x = graph_residual(g);
    graph_matmul(g, "Q");
    graph_block_output(g, graph_product(g, x, "W_Q[D_X, N_Y, H]", "Q[B_ZX, N_Y, H]"));
}

/* The gradient of a cap on logits would be lost: a loss computes nothing on the way. */
static void capped_loss_write(struct graph *g)
{
    struct graph_map const cap = {.flop = 5, .flop_backward = 4, .reads_inputs = true};
    tensor const in = graph_block_input(g);
    graph_matmul(g, "Logits");
    tensor const logits = graph_product(g, in, "W_head[Vocab_Y, D_X]", "Logits[B_ZX, Vocab_Y]");
    tensor const capped =
        graph_function(g, "Cap", "tanh(%)", &cap, 1, &logits, "Capped[B_ZX, Vocab_Y]");
    graph_op(g, &op_kind_loss, "Loss", 1, &capped);
    graph_block_output(g, graph_result(g, "dLogits[B_ZX, Vocab_Y]"));
}

/* A norm would take a function for the stream's sum. */
static void normed_function_write(struct graph *g)
{
    struct graph_map const map = {.flop = 1, .flop_backward = 1};
    tensor const in = graph_block_input(g);
    tensor const out = graph_function(g, "Scaled", "s * %", &map, 1, &in, "Scaled");
    graph_norm(g, "norm");
    graph_block_output(g, graph_normed(g, out, "Normed"));
}

static void assert_stops(void (*call)(void))
{
    pid_t const child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(STDERR_FILENO);
        call();
        _exit(0);
    }
    int child_status = 0;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_true(WIFSIGNALED(child_status));
}

static void (*refused)(struct graph *graph);

static void refused_write(void)
{
    refused(&made_case.graph);
}

static void readers_that_do_not_compute_what_is_fused_are_an_assertion(void **state)
{
    static const struct fusion apart = {.functions_apart = true};
    struct workload_case made;
    (void)state;
    case_begin(&made);
    for (uint32_t i = 0; i < 3; i++) {
        refused = (void (*const[])(struct graph *)){of_unnormed_write, capped_loss_write,
                                                    normed_function_write}[i];
        made_case.terms.policy.fusion = NULL;
        made_case.graph = (struct graph){.terms = &made_case.terms};
        assert_stops(refused_write);
        made_case.terms.policy.fusion = &apart; /* Its result is there then. */
        made_case.graph = (struct graph){.terms = &made_case.terms};
        if (i > 0) refused_write();
    }
    case_free(&made);
}

static void last_line(void)
{
    struct strbuf text = {0};
    struct graph_list list = {.text = &text, .line = GRAPH_LINES_MAX - 1};
    graph_list_line(&list, NULL, "", "...");
}

static void more_lines_than_are_marked_are_an_assertion(void **state)
{
    (void)state;
    assert_stops(last_line);
}

/* What has no inputs gathers none: not the graph's first tensor, which is split over tp. */
static void from_nothing_write(struct graph *g, const struct model *model)
{
    (void)model;
    (void)graph_block_input(g);
    graph_op(g, &op_kind_map, "Noise", 0, NULL);
    graph_block_output(g, graph_result(g, "Noise[B_ZX, D]"));
}

static const struct block from_nothing = {
    .name = "nothing", .prefix = "nothing.", .write = from_nothing_write};

static void an_op_without_inputs_gathers_none(void **state)
{
    struct workload_case made;
    (void)state;
    case_begin(&made);
    made_case.terms.policy.remat = GRAPH_REMAT_BLOCK;
    block_write(&from_nothing, &ranks.plan->model, &made_case.graph);
    assert_true(sharding_axes(&made_case.graph.tensor[0].at) & made_case.terms.axis_y);
    assert_int_equal(made_case.graph.op[0].in[0], GRAPH_NONE);
    graph_shard(&made_case.graph, &made_case.sharded);
    assert_int_equal(made_case.sharded.op[0].gather, 0);
    made_case.kept = (struct graph_kept){.again = {true}};
    assert_int_equal(graph_again_pass(&made_case.sharded, &made_case.kept, 0), OP_AGAIN);
    case_free(&made);
}

/* Convolutions, grouped matmuls: other kinds with weights. Here one that is as matmul is. */
static struct op_kind other_kind;

/* Attention's result, gated by a product of the block's input (Qiu et al., arXiv 2505.06708). */
static void gated_write(struct graph *g, const char *formula)
{
    struct graph_map const map = {.flop = 2, .flop_backward = 4, .reads_inputs = true};
    tensor const in = graph_block_input(g);
    graph_matmul(g, "QG");
    tensor const a = graph_product(g, in, "W_Q[D_X, N_Y, H]", "A[B_ZX, N_Y, H]");
    tensor const gate = graph_product(g, in, "W_G[D_X, N_Y, H]", "G[B_ZX, N_Y, H]");
    tensor const gated =
        graph_function(g, "gate", formula, &map, 2, (const tensor[]){a, gate}, "Ag[B_ZX, N_Y, H]");
    graph_matmul(g, "O");
    graph_block_output(g, graph_product(g, gated, "W_O[N_Y, H, D_X]", "Out"));
}

static const char *gate_formula;

static void gated_block_write(struct graph *g, const struct model *model)
{
    (void)model;
    gated_write(g, gate_formula);
}

static const struct block gated_block = {
    .name = "gated", .prefix = "gated.", .write = gated_block_write};

static void gated_derive(const struct fusion *fusion)
{
    made_case.terms.policy.fusion = fusion;
    made_case.graph = (struct graph){.terms = &made_case.terms};
    block_write(&gated_block, &ranks.plan->model, &made_case.graph);
    graph_shard(&made_case.graph, &made_case.sharded);
    graph_backward(&made_case.sharded, &made_case.backward);
    graph_remat(&made_case.sharded, &made_case.backward, &made_case.kept);
}

/* A function lies in no kernel of its own, and its result nowhere, unless the stack has kernels for
 * functions. */
static void functions_are_fused_where_the_stack_fuses(void **state)
{
    static const struct fusion apart = {.functions_apart = true}, together = {.sums_apart = true};
    static const struct fusion *const fusions[] = {NULL, &together, &apart};
    struct workload_case made;
    (void)state;
    case_begin(&made);
    gate_formula = "% * sigmoid(%)";
    for (uint32_t i = 0; i < 3; i++) {
        gated_derive(fusions[i]);
        const struct graph_op *gate = &made_case.graph.op[1], *out = &made_case.graph.op[2];
        struct work const product = work_of(out, OP_FORWARD);
        assert_int_equal(gate->fused, i < 2);
        assert_int_equal(made_case.kept.kept[gate->out[0]] != GRAPH_NOTHING, i == 2);
        assert_int_equal(product.vector_flop,
                         i == 2 ? 0 : 2 * op_in_elements(&made_case.sharded, out, 0));
        graph_values_hold("gated", &made_case);
        graph_steps_are_read("gated", &made_case);
        graph_lives_hold("gated", &made_case);
    }
    case_free(&made);
}

static struct graph_phrase primed(void)
{
    static struct graph_derived part;
    struct strbuf text = {0};
    struct graph_list const list = {.part = &part, .text = &text};
    gated_derive(NULL);
    part.graph = made_case.graph;
    part.backward = made_case.backward;
    graph_shard(&part.graph, &part.sharded);
    return graph_list_primed(&list, &part.graph.op[1], 0);
}

static void primed_alone(void)
{
    (void)primed();
}

/* Inputs that the function's value is multiplied with are not arguments of its gradient, on either
 * side; a letter is a constant. */
static void gradients_of_functions_are_listed_by_the_function(void **state)
{
    static const char *const formulas[] = {"sigmoid(%) * %", "% * sigmoid(%)"};
    struct workload_case made;
    (void)state;
    case_begin(&made);
    for (uint32_t i = 0; i < 2; i++) {
        gate_formula = formulas[i];
        assert_string_equal(primed().text, "sigmoid'(dAg[B_X, N_Y, H])");
    }
    gate_formula = "g * % * sigmoid(%)";
    assert_string_equal(primed().text, "g * sigmoid'(dAg[B_X, N_Y, H])");
    gate_formula = "g * %";
    assert_string_equal(primed().text, "g * dAg[B_X, N_Y, H]");
    gate_formula = "% + sigmoid(%)"; /* It would have two. */
    assert_stops(primed_alone);
    case_free(&made);
}

/* Printed sums have no times. */
static const uint64_t math_flop_per_s[FORMAT_COUNT] = {
#define X(name, text, nccl, bits) [FORMAT_##name] = 1,
    FORMAT_TABLE(X)
#undef X
};
static const struct graph_units units = {.edges = {8, 128, 128},
                                         .math_flop_per_s = math_flop_per_s,
                                         .vector_flop_per_s = 1,
                                         .vmem_bytes_per_s = 1};

static void derived_print(struct strbuf *text)
{
    static struct graph_steps steps;
    static struct graph_count count;
    const struct graph_case *made = &made_case;
    graph_print_backward(&made->sharded, &made->backward, text);
    graph_print_kept(&made->sharded, &made->kept, text);
    for (enum graph_half half = GRAPH_WHOLE; half <= GRAPH_WEIGHT_HALF; half++) {
        graph_steps(&made->sharded, &made->backward, &made->kept,
                    (struct graph_request){.backward = true, .half = half, .sums_partial = true},
                    &steps);
        graph_print_steps(&made->sharded, &steps, text);
    }
    graph_count(&made->sharded, &made->backward, &made->kept, &units, &count);
    graph_print_count(&count, text);
}

static void layer_print(bool other, struct strbuf *text)
{
    struct graph_case *made = &made_case;
    block_write_layer(&made->terms, &ranks.plan->model, &made->graph);
    for (uint8_t i = 0; other && i < made->graph.op_count; i++)
        if (made->graph.op[i].kind == &op_kind_matmul) made->graph.op[i].kind = &other_kind;
    graph_shard(&made->graph, &made->sharded);
    graph_backward(&made->sharded, &made->backward);
    graph_remat(&made->sharded, &made->backward, &made->kept);
    derived_print(text);
}

static void any_kind_may_have_gradients_of_weights_apart(void **state)
{
    (void)state;
    other_kind = op_kind_matmul;
    for (uint32_t variant = 0; variant < 60; variant++) {
        struct workload_case made;
        struct strbuf matmul = {0}, other = {0};
        assert_int_equal(case_build(&made, &case_llama_70b, "4x4x4", NULL, "x y", "z"), STATUS_OK);
        drawn_vary(&made, variant);
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        graph_layer_terms(&ranks, 0, &made_case.terms);
        layer_print(false, &matmul);
        layer_print(true, &other);
        assert_string_equal(other.bytes, matmul.bytes);
        strbuf_free(&matmul);
        strbuf_free(&other);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlike_products_are_counted_each),
        cmocka_unit_test(both_gradients_are_the_sum_of_each),
        cmocka_unit_test(readers_that_do_not_compute_what_is_fused_are_an_assertion),
        cmocka_unit_test(more_lines_than_are_marked_are_an_assertion),
        cmocka_unit_test(an_op_without_inputs_gathers_none),
        cmocka_unit_test(functions_are_fused_where_the_stack_fuses),
        cmocka_unit_test(gradients_of_functions_are_listed_by_the_function),
        cmocka_unit_test(any_kind_may_have_gradients_of_weights_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
