/* Kernels between matmuls: which a stack of software makes of a layer, their bytes, their time. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "sim/graph/asides.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/shard.h"
#include "sim/kernels/fusion.h"
#include "sim/kernels/kernels.h"
#include "sim/resource/compute.h"
#include "sim/step/graph_terms.h"
#include "tests/support/case.h"
#include "tests/unit/graph_case.h"

enum { LAYER = 1 };

static const struct fusion *fusion_named(const char *name)
{
    for (uint32_t i = 0; fusion_at(i) != NULL; i++)
        if (strcmp(fusion_at(i)->name, name) == 0) return fusion_at(i);
    fail_msg("no fusion is called %s", name);
    return NULL;
}

static void a_fusion_says_what_it_is(void **state)
{
    (void)state;
    assert_non_null(fusion_at(0));
    for (uint32_t i = 0; fusion_at(i) != NULL; i++) {
        const struct fusion *fusion = fusion_at(i);
        assert_true(fusion->name[0] != '\0' && fusion->help[0] != '\0');
        assert_true(fusion->source[0] != '\0');
        for (uint32_t other = 0; other < i; other++)
            assert_string_not_equal(fusion->name, fusion_at(other)->name);
        for (enum work_function function = 0; function < WORK_FUNCTION_COUNT; function++)
            assert_true(fusion_pass(fusion, function, false).kernels >= 1 &&
                        fusion_pass(fusion, function, true).kernels >= 1);
    }
    struct function_pass const none = fusion_pass(NULL, WORK_FUNCTION_NORM, true);
    assert_int_equal(none.kernels, 1);
    assert_int_equal(none.read_bytes + none.write_bytes, 0);
}

/* Fused losses move less than several kernels of a stack, and stand in for these alone. */
static void a_fused_loss_replaces_kernels(void **state)
{
    static const char *const one[] = {"xla", "served", "attending"};
    static const char *const several[] = {"te", "eager"};
    (void)state;
    assert_null(loss_kernels_of(LOSS_FUSION_NONE));
    assert_null(loss_kernels_of(LOSS_FUSION_COUNT));
    for (enum loss_fusion loss = LOSS_FUSION_NATIVE; loss < LOSS_FUSION_COUNT; loss++) {
        const struct loss_kernels *fused = loss_kernels_of(loss);
        assert_true(fused->help[0] != '\0' && fused->source[0] != '\0');
        for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
            assert_false(fusion_splits_loss(fusion_named(one[i])));
            assert_int_equal(fusion_loss(fusion_named(one[i]), loss).kernels, 1);
        }
        for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
            const struct fusion *fusion = fusion_named(several[i]);
            struct function_pass const own = fusion_loss(fusion, LOSS_FUSION_NONE);
            struct function_pass const made = fusion_loss(fusion, loss);
            assert_true(fusion_splits_loss(fusion));
            assert_int_equal(made.kernels, fused->made.kernels);
            assert_true(made.kernels <= own.kernels);
            assert_true(made.read_bytes + made.write_bytes < own.read_bytes + own.write_bytes);
        }
    }
    assert_false(fusion_splits_loss(NULL));
    /* Transformer Engine reads logits twice and their gradient once, and writes this twice. */
    struct function_pass const te = fusion_loss(fusion_named("te"), LOSS_FUSION_TE);
    assert_int_equal(te.kernels, 3);
    assert_int_equal(2 + te.read_bytes, 3 * 2);
    assert_int_equal(2 + te.write_bytes, 2 * 2);
}

/* A layer of LLaMA-3-70B under a fusion, on one chip of 4 x 4: tp 4, so 16 heads, 2 of keys. */
struct layer {
    struct workload_case made;
    struct kernel_stack stack;
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
    uint64_t rows; /* Tokens of a microbatch on one data rank. */
};

