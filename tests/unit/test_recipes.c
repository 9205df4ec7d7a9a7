/* Recipes of fp8: which casts they make of a layer, when, and what no software runs. */
#include <string.h>

#include "sim/graph/block.h"
#include "sim/graph/casts.h"
#include "sim/graph/derive.h"
#include "sim/graph/steps.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/kernels/recipe.h"
#include "sim/step/graph_terms.h"
#include "tests/support/case.h"
#include "tests/unit/graph_case.h"

enum { LAYER = 1 };

/* LLaMA-3-70B over two nodes of eight GPUs: tp 8, so that a rank has 8 heads and one of keys. */
enum { D = 8192, D_OWN = D / 8, F_OWN = 28672 / 8, Q_OWN = 8 * 128, K_OWN = 128 };

struct layer {
    struct workload_case made;
    struct graph_terms terms;
    struct graph_derived derived;
    struct graph_steps steps[2]; /* Forward, backward. */
    uint64_t rows;
};

static uint32_t recipe_named(const char *name)
{
    for (uint32_t i = 0; name != NULL && recipe_at(i) != NULL; i++)
        if (strcmp(recipe_at(i)->name, name) == 0) return WORKLOAD_RECIPE_FIRST + i;
    return name == NULL ? WORKLOAD_RECIPE_DEFAULT : WORKLOAD_RECIPE_NONE;
}

static void case_make(const char *chip, const char *stack, const char *recipe,
                      struct workload_case *made)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "node", [MESH_TP] = "gpu"};
    struct machine_plan const plan = {
        .chip = chip, .nodes = 2, .profile = "measured", .stack = stack, .wrap = {-1, -1, -1}};
    if (case_build_on(made, &case_llama_70b, &plan, parts) != STATUS_OK)
        fail_msg("%s: %s", made->error.where, made->error.message);
    made->plan.formats.matmuls = FORMAT_FP8;
    made->plan.software.fp8_recipe = recipe_named(recipe);
}

static void layer_derive(struct layer *layer)
{
    struct ranks ranks;
    case_ok(ranks_make(&layer->made.plan, &layer->made.machine, &layer->made.mesh, &ranks,
                       &case_error));
    layer->rows = ranks.rows;
    graph_layer_terms(&ranks, LAYER, &layer->terms);
    graph_derive(&layer->terms, &layer->made.plan.model, BLOCK_LAYER, &layer->derived);
    for (uint32_t way = 0; way < 2; way++)
        graph_steps(&layer->derived.sharded, &layer->derived.backward, &layer->derived.kept,
                    (struct graph_request){.backward = way == 1}, &layer->steps[way]);
}

static void layer_make(const char *chip, const char *stack, const char *recipe, struct layer *layer)
{
    case_make(chip, stack, recipe, &layer->made);
    layer_derive(layer);
}

static const struct graph_op *op_named(const struct layer *layer, const char *prefix,
                                       const char *name)
{
    const struct graph *graph = &layer->derived.graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        const char *own = graph->block[op->block].block->prefix;
        if (!op->fused && strcmp(op->name, name) == 0 && strcmp(own, prefix) == 0) return op;
    }
    return NULL;
}

static struct work work_of(const struct layer *layer, const char *prefix, const char *name)
{
    const struct graph_op *op = op_named(layer, prefix, name);
    if (op == NULL) fail_msg("no op is called %s%s", prefix, name);
    return op_work(&layer->derived.sharded, op, OP_FORWARD);
}

/* The work of a pass of an op, in the backward or forward pass of a layer; empty if there is no
 * such step. */
static struct work step_of(const struct layer *layer, bool backward, const char *prefix,
                           const char *name, enum op_pass pass)
{
    const struct graph_op *op = op_named(layer, prefix, name);
    const struct graph_steps *steps = &layer->steps[backward];
    for (uint32_t i = 0; i < steps->count; i++)
        if (steps->step[i].is_compute && steps->step[i].pass == pass &&
            &layer->derived.graph.op[steps->step[i].op] == op)
            return steps->step[i].work;
    return (struct work){.kernel = WORK_KERNEL_NONE};
}

