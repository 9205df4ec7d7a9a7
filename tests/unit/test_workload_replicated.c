/*
 * Training where each rank of tp has whole rows between blocks, as Megatron-LM has without sequence
 * parallelism (Korthikanti et al., arXiv 2205.05198, 4.2): blocks end in an AllReduce, forward and
 * backward; norms work on all rows; messages between stages go in parts, which the receivers gather
 * (Narayanan et al., arXiv 2104.04473, 4.1).
 */
#include "sim/kernels/kernel_of_work.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

enum {
    TEXT_BYTES = WALK_TEXT_BYTES,
    BF16 = 2,
    RANKS = 8,
    TOKENS = 8192,
    MICROBATCHES = 4,
    WIDTH = 5120,
    LAYERS = 40
};

/* Over as many stages; 0: over copies. */
static void step_lower(struct play *play, const char *activations, const char *remat,
                       uint32_t stages)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"a100-sxm\", \"nodes\": %u}, \"mesh\": "
              "{\"tp\": [\"gpu\"], \"%s\": [\"node\"]}, \"workload\": {\"kind\": \"train_step\", "
              "\"model\": \"llama-2-13b\", \"batch_tokens\": %d, \"sequence_length\": 2048, "
              "\"accumulate\": %d, \"remat\": "
              "\"%s\", \"activations\": \"%s\", \"allow_oversubscription\": true}}",
              stages > 0 ? stages : 4, stages > 0 ? "pp" : "dp",
              MICROBATCHES * TOKENS * (stages > 0 ? 1 : 4), MICROBATCHES, remat, activations);
    play_run(play, text, &lower_only);
}

static double moved(const struct play *play, enum collective_kind kind)
{
    return walk_moved_bytes(&play->program, STREAM_OF_TP, kind);
}

static void blocks_end_in_all_reduces_both_ways(void **state)
{
    struct play whole;
    double const array = (double)TOKENS * WIDTH * BF16 * MICROBATCHES;
    (void)state;
    step_lower(&whole, "replicated", "none", /* stages= */ 0);
    /* Two blocks a layer, forward and backward; the embedding, and the gradient of the head's In.
     */
    case_near(moved(&whole, COLLECTIVE_ALL_REDUCE), (4 * LAYERS + 2) * array, 1e-9);
    assert_true(moved(&whole, COLLECTIVE_ALL_GATHER) == 0);
    assert_true(moved(&whole, COLLECTIVE_REDUCE_SCATTER) == 0);
    case_near(whole.roofline.counts.role[MESH_TP].all_reduce_bytes, (4 * LAYERS + 2) * array, 1e-9);
    play_close(&whole);
}

static void each_rank_keeps_and_norms_all_rows(void **state)
{
    struct play whole, parts;
    double const rows = (double)TOKENS * WIDTH;
    (void)state;
    step_lower(&whole, "replicated", "layer", /* stages= */ 0);
    step_lower(&parts, "tokens", "layer", /* stages= */ 0);
    const struct workload_counts *one = &whole.roofline.counts, *other = &parts.roofline.counts;
    assert_true(one->matmul_flop == other->matmul_flop);
    /* What comes to a layer, of all layers. */
    case_near(one->memory.activation_bytes, LAYERS * rows * BF16, 1e-9);
    case_near(other->memory.activation_bytes, LAYERS * rows * BF16 / RANKS, 1e-9);
    /* A norm with its sum reads and writes 8 bytes an element, again as many, backward 8: two in a
     * layer. The head's, once forward and once backward. */
    double const norms = (LAYERS * 2 * 3 + 2) * 8 * rows * MICROBATCHES;
    assert_true(one->hbm_bytes - other->hbm_bytes >= norms * (RANKS - 1) / RANKS);
    play_close(&parts);
    play_close(&whole);
}

static void messages_go_in_parts_that_are_gathered(void **state)
{
    double const array = (double)TOKENS * WIDTH * BF16 * MICROBATCHES;
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages += 2) {
        struct play whole, parts;
        uint32_t const borders = stages - 1;
        step_lower(&whole, "replicated", "layer", stages);
        step_lower(&parts, "tokens", "layer", stages);
        /* Both ways; the roofline has the stage of the most. */
        assert_true(walk_sent_bytes(&whole.program) == walk_sent_bytes(&parts.program));
        case_near(moved(&whole, COLLECTIVE_ALL_GATHER), 2 * borders * array, 1e-9);
        case_near(whole.roofline.counts.role[MESH_TP].gather_bytes, (borders > 1 ? 2 : 1) * array,
                  1e-9);
        play_close(&parts);
        play_close(&whole);
    }
}

/* Simulated on all chips, with the roofline as a bound. */
static void pipelines_of_whole_rows_fold(void **state)
{
    static const char *const schedules[] = {"1f1b", "interleaved:2", "zb-h1", "dualpipe"};
    (void)state;
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
        struct play play;
        char text[TEXT_BYTES];
        case_text(text, sizeof text,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"a100-sxm\", \"nodes\": 4, \"gpus\": "
                  "2}, \"mesh\": {\"tp\": [\"gpu\"], \"pp\": [\"node\"]}, \"workload\": {\"kind\": "
                  "\"train_step\", \"model\": \"llama-2-13b\", \"batch_tokens\": 65536, "
                  "\"sequence_length\": 2048, \"accumulate\": 8, \"schedule\": \"%s\", "
                  "\"activations\": \"replicated\", \"allow_oversubscription\": true}, \"run\": "
                  "{\"overlap\": {\"pp\": %s}}}",
                  schedules[s], s % 2 == 0 ? "false" : "true");
        play_run(&play, text, NULL);
        walk_alike(&play, text, "reference");
        play_close(&play);
    }
}