static void layer_make_with(const struct model *model, const char *fusion,
                            const struct workload_software *software, enum format weights,
                            struct layer *layer)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x", [MESH_TP] = "y"};
    struct ranks ranks;
    *layer = (struct layer){.stack = {.name = "case", .title = "A case"}};
    if (fusion != NULL) layer->stack.between.fusion = fusion_named(fusion);
    assert_int_equal(case_build_roles(&layer->made, model, "4x4x1", parts), STATUS_OK);
    layer->made.machine.chip.kernels.stack = &layer->stack;
    layer->made.plan.software.joins = software->joins;
    layer->made.plan.software.autocast = software->autocast;
    layer->made.plan.formats.weights = weights;
    case_ok(ranks_make(&layer->made.plan, &layer->made.machine, &layer->made.mesh, &ranks,
                       &case_error));
    layer->rows = ranks.rows;
    graph_layer_terms(&ranks, LAYER, &layer->terms);
    block_write_part(&layer->terms, &layer->made.plan.model, BLOCK_LAYER, &layer->graph);
    graph_shard(&layer->graph, &layer->sharded);
}

static void layer_make_joined(const struct model *model, const char *fusion,
                              enum product_joins joins, struct layer *layer)
{
    struct workload_software const software = {.joins = joins};
    layer_make_with(model, fusion, &software, FORMAT_BF16, layer);
}

static void layer_make_of(const struct model *model, const char *fusion, struct layer *layer)
{
    layer_make_joined(model, fusion, PRODUCT_JOINS_DEFAULT, layer);
}

static void layer_make(const char *fusion, struct layer *layer)
{
    layer_make_of(&case_llama_70b, fusion, layer);
}

/* The op of a name, with the prefix of its block; NULL: there is none, or a product computes it. */
static const struct graph_op *op_named(const struct layer *layer, const char *prefix,
                                       const char *name)
{
    for (uint8_t i = 0; i < layer->graph.op_count; i++) {
        const struct graph_op *op = &layer->graph.op[i];
        const char *own = layer->graph.block[op->block].block->prefix;
        if (!op->fused && strcmp(op->name, name) == 0 && strcmp(own, prefix) == 0) return op;
    }
    return NULL;
}

static struct work work_of(const struct layer *layer, const char *prefix, const char *name,
                           enum op_pass pass)
{
    const struct graph_op *op = op_named(layer, prefix, name);
    if (op == NULL) fail_msg("no op is called %s%s", prefix, name);
    return op_work(&layer->sharded, op, pass);
}

static void moves(struct work work, uint64_t kernels, uint64_t read_bytes, uint64_t write_bytes)
{
    assert_int_equal(work.kernel_count, kernels);
    assert_int_equal(work.hbm_read_bytes, read_bytes);
    assert_int_equal(work.hbm_write_bytes, write_bytes);
}

/* D 8,192 and F 28,672 over four ranks of tp, 16 heads of queries and two of keys, of 128. */
enum { D_OWN = 8192 / 4, F_OWN = 28672 / 4, Q_OWN = 16 * 128, K_OWN = 2 * 128 };

static void without_a_fusion_matmuls_do_it(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make(NULL, &layer);
    assert_null(op_named(&layer, "attention.", "Rope"));
    assert_null(op_named(&layer, "mlp.", "gate"));
    uint64_t const d = layer.rows * D_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 0, 4 * d, 4 * d);
    case_free(&layer.made);
}

/* Megatron-LM: the sum reads two arrays and writes one, which the norm reads again. */
static void megatron_has_kernels_for_sums_gates_and_turns(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("te", &layer);
    uint64_t const d = layer.rows * D_OWN, f = layer.rows * F_OWN;
    uint64_t const turned = layer.rows * (Q_OWN + K_OWN);
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 2, 6 * d, 4 * d);
    moves(work_of(&layer, "mlp.", "norm", OP_INPUT_GRADIENT), 3, 8 * d, 4 * d);
    moves(work_of(&layer, "mlp.", "gate", OP_FORWARD), 1, 4 * f, 2 * f);
    moves(work_of(&layer, "mlp.", "gate", OP_INPUT_GRADIENT), 1, 6 * f, 4 * f);
    moves(work_of(&layer, "attention.", "Rope", OP_FORWARD), 1, 2 * turned, 2 * turned);
    moves(work_of(&layer, "attention.", "Rope", OP_INPUT_GRADIENT), 1, 2 * turned, 2 * turned);
    case_free(&layer.made);
}