static void moves(struct work work, uint64_t kernels, uint64_t read_bytes, uint64_t write_bytes)
{
    assert_int_equal(work.kernel_count, kernels);
    assert_int_equal(work.hbm_read_bytes, read_bytes);
    assert_int_equal(work.hbm_write_bytes, write_bytes);
    if (kernels > 0) assert_true(work.kernel >= WORK_KERNEL_FUNCTIONS);
}

/* Bytes of the gather of what the in-projection of attention multiplies. */
static uint64_t gathered_bytes(const struct layer *layer)
{
    const struct graph_steps *steps = &layer->steps[0];
    for (uint32_t i = 0; i < steps->count; i++)
        if (!steps->step[i].is_compute && steps->step[i].move.kind == COLLECTIVE_ALL_GATHER)
            return steps->step[i].move.bytes;
    return 0;
}

static void a_recipe_says_what_it_is(void **state)
{
    (void)state;
    for (uint32_t i = 0; recipe_at(i) != NULL; i++) {
        const struct recipe *recipe = recipe_at(i);
        bool runs = false;
        assert_true(recipe->name[0] != '\0' && recipe->help[0] != '\0');
        assert_true(recipe->source[0] != '\0' && recipe->cast != WORK_CAST_WITHIN);
        assert_false(recipe->way[RECIPE_LIBRARY_NONE].is_there);
        for (uint32_t l = 0; l < RECIPE_LIBRARIES; l++) {
            const struct recipe_way *way = &recipe->way[l];
            runs = runs || way->is_there;
            for (uint32_t chip = 0; chip < RECIPE_CHIPS; chip++)
                assert_true(!way->is_default[chip] || (way->is_there && recipe->runs_on[chip]));
            /* A cast reads and writes its array. */
            for (uint32_t a = 0; way->is_there && a < RECIPE_ARRAYS; a++)
                assert_true(way->both[a].kernels > 0 && way->both[a].write_bytes > 0);
        }
        assert_true(runs);
    }
}

/* Kernels of norms write fp8. On Hopper every array has a transposed copy; arrays that tp gathers
 * are transposed after the gather. */
static void delayed_scaling_casts_in_one_kernel(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "te", "delayed", &layer);
    uint64_t const d = layer.rows * D_OWN, all = layer.rows * D;
    uint64_t const q = layer.rows * Q_OWN, qkv = layer.rows * (Q_OWN + 2 * K_OWN);
    uint64_t const f = layer.rows * F_OWN;
    assert_null(op_named(&layer, "attention.", "Cast In"));
    moves(work_of(&layer, "mlp.", "norm"), 2, 6 * d, 3 * d);
    moves(work_of(&layer, "attention.", "Cast A"), 1, 2 * q, 2 * q);
    moves(work_of(&layer, "mlp.", "Cast Tmp"), 1, 2 * f, 2 * f);
    moves(step_of(&layer, true, "attention.", "QKV", OP_CAST), 1, 2 * qkv, 2 * qkv);
    moves(step_of(&layer, true, "attention.", "QKV", OP_CAST_SECOND), 1, all, all);
    moves(step_of(&layer, true, "attention.", "O", OP_CAST), 1, 2 * d, d);
    moves(step_of(&layer, true, "attention.", "O", OP_CAST_SECOND), 1, all, all);
    moves(step_of(&layer, false, "mlp.", "Out", OP_CAST_WEIGHTS), 0, 0, 0);
    assert_int_equal(gathered_bytes(&layer), all);
    uint64_t const weights = D * (Q_OWN + 2 * K_OWN) + D * Q_OWN + 3 * (uint64_t)D * F_OWN;
    moves(graph_cast_weights(&layer.derived.graph), 1, 2 * weights, 2 * weights);
    case_free(&layer.made);
}

