/* Remat of groups of layers: the order of a backward pass, what each pass takes and gives back,
 * that FLOP, traffic and memory are those of the program, and what is refused. */
#include <math.h>
#include <string.h>

#include "sim/step/pass_times.h"
#include "tests/support/case.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

enum { LAYERS = 5, STAGED_LAYERS = 16, TEXT_BYTES = 4000 };

struct figures {
    struct workload_counts counts;
    struct case_sums sums;
};

static struct figures figures_take(struct workload_case *made)
{
    struct figures figures;
    case_ok(workload_count(&made->plan, &made->machine, &made->mesh, &figures.counts, &case_error));
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", made->error.where, made->error.message);
    figures.sums = case_sum(&made->program, "");
    near("groups", "matmul FLOP", figures.counts.matmul_flop, figures.sums.matmul_flop);
    near("groups", "useful FLOP", figures.counts.matmul_useful, figures.sums.useful_flop);
    near("groups", "vector FLOP", figures.counts.vector_flop, figures.sums.vector_flop);
    near("groups", "HBM bytes", figures.counts.hbm_bytes, figures.sums.hbm_bytes);
    near("groups", "compute ops", figures.counts.ops.count, compute_ops(made));
    traffics_near("groups", made, &figures.counts);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
        assert_int_equal(figures.sums.effects[m], 0);
    return figures;
}

/* What ops of a template have taken of what is saved, less what they have given back; `*most`: the
 * most of that, on top of what was there. */
static int64_t template_change(const struct program_template *template, int64_t *most)
{
    int64_t change = 0;
    *most = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t end = 0; end < 2; end++)
            for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
                const struct program_effect *effect = &template->op[i].effect[e];
                bool const saved = effect->memory == PROGRAM_MEMORY_ACTIVATIONS ||
                                   effect->memory == PROGRAM_MEMORY_ACTIVATED ||
                                   effect->memory == PROGRAM_MEMORY_MASKS;
                if (!saved || effect->at_end != (end == 1)) continue;
                change += effect->bytes;
                *most = change > *most ? change : *most;
            }
    return change;
}

/* The most that a rank has saved, in the order of its slots. */
static double most_saved(const struct program *program, uint32_t rank)
{
    const struct program_role *role = &program->roles[rank];
    int64_t held = 0, most = 0;
    for (uint32_t b = 0; b < role->block_count; b++)
        for (uint32_t i = 0; i < role->block[b].repeat; i++) {
            int64_t peak = 0;
            int64_t const change =
                template_change(&program->templates[role->block[b].template_index], &peak);
            most = held + peak > most ? held + peak : most;
            held += change;
            if (held < 0) fail_msg("slot %u gives back what was not saved", b);
        }
    assert_int_equal(held, 0);
    return (double)most;
}

/* Repeated FLOP are those of the policy "layer", and of each group one input is kept. */
static void groups_hold(struct workload_case *made, uint32_t groups_of)
{
    double const groups = (double)units_ceil_divide(LAYERS, groups_of);
    made->plan.model.layers = LAYERS;
    made->plan.remat = GRAPH_REMAT_LAYER;
    made->plan.kept.repeated.groups_of = 0;
    struct figures const alone = figures_take(made);
    made->plan.kept.repeated.groups_of = groups_of;
    struct figures const grouped = figures_take(made);
    near("FLOP", "groups", alone.sums.matmul_flop, grouped.sums.matmul_flop);
    near("useful FLOP", "groups", alone.sums.useful_flop, grouped.sums.useful_flop);
    near("kept", "groups", alone.counts.memory.activation_bytes * groups / LAYERS,
         grouped.counts.memory.activation_bytes);
    double const most =
        grouped.counts.memory.activation_bytes + grouped.counts.held_anyway.group_bytes;
    double const found = most_saved(&made->program, 0);
    if (found > most * (1 + 1e-9) || found < most / 2)
        fail_msg("groups of %u: %.9g are saved at most, and %.9g by formula", groups_of, found,
                 most);
    graph_step_hold("groups of layers", made);
}

