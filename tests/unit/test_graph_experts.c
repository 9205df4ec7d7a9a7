/* What graphs of layers with experts, and with latent attention, derive is what workload_lower()
 * makes: op by op, in order, over the drawn steps of test_workload_counts_experts.c and more. */
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"

static const struct model small_experts = {.kind = MODEL_DECODER,
                                           .name = "experts",
                                           .layers = 5,
                                           .width = 2048,
                                           .mlp_width = 8192,
                                           .matrices = 3,
                                           .heads = 16,
                                           .kv_heads = 8,
                                           .head_width = 128,
                                           .vocabulary = 32768,
                                           .experts = {64, 6, 1024, 0, 0, 0, 0, false, false}};

static const struct place {
    uint32_t nodes; /* Of 8 H100; 0: a 4x4 torus. */
    const char *parts[MESH_ROLE_COUNT];
} places[] = {
    {1, {[MESH_EP] = "gpu"}},
    {2, {[MESH_EP] = "node gpu"}},
    {1, {[MESH_TP] = "gpu"}},
    {4, {[MESH_DP] = "node", [MESH_EP] = "gpu"}},
    {4, {[MESH_FSDP] = "node", [MESH_EP] = "gpu"}},
    {4, {[MESH_EP] = "node", [MESH_TP] = "gpu"}},
    {4, {[MESH_FSDP] = "node", [MESH_TP] = "gpu"}},
    {4, {[MESH_DP] = "node:2", [MESH_EP] = "node:2", [MESH_TP] = "gpu"}},
    {0, {[MESH_EP] = "x y"}},
    {0, {[MESH_FSDP] = "x", [MESH_EP] = "y"}},
    {0, {[MESH_FSDP] = "x", [MESH_TP] = "y"}},
};

/* Where there are experts' ranks, every model has experts. */
static void mla_set(struct model *model, uint32_t variant, bool ranks)
{
    model->latent = (struct model_mla){768, 256, 128, 64};
    model->head_width = 192;
    model->value_width = 128;
    model->kv_heads = model->heads;
    if (variant % 4 == 0 && !ranks) model->experts = (struct model_experts){.count = 0};
}

/* Tokens are few where each of them is drawn. */
static void routing_set(struct workload_plan *plan, bool gpus, uint32_t variant)
{
    plan->capacity_ppm = variant % 7 == 0 ? 1100000 : variant % 11 == 0 ? 700000 : 0;
    if (variant % (gpus ? 15 : 40) >= 2) return;
    plan->batch_tokens = 1 << 15;
    plan->sequence_length = 512;
    plan->routing_skew_ppm = 400000;
    plan->seed = variant;
}

static void drawn_step(size_t p, uint32_t variant, bool latent)
{
    const struct place *place = &places[p];
    bool const gpus = place->nodes != 0;
    struct workload_case made;
    char name[96];
    struct machine_plan const machine = {.chip = gpus ? "h100-sxm" : "tpu-v5p",
                                         .nodes = place->nodes,
                                         .shape = gpus ? NULL : "4x4",
                                         .profile = "ideal",
                                         .unrealisable = !gpus,
                                         .wrap = {-1, -1, -1}};
    bool const replicated = place->parts[MESH_DP] != NULL || place->parts[MESH_EP] != NULL;
    (void)snprintf(name, sizeof name, "%s %zu, variant %u", latent ? "latent" : "experts", p,
                   variant);
    if (case_build_on(&made, &small_experts, &machine, place->parts) != STATUS_OK)
        fail_msg("%s: %s", name, made.error.message);
    made.plan.zero = replicated && place->parts[MESH_FSDP] == NULL ? variant % 3 : 0;
    vary(&made, variant / 2);
    made.plan.model.experts.shared = variant % 3;
    made.plan.model.experts.dense_layers = variant % 4;
    if (variant % 5 == 0)
        made.plan.model.experts.width = 1020; /* Of which tp has no equal parts. */
    if (latent)
        mla_set(&made.plan.model, variant, place->parts[MESH_EP] != NULL);
    else
        routing_set(&made.plan, gpus, variant);
    if (case_lower(&made) != STATUS_OK) fail_msg("%s: %s", name, made.error.message);
    graph_step_hold(name, &made);
    case_free(&made);
}

static void walk(bool latent)
{
    uint32_t walked = 0, taken = 0, before = graph_compared.steps;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            if (sampling_skips(&walked)) continue;
            drawn_step(p, variant, latent);
            taken++;
        }
    assert_int_equal(graph_compared.steps - before, taken);
}

static void layers_with_experts_are_derived(void **state)
{
    (void)state;
    walk(false);
}

static void layers_with_latent_attention_are_derived(void **state)
{
    (void)state;
    walk(true);
    print_message("%u steps, %u templates, %u ops and collectives\n", graph_compared.steps,
                  graph_compared.templates, graph_compared.ops);
}

/* Bytes of the sums of dW_router over tp, of all templates of layers. */
static uint64_t router_sum_bytes(enum workload_activations activations)
{
    static const struct machine_plan machine = {
        .chip = "h100-sxm", .nodes = 4, .profile = "ideal", .wrap = {-1, -1, -1}};
    struct workload_case made;
    uint64_t bytes = 0;
    if (case_build_on(&made, &small_experts, &machine, places[6].parts) != STATUS_OK)
        fail_msg("%s", made.error.message);
    made.plan.activations = activations;
    if (case_lower(&made) != STATUS_OK) fail_msg("%s", made.error.message);
    for (uint32_t t = 0; t < made.program.template_count; t++) {
        const struct program_template *template = &made.program.templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            if (strcmp(op->name, "AllReduce dW_router") != 0) continue;
            const struct plan *plan = &made.program.plans[op->index];
            assert_int_equal(group_rank_count(&plan->group), 8);
            bytes += plan->size_bytes;
        }
    }
    case_free(&made);
    return bytes;
}

/* Each rank of tp scores an eighth of the tokens, and so has an eighth of a sum of 2048 x 64 bf16.
 * Where tp splits D, it has rows of the matrix of its own. */
static void parts_of_a_router_gradient_are_summed_over_tp(void **state)
{
    (void)state;
    assert_int_equal(router_sum_bytes(WORKLOAD_ACTIVATIONS_TOKENS), 2 * 2048 * 64);
    assert_int_equal(router_sum_bytes(WORKLOAD_ACTIVATIONS_MODEL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_router_gradient_are_summed_over_tp),
        cmocka_unit_test(layers_with_experts_are_derived),
        cmocka_unit_test(layers_with_latent_attention_are_derived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