/* Attention, norms, routers and the head keep 16 bits; all products of a layer are in fp8. */
static void products_say_how_their_operands_are_scaled(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "te", "block", &layer);
    const struct graph *graph = &layer.derived.graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        struct work const work = op_work(&layer.derived.sharded, &graph->op[i], OP_FORWARD);
        bool const linear = graph->op[i].kind == &op_kind_matmul;
        assert_int_equal(work.cast, linear ? WORK_CAST_BLOCK : WORK_CAST_WITHIN);
        if (work.matmul_count > 0)
            assert_int_equal(work.math_format, linear ? FORMAT_FP8 : FORMAT_BF16);
    }
    case_free(&layer.made);
}

/* One kernel finds the scale and another casts. Norms of Transformer Engine, and kernels that the
 * compiler makes, find the scale themselves. */
static void current_scaling_reads_arrays_twice(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "te", "current", &layer);
    uint64_t const d = layer.rows * D_OWN, q = layer.rows * Q_OWN, f = layer.rows * F_OWN;
    moves(work_of(&layer, "mlp.", "norm"), 2, 6 * d, 4 * d);
    moves(work_of(&layer, "attention.", "Cast In"), 1, 2 * d, d);
    moves(work_of(&layer, "attention.", "Cast A"), 2, 4 * q, 2 * q);
    case_free(&layer.made);
    layer_make("h100-sxm", "torch-compile", "current", &layer);
    moves(work_of(&layer, "mlp.", "Cast Tmp"), 2, 2 * f, 2 * f);
    moves(work_of(&layer, "attention.", "Cast A"), 3, 4 * q, 2 * q);
    uint64_t const out = D * (uint64_t)F_OWN;
    moves(step_of(&layer, false, "mlp.", "Out", OP_CAST_WEIGHTS), 3, 4 * out, out);
    moves(step_of(&layer, true, "mlp.", "Out", OP_CAST_WEIGHTS), 1, 2 * out, out);
    case_free(&layer.made);
}

/* XLA knows a delayed scale before the array: its own kernels write fp8, and Hopper's copies are
 * transposed. Results of libraries are cast; so are weights, in each pass. */
static void xla_casts_what_libraries_leave(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "xla", NULL, &layer);
    uint64_t const q = layer.rows * Q_OWN, f = layer.rows * F_OWN;
    uint64_t const out = D * (uint64_t)F_OWN;
    assert_null(op_named(&layer, "attention.", "Cast In"));
    assert_int_equal(gathered_bytes(&layer), layer.rows * D);
    moves(work_of(&layer, "mlp.", "Cast Tmp"), 1, f, f);
    moves(work_of(&layer, "attention.", "Cast A"), 1, 2 * q, 2 * q);
    moves(step_of(&layer, false, "mlp.", "Out", OP_CAST_WEIGHTS), 1, 2 * out, out);
    moves(step_of(&layer, true, "mlp.", "Out", OP_CAST_WEIGHTS), 1, 2 * out, out);
    case_free(&layer.made);
    layer_make("b200", "xla", NULL, &layer);
    moves(work_of(&layer, "mlp.", "Cast Tmp"), 0, 0, 0);
    case_free(&layer.made);
}

/* A sum of the stream is PyTorch's kernel unless the compiler makes it: what no norm gives comes to
 * Transformer Engine in 16 bits. Other norms of the layer stay the library's. */