static void groups_count_as_the_program_does(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * (DRAWN_BLOCKS + DRAWN_EXPERTS); i++) {
        static struct workload_case made;
        uint32_t const place = i / 3;
        if (place < DRAWN_BLOCKS)
            drawn_build(&made, &drawn_blocks[place]);
        else
            drawn_build_nodes(&made, &drawn_experts[place - DRAWN_BLOCKS]);
        made.plan.model.mtp_modules = 0;
        groups_hold(&made, 2 + i % 3);
        case_free(&made);
    }
}

/* "layer forward 0 1; head forward; ..." of a role's slots. */
static void slots_write(const struct program *program, uint32_t rank, char text[TEXT_BYTES])
{
    const struct program_role *role = &program->roles[rank];
    const char *before = "";
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        const char *name = program->templates[block->template_index].name;
        for (uint32_t i = 0; i < block->repeat; i++) {
            int32_t const layer = block->layer_first + block->layer_step * (int32_t)i;
            if (strcmp(name, before) != 0)
                used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%s",
                                         used == 0 ? "" : "; ", name);
            before = name;
            if (block->layer_first >= 0)
                used += (size_t)snprintf(text + used, TEXT_BYTES - used, " %d", (int)layer);
        }
    }
}

static void a_group_is_repeated_before_its_backward_passes(void **state)
{
    static struct workload_case made;
    char text[TEXT_BYTES];
    (void)state;
    drawn_build(&made, &drawn_blocks[1]);
    made.plan.model.layers = LAYERS;
    made.plan.remat = GRAPH_REMAT_LAYER;
    made.plan.kept.repeated.groups_of = 3;
    case_ok(case_lower(&made));
    slots_write(&made.program, 0, text);
    assert_string_equal(text,
                        "embedding forward; layer forward, first of its group 0; "
                        "layer forward, within its group 1; layer forward, last of its group 2; "
                        "layer forward, first of its group 3; layer forward, last of its group 4; "
                        "head forward; head backward; "
                        "layer forward again, first of its group 3; "
                        "layer backward, last of its group 4; "
                        "layer backward, first of its group 3; "
                        "layer forward again, first of its group 0; "
                        "layer forward again, within its group 1; "
                        "layer backward, last of its group 2; "
                        "layer backward, within its group 1; "
                        "layer backward, first of its group 0; embedding backward; "
                        "update head; update layer 4 3 2 1 0; update embedding");
    case_free(&made);
}

/* A group of one layer is a layer by itself. */
static void a_group_of_one_is_the_policy_layer(void **state)
{
    static struct workload_case made;
    char text[2][TEXT_BYTES];
    double hbm_bytes[2];
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        drawn_build(&made, &drawn_blocks[1]);
        made.plan.model.layers = LAYERS;
        made.plan.remat = GRAPH_REMAT_LAYER;
        made.plan.kept.repeated.groups_of = i;
        hbm_bytes[i] = figures_take(&made).sums.hbm_bytes;
        slots_write(&made.program, 0, text[i]);
        case_free(&made);
    }
    assert_string_equal(text[0], text[1]);
    near("groups of one", "HBM bytes", hbm_bytes[0], hbm_bytes[1]);
}

/* Schedules of all kinds, among them those that halve backward passes, mix two passes op by op, and
 * go by what passes keep. */
static void stages_have_groups_of_their_own(void **state)
{
    static const char *const schedules[] = {"1f1b",  "interleaved:2", "gpipe",    "zb-h1",
                                            "zb-v",  "auto",          "dualpipe", "dualpipev",
                                            "v-min", "looped-bfs"};
    static const char *const parts[MESH_ROLE_COUNT] = {
        [MESH_PP] = "x", [MESH_FSDP] = "y", [MESH_TP] = "z"};
    (void)state;
    for (uint32_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        static struct workload_case made;
        struct model model = case_llama_70b;
        model.layers = STAGED_LAYERS;
        case_ok(case_build_roles(&made, &model, "2x2x2", parts));
        made.plan.accumulate = 4;
        made.plan.batch_tokens = 1 << 18;
        made.plan.remat = GRAPH_REMAT_LAYER;
        made.plan.stages.schedule = schedules[i];
        made.plan.kept.repeated.groups_of = 3;
        case_error = (struct error){0};
        if (case_lower(&made) != STATUS_OK)
            fail_msg("%s: %s: %s", schedules[i], made.error.where, made.error.message);
        for (uint32_t rank = 0; rank < made.program.role_count; rank++)
            assert_true(most_saved(&made.program, rank) > 0);
        case_free(&made);
    }
}

