/* Training steps as programs: how many collectives, who waits for whom, and what is refused. */
#include <stdio.h>

#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/workload_case.h"

static struct workload_case made;

static void build(const struct model *model, const char *shape, const char *dp, const char *fsdp,
                  const char *tp)
{
    if (case_build(&made, model, shape, dp, fsdp, tp) != STATUS_OK) {
        fail_msg("%s: %s", made.error.where, made.error.message);
    }
}

static void lower(void)
{
    if (case_lower(&made) != STATUS_OK) fail_msg("%s: %s", made.error.where, made.error.message);
}

static int drop(void **state)
{
    (void)state;
    case_free(&made);
    made.arena = NULL;
    return 0;
}

static const struct program_template *template_named(const char *name)
{
    for (uint32_t t = 0; t < made.program.template_count; t++) {
        if (strcmp(made.program.templates[t].name, name) == 0) return &made.program.templates[t];
    }
    fail_msg("no template %s", name);
    return NULL;
}

static const struct program_op *op_named(const char *template_name, const char *name)
{
    const struct program_template *template = template_named(template_name);
    for (uint32_t i = 0; i < template->op_count; i++) {
        if (strcmp(template->op[i].name, name) == 0) return &template->op[i];
    }
    fail_msg("no op %s in %s", name, template_name);
    return NULL;
}

static uint32_t collectives(const char *template_name, const char *group, enum collective_kind kind)
{
    const struct program_template *template = template_named(template_name);
    uint32_t count = 0;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
        if (!case_stream_is(&made.program.stream[op->stream], group)) continue;
        count += made.program.plans[op->index].kind == kind;
    }
    return count;
}

/* Whether `op` needs `parts` of a stream in the same slot, done. */
static bool needs(const struct program_op *op, const char *stream, uint32_t parts)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (strcmp(made.program.stream[need->stream].name, stream) == 0 && need->part == parts &&
            need->slot == 0 && need->per_part == 0 && !need->begun) {
            return true;
        }
    }
    return false;
}

/* The headline: LLaMA-3-70B, 4M tokens, fsdp over x and y, tp over z, block remat. */
static void headline(void)
{
    build(&case_llama_70b, "16x16x16", NULL, "x y", "z");
    made.plan.batch_tokens = 1 << 22;
    made.plan.remat = GRAPH_REMAT_BLOCK;
    made.plan.collective_matmul = true;
    lower();
}

static void the_headline_has_six_fsdp_and_eleven_tp_collectives_a_layer(void **state)
{
    (void)state;
    headline();
    assert_int_equal(collectives("layer forward", "fsdp", COLLECTIVE_ALL_GATHER), 2);
    assert_int_equal(collectives("layer backward", "fsdp", COLLECTIVE_ALL_GATHER), 2);
    assert_int_equal(collectives("layer backward", "fsdp", COLLECTIVE_REDUCE_SCATTER), 2);
    assert_int_equal(collectives("layer forward", "tp", COLLECTIVE_ALL_GATHER), 2);
    assert_int_equal(collectives("layer forward", "tp", COLLECTIVE_REDUCE_SCATTER), 2);
    /* Repeated, but for what the MLP ends with, and backward. */
    assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_ALL_GATHER), 4);
    assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_REDUCE_SCATTER), 3);
    assert_int_equal(collectives("layer backward", "kv", COLLECTIVE_ALL_REDUCE), 1);
    struct case_sums const sums = case_sum(&made.program, "fsdp");
    assert_int_equal(sums.collectives[COLLECTIVE_ALL_GATHER], 80 * 4 + 2);
    assert_int_equal(sums.collectives[COLLECTIVE_REDUCE_SCATTER], 80 * 2 + 2);
}

