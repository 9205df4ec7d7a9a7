/* What graphs derive of attention that ranks share, three ways, and of attention whose scores lie
 * in HBM, is what workload_lower() makes: op by op, in order. */
#include "sim/graph/print.h"
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"

struct place {
    const char *shape, *dp, *fsdp, *tp, *pp;
    uint64_t batch_tokens;
};

static void place_build(struct workload_case *ret_made, const struct place *place, const char *cp)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = place->dp,
                                                [MESH_FSDP] = place->fsdp,
                                                [MESH_TP] = place->tp,
                                                [MESH_PP] = place->pp,
                                                [MESH_CP] = cp};
    assert_int_equal(case_build_roles(ret_made, &case_llama_70b, place->shape, parts), STATUS_OK);
    ret_made->plan.batch_tokens = place->batch_tokens;
}

static void staged_vary(struct workload_case *made, const struct place *place)
{
    if (place->pp == NULL) return;
    made->plan.model.layers = 8;
    made->plan.accumulate = 8;
    made->plan.schedule = "zb-h1";
}

static void step_hold(const char *name, struct workload_case *made)
{
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    graph_step_hold(name, made);
    case_free(made);
}

/* --- Sequences that ranks share --- */

/* Heads: as many KV heads, eight, one; windows where each rank attends to whole sequences. */
static void context_vary(struct workload_case *made, uint32_t variant)
{
    static const bool windowed[8] = {true, false, true, true, false};
    static const uint64_t windows[4] = {0, 1024, 513, 4000}, kv_heads[3] = {8, 64, 1};
    bool const turns = variant % 3 == WORKLOAD_CONTEXT_ULYSSES;
    made->plan.sequence_length = 8192;
    vary(made, variant / 3);
    made->plan.context = (enum workload_context)(variant % 3);
    made->plan.context_order = (enum workload_context_order)(variant / 7 % 2);
    made->plan.model.kv_heads = kv_heads[variant / 5 % 3];
    if (!turns || windows[variant / 3 % 4] == 0) return;
    made->plan.model.window = windows[variant / 3 % 4];
    made->plan.model.windowed = windowed;
}

static void shared_sequences_are_derived(void **state)
{
    static const struct place places[] = {
        {"2x4x4", NULL, "y z", NULL, NULL, 1 << 20}, {"2x4x4", NULL, "y", "z", NULL, 1 << 20},
        {"4x4x4", NULL, "y z", NULL, NULL, 1 << 20}, {"4x4x4", "y", NULL, "z", NULL, 1 << 20},
        {"8x4x4", NULL, "y", "z", NULL, 1 << 19},    {"8x4x4", "z", "y", NULL, NULL, 1 << 20},
        {"4x16x16", "y", NULL, "z", NULL, 1 << 19},  {"8x4x4", NULL, "z", NULL, "y", 1 << 21},
        {"4x4x4", NULL, NULL, "z", "y", 1 << 20},
    };
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 360; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %zu, variant %u", p, variant);
            place_build(&made, &places[p], "x");
            if (places[p].dp != NULL && places[p].fsdp == NULL) made.plan.zero = variant / 9 % 3;
            context_vary(&made, variant);
            staged_vary(&made, &places[p]);
            step_hold(name, &made);
        }
}

/* --- Scores in HBM --- */

static void stored_scores_are_derived(void **state)
{
    static const struct place places[] = {
        {"16", "x", NULL, NULL, NULL, 1 << 20},  {"4x4x4", NULL, "x y", "z", NULL, 1 << 20},
        {"16", NULL, NULL, "x", NULL, 1 << 16},  {"4x4x4", "y", "x", "z", NULL, 1 << 20},
        {"4x4x4", NULL, "x", "z", "y", 1 << 19}, {"4x4", "x", NULL, NULL, "y", 1 << 19},
    };
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 120; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "scores, place %zu, variant %u", p, variant);
            place_build(&made, &places[p], NULL);
            vary(&made, variant / 2);
            made.plan.attention = WORKLOAD_ATTENTION_FULL;
            made.plan.attention_kernel =
                variant % 2 == 0 ? WORKLOAD_KERNEL_UNFUSED : WORKLOAD_KERNEL_DROPOUT;
            if (variant / 5 % 2 == 0) made.plan.model.kv_heads = 64;
            staged_vary(&made, &places[p]);
            step_hold(name, &made);
        }
    print_message("%u steps, %u templates, %u ops and collectives\n", graph_compared.steps,
                  graph_compared.templates, graph_compared.ops);
}

