/* Steps that cast and copy sharded weights: one for each gather, and one for each reduction. */
#include <string.h>

#include "sim/kernels/kernels.h"
#include "sim/step/lower.h"
#include "tests/support/case.h"
#include "tests/unit/graph_case.h"

enum { MICROBATCHES = 8 };

struct sharded {
    struct workload_case made;
    struct kernel_stack stack;
};

/* LLaMA-3-70B, whose layers are repeated. */
static void sharded_on(const char *const parts[MESH_ROLE_COUNT], const char *fusion,
                       const char *shape, struct sharded *of)
{
    uint32_t i = 0;
    *of = (struct sharded){.stack = {.name = "case", .title = "A case"}};
    while (strcmp(fusion_at(i)->name, fusion) != 0) i++;
    of->stack.between.fusion = fusion_at(i);
    assert_int_equal(case_build_roles(&of->made, &case_llama_70b, shape, parts), STATUS_OK);
    of->made.machine.chip.kernels.stack = &of->stack;
    of->made.plan.software.clips = 0;
    of->made.plan.remat = GRAPH_REMAT_LAYER;
}

/* Four ranks of fsdp share weights. */
static void sharded_make(const char *fusion, bool staged, struct sharded *of)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_FSDP] = "x", [MESH_PP] = staged ? "y" : NULL};
    sharded_on(parts, fusion, staged ? "4x4x1" : "4x1x1", of);
}

static uint32_t steps_of(const struct graph_case *made, struct graph_request request,
                         enum op_pass pass)
{
    static struct graph_steps steps;
    uint32_t count = 0;
    graph_steps(&made->sharded, &made->backward, &made->kept, request, &steps);
    for (uint32_t i = 0; i < steps.count; i++) count += steps.step[i].pass == pass;
    return count;
}

/* A layer has four ops with weights: QKV, O, gate and up, Out. One gather serves a repetition and
 * the gradients behind it. An end gathers for its forward pass alone. */
static void gathers_and_reductions_have_a_step_for_each_op(void **state)
{
    static const struct {
        enum block_part part;
        struct graph_request request;
        uint32_t shards, copies;
    } rows[] = {
        {BLOCK_LAYER, {.backward = false}, 4, 0},
        {BLOCK_LAYER, {.backward = false, .weights_held = true}, 0, 0},
        {BLOCK_LAYER, {.backward = true}, 4, 4},
        {BLOCK_LAYER, {.backward = true, .weights_held = true}, 0, 4},
        {BLOCK_LAYER, {.backward = true, .gradients_stay = true}, 4, 0},
        {BLOCK_LAYER, {.backward = true, .half = GRAPH_INPUT_HALF}, 4, 0},
        {BLOCK_LAYER, {.backward = true, .half = GRAPH_WEIGHT_HALF}, 0, 4},
        {BLOCK_EMBEDDING, {.backward = false}, 1, 0},
        {BLOCK_EMBEDDING, {.backward = true}, 0, 1},
        {BLOCK_HEAD, {.backward = false}, 1, 0},
        {BLOCK_HEAD, {.backward = true}, 0, 1},
    };
    static struct sharded of;
    static struct graph_cases cases;
    static struct ranks ranks;
    (void)state;
    sharded_make("compiled", /* staged= */ false, &of);
    graph_ranks(&of.made.plan, &of.made.machine, &of.made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t p = 0; p < cases.count; p++) {
            if (cases.part[p].which.part != rows[i].part) continue;
            assert_int_equal(steps_of(&cases.part[p], rows[i].request, OP_SHARDS), rows[i].shards);
            assert_int_equal(steps_of(&cases.part[p], rows[i].request, OP_COPIES), rows[i].copies);
        }
    case_free(&of.made);
}

struct steps_row {
    struct graph_request request;
    enum op_pass pass;
    uint32_t steps;
};