static void the_headline_works_on_the_shapes_of_one_chip(void **state)
{
    (void)state;
    headline();
    uint64_t const rows = (1 << 22) / 256;
    const struct program_op *qkv = op_named("layer forward", "attention.QKV");
    const struct work *work = &made.program.works[qkv->index];
    /* 4 query heads, and one KV head that two chips hold: 6 heads of 128. */
    assert_int_equal(work->matmul[0].rows, rows);
    assert_int_equal(work->matmul[0].inner, 8192);
    assert_int_equal(work->matmul[0].columns, 6 * 128);
    assert_int_equal(work->useful_flop, work_matmul_flop(work) / 6 * 5);
    const struct program_op *gather = op_named("layer forward", "AllGather W_mlp");
    /* 3·D·F/Y bf16, and the norm's weight on the shard. */
    assert_int_equal(made.program.plans[gather->index].size_bytes,
                     2 * (3 * 8192 * 1792 + 8192 / 16));
    gather = op_named("layer forward", "AllGather attention.In");
    assert_int_equal(made.program.plans[gather->index].size_bytes, 2 * rows * 8192);
    const struct program_op *sum = op_named("layer backward", "AllReduce dW_K dW_V");
    assert_int_equal(made.program.plans[sum->index].size_bytes, 2 * 2 * 8192 * 128);
    assert_int_equal(made.program.plans[sum->index].group.dimension[0].size, 2);
}

static void collective_matmul_goes_chunk_by_chunk_on_both_sides(void **state)
{
    (void)state;
    headline();
    static const char *const gathers[][3] = {
        {"layer forward", "AllGather attention.In", "attention.QKV"},
        {"layer forward", "AllGather mlp.In", "mlp.Gate,Up"},
        {"layer backward", "AllGather mlp.In", "mlp.Gate,Up again"},
        {"layer backward", "AllGather mlp.dOut", "mlp.dW_out"},
        {"layer backward", "AllGather attention.dOut", "attention.dW_O"},
        {"head forward", "AllGather head.In", "head.Logits"},
    };
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++) {
        const struct program_op *gather = op_named(gathers[i][0], gathers[i][1]);
        const struct program_op *matmul = op_named(gathers[i][0], gathers[i][2]);
        const struct plan *plan = &made.program.plans[gather->index];
        assert_int_equal(matmul->parts, 16);
        assert_int_equal(plan->chunk_count, 16);
        bool coupled = false;
        for (uint32_t n = 0; n < matmul->need_count; n++) {
            const struct program_need *need = &matmul->need[n];
            if (need->stream != gather->stream) continue;
            assert_int_equal(need->per_part, plan->chunk_parts);
            assert_int_equal(need->part, gather->part_first + plan->chunk_parts);
            coupled = true;
        }
        assert_true(coupled);
    }
    static const char *const reductions[][3] = {
        {"layer forward", "ReduceScatter mlp.Out", "mlp.Out"},
        {"layer backward", "ReduceScatter attention.Out", "attention.O again"},
        {"layer backward", "ReduceScatter mlp.dIn", "mlp.dIn"},
        {"layer backward", "ReduceScatter attention.dIn", "attention.dIn"},
        {"head backward", "ReduceScatter head.dIn", "head.dIn"},
    };
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        const struct program_op *scatter = op_named(reductions[i][0], reductions[i][1]);
        const struct program_op *matmul = op_named(reductions[i][0], reductions[i][2]);
        assert_ptr_equal(&template_named(reductions[i][0])->op[scatter->operand_op], matmul);
        assert_int_equal(matmul->parts, 16);
    }
}

static void userbuffers_reduce_gradients_that_are_whole(void **state)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_TP] = "gpu", [MESH_FSDP] = "node"};
    struct machine_plan const machine = {
        .chip = "h100-sxm", .profile = "ideal", .nodes = 4, .wrap = {-1, -1, -1}};
    (void)state;
    if (case_build_on(&made, &case_llama_70b, &machine, parts) != STATUS_OK)
        fail_msg("%s: %s", made.error.where, made.error.message);
    made.plan.batch_tokens = 1 << 18;
    made.plan.collective_matmul = true;
    made.plan.software.chunks = WORKLOAD_CHUNKS_USERBUFFERS;
    made.plan.backward_order = WORKLOAD_BACKWARD_DX_FIRST;
    lower();
    const struct program_op *forward = op_named("layer forward", "mlp.Out");
    const struct program_op *input = op_named("layer backward", "mlp.dIn");
    const struct program_op *scatter = op_named("layer backward", "ReduceScatter mlp.dIn");
    const struct program_op *weights = op_named("layer backward", "mlp.dW_gate,up");
    assert_int_equal(forward->parts, 8);
    assert_int_equal(op_named("layer backward", "mlp.dGate,dUp")->parts, 8);
    assert_int_equal(input->parts, 1);
    assert_int_equal(made.program.plans[scatter->index].chunk_count, 0);
    /* The reduction has the gradient of the weights to run next to. */
    assert_true(weights > input);
    for (uint32_t n = 0; n < weights->need_count; n++)
        assert_int_not_equal(weights->need[n].stream, scatter->stream);
}