static void sums_that_no_norm_computes_are_read_again(void **state)
{
    static const struct {
        const char *stack;
        bool none_before;
        enum recipe_array array;
    } rows[] = {
        {"te", false, RECIPE_NORMED},
        {"te", true, RECIPE_FOUND},
        {"torch-compile", false, RECIPE_NORMED},
        {"torch-compile", true, RECIPE_NORMED},
        {"torch-eager", false, RECIPE_FOUND},
        {"torch-eager", true, RECIPE_FOUND},
    };
    static struct layer layer;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        case_make("h100-sxm", rows[i].stack, "current", &layer.made);
        layer.made.plan.model.norms.none_before = rows[i].none_before;
        layer_derive(&layer);
        const struct graph_op *cast = op_named(&layer, "attention.", "Cast In");
        assert_int_equal(cast->as.quantise.array, rows[i].array);
        assert_int_equal(layer.terms.policy.casts.norms_belong, i < 4);
        assert_int_equal(op_named(&layer, "mlp.", "Cast Tmp")->as.quantise.array, RECIPE_FUNCTION);
        assert_int_equal(op_named(&layer, "attention.", "Cast A")->as.quantise.array, RECIPE_FOUND);
        case_free(&layer.made);
    }
}

/* The router reads In in 16 bits, so the norm writes 16 bits, and shared experts read them. */
static void what_another_op_reads_too_is_read_again(void **state)
{
    static struct layer layer;
    (void)state;
    case_make("h100-sxm", "te", "delayed", &layer.made);
    layer.made.plan.model.experts =
        (struct model_experts){.count = 8, .top_k = 2, .width = 4096, .shared = 1};
    layer_derive(&layer);
    const struct graph_op *cast = op_named(&layer, "moe.", "shared.Cast In");
    assert_int_equal(cast->as.quantise.array, RECIPE_FOUND);
    assert_int_equal(layer.derived.graph.tensor[cast->in[0]].format, FORMAT_BF16);
    assert_int_equal(op_named(&layer, "moe.", "experts.Cast Rows")->as.quantise.array,
                     RECIPE_FOUND);
    case_free(&layer.made);
}

/* No norm gives a bare MLP its input, so a kernel of its own casts that. Policies that repeat a
 * layer keep the input in 16 bits, cast it and gather it again. */
static void inputs_of_bare_layers_are_cast(void **state)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "node", [MESH_TP] = "gpu"};
    static const char *const stacks[] = {"te", "torch-compile", "torch-eager"};
    (void)state;
    for (uint32_t i = 0; i < 3 * (GRAPH_REMAT_LAYER + 1); i++) {
        struct machine_plan const plan = {.chip = "h100-sxm",
                                          .nodes = 2,
                                          .profile = "measured",
                                          .stack = stacks[i % 3],
                                          .wrap = {-1, -1, -1}};
        static struct layer layer;
        case_ok(case_build_on(&layer.made, &case_mlp, &plan, parts));
        layer.made.plan.formats.matmuls = FORMAT_FP8;
        layer.made.plan.remat = (enum graph_remat)(i / 3);
        layer_derive(&layer);
        const struct graph_op *cast = op_named(&layer, "mlp.", "Cast In");
        assert_int_equal(cast->as.quantise.array, RECIPE_FOUND);
        struct graph_case const part = {.graph = layer.derived.graph,
                                        .sharded = layer.derived.sharded,
                                        .backward = layer.derived.backward,
                                        .kept = layer.derived.kept};
        graph_values_hold(stacks[i % 3], &part);
        graph_lives_hold(stacks[i % 3], &part);
        case_free(&layer.made);
    }
}

/* Blocks along rows are not blocks along columns: one kernel reads 16 bits and writes both arrays,
 * before the gather. */
static void blocks_are_cast_for_both_at_once(void **state)
{
    static const struct {
        const char *chip, *recipe;
    } rows[] = {{"h100-sxm", "block"}, {"b200", "mxfp8"}};
    static struct layer layer;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        layer_make(rows[i].chip, "te", rows[i].recipe, &layer);
        uint64_t const d = layer.rows * D_OWN;
        moves(work_of(&layer, "attention.", "Cast In"), 1, 2 * d, 2 * d);
        moves(step_of(&layer, true, "attention.", "O", OP_CAST), 1, 2 * d, 2 * d);
        moves(step_of(&layer, true, "attention.", "O", OP_CAST_SECOND), 0, 0, 0);
        case_free(&layer.made);
    }
}

