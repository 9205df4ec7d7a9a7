/* Graphs of layers with experts, and with latent attention, over drawn steps (graph_case.h). */
#include "sim/base/strbuf.h"
#include "sim/graph/print.h"
#include "tests/support/sampling.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

/* Where there are experts' ranks, every model has experts. */
static void mla_set(struct model *model, uint32_t variant, bool ranks)
{
    drawn_set_mla(model);
    if (variant % 4 == 0 && !ranks) model->experts = (struct model_experts){.count = 0};
}

/* Tokens are few where each of them is drawn. */
static void routing_set(struct workload_plan *plan, bool gpus, uint32_t variant)
{
    plan->routing.capacity_ppm = variant % 7 == 0 ? 1100000 : variant % 11 == 0 ? 700000 : 0;
    if (variant % (gpus ? 15 : 40) >= 2) return;
    plan->batch_tokens = 1 << 15;
    plan->sequence_length = 512;
    plan->routing.skew_ppm = 400000;
    plan->routing.seed = variant;
}

static void drawn_step(size_t p, uint32_t variant, bool latent)
{
    const struct drawn_nodes *place = &drawn_experts[p];
    struct workload_case made;
    char name[96];
    (void)snprintf(name, sizeof name, "%s %zu, variant %u", latent ? "latent" : "experts", p,
                   variant);
    drawn_build_nodes(&made, place);
    drawn_vary_experts(&made, place, variant);
    made.plan.model.experts.shared = variant % 3;
    if (variant % 5 == 0)
        made.plan.model.experts.width = 1020; /* Of which tp has no equal parts. */
    if (latent)
        mla_set(&made.plan.model, variant, place->parts[MESH_EP] != NULL);
    else
        routing_set(&made.plan, place->nodes != 0, variant);
    graph_step_lower(name, &made);
}

static void walk(bool latent)
{
    uint32_t walked = 0, taken = 0, before = graph_steps_held;
    for (size_t p = 0; p < DRAWN_EXPERTS; p++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            if (sampling_skips(&walked)) continue;
            drawn_step(p, variant, latent);
            taken++;
        }
    assert_int_equal(graph_steps_held - before, taken);
}

static void layers_with_experts_hold(void **state)
{
    (void)state;
    walk(false);
}

static void layers_with_latent_attention_hold(void **state)
{
    (void)state;
    walk(true);
}

/* Bytes of the sums of dW_router over tp, of all templates of layers. */
static uint64_t router_sum_bytes(enum workload_activations activations)
{
    struct workload_case made;
    uint64_t bytes = 0;
    drawn_build_nodes(&made, &drawn_experts[6]);
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

/* Steps of layers with experts, forward, in print; the caller frees the text. */
static void forward_print(const struct graph_cases *cases, struct strbuf *text)
{
    static struct graph_steps steps;
    for (uint32_t i = 0; i < cases->count; i++) {
        const struct graph_case *made = &cases->part[i];
        if (made->which.part != BLOCK_LAYER || !made->terms.layer.experts) continue;
        graph_steps(&made->sharded, &made->backward, &made->kept,
                    (struct graph_request){.backward = false}, &steps);
        graph_print_steps(&made->sharded, &steps, text);
    }
}

/* An expert's "experts.Out" is no "moe.experts.Out" in either. */
static void a_graph_in_print_has_the_names_of_the_program(void **state)
{
    static struct graph_cases cases;
    struct workload_case made;
    struct ranks ranks;
    struct strbuf text = {0};
    uint32_t held = 0;
    (void)state;
    drawn_build_nodes(&made, &drawn_experts[6]);
    made.plan.model.experts.shared = 1;
    if (case_lower(&made) != STATUS_OK) fail_msg("%s", made.error.message);
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    forward_print(&cases, &text);
    for (uint32_t t = 0; t < made.program.template_count; t++) {
        const struct program_template *template = &made.program.templates[t];
        if (strcmp(template->name, "layer forward") != 0 || !graph_template_has_experts(template))
            continue;
        for (uint32_t i = 0; i < template->op_count; i++) {
            char line[96];
            if (template->op[i].kind != PROGRAM_OP_COMPUTE) continue;
            (void)snprintf(line, sizeof line, "  %s ", template->op[i].name);
            if (strstr(text.bytes, line) == NULL) fail_msg("not in print:%s", line);
            held += strncmp(template->op[i].name, "shared.", 7) == 0;
        }
    }
    assert_true(held > 0);
    strbuf_free(&text);
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_router_gradient_are_summed_over_tp),
        cmocka_unit_test(a_graph_in_print_has_the_names_of_the_program),
        cmocka_unit_test(layers_with_experts_hold),
        cmocka_unit_test(layers_with_latent_attention_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