static void without_it_tp_is_on_the_critical_path(void **state)
{
    (void)state;
    build(&case_mlp, "16", NULL, NULL, "x");
    lower();
    const struct program_op *gather = op_named("layer forward", "AllGather mlp.In");
    const struct program_op *matmul = op_named("layer forward", "mlp.Tmp");
    assert_int_equal(matmul->parts, 1);
    assert_true(needs(matmul, "gather tp", gather->part_first + gather->parts));
    const struct program_op *scatter = op_named("layer forward", "ReduceScatter mlp.Out");
    assert_int_equal(scatter->operand_op, PROGRAM_NONE);
    assert_true(needs(scatter, "compute", 2));
    assert_true(needs(gather, "reduce tp", 0)); /* The layer before has ended. */
    /* In is kept: the backward pass gathers dOut and nothing else. */
    assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_ALL_GATHER), 1);
    assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_REDUCE_SCATTER), 1);
}

static void weights_are_gathered_as_many_slots_ahead_as_asked(void **state)
{
    (void)state;
    for (uint32_t ahead = 0; ahead <= 3; ahead++) {
        build(&case_mlp, "16", NULL, "x", NULL);
        made.plan.prefetch_layers = ahead;
        lower();
        const struct program_op *gather = op_named("layer backward", "AllGather W_mlp");
        assert_int_equal(gather->need_count, 1);
        assert_int_equal(gather->need[0].stream, PROGRAM_COMPUTE);
        assert_int_equal(gather->need[0].slot, -(int)ahead);
        assert_int_equal(gather->need[0].begun, ahead != 0);
        assert_int_equal(gather->need[0].part, ahead != 0);
        case_free(&made);
    }
    build(&case_mlp, "16", NULL, "x", NULL);
}

