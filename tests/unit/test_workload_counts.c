/* Counts, of layers by their graphs, against the oracle's closed formulas and against the sums over
 * lowered programs: three ways to the same number, for every combination of mesh, remat, gather,
 * ZeRO stage, accumulation, order and formats. */
#include "sim/schedule/schedule.h"
#include "tests/support/counts.h"
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"

/* Context parallelism three ways, beside the other axes; KV heads that Ulysses has to share. */
static void formulas_and_programs_agree_on_shared_sequences(void **state)
{
    (void)state;
    static const struct drawn_place places[] = {
        {&case_llama_70b, "16x4x4", 1 << 19, {[MESH_CP] = "x", [MESH_FSDP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "16x4x4", 1 << 19, {[MESH_CP] = "x", [MESH_DP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "4x16x16", 1 << 19, {[MESH_CP] = "x", [MESH_DP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_FSDP] = "y z"}},
        {&case_llama_70b, "2x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_FSDP] = "y z"}},
    };
    uint32_t walked = 0;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "shared sequences %zu, variant %u", p, variant);
            drawn_build(&made, &places[p]);
            made.plan.sequence_length = 8192;
            made.plan.zero = drawn_has_zero(places[p].parts) ? variant / 3 % 3 : 0;
            drawn_vary(&made, variant);
            made.plan.attention.context = (enum workload_context)(variant / 12 % 3);
            made.plan.attention.order = (enum workload_context_order)(variant / 36);
            compare_kept(name, &made);
            case_free(&made);
        }
}

/* What copies of a program move each way, and what its effects take and never give back. */
static void offload_compare(const char *name, struct workload_case *made)
{
    struct workload_counts counts;
    double bytes[2] = {0};
    uint64_t count = 0;
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    templates_hold(name, &made->program, &made->machine);
    counts_make(&made->plan, &made->machine, &made->mesh, &counts);
    oracle_hold(name, &made->plan, &made->machine, &made->mesh, counts);
    const struct program *program = &made->program;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COPY) continue;
            const struct program_copy *copy = &program->copies[op->index];
            bytes[copy->to_host] += (double)case_repeats(program, t) * (double)copy->size_bytes;
            count += case_repeats(program, t);
        }
    double const counted = counts.host.moment_bytes + counts.host.activation_bytes;
    near(name, "loads", counted, bytes[0]);
    near(name, "stores", counted, bytes[1]);
    assert_int_equal(counts.host_copy_count, count);
    struct case_sums const sums = case_sum(program, "");
    near(name, "matmul FLOP", counts.matmul_flop, sums.matmul_flop);
    near(name, "HBM bytes", counts.hbm_bytes, sums.hbm_bytes);
    near(name, "compute ops", counts.ops.count, compute_ops(made));
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
        if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
}

static void formulas_and_programs_agree(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++)
        for (uint32_t zero = 0; zero <= (drawn_has_zero(drawn_dense[p].parts) ? 3u : 0u); zero++)
            for (uint32_t variant = 0; variant < 36; variant++) {
                struct workload_case made;
                char name[96];
                if (sampling_skips_watched(&walked)) continue;
                (void)snprintf(name, sizeof name, "place %zu, zero %u, variant %u", p, zero,
                               variant);
                drawn_build(&made, &drawn_dense[p]);
                made.plan.zero = zero;
                drawn_vary(&made, variant);
                compare_kept(name, &made);
                case_free(&made);
            }
}

/* Scores in HBM, with dropout and without: the sums of their kernels, and what they save. */
static void formulas_and_programs_agree_on_unfused_attention(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++)
        for (uint32_t variant = 0; drawn_dense[p].model != &case_mlp && variant < 36; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "unfused, place %zu, variant %u", p, variant);
            drawn_build(&made, &drawn_dense[p]);
            drawn_vary(&made, variant);
            made.plan.sequence_length = 512;
            made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
            made.plan.attention.kernel =
                variant % 5 < 2 ? WORKLOAD_KERNEL_UNFUSED : WORKLOAD_KERNEL_DROPOUT;
            compare_kept(name, &made);
            struct case_sums const sums = case_sum(&made.program, "");
            for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
                if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
            case_free(&made);
        }
}