/* Hugging Face's RMSNorm in fp32: 20 bytes read and 16 written where one kernel has 2 and 2. */
static void eager_operators_have_a_kernel_each(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("eager", &layer);
    uint64_t const d = layer.rows * D_OWN, f = layer.rows * F_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 9, (20 + 4) * d, (16 + 2) * d);
    moves(work_of(&layer, "mlp.", "gate", OP_FORWARD), 2, 6 * f, 4 * f);
    case_free(&layer.made);
}

/* PyTorch has an operator for a layernorm. Its gradient reads two arrays twice. */
static void a_layernorm_is_one_kernel_and_two_backward(void **state)
{
    static struct layer layer;
    struct model model = case_llama_70b;
    (void)state;
    model.norms.centred = true;
    layer_make_of(&model, "eager", &layer);
    uint64_t const d = layer.rows * D_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 1 + 1, (2 + 4) * d, (2 + 2) * d);
    moves(work_of(&layer, "mlp.", "norm", OP_INPUT_GRADIENT), 2 + 1, (8 + 4) * d, (2 + 2) * d);
    case_free(&layer.made);
    layer_make_of(&model, "te", &layer);
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 2, 6 * d, 4 * d);
    case_free(&layer.made);
}

/* Dropout of the residual stream: masks of a byte, and a kernel backward. */
static void dropped_sums_have_masks(void **state)
{
    static struct layer layer;
    struct model model = case_llama_70b;
    (void)state;
    model.norms.centred = true;
    layer_make_of(&model, "eager", &layer);
    layer.terms.policy.drops = true;
    uint64_t const d = layer.rows * D_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 2, 6 * d, (4 + 1) * d);
    moves(work_of(&layer, "mlp.", "norm", OP_INPUT_GRADIENT), 4, (12 + 3) * d, (4 + 2) * d);
    case_free(&layer.made);
}

static struct work biases_of(const struct layer *layer, const char *prefix, const char *name)
{
    return graph_biases_work(&layer->sharded, op_named(layer, prefix, name));
}

/* Which products of a layer are one: by the stack, or as a scenario says. Without a stack Q, K and
 * V are. */
static void products_of_one_input_may_be_one(void **state)
{
    static const struct {
        const char *fusion;
        enum product_joins joins;
        bool qkv, gate;
    } rows[] = {
        {NULL, PRODUCT_JOINS_DEFAULT, true, false},
        {"te", PRODUCT_JOINS_DEFAULT, true, true},
        {"served", PRODUCT_JOINS_DEFAULT, true, true},
        {"attending", PRODUCT_JOINS_DEFAULT, true, true},
        {"compiled", PRODUCT_JOINS_DEFAULT, false, false},
        {"eager", PRODUCT_JOINS_DEFAULT, false, false},
        {"eager", PRODUCT_JOINS_ALL, true, true},
        {"compiled", PRODUCT_JOINS_QKV, true, false},
        {"te", PRODUCT_JOINS_NONE, false, false},
    };
    static struct layer layer;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool const qkv = rows[i].qkv, gate = rows[i].gate;
        layer_make_joined(&case_llama_70b, rows[i].fusion, rows[i].joins, &layer);
        struct work work = work_of(&layer, "attention.", "QKV", OP_FORWARD);
        assert_int_equal(work.matmul_count, qkv ? 1 : 2); /* K and V are alike. */
        assert_int_equal(work.matmul[0].columns, qkv ? Q_OWN + 2 * K_OWN : Q_OWN);
        assert_int_equal(work.matmul[1].count, qkv ? 0 : 2);
        for (enum op_pass pass = OP_INPUT_GRADIENT; pass <= OP_WEIGHT_GRADIENT; pass++) {
            work = work_of(&layer, "mlp.", "Gate,Up", pass);
            assert_int_equal(work.matmul_count, 1);
            assert_int_equal(work.matmul[0].columns, gate ? 2 * F_OWN : F_OWN);
            assert_int_equal(work.matmul[0].count, gate ? 1 : 2);
        }
        case_free(&layer.made);
    }
}