static void gather_decides_what_travels_together(void **state)
{
    (void)state;
    static const uint32_t forward[] = {2, 7, 1}; /* block, tensor, layer */
    uint64_t bytes[3] = {0, 0, 0};
    for (uint32_t gather = 0; gather < 3; gather++) {
        build(&case_llama_70b, "16x16x16", NULL, "x y", "z");
        made.plan.batch_tokens = 1 << 22;
        made.plan.gather = (enum workload_gather)gather;
        lower();
        assert_int_equal(collectives("layer forward", "fsdp", COLLECTIVE_ALL_GATHER),
                         forward[gather]);
        assert_int_equal(collectives("layer backward", "fsdp", COLLECTIVE_REDUCE_SCATTER),
                         forward[gather]);
        bytes[gather] = (uint64_t)case_sum(&made.program, "fsdp").bytes[COLLECTIVE_ALL_GATHER];
        case_free(&made);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(bytes[0], bytes[2]);
    build(&case_mlp, "16", NULL, "x", NULL);
}

/* The book, 5.1.2: all ZeRO stages move the same bytes, an AllReduce counting twice. */
static void zero_stages_move_the_same_bytes(void **state)
{
    (void)state;
    double const parameters = 8 * 2.0 * 8192 * 32768;
    for (uint32_t zero = 0; zero <= 3; zero++) {
        build(&case_mlp, "16", "x", NULL, NULL);
        made.plan.zero = zero;
        lower();
        struct case_sums const sums = case_sum(&made.program, "dp");
        double const gathered = sums.bytes[COLLECTIVE_ALL_GATHER];
        assert_true(sums.bytes[COLLECTIVE_ALL_REDUCE] == (zero == 0 ? 2 * parameters : 0));
        assert_true(sums.bytes[COLLECTIVE_REDUCE_SCATTER] == (zero == 0 ? 0 : 2 * parameters));
        /* Stage 3 gathers for the forward and for the backward pass. */
        assert_true(gathered == (zero == 0 ? 0 : zero == 3 ? 4 * parameters : 2 * parameters));
        case_free(&made);
    }
    build(&case_mlp, "16", "x", NULL, NULL);
}

static void accumulated_gradients_are_reduced_once_unless_they_are_split(void **state)
{
    (void)state;
    static const uint64_t reductions[4] = {8, 8, 32, 32};
    for (uint32_t zero = 0; zero <= 3; zero++) {
        build(&case_mlp, "16", "x", NULL, NULL);
        made.plan.zero = zero;
        made.plan.accumulate = 4;
        lower();
        struct case_sums const sums = case_sum(&made.program, "dp");
        assert_int_equal(sums.collectives[COLLECTIVE_ALL_REDUCE] +
                             sums.collectives[COLLECTIVE_REDUCE_SCATTER],
                         reductions[zero]);
        case_free(&made);
    }
    build(&case_mlp, "16", "x", NULL, NULL);
}

static void backward_order_is_dw_first_or_dx_first(void **state)
{
    (void)state;
    build(&case_mlp, "4x4x4", NULL, "x y", "z");
    lower();
    assert_true(op_named("layer backward", "mlp.dW_out") < op_named("layer backward", "mlp.dTmp"));
    assert_true(op_named("layer backward", "mlp.dW_in") < op_named("layer backward", "mlp.dIn"));
    assert_true(op_named("layer backward", "mlp.dTmp") < op_named("layer backward", "mlp.dW_in"));
    made.plan.backward_order = WORKLOAD_BACKWARD_DX_FIRST;
    lower();
    assert_true(op_named("layer backward", "mlp.dTmp") < op_named("layer backward", "mlp.dW_out"));
    assert_true(op_named("layer backward", "mlp.dIn") < op_named("layer backward", "mlp.dW_in"));
}

static void updates_wait_for_the_reduction_of_their_own_layer(void **state)
{
    (void)state;
    headline();
    const struct program_role *role = &made.program.roles[0];
    const struct program_op *update = op_named("update layer", "update layer");
    uint32_t first = 0;
    for (uint32_t s = 0; s < role->slot_count; s++) {
        char name[64];
        program_slot_name(role, s, name, sizeof name);
        if (strcmp(name, "layer 79 update") == 0) first = s;
    }
    for (uint32_t n = 0; n < update->need_count; n++) {
        char name[64];
        program_slot_name(role, first + (uint32_t)(update->need[n].slot + 80) - 80, name,
                          sizeof name);
        assert_string_equal(name, "layer 79 backward");
    }
    assert_int_equal(update->need_count, 2); /* reduce fsdp, kv */
}

static uint64_t saved_by_a_layer(void)
{
    uint64_t saved = 0;
    const struct program_template *forward = template_named("layer forward");
    for (uint32_t i = 0; i < forward->op_count; i++) {
        for (uint32_t e = 0; e < forward->op[i].effect_count; e++) {
            const struct program_effect *effect = &forward->op[i].effect[e];
            if (effect->memory == PROGRAM_MEMORY_ACTIVATIONS) saved += (uint64_t)effect->bytes;
        }
    }
    return saved;
}

/* The book, 4.3.2: block remat saves one [B, D] a layer, big matmuls about seven. */
static void remat_saves_what_the_book_counts(void **state)
{
    (void)state;
    struct model square = case_llama_70b; /* F = D and K = N, so that all seven are alike. */
    square.kv_heads = square.heads;
    square.mlp_width = square.width;
    static const uint64_t tensors[] = {0, 0, 7, 1, 1};
    for (uint32_t remat = GRAPH_REMAT_BIG_MATMULS; remat <= GRAPH_REMAT_LAYER; remat++) {
        build(&square, "16", NULL, "x", NULL);
        made.plan.remat = (enum graph_remat)remat;
        lower();
        assert_int_equal(saved_by_a_layer(), tensors[remat] * 2 * 65536 * 8192);
        case_free(&made);
    }
    build(&case_mlp, "16", NULL, "x", NULL);
}

/*
 * Korthikanti et al., arXiv 2205.05198, 4.2.2: with tensor and sequence parallelism a rank keeps
 * 1/t of everything. Of a LLaMA layer that is, in elements a token: both norms' inputs and results,
 * Q, K, V, attention's output, Gate and Up; and attention's row statistics, fp32.
 */
static void without_remat_a_rank_of_tp_keeps_its_part_of_everything(void **state)
{
    (void)state;
    static const struct {
        const char *data, *tp;
    } meshes[] = {{"x y", NULL}, {"x", "y"}, {"y", "x"}, {NULL, "x y"}};
    struct model equal = case_llama_70b; /* No KV head is held twice. */
    equal.kv_heads = equal.heads;
    uint64_t const heads = equal.heads * equal.head_width;
    uint64_t const token =
        2 * (4 * equal.width + 4 * heads + 2 * equal.mlp_width) + 4 * equal.heads;
    for (uint32_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        build(&equal, "8x4", NULL, meshes[m].data, meshes[m].tp);
        made.plan.remat = GRAPH_REMAT_NONE;
        lower();
        assert_int_equal(saved_by_a_layer(), made.plan.batch_tokens / 32 * token);
        struct workload_counts counts;
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        assert_true(counts.memory.activation_bytes ==
                    (double)(equal.layers * (made.plan.batch_tokens / 32) * token));
        assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_ALL_GATHER),
                         meshes[m].tp == NULL ? 0 : 4);
        case_free(&made);
    }
    /* Kept whole, both norms' results are on each of the four ranks, and are not gathered again. */
    build(&equal, "8x4", NULL, "x", "y");
    made.plan.remat = GRAPH_REMAT_NONE;
    made.plan.tp_inputs = WORKLOAD_TP_INPUTS_WHOLE;
    lower();
    assert_int_equal(saved_by_a_layer(),
                     made.plan.batch_tokens / 32 * (token + 3 * 2 * 2 * equal.width));
    assert_int_equal(collectives("layer backward", "tp", COLLECTIVE_ALL_GATHER), 2);
    case_free(&made);
    build(&case_mlp, "16", NULL, "x", NULL);
}