/* A schedule of one microbatch: forward, input gradient and weight gradient. */
static void schedules_are_told_the_peak_of_a_group(void **state)
{
    enum { STAGES = 2 };
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "node", [MESH_TP] = "gpu"};
    static const struct machine_plan machine = {
        .chip = "h100-sxm", .nodes = STAGES, .profile = "ideal", .wrap = {-1, -1, -1}};
    (void)state;
    for (uint32_t groups_of = 0; groups_of < 5; groups_of++) {
        static struct workload_case made;
        struct model model = case_llama_70b;
        struct schedule_kept kept[STAGES];
        uint32_t mean_ppm = 0;
        model.layers = STAGED_LAYERS;
        case_ok(case_build_on(&made, &model, &machine, parts));
        made.plan.remat = GRAPH_REMAT_LAYER;
        made.plan.stages.schedule = "zb-h1";
        made.plan.software.memory = WORKLOAD_MEMORY_FRAMEWORK;
        made.plan.kept.repeated.groups_of = groups_of;
        case_ok(pass_memory_estimate(&made.plan, &made.machine, &made.mesh, STAGES, kept, &mean_ppm,
                                     &case_error));
        case_ok(case_lower(&made));
        double const groups = ceil(STAGED_LAYERS / STAGES / (groups_of > 1 ? groups_of : 1.0));
        double const saved = groups * (1 << 20) * 8192 * 2 / 8; /* Inputs, over the ranks of tp. */
        for (uint32_t s = 0; s < STAGES; s++)
            case_near(most_saved(&made.program, s), saved * (1 + kept[s].rise_ppm / 1e6), 1e-6);
        case_free(&made);
    }
}

static void what_is_no_group_is_refused(void **state)
{
    static const char *const names[] = {"A"};
    static const struct {
        enum graph_remat remat;
        struct graph_names save;
        enum workload_offload offload;
        uint32_t modules;
        const char *words;
    } rows[] = {
        {GRAPH_REMAT_BLOCK, {NULL, 0}, WORKLOAD_OFFLOAD_NONE, 0, "repeated whole"},
        {GRAPH_REMAT_NORMS, {NULL, 0}, WORKLOAD_OFFLOAD_NONE, 0, "repeated whole"},
        {GRAPH_REMAT_LAYER, {names, 1}, WORKLOAD_OFFLOAD_NONE, 0, "without lists"},
        {GRAPH_REMAT_LAYER, {NULL, 0}, WORKLOAD_OFFLOAD_ACTIVATIONS, 0, "offload"},
        {GRAPH_REMAT_LAYER, {NULL, 0}, WORKLOAD_OFFLOAD_NONE, 1, "modules of MTP"},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct workload_case made;
        drawn_build(&made, &drawn_blocks[1]);
        made.plan.model.mtp_modules = rows[i].modules;
        made.plan.remat = rows[i].remat;
        made.plan.kept.named.save = rows[i].save;
        made.plan.kept.offload = rows[i].offload;
        made.plan.kept.repeated.groups_of = 2;
        case_error = (struct error){0};
        case_refused(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh,
                                    &made.program, &case_error),
                     STATUS_UNSUPPORTED, "/workload/remat/layers/groups_of", rows[i].words);
        case_free(&made);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_count_as_the_program_does),
        cmocka_unit_test(a_group_is_repeated_before_its_backward_passes),
        cmocka_unit_test(a_group_of_one_is_the_policy_layer),
        cmocka_unit_test(stages_have_groups_of_their_own),
        cmocka_unit_test(schedules_are_told_the_peak_of_a_group),
        cmocka_unit_test(what_is_no_group_is_refused),
    };
    return cmocka_run_group_tests_name("remat of groups of layers", tests, NULL, NULL);
}