static void graphs_of_whole_rows_hold(void **state)
{
    uint32_t walked = 0;
    char name[96];
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++)
        for (uint32_t variant = 0; variant < 60; variant++) {
            struct workload_case made;
            if (drawn_dense[p].parts[MESH_TP] == NULL || sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %zu, variant %u, whole rows", p, variant);
            drawn_build(&made, &drawn_dense[p]);
            drawn_vary(&made, variant);
            made.plan.activations = WORKLOAD_ACTIVATIONS_REPLICATED;
            made.plan.collective_matmul = false;
            graph_step_lower(name, &made);
        }
}

/* Latents are gradients that stay sums until the product that makes them. */
static void graphs_of_latents_hold(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 30; variant++) {
        struct workload_case made;
        drawn_build(&made, &drawn_dense[DRAWN_DENSE - 1]);
        drawn_vary(&made, variant);
        drawn_set_mla(&made.plan.model);
        made.plan.activations = WORKLOAD_ACTIVATIONS_REPLICATED;
        made.plan.collective_matmul = false;
        graph_step_lower("latents, whole rows", &made);
    }
}

static struct work norm_work(const struct graph *graph, const struct graph_sharded *sharded,
                             enum op_pass pass)
{
    uint8_t index = 0;
    while (strcmp(graph->op[index].name, "norm") != 0) index++;
    return op_work(sharded, &graph->op[index], pass);
}

/* Kernels of a layernorm with its sum, which reads two arrays and writes one: bytes of both, and of
 * the sum. Backward PyTorch's reads two arrays twice, and apex's once. */
static void sums_of_layernorms_are_counted_apart(void **state)
{
    static struct ranks ranks;
    static struct graph_terms terms;
    static struct graph graph;
    static struct graph_sharded sharded;
    struct workload_case made;
    (void)state;
    drawn_build(&made, &drawn_dense[DRAWN_DENSE - 1]);
    made.plan.model.norms.centred = true;
    made.plan.activations = WORKLOAD_ACTIVATIONS_REPLICATED;
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    graph_layer_terms(&ranks, 0, &terms);
    uint64_t const d = ranks.rows * made.plan.model.width;
    uint32_t eager = 0;
    while (strcmp(fusion_at(eager)->name, "eager") != 0) eager++;
    terms.policy.fusion = fusion_at(eager);
    block_write_part(&terms, &made.plan.model, BLOCK_LAYER, &graph);
    graph_shard(&graph, &sharded);
    struct work work = norm_work(&graph, &sharded, OP_FORWARD);
    assert_int_equal(work.hbm_read_bytes + work.hbm_write_bytes, 10 * d);
    assert_int_equal(work.sum_bytes, 6 * d);
    work = norm_work(&graph, &sharded, OP_INPUT_GRADIENT);
    assert_int_equal(work.hbm_read_bytes + work.hbm_write_bytes, 16 * d);
    assert_int_equal(work.sum_bytes, 6 * d);
    terms.policy.replacing.persistent_layernorm = true;
    work = norm_work(&graph, &sharded, OP_INPUT_GRADIENT);
    assert_int_equal(work.hbm_read_bytes + work.hbm_write_bytes, 12 * d);
    assert_int_equal(work.sum_bytes, 6 * d);
    case_free(&made);
}

/* 2 GB of a sum at the whole rate beside 2 GB of a norm at half of the rate. */
static void sums_have_a_share_of_their_own(void **state)
{
    struct kernel_stack stack = {.between = {.fusion = fusion_at(0)}};
    struct work work = {.hbm_read_bytes = 3000000000,
                        .hbm_write_bytes = 1000000000,
                        .kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_NORM};
    (void)state;
    stack.between.share_ppm[WORK_FUNCTION_NORM] = PPM_ONE / 2;
    stack.between.share_ppm[WORK_FUNCTION_SUM] = PPM_ONE;
    assert_int_equal(kernel_between_ppm(&stack, &work), PPM_ONE / 2);
    work.sum_bytes = 2000000000;
    assert_int_equal(kernel_between_ppm(&stack, &work), 666666);
}

/* Megatron-LM trains experts over tp with sequence parallelism alone. */
static void experts_are_refused(void **state)
{
    struct workload_case made;
    (void)state;
    drawn_build_nodes(&made, &drawn_experts[2]);
    made.plan.activations = WORKLOAD_ACTIVATIONS_REPLICATED;
    case_refused(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh, &made.program,
                                &case_error),
                 STATUS_UNSUPPORTED, "/workload/activations", "sequence parallelism");
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_end_in_all_reduces_both_ways),
        cmocka_unit_test(each_rank_keeps_and_norms_all_rows),
        cmocka_unit_test(messages_go_in_parts_that_are_gathered),
        cmocka_unit_test(pipelines_of_whole_rows_fold),
        cmocka_unit_test(graphs_of_whole_rows_hold),
        cmocka_unit_test(graphs_of_latents_hold),
        cmocka_unit_test(sums_of_layernorms_are_counted_apart),
        cmocka_unit_test(sums_have_a_share_of_their_own),
        cmocka_unit_test(experts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