static void a_sequence_is_split_where_there_are_fewer_than_ranks(void **state)
{
    (void)state;
    build(&case_llama_70b, "16x16x16", NULL, "x y z", NULL);
    made.plan.batch_tokens = 1 << 22; /* 1,024 sequences on 4,096 ranks. */
    lower();
    const struct program_op *gather = op_named("layer forward", "AllGather K V");
    const struct plan *plan = &made.program.plans[gather->index];
    assert_int_equal(group_rank_count(&plan->group), 4);
    assert_int_equal(plan->size_bytes, 2 * 2 * 4096 * 8 * 128);
    const struct program_op *flash = op_named("layer forward", "attention.flash");
    const struct work *work = &made.program.works[flash->index];
    assert_int_equal(work->matmul[0].rows, 1024); /* Its queries against all keys. */
    assert_int_equal(work->matmul[0].columns, 4096);
    assert_true(needs(flash, "gather sequence", gather->part_first + gather->parts));
}

static void causal_attention_is_the_exact_half(void **state)
{
    (void)state;
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    lower();
    const struct program_op *flash = op_named("layer forward", "attention.flash");
    const struct work *work = &made.program.works[flash->index];
    uint64_t const sequences = 65536 / 4096;
    assert_int_equal(work_matmul_flop(work), 2 * 2 * (4096ull * 4097 / 2) * 128 * 64 * sequences);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_headline_has_six_fsdp_and_eleven_tp_collectives_a_layer,
                                  drop),
        cmocka_unit_test_teardown(the_headline_works_on_the_shapes_of_one_chip, drop),
        cmocka_unit_test_teardown(collective_matmul_goes_chunk_by_chunk_on_both_sides, drop),
        cmocka_unit_test_teardown(userbuffers_reduce_gradients_that_are_whole, drop),
        cmocka_unit_test_teardown(without_it_tp_is_on_the_critical_path, drop),
        cmocka_unit_test_teardown(weights_are_gathered_as_many_slots_ahead_as_asked, drop),
        cmocka_unit_test_teardown(gather_decides_what_travels_together, drop),
        cmocka_unit_test_teardown(zero_stages_move_the_same_bytes, drop),
        cmocka_unit_test_teardown(accumulated_gradients_are_reduced_once_unless_they_are_split,
                                  drop),
        cmocka_unit_test_teardown(backward_order_is_dw_first_or_dx_first, drop),
        cmocka_unit_test_teardown(updates_wait_for_the_reduction_of_their_own_layer, drop),
        cmocka_unit_test_teardown(remat_saves_what_the_book_counts, drop),
        cmocka_unit_test_teardown(without_remat_a_rank_of_tp_keeps_its_part_of_everything, drop),
        cmocka_unit_test_teardown(a_sequence_is_split_where_there_are_fewer_than_ranks, drop),
        cmocka_unit_test_teardown(causal_attention_is_the_exact_half, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
