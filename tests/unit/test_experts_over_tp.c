/*
 * Experts over ranks of tp and ep together: what one step sends and holds, counted by hand. Four
 * ranks of tp and two of ep's own share 64 experts on eight GPUs of a node; two nodes are replicas.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/workload_case.h"

enum {
    LAYERS = 2,
    WIDTH = 2048,
    EXPERTS = 64,
    TOP_K = 6,
    COLUMNS = 1023, /* Of an expert, which no rank of tp splits. */
    TOKENS = 1 << 16,
    TP = 4,
    OWN = 2,
    REPLICAS = 2,
    RANKS = TP * OWN,
    BF16 = 2
};

static const struct model model = {.kind = MODEL_DECODER,
                                   .name = "experts",
                                   .layers = LAYERS,
                                   .width = WIDTH,
                                   .mlp_width = 1024,
                                   .matrices = 3,
                                   .heads = 16,
                                   .kv_heads = 8,
                                   .head_width = 128,
                                   .vocabulary = 32768,
                                   .experts = {.count = EXPERTS, .top_k = TOP_K, .width = COLUMNS}};

static enum status build(struct workload_case *made, const char *ep)
{
    const char *const parts[MESH_ROLE_COUNT] = {
        [MESH_TP] = "gpu:4", [MESH_EP] = ep, [MESH_DP] = "node"};
    struct machine_plan const machine = {
        .chip = "h100-sxm", .nodes = REPLICAS, .profile = "ideal", .wrap = {-1, -1, -1}};
    enum status const status = case_build_on(made, &model, &machine, parts);
    made->plan.batch_tokens = TOKENS;
    made->plan.sequence_length = 1024;
    made->plan.activations = WORKLOAD_ACTIVATIONS_TOKENS;
    made->plan.routing.token_copies = WORKLOAD_COPY_AN_EXPERT;
    made->plan.zero = 1;
    return status;
}

static void built(struct workload_case *made, const char *ep)
{
    if (build(made, ep) != STATUS_OK || case_lower(made) != STATUS_OK)
        fail_msg("%s: %s", made->error.where, made->error.message);
}

/* Bytes of all collectives of a step whose names begin with a text; how many, and their ranks. */
struct moved {
    uint64_t bytes, count, ranks;
};

static struct moved moved_of(const struct workload_case *made, const char *begins)
{
    struct moved moved = {0};
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++) {
            const struct program_op *op = &made->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE || strstr(op->name, begins) != op->name) continue;
            const struct plan *plan = &made->program.plans[op->index];
            moved.bytes += case_repeats(&made->program, t) * plan->size_bytes;
            moved.count += case_repeats(&made->program, t);
            moved.ranks = group_rank_count(&plan->group);
        }
    return moved;
}

static void moved_is(const struct workload_case *made, const char *begins, uint64_t count,
                     uint64_t bytes, uint64_t ranks)
{
    struct moved const moved = moved_of(made, begins);
    assert_int_equal(moved.count, count);
    assert_int_equal(moved.bytes, count * bytes);
    if (count > 0) assert_int_equal(moved.ranks, ranks);
}

/* Each rank of tp sends its own quarter of a data rank's tokens, whole, to the eight ranks. No
 * collective over tp is around the experts. */
static void tokens_go_by_one_exchange_over_all_ranks(void **state)
{
    static const char *const exchanges[] = {"AllToAll rows", "AllToAll outputs",
                                            "AllToAll dOutputs", "AllToAll dRows"};
    static const char *const none[] = {"AllGather rows", "ReduceScatter outputs",
                                       "AllGather dOutputs", "ReduceScatter dRows"};
    struct workload_case whole, split;
    uint64_t const own = TOKENS / REPLICAS / OWN / TP;
    (void)state;
    built(&whole, "gpu:2 tp");
    built(&split, "gpu:2");
    for (uint32_t i = 0; i < 4; i++) {
        moved_is(&whole, exchanges[i], LAYERS, RANKS * own * TOP_K * WIDTH * BF16, RANKS);
        moved_is(&whole, none[i], 0, 0, 0);
        /* A rank of tp that splits experts sends a quarter of each row. */
        moved_is(&split, exchanges[i], LAYERS, OWN * own * TP * TOP_K * (WIDTH / TP) * BF16, OWN);
    }
    assert_true(moved_of(&split, "AllGather").count > moved_of(&whole, "AllGather").count);
    case_free(&whole);
    case_free(&split);
}

