/* Graphs of attention that ranks share, three ways, and of attention whose scores lie in HBM
 * (graph_case.h); moves by hand. */
#include "sim/graph/print.h"
#include "tests/support/sampling.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

static void staged_vary(struct workload_case *made, const struct drawn_place *place)
{
    if (place->parts[MESH_PP] == NULL) return;
    made->plan.model.layers = 8;
    made->plan.accumulate = 8;
    made->plan.stages.schedule = "zb-h1";
}

/* --- Sequences that ranks share --- */

/* Heads: as many KV heads, eight, one; windows where each rank attends to whole sequences. */
static void context_vary(struct workload_case *made, uint32_t variant)
{
    static bool windowed[8] = {true, false, true, true, false};
    static const uint64_t windows[4] = {0, 1024, 513, 4000}, kv_heads[3] = {8, 64, 1};
    bool const turns = variant % 3 == WORKLOAD_CONTEXT_ULYSSES;
    made->plan.sequence_length = 8192;
    drawn_vary(made, variant / 3);
    made->plan.attention.context = (enum workload_context)(variant % 3);
    made->plan.attention.order = (enum workload_context_order)(variant / 7 % 2);
    made->plan.model.kv_heads = kv_heads[variant / 5 % 3];
    if (!turns || windows[variant / 3 % 4] == 0) return;
    made->plan.model.attends.window = windows[variant / 3 % 4];
    made->plan.model.by_layer.windowed = windowed;
}

static void shared_sequences_hold(void **state)
{
    static const struct drawn_place places[] = {
        {&case_llama_70b, "2x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_FSDP] = "y z"}},
        {&case_llama_70b, "2x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_FSDP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_FSDP] = "y z"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_DP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "8x4x4", 1 << 19, {[MESH_CP] = "x", [MESH_FSDP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "8x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_DP] = "z", [MESH_FSDP] = "y"}},
        {&case_llama_70b, "4x16x16", 1 << 19, {[MESH_CP] = "x", [MESH_DP] = "y", [MESH_TP] = "z"}},
        {&case_llama_70b, "8x4x4", 1 << 21, {[MESH_CP] = "x", [MESH_FSDP] = "z", [MESH_PP] = "y"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_CP] = "x", [MESH_TP] = "z", [MESH_PP] = "y"}},
    };
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 360; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %zu, variant %u", p, variant);
            drawn_build(&made, &places[p]);
            if (drawn_has_zero(places[p].parts)) made.plan.zero = variant / 9 % 3;
            context_vary(&made, variant);
            staged_vary(&made, &places[p]);
            graph_step_lower(name, &made);
        }
}

/* --- Scores in HBM --- */

static void stored_scores_hold(void **state)
{
    static const struct drawn_place places[] = {
        {&case_llama_70b, "16", 1 << 20, {[MESH_DP] = "x"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
        {&case_llama_70b, "16", 1 << 16, {[MESH_TP] = "x"}},
        {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_DP] = "y", [MESH_FSDP] = "x", [MESH_TP] = "z"}},
        {&case_llama_70b, "4x4x4", 1 << 19, {[MESH_FSDP] = "x", [MESH_TP] = "z", [MESH_PP] = "y"}},
        {&case_llama_70b, "4x4", 1 << 19, {[MESH_DP] = "x", [MESH_PP] = "y"}},
    };
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 120; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "scores, place %zu, variant %u", p, variant);
            drawn_build(&made, &places[p]);
            drawn_vary(&made, variant / 2);
            made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
            made.plan.attention.kernel =
                variant % 2 == 0 ? WORKLOAD_KERNEL_UNFUSED : WORKLOAD_KERNEL_DROPOUT;
            if (variant / 5 % 2 == 0) made.plan.model.kv_heads = 64;
            staged_vary(&made, &places[p]);
            graph_step_lower(name, &made);
        }
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
    static const struct drawn_place place = {
        &case_llama_70b, "4x4x4", 1 << 18, {[MESH_CP] = "x", [MESH_FSDP] = "y", [MESH_TP] = "z"}};
    static struct ranks ranks;
    static struct graph_cases cases;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct strbuf forward = {0}, backward = {0};
        drawn_build(&made, &place);
        made.plan.attention.context = rows[i].context;
        made.plan.model.kv_heads = rows[i].kv_heads;
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        graph_cases_build(&ranks, &cases);
        moves_print(&cases.part[0], false, &forward);
        moves_print(&cases.part[0], true, &backward);
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
        cmocka_unit_test(shared_sequences_hold),
        cmocka_unit_test(stored_scores_hold),
        cmocka_unit_test(moves_of_sequences_are_counted_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