/* Outputs of functions, and masks where some is dropped, on two nodes of GPUs. */
static void what_frameworks_hold_is_derived(void **state)
{
    static const struct machine_plan machine = {
        .chip = "h100-sxm", .nodes = 2, .profile = "ideal", .wrap = {-1, -1, -1}};
    static const enum workload_kernel kernels[3] = {WORKLOAD_KERNEL_FLASH, WORKLOAD_KERNEL_UNFUSED,
                                                    WORKLOAD_KERNEL_DROPOUT};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "node", [MESH_TP] = "gpu"};
    uint32_t walked = 0;
    graph_compared.framework = 0;
    (void)state;
    for (uint32_t i = 0; i < 180; i++) {
        uint32_t const variant = (12 + i) % 180; /* The first, always taken, holds something. */
        struct workload_case made;
        char name[96];
        if (sampling_skips(&walked)) continue;
        (void)snprintf(name, sizeof name, "frameworks, variant %u", variant);
        assert_int_equal(case_build_on(&made, &case_llama_70b, &machine, parts), STATUS_OK);
        vary(&made, variant / 3);
        made.plan.attention = WORKLOAD_ATTENTION_FULL;
        made.plan.attention_kernel = kernels[variant % 3];
        made.plan.memory = WORKLOAD_MEMORY_FRAMEWORK;
        made.plan.batch_tokens = 1 << 16;
        if (variant / 7 % 3 == 0) made.plan.offload = WORKLOAD_OFFLOAD_ACTIVATIONS;
        step_hold(name, &made);
    }
    assert_true(graph_compared.framework != 0);
}

/* --- By hand --- */

/* "AllGather 64, Permute 16": collectives of a pass among ranks that share sequences, in MiB. */
static void moves_print(const struct graph_case *layer, bool backward, struct strbuf *text)
{
    static struct graph_steps steps;
    graph_steps(&layer->sharded, &layer->backward, &layer->kept,
                (struct graph_request){.backward = backward}, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        if (step->is_compute || step->move.axis != OP_AXIS_SEQUENCE) continue;
        strbuf_add(text, "%s%s %llu", text->size_bytes > 0 ? ", " : "",
                   collective_kind_name(step->move.kind),
                   (unsigned long long)(step->move.bytes >> 20));
    }
}

/* Of 2^18 tokens a rank has 2^14, with 16 heads and 2 KV heads of 128 in bf16. The four ranks that
 * share a sequence have 256 MiB of Q, and 32 of K and of V each. Where each of them turns to a head
 * of its own, there have to be 4 KV heads: 64 of each, whether the model has them or not. */
static void moves_of_sequences_are_counted_by_hand(void **state)
{
    static const struct {
        enum workload_context context;
        uint64_t kv_heads;
        const char *forward, *backward;
    } rows[] = {
        {WORKLOAD_CONTEXT_ALL_GATHER, 8, "AllGather 64", "ReduceScatter 64"},
        {WORKLOAD_CONTEXT_RING, 8, "AllGather 64", "AllGather 64, ReduceScatter 64, Permute 16"},
        {WORKLOAD_CONTEXT_ULYSSES, 16, "AllToAll 256, AllToAll 64, AllToAll 64, AllToAll 256",
         "AllToAll 256, AllToAll 256, AllToAll 64, AllToAll 64"},
        {WORKLOAD_CONTEXT_ULYSSES, 8, "AllToAll 256, AllToAll 64, AllToAll 64, AllToAll 256",
         "AllToAll 256, AllToAll 256, AllToAll 64, AllToAll 64"},
    };
    static const struct place place = {"4x4x4", NULL, "y", "z", NULL, 1 << 18};
    static struct ranks ranks;
    static struct graph_cases cases;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct strbuf forward = {0}, backward = {0};
        place_build(&made, &place, "x");
        made.plan.context = rows[i].context;
        made.plan.model.kv_heads = rows[i].kv_heads;
        assert_int_equal(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &made.error),
                         STATUS_OK);
        graph_cases_build(&ranks, &cases);
        moves_print(&cases.layer[0], false, &forward);
        moves_print(&cases.layer[0], true, &backward);
        assert_string_equal(forward.bytes, rows[i].forward);
        assert_string_equal(backward.bytes, rows[i].backward);
        strbuf_free(&forward);
        strbuf_free(&backward);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_sequences_are_derived),
        cmocka_unit_test(stored_scores_are_derived),
        cmocka_unit_test(what_frameworks_hold_is_derived),
        cmocka_unit_test(moves_of_sequences_are_counted_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