/* Of T queries the i-th has i keys: T·(T+1)/2 pairs, whether T is even or odd. */
static void causal_scores_are_counted_for_an_odd_number_of_queries_too(void **state)
{
    (void)state;
    for (uint32_t length = 509; length <= 512; length++) {
        double flop[2];
        for (uint32_t causal = 0; causal < 2; causal++) {
            struct workload_case made;
            char name[64];
            (void)snprintf(name, sizeof name, "causal %u, %u queries", causal, length);
            assert_int_equal(case_build(&made, &case_llama_70b, "16", "x", NULL, NULL), STATUS_OK);
            made.plan.sequence_length = length;
            made.plan.batch_tokens = 16 * length;
            made.plan.remat = GRAPH_REMAT_NONE;
            made.plan.attention.mask =
                causal == 1 ? WORKLOAD_ATTENTION_CAUSAL : WORKLOAD_ATTENTION_FULL;
            compare_kept(name, &made);
            flop[causal] = case_sum(&made.program, "").matmul_flop;
            case_free(&made);
        }
        /* Two products forward, five backward (flash attention), of 64 heads of 128. */
        double const pairs = (double)length * length - (double)length * (length + 1) / 2;
        near("causal", "scores left out", flop[0] - flop[1], 80.0 * 7 * 64 * 2 * 128 * pairs);
    }
}

static void formulas_and_programs_agree_on_what_is_offloaded(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++)
        for (uint32_t variant = 0; variant < 36; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %zu, variant %u", p, variant);
            drawn_build(&made, &drawn_dense[p]);
            made.plan.zero = drawn_has_zero(drawn_dense[p].parts) ? variant / 6 % 4 : 0;
            drawn_vary(&made, variant);
            made.plan.model.layers = 2 + variant % 4;
            made.plan.prefetch_layers = variant % 3;
            made.plan.kept.offload =
                (enum workload_offload)(WORKLOAD_OFFLOAD_OPTIMIZER + (variant + p) % 3);
            offload_compare(name, &made);
            case_free(&made);
        }
}

/* The book, 5.1.1 and 5.1.2: 10 bytes a parameter, over all ranks that hold a part. */
static void memory_is_ten_bytes_a_parameter(void **state)
{
    (void)state;
    struct workload_case made;
    struct workload_counts counts;
    double const parameters = 8 * 2.0 * 8192 * 32768;
    assert_int_equal(case_build(&made, &case_mlp, "16", "x", NULL, NULL), STATUS_OK);
    static const double shares[4] = {10, 2 + 8.0 / 16, 2 + 8.0 / 16, 10.0 / 16};
    static const double gradients[4] = {2, 2, 2.0 / 16, 2.0 / 16};
    for (uint32_t zero = 0; zero <= 3; zero++) {
        made.plan.zero = zero;
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        near("zero", "state", counts.memory.parameter_bytes + counts.memory.optimizer_bytes,
             shares[zero] * parameters);
        near("zero", "gradients", counts.memory.gradient_bytes, gradients[zero] * parameters);
    }
    case_free(&made);
}

/* The same model, 16 microbatches over 4 ranks: by what the schedules are known to hold, and by the
 * lists of those very orders where they are given as a file's. What an input gradient leaves is
 * twice what the forward pass saves: ZB-H1's last rank has one microbatch under way and three that
 * wait for weight gradients, 7, and one more behind an input gradient. */