/* Blackwell multiplies fp8 in all layouts: an array with one scale has no copy. */
static void blackwell_needs_no_transposed_copy(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("b200", "te", "delayed", &layer);
    uint64_t const q = layer.rows * Q_OWN;
    moves(work_of(&layer, "attention.", "Cast A"), 1, 2 * q, q);
    moves(step_of(&layer, true, "attention.", "O", OP_CAST_SECOND), 0, 0, 0);
    case_free(&layer.made);
}

/* A row has a scale once it is whole: 16 bits are gathered, and every rank casts all of it. */
static void rows_are_cast_behind_their_gather(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "torch-compile", "rowwise", &layer);
    uint64_t const all = layer.rows * D;
    assert_int_equal(gathered_bytes(&layer), 2 * all);
    moves(work_of(&layer, "attention.", "Cast In"), 1, 2 * all, 4 * all);
    moves(step_of(&layer, true, "attention.", "O", OP_CAST), 1, 2 * all, 4 * all);
    case_free(&layer.made);
}

/* Gradients of weights read arrays that are kept in fp8. The gradient of attention reads its result
 * A in 16 bits, which is kept too. */
static void what_is_kept_is_what_gradients_multiply(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("h100-sxm", "te", "delayed", &layer);
    const struct graph *graph = &layer.derived.graph;
    uint32_t kept = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_op *maker = graph_maker(graph, t);
        if (maker == NULL || maker->kind != &op_kind_quantise) continue;
        assert_int_equal(graph->tensor[t].format, FORMAT_FP8);
        kept += layer.derived.kept.kept[t] != GRAPH_NOTHING;
    }
    assert_int_equal(kept, 2); /* A and Tmp: a norm's kernel has written fp8 itself. */
    case_free(&layer.made);
}

/* Unless a recipe is named, a step has the library's default. It has none where products are in 16
 * bits, where the stack has no library, and in inference. */