/* Steps of the first layer. */
static void layer_holds(const struct sharded *of, const struct steps_row *rows, size_t count)
{
    static struct graph_cases cases;
    static struct ranks ranks;
    graph_ranks(&of->made.plan, &of->made.machine, &of->made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(steps_of(&cases.part[0], rows[i].request, rows[i].pass), rows[i].steps);
}

/* QKV, and gate and up, read norms in fp32. No product adds gradients that are cast. */
static void autocast_has_steps_for_inputs_weights_and_gradients(void **state)
{
    static const struct steps_row rows[] = {
        {{.backward = false}, OP_INPUT_CASTS, 2},      {{.backward = true}, OP_INPUT_CASTS, 4},
        {{.backward = false}, OP_AUTOCAST_WEIGHTS, 4}, {{.backward = true}, OP_AUTOCAST_WEIGHTS, 4},
        {{.backward = true}, OP_GRADIENT_CASTS, 4},    {{.backward = true}, OP_SUMS, 4},
    };
    static struct sharded of;
    (void)state;
    sharded_make("eager", /* staged= */ false, &of);
    of.made.plan.software.autocast = true;
    of.made.plan.formats.weights = FORMAT_FP32;
    of.made.plan.accumulate = 2;
    layer_holds(&of, rows, sizeof rows / sizeof *rows);
    case_free(&of.made);
}

/* Weights are gathered once a step, and gradients reduced in every microbatch. */
static void zero_2_copies_gradients_alone(void **state)
{
    static const struct steps_row rows[] = {
        {{.backward = false}, OP_SHARDS, 0},
        {{.backward = true}, OP_SHARDS, 0},
        {{.backward = true}, OP_COPIES, 4},
    };
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    static struct sharded of;
    (void)state;
    for (uint32_t zero = 1; zero <= 2; zero++) {
        sharded_on(parts, "compiled", "4x1x1", &of);
        of.made.plan.zero = zero;
        layer_holds(&of, rows, zero == 2 ? 3 : 2);
        case_free(&of.made);
    }
}

/* Whether a template of a layer or an end moves weights or gradients of the urgency. */
static bool moves(const struct program *program, const struct program_template *template,
                  enum lower_urgency urgency)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_COLLECTIVE &&
            program->stream[template->op[i].stream].urgency == urgency)
            return true;
    return false;
}

static bool computes(const struct program_template *template, const char *words)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_COMPUTE &&
            strstr(template->op[i].name, words) != NULL)
            return true;
    return false;
}

/* However long ranks of pp keep weights, and whichever pass reduces gradients. */
static void templates_copy_what_they_gather_and_reduce(void **state)
{
    static const enum workload_regather ways[] = {WORKLOAD_REGATHER_MICROBATCH,
                                                  WORKLOAD_REGATHER_STEP, WORKLOAD_REGATHER_STAGE};
    static struct sharded of;
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        uint32_t gathers = 0, reduces = 0;
        sharded_make("compiled", /* staged= */ true, &of);
        of.made.plan.accumulate = MICROBATCHES;
        of.made.plan.stages.regather = ways[way];
        case_ok(workload_lower(of.made.arena, &of.made.plan, &of.made.machine, &of.made.mesh,
                               &of.made.program, &case_error));
        for (uint32_t t = 0; t < of.made.program.template_count; t++) {
            const struct program_template *template = &of.made.program.templates[t];
            bool const shards = computes(template, "shard copies");
            bool const copies = computes(template, "gradient copies");
            if (shards != moves(&of.made.program, template, LOWER_URGENCY_WEIGHTS) ||
                copies != moves(&of.made.program, template, LOWER_URGENCY_GRADIENTS))
                fail_msg("way %zu: %s has copies %d, %d", way, template->name, shards, copies);
            gathers += shards;
            reduces += copies;
        }
        assert_true(gathers > 0 && reduces > 0);
        case_free(&of.made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_and_reductions_have_a_step_for_each_op),
        cmocka_unit_test(autocast_has_steps_for_inputs_weights_and_gradients),
        cmocka_unit_test(zero_2_copies_gradients_alone),
        cmocka_unit_test(templates_copy_what_they_gather_and_reduce),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