static void memory_has_all_microbatches_that_are_held(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        double held;
    } rows[] = {
        {"none", 1},          {"gpipe", 16},      {"1f1b", 4},   {"eager-1f1b", 7},
        {"zb-h1", 8},         {"zb-h2", 14},      {"auto", 4},   {"interleaved:2", 5.5},
        {"looped-bfs:2", 16}, {"zb-v", 7},        {"v-half", 6}, {"v-min", 3},
        {"dualpipe", 5},      {"dualpipev", 4.5},
    };
    struct workload_case made;
    struct workload_counts counts;
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
    assert_int_equal(case_build_roles(&made, &case_mlp, "4x4x4", parts), STATUS_OK);
    made.plan.accumulate = 16;
    made.plan.stages.schedule = "none";
    counts_make(&made.plan, &made.machine, &made.mesh, &counts);
    double const one = counts.memory.activation_bytes;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct schedule built;
        made.plan.stages.given = NULL;
        made.plan.stages.schedule = rows[r].schedule;
        assert_int_equal(workload_schedule(made.arena, &made.plan, &made.machine, &made.mesh,
                                           &built, &made.error),
                         STATUS_OK);
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        near(rows[r].schedule, "announced", counts.memory.activation_bytes, rows[r].held * one);
        made.plan.stages.given = &built;
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        near(rows[r].schedule, "listed", counts.memory.activation_bytes, rows[r].held * one);
    }
    case_free(&made);
}

/* A file that says when gradients are reduced, and not when weights are gathered: each pass does.
 */
static void passes_gather_where_a_file_reduces_alone(void **state)
{
    (void)state;
    struct workload_case made;
    struct workload_counts counts;
    struct schedule built;
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
    assert_int_equal(case_build_roles(&made, &case_mlp, "4x4x4", parts), STATUS_OK);
    made.plan.accumulate = 16;
    assert_int_equal(
        workload_schedule(made.arena, &made.plan, &made.machine, &made.mesh, &built, &made.error),
        STATUS_OK);
    built.has_reductions = true;
    made.plan.stages.given = &built;
    assert_int_equal(case_lower(&made), STATUS_OK);
    counts_make(&made.plan, &made.machine, &made.mesh, &counts);
    assert_int_equal(counts.weights.gathers, 16);
    traffic_near("reductions alone", &made, "fsdp", &counts.role[MESH_FSDP]);
    case_free(&made);
}

/* Of 2^20 tokens in 16 microbatches a rank of fsdp has 2^12, whose activations are 64 MiB. Four
 * ranks of pp have three borders, and with two chunks each seven, of which one is from the last
 * rank to the first. */
static void messages_of_stages_are_counted_by_hand(void **state)
{
    static const struct {
        const char *schedule;
        double pair, rank;
    } rows[] = {{"1f1b", 1, 2}, {"interleaved:2", 2, 4}};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
    double const messages = 16 * 67108864.0;
    struct workload_case made;
    struct workload_counts counts;
    (void)state;
    assert_int_equal(case_build_roles(&made, &case_mlp, "4x4x4", parts), STATUS_OK);
    made.plan.accumulate = 16;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        made.plan.stages.schedule = rows[i].schedule;
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        const struct workload_messages *stage = &counts.stage;
        near(rows[i].schedule, "of a pair", stage->bytes, rows[i].pair * messages);
        near(rows[i].schedule, "sent", stage->sent_bytes, rows[i].rank * messages);
        near(rows[i].schedule, "on their way", stage->way_bytes, 67108864 * stage->way_count);
        if (i == 0) near(rows[i].schedule, "messages", stage->way_count, 2 * 3 * 16);
    }
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(formulas_and_programs_agree_on_shared_sequences),
        cmocka_unit_test(formulas_and_programs_agree_on_unfused_attention),
        cmocka_unit_test(causal_scores_are_counted_for_an_odd_number_of_queries_too),
        cmocka_unit_test(formulas_and_programs_agree_on_what_is_offloaded),
        cmocka_unit_test(memory_is_ten_bytes_a_parameter),
        cmocka_unit_test(memory_has_all_microbatches_that_are_held),
        cmocka_unit_test(passes_gather_where_a_file_reduces_alone),
        cmocka_unit_test(messages_of_stages_are_counted_by_hand),
    };
    return templates_run("workload_counts", tests);
}