/* Eight of the 64 experts, whole, on each rank; their gradients are added up over two nodes, where
 * each rank keeps half of the moments. */
static void gradients_are_reduced_over_what_is_left_of_dp(void **state)
{
    struct workload_case made;
    struct workload_counts counts;
    uint64_t const own = UINT64_C(3) * WIDTH * COLUMNS * EXPERTS / RANKS;
    (void)state;
    built(&made, "gpu:2 tp");
    moved_is(&made, "ReduceScatter dW_experts", LAYERS, own * BF16, REPLICAS);
    moved_is(&made, "AllGather W_experts", LAYERS, own * BF16, REPLICAS);
    moved_is(&made, "ReduceScatter dW_router", LAYERS, (WIDTH * EXPERTS + WIDTH) * BF16,
             REPLICAS * OWN);
    counts_make(&made.plan, &made.machine, &made.mesh, &counts);
    double const attention = (double)WIDTH * 128 * (16 + 8 + 8 + 16) / TP;
    double const dense =
        LAYERS * (attention + WIDTH * EXPERTS + 2 * WIDTH) + 2 * 32768.0 * WIDTH / TP + WIDTH;
    double const experts = LAYERS * (double)own;
    case_near(counts.memory.parameter_bytes, BF16 * (dense + experts), 1e-9);
    case_near(counts.memory.optimizer_bytes,
              2 * 4 * (dense / (REPLICAS * OWN) + experts / REPLICAS), 1e-6);
    case_free(&made);
}

/* With ep over dp too no two ranks have the same experts. */
static void experts_on_all_ranks_have_no_replicas(void **state)
{
    struct workload_case made;
    struct workload_counts counts;
    uint64_t const own = TOKENS / REPLICAS / OWN / TP, all = RANKS * REPLICAS;
    (void)state;
    built(&made, "gpu:2 tp dp");
    moved_is(&made, "AllToAll rows", LAYERS, all * own * TOP_K * WIDTH * BF16, all);
    moved_is(&made, "ReduceScatter dW_experts", 0, 0, 0);
    counts_make(&made.plan, &made.machine, &made.mesh, &counts);
    assert_int_equal(counts.experts.scatter_count, 0);
    case_free(&made);
}

/* A token's work is the same wherever its experts lie. */
static void flop_are_the_same_however_experts_lie(void **state)
{
    static const char *const meshes[] = {"gpu:2", "gpu:2 tp", "gpu:2 tp dp"};
    double useful = 0;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct workload_case made;
        struct workload_counts counts;
        built(&made, meshes[i]);
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        if (i == 0) useful = counts.matmul_useful;
        case_near(counts.matmul_useful, useful, 1e-9);
        case_free(&made);
    }
}

static void refused(const char *ep, enum workload_activations activations, uint64_t experts,
                    const char *where, const char *words)
{
    struct workload_case made;
    assert_int_equal(build(&made, ep), STATUS_OK);
    made.plan.activations = activations;
    made.plan.model.experts.count = experts;
    case_lower_refused(&made, where, words);
}

static void what_is_not_meant_is_refused(void **state)
{
    (void)state;
    refused("gpu:2 tp", WORKLOAD_ACTIVATIONS_MODEL, EXPERTS, "/workload/activations",
            "ep lies over tp, whose ranks send tokens of their own: \"tokens\" is modelled");
    refused("gpu:2 tp", WORKLOAD_ACTIVATIONS_TOKENS, 60, "/mesh/ep",
            "8 ranks cannot split a layer's 60 experts evenly; the nearest numbers of ranks that "
            "can: 6 and 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_go_by_one_exchange_over_all_ranks),
        cmocka_unit_test(gradients_are_reduced_over_what_is_left_of_dp),
        cmocka_unit_test(experts_on_all_ranks_have_no_replicas),
        cmocka_unit_test(flop_are_the_same_however_experts_lie),
        cmocka_unit_test(what_is_not_meant_is_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