/* Sums of gradients of biases: one for Q, K and V where one product gives them, else three. */
static void gradients_of_biases_are_added_up(void **state)
{
    static struct layer layer;
    struct model model = case_llama_70b;
    (void)state;
    model.biases.qkv = true;
    layer_make_joined(&model, "eager", PRODUCT_JOINS_QKV, &layer);
    moves(biases_of(&layer, "attention.", "QKV"), 1, 2 * layer.rows * (Q_OWN + 2 * K_OWN), 0);
    case_free(&layer.made);
    layer_make_of(&model, "eager", &layer);
    moves(biases_of(&layer, "attention.", "QKV"), 3, 2 * layer.rows * (Q_OWN + 2 * K_OWN), 0);
    struct work const without = biases_of(&layer, "attention.", "O");
    assert_false(op_has_work(&without));
    case_free(&layer.made);
    layer_make_of(&model, "te", &layer);
    struct work const within = biases_of(&layer, "attention.", "QKV");
    assert_false(op_has_work(&within));
    case_free(&layer.made);
}

/* Launches count once a layer, bytes with each product; norms have none. */
static void gradients_of_weights_are_copied(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("eager", &layer);
    struct work const none = graph_copies_work(&layer.graph, op_named(&layer, "mlp.", "Out"));
    assert_false(op_has_work(&none));
    layer.terms.policy.copying.gradients = (struct function_pass){3, 8, 10};
    uint64_t const out = UINT64_C(8192) * F_OWN, in = UINT64_C(8192) * (Q_OWN + 2 * K_OWN);
    moves(graph_copies_work(&layer.graph, op_named(&layer, "mlp.", "Out")), 0, 8 * out, 10 * out);
    moves(graph_copies_work(&layer.graph, op_named(&layer, "attention.", "QKV")), 3, 8 * in,
          10 * in);
    struct work const norm = graph_copies_work(&layer.graph, op_named(&layer, "mlp.", "norm"));
    assert_false(op_has_work(&norm));
    case_free(&layer.made);
}

/* A gradient of 16 bits is read with the sum, which is written; in fp32 it may be cast before. */
static void gradients_of_microbatches_are_summed(void **state)
{
    static struct layer layer;
    (void)state;
    struct function_pass const fused = fusion_sums(GRADIENT_SUMS_FUSED, 2, 4);
    struct function_pass const narrow = fusion_sums(GRADIENT_SUMS_CAST, 2, 2);
    assert_int_equal(fused.kernels, 0);
    assert_int_equal(narrow.kernels, 1);
    assert_int_equal(narrow.read_bytes + narrow.write_bytes, 2 + 2 + 2);
    layer_make("eager", &layer);
    struct work const none = graph_sums_work(&layer.graph, op_named(&layer, "mlp.", "Out"));
    assert_false(op_has_work(&none));
    uint64_t const out = UINT64_C(8192) * F_OWN, in = UINT64_C(8192) * (Q_OWN + 2 * K_OWN);
    layer.terms.policy.sums = fusion_sums(GRADIENT_SUMS_APART, 2, 4);
    moves(graph_sums_work(&layer.graph, op_named(&layer, "mlp.", "Out")), 1, 6 * out, 4 * out);
    struct work const norm = graph_sums_work(&layer.graph, op_named(&layer, "mlp.", "norm"));
    assert_false(op_has_work(&norm));
    layer.terms.policy.sums = fusion_sums(GRADIENT_SUMS_CAST, 2, 4);
    moves(graph_sums_work(&layer.graph, op_named(&layer, "mlp.", "Out")), 2, 10 * out, 8 * out);
    moves(graph_sums_work(&layer.graph, op_named(&layer, "attention.", "QKV")), 6, 10 * in, 8 * in);
    case_free(&layer.made);
}

/* Q, K and V come without padding, and the result with it. */
static void attention_stands_between_copies(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("eager", &layer);
    const struct graph_op *flash = op_named(&layer, "attention.", "flash");
    struct work const none = graph_pads_work(&layer.sharded, flash, /* backward= */ false);
    assert_false(op_has_work(&none));
    layer.terms.policy.pads = true;
    uint64_t const in = layer.rows * (Q_OWN + 2 * K_OWN), out = layer.rows * Q_OWN;
    moves(graph_pads_work(&layer.sharded, flash, /* backward= */ false), 5, 2 * in + 2 * out,
          2 * in + 4 * out);
    moves(graph_pads_work(&layer.sharded, flash, /* backward= */ true), 7, 2 * in + 2 * out,
          4 * in + 2 * out);
    struct work const other =
        graph_pads_work(&layer.sharded, op_named(&layer, "mlp.", "Out"), /* backward= */ false);
    assert_false(op_has_work(&other));
    case_free(&layer.made);
}