static void a_stack_has_a_recipe_of_its_own(void **state)
{
    static const struct {
        const char *chip, *stack, *recipe;
        enum format matmuls;
    } rows[] = {
        {"h100-sxm", "te", "delayed", FORMAT_FP8},
        {"h100-sxm", "torch-eager", "delayed", FORMAT_FP8},
        {"h100-sxm", "torch-compile", "current", FORMAT_FP8},
        {"b200", "te", "mxfp8", FORMAT_FP8},
        {"h100-sxm", "te", NULL, FORMAT_BF16},
        {"h100-sxm", "trtllm", NULL, FORMAT_FP8},
        {"h100-sxm", NULL, NULL, FORMAT_FP8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        case_make(rows[i].chip, rows[i].stack, NULL, &made);
        made.plan.formats.matmuls = rows[i].matmuls;
        const struct recipe *recipe = workload_casts(&made.plan, &made.machine.chip).recipe;
        if (rows[i].recipe == NULL) {
            assert_null(recipe);
        } else {
            assert_non_null(recipe);
            assert_string_equal(recipe->name, rows[i].recipe);
        }
        case_free(&made);
    }
}

static void what_no_software_runs_is_refused(void **state)
{
    static const struct {
        const char *chip, *stack, *recipe, *words;
        enum format matmuls;
        enum status status;
    } rows[] = {
        {"h100-sxm", "te", "mxfp8",
         "Transformer Engine runs no \"mxfp8\" on h100-sxm; it has "
         "\"block\", \"current\", \"delayed\"",
         FORMAT_FP8, STATUS_UNSUPPORTED},
        {"h100-sxm", "te", "rowwise", "Transformer Engine runs no \"rowwise\"", FORMAT_FP8,
         STATUS_UNSUPPORTED},
        {"h100-sxm", "torch-compile", "delayed",
         "torchao runs no \"delayed\" on h100-sxm; it has "
         "\"current\", \"rowwise\"",
         FORMAT_FP8, STATUS_UNSUPPORTED},
        {"a100-sxm", "te", "block", "a100-sxm multiplies no fp8", FORMAT_FP8, STATUS_UNSUPPORTED},
        {"h100-sxm", "trtllm", "current", "has no linear layers that train in fp8", FORMAT_FP8,
         STATUS_UNSUPPORTED},
        {"h100-sxm", NULL, "current", "names no \"stack\"; \"te\" has recipes", FORMAT_FP8,
         STATUS_INVALID},
        {"h100-sxm", "te", "current", "a recipe needs products in fp8, and", FORMAT_BF16,
         STATUS_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct ranks ranks;
        case_make(rows[i].chip, rows[i].stack, rows[i].recipe, &made);
        made.plan.formats.matmuls = rows[i].matmuls;
        case_refused(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error),
                     rows[i].status, "/workload/fp8_recipe", rows[i].words);
        case_free(&made);
    }
}

/* The same rows with and without the kernels that cast: 8,192 x 1,024 x 8,192 takes 267 us on an
 * H100, of which the scale takes 110 us and the cast 67 us. */
static void a_recipe_takes_products_without_casts(void **state)
{
    uint64_t const side[KERNEL_SIDES_MAX] = {8192, 1024, 8192};
    struct work work = {.matmul = {{8192, 8192, 1024, 1}},
                        .matmul_count = 1,
                        .math_format = FORMAT_FP8,
                        .kernel = WORK_KERNEL_FORWARD};
    struct workload_case made;
    (void)state;
    case_make("h100-sxm", "te", "delayed", &made);
    const struct kernel_stack *te = made.machine.chip.kernels.stack;
    struct work_kernels const within = kernel_of_work(te, 132, &work);
    work.cast = WORK_CAST_TENSOR;
    struct work_kernels const apart = kernel_of_work(te, 132, &work);
    assert_true(within.table->quantises && !apart.table->quantises);
    assert_false(apart.is_of_other_scales);
    double const within_us = (double)kernel_roofline_ps(within.table, side) / within.share_ppm;
    double const apart_us = (double)kernel_roofline_ps(apart.table, side) / apart.share_ppm;
    case_near(within_us, 267, 0.02);
    case_near(within_us - apart_us, 177, 0.02);
    /* Gradients add up in two steps there, and no table has scales of rows. */
    work.kernel = WORK_KERNEL_WEIGHT;
    work.matmul[0] = (struct work_matmul){8192, 1024, 8192, 1};
    struct work_kernels const gradient = kernel_of_work(te, 132, &work);
    assert_non_null(gradient.table->derived);
    case_near((double)gradient.share_ppm * 1.15, (double)apart.share_ppm, 0.001);
    work.cast = WORK_CAST_ROW;
    assert_true(kernel_of_work(te, 132, &work).is_of_other_scales);
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_says_what_it_is),
        cmocka_unit_test(delayed_scaling_casts_in_one_kernel),
        cmocka_unit_test(products_say_how_their_operands_are_scaled),
        cmocka_unit_test(current_scaling_reads_arrays_twice),
        cmocka_unit_test(xla_casts_what_libraries_leave),
        cmocka_unit_test(sums_that_no_norm_computes_are_read_again),
        cmocka_unit_test(what_another_op_reads_too_is_read_again),
        cmocka_unit_test(inputs_of_bare_layers_are_cast),
        cmocka_unit_test(blocks_are_cast_for_both_at_once),
        cmocka_unit_test(blackwell_needs_no_transposed_copy),
        cmocka_unit_test(rows_are_cast_behind_their_gather),
        cmocka_unit_test(what_is_kept_is_what_gradients_multiply),
        cmocka_unit_test(a_stack_has_a_recipe_of_its_own),
        cmocka_unit_test(what_no_software_runs_is_refused),
        cmocka_unit_test(a_recipe_takes_products_without_casts),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