static struct work casts_of(const struct layer *layer, const char *prefix, const char *name,
                            enum op_pass pass, bool backward)
{
    return graph_aside_work(&layer->sharded, op_named(layer, prefix, name), pass, backward);
}

/* With weights in 16 bits a layernorm alone is in fp32, with weights in fp32 the stream as well. */
static void autocast_casts_what_products_multiply(void **state)
{
    static struct layer layer;
    struct workload_software const software = {.autocast = true};
    struct model model = case_llama_70b;
    (void)state;
    layer_make_with(&model, "eager", &software, FORMAT_BF16, &layer);
    uint64_t const d = layer.rows * D_OWN, all = layer.rows * UINT64_C(8192);
    moves(casts_of(&layer, "mlp.", "Gate,Up", OP_INPUT_CASTS, false), 0, 0, 0);
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 9, (20 + 4) * d, (16 + 2) * d);
    case_free(&layer.made);
    model.norms.centred = true;
    layer_make_with(&model, "eager", &software, FORMAT_BF16, &layer);
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 2 + 1, (6 + 4) * d, (8 + 2) * d);
    moves(casts_of(&layer, "mlp.", "Gate,Up", OP_INPUT_CASTS, false), 2, 2 * 4 * all, 2 * 2 * all);
    moves(casts_of(&layer, "attention.", "QKV", OP_INPUT_CASTS, true), 3, 3 * 2 * all, 3 * 4 * all);
    moves(casts_of(&layer, "mlp.", "Out", OP_INPUT_CASTS, false), 0, 0, 0);
    moves(casts_of(&layer, "mlp.", "Out", OP_AUTOCAST_WEIGHTS, false), 0, 0, 0);
    case_free(&layer.made);
    layer_make_with(&case_llama_70b, "eager", &software, FORMAT_FP32, &layer);
    uint64_t const out = UINT64_C(8192) * F_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 6 + 1, (16 + 6) * d, (12 + 4) * d);
    moves(casts_of(&layer, "mlp.", "Gate,Up", OP_INPUT_CASTS, false), 2, 2 * 4 * all, 2 * 2 * all);
    moves(casts_of(&layer, "mlp.", "Out", OP_AUTOCAST_WEIGHTS, false), 1, 4 * out, 2 * out);
    moves(casts_of(&layer, "mlp.", "Out", OP_GRADIENT_CASTS, true), 1, 2 * out, 4 * out);
    case_free(&layer.made);
    layer_make_with(&case_llama_70b, "compiled", &software, FORMAT_FP32, &layer);
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 1, (4 + 2) * d, (4 + 2) * d);
    moves(casts_of(&layer, "mlp.", "Gate,Up", OP_INPUT_CASTS, false), 0, 0, 0);
    case_free(&layer.made);
}

static void servers_sum_in_the_norm(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("attending", &layer);
    uint64_t const d = layer.rows * D_OWN;
    moves(work_of(&layer, "mlp.", "norm", OP_FORWARD), 1, 4 * d, 4 * d);
    assert_null(op_named(&layer, "attention.", "Rope"));
    assert_non_null(op_named(&layer, "mlp.", "gate"));
    case_free(&layer.made);
}

/* Where heads are normed, torch.compile and TensorRT-LLM norm and turn them in one kernel, others
 * in two; either way they are turned once, at three FLOP an element. */
static void norms_of_heads_may_turn_them(void **state)
{
    static const struct {
        const char *fusion;
        bool norm_turns, rotates_apart;
    } rows[] = {{"te", false, true},
                {"compiled", true, false},
                {"served", false, true},
                {"attending", true, false},
                {"xla", false, false}};
    static struct layer layer;
    struct model model = case_llama_70b;
    (void)state;
    model.norms.qk = MODEL_QK_NORMS_SHARED;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool const here = rows[i].norm_turns;
        layer_make_of(&model, rows[i].fusion, &layer);
        uint64_t const heads = layer.rows * (Q_OWN + K_OWN);
        uint64_t const turn = here ? VECTOR_ROPE : 0;
        struct work const norm = work_of(&layer, "attention.", "QKNorm", OP_FORWARD);
        moves(norm, 1, 2 * heads, 2 * heads);
        assert_int_equal(norm.vector_flop, (VECTOR_NORM_ALONE + turn) * heads);
        assert_int_equal(work_of(&layer, "attention.", "QKNorm", OP_INPUT_GRADIENT).vector_flop,
                         (VECTOR_NORM_ALONE_BACKWARD + turn) * heads);
        assert_int_equal(op_named(&layer, "attention.", "Rope") != NULL, rows[i].rotates_apart);
        const struct graph_op *flash = op_named(&layer, "attention.", "flash");
        assert_int_equal(flash->as.rotated.of[0] != GRAPH_NONE, !here && !rows[i].rotates_apart);
        case_free(&layer.made);
    }
}

/* 4 GB at 4 TB/s take 1 ms, at half of that 2 ms, and three launches of 2 us. */
static void a_kernel_takes_its_bytes_and_its_launch(void **state)
{
    struct kernel_stack stack = {
        .between = {.fusion = fusion_at(0), .launch_ps = 2 * TIME_PS_PER_US}};
    struct chip chip = {.kind = CHIP_GPU,
                        .hbm_bytes_per_s = UINT64_C(4000000000000),
                        .vmem_capacity_bytes = UINT64_C(50) << 20,
                        .vmem_bytes_per_s = UINT64_C(9000000000000),
                        .vector_flop_per_s = UINT64_C(67000000000000),
                        .launch = {.op_ps = 5 * TIME_PS_PER_US},
                        .kernels = {.stack = &stack, .rest_hbm_ppm = PPM_ONE}};
    struct work work = {.hbm_read_bytes = 3000000000,
                        .hbm_write_bytes = 1000000000,
                        .kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_NORM,
                        .kernel_count = 3};
    (void)state;
    stack.between.share_ppm[WORK_FUNCTION_NORM] = PPM_ONE / 2;
    struct compute_time const time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    assert_true(time.hbm_ps == 2000 * TIME_PS_PER_US);
    assert_true(time.duration_ps == 2006 * TIME_PS_PER_US);
    assert_true(time.rest_ps == 6 * TIME_PS_PER_US);
    assert_true(compute_time(&chip, &work, PPM_ONE, PPM_ONE / 2).duration_ps ==
                4006 * TIME_PS_PER_US);
    /* What SMEM holds already is not read again: 1 GB less. */
    assert_true(compute_time_of_rest(&chip, &work, 1000000000, PPM_ONE, PPM_ONE).hbm_ps ==
                1500 * TIME_PS_PER_US);
    /* 201 Gflop at 67 Tflop/s take 3 ms, which the launches follow just as they follow bytes. */
    work.vector_flop = UINT64_C(201000000000);
    struct compute_time const math = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    assert_true(math.duration_ps == 3006 * TIME_PS_PER_US);
    assert_true(math.vpu_ps + math.vpu_rest_ps == math.duration_ps);
    work.vector_flop = 0;
    /* Without rates for such kernels the profile's overhead is all there is. */
    stack.between.fusion = NULL;
    assert_true(compute_time(&chip, &work, PPM_ONE, PPM_ONE).duration_ps < 1100 * TIME_PS_PER_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fusion_says_what_it_is),
        cmocka_unit_test(a_fused_loss_replaces_kernels),
        cmocka_unit_test(without_a_fusion_matmuls_do_it),
        cmocka_unit_test(megatron_has_kernels_for_sums_gates_and_turns),
        cmocka_unit_test(eager_operators_have_a_kernel_each),
        cmocka_unit_test(a_layernorm_is_one_kernel_and_two_backward),
        cmocka_unit_test(dropped_sums_have_masks),
        cmocka_unit_test(products_of_one_input_may_be_one),
        cmocka_unit_test(gradients_of_biases_are_added_up),
        cmocka_unit_test(gradients_of_weights_are_copied),
        cmocka_unit_test(gradients_of_microbatches_are_summed),
        cmocka_unit_test(attention_stands_between_copies),
        cmocka_unit_test(autocast_casts_what_products_multiply),
        cmocka_unit_test(servers_sum_in_the_norm),
        cmocka_unit_test(norms_of_heads_may_turn_them),
        cmocka_unit_test(a_kernel_takes_its_bytes_and_its_launch),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
