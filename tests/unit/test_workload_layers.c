/* Remat of some layers: which layers a step recomputes on stages of pipelines, that each layer
 * counts as in a step of its own policy, and what is refused. */
#include <string.h>

#include "tests/support/case.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

enum { LAYERS = 5, REPEATED = 2, FIGURES = 8 };

/* Sums over a lowered step. */
static void figures_take(struct workload_case *made, double ret_figure[FIGURES])
{
    struct workload_counts counts;
    case_ok(workload_count(&made->plan, &made->machine, &made->mesh, &counts, &case_error));
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", made->error.where, made->error.message);
    struct case_sums const sums = case_sum(&made->program, "");
    double const figures[FIGURES] = {sums.matmul_flop,
                                     sums.useful_flop,
                                     sums.vector_flop,
                                     sums.hbm_bytes,
                                     sums.bytes[COLLECTIVE_ALL_GATHER],
                                     sums.bytes[COLLECTIVE_REDUCE_SCATTER],
                                     counts.memory.activation_bytes,
                                     saved_bytes(&made->program, GRAPH_REMAT_BLOCK)};
    memcpy(ret_figure, figures, sizeof figures);
    near("layers", "matmul FLOP", counts.matmul_flop, sums.matmul_flop);
    near("layers", "HBM bytes", counts.hbm_bytes, sums.hbm_bytes);
    traffics_near("layers", made, &counts);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) assert_int_equal(sums.effects[m], 0);
}

/* Two of five layers with a policy are two fifths of the way to a step with the policy. */
static void layers_add_up(struct workload_case *made, enum graph_remat policy)
{
    double kept[FIGURES], repeated[FIGURES], some[FIGURES];
    made->plan.model.layers = LAYERS;
    made->plan.remat = GRAPH_REMAT_NONE;
    figures_take(made, kept);
    made->plan.remat = policy;
    figures_take(made, repeated);
    made->plan.kept.repeated.every = REPEATED;
    figures_take(made, some);
    for (uint32_t i = 0; i < FIGURES; i++)
        near("figure", "some layers", kept[i] + (repeated[i] - kept[i]) * REPEATED / LAYERS,
             some[i]);
    graph_step_hold("some layers", made);
}

static void each_layer_counts_as_in_a_step_of_its_policy(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4 * (DRAWN_BLOCKS + DRAWN_EXPERTS); i++) {
        static struct workload_case made;
        uint32_t const place = i / 4;
        bool const dense = place < DRAWN_BLOCKS;
        if (dense)
            drawn_build(&made, &drawn_blocks[place]);
        else
            drawn_build_nodes(&made, &drawn_experts[place - DRAWN_BLOCKS]);
        layers_add_up(&made, (enum graph_remat)(GRAPH_REMAT_NORMS + i % 4));
        case_free(&made);
    }
}

/* Lists are of the layers that are recomputed alone, and what is offloaded is of these. */
static void lists_are_of_the_layers_that_are_recomputed(void **state)
{
    static const char *const names[] = {"A", "Gate"};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        static struct workload_case made;
        double figures[FIGURES];
        struct graph_names const list = {names, 2};
        drawn_build(&made, &drawn_blocks[1]);
        made.plan.model.layers = LAYERS;
        made.plan.remat = i == 1 ? GRAPH_REMAT_NONE : GRAPH_REMAT_BLOCK;
        made.plan.kept.repeated.first = REPEATED;
        if (i == 0) made.plan.kept.named.save = list;
        if (i == 1) made.plan.kept.named.repeat = list;
        if (i == 2) made.plan.kept.named.offload = list;
        figures_take(&made, figures);
        graph_step_hold("lists of some layers", &made);
        uint32_t stores = 0;
        for (uint32_t t = 0; t < made.program.template_count; t++)
            for (uint32_t op = 0; op < made.program.templates[t].op_count; op++)
                if (made.program.templates[t].op[op].kind == PROGRAM_OP_COPY)
                    stores += (uint32_t)case_repeats(&made.program, t);
        assert_int_equal(stores, i == 2 ? 2 * REPEATED : 0);
        case_free(&made);
    }
}

static bool has_template(const struct program *program, const char *name)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        if (strcmp(program->templates[t].name, name) == 0) return true;
    return false;
}

/* Listings call templates by their names. */
static void layers_that_differ_have_names_of_their_own(void **state)
{
    static struct workload_case made;
    (void)state;
    drawn_build(&made, &drawn_blocks[1]);
    made.plan.model.layers = LAYERS;
    made.plan.remat = GRAPH_REMAT_BLOCK;
    made.plan.kept.repeated.every = REPEATED;
    case_ok(case_lower(&made));
    assert_true(has_template(&made.program, "layer forward"));
    assert_true(has_template(&made.program, "layer backward"));
    assert_true(has_template(&made.program, "layer forward, not recomputed"));
    assert_true(has_template(&made.program, "layer backward, not recomputed"));
    case_free(&made);
}

/* Whether layers are recomputed ("r") or kept, by layer. */
static void layers_are_chosen(void **state)
{
    static const struct {
        const char *schedule, *layout;
        struct workload_repeated repeated;
        const char *layers;
    } rows[] = {
        {"1f1b", NULL, {.first = 1}, "r---r---"},
        {"1f1b", NULL, {.first = 3}, "rrr-rrr-"},
        {"1f1b", NULL, {.first = 4}, "rrrrrrrr"},
        {"interleaved:2", NULL, {.first = 1}, "r-r-r-r-"},
        {"1f1b", "t*3|t*5", {.first = 4}, "rrrrrrr-"},
        {"1f1b", NULL, {.every = 2}, "-r-r-r-r"},
        {"1f1b", NULL, {.every = 3}, "--r---r-"},
        {"1f1b", "t*3|t*5", {.every = 4}, "------r-"},
        {"interleaved:2", NULL, {.every = 3}, "----r-r-"},
        {"interleaved:2", NULL, {.every = 4}, "-----r-r"},
    };
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_DP] = "y"};
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct workload_case made;
        static struct ranks ranks;
        case_ok(case_build_roles(&made, &case_mlp, "2x4", parts));
        made.plan.accumulate = 4;
        made.plan.remat = GRAPH_REMAT_LAYER;
        made.plan.stages.schedule = rows[i].schedule;
        made.plan.stages.layout = rows[i].layout;
        made.plan.kept.repeated = rows[i].repeated;
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        for (uint64_t layer = 0; layer < 8; layer++)
            if (layer_set_has(&ranks.kinds.kept, layer) != (rows[i].layers[layer] == '-'))
                fail_msg("row %u, layer %u", i, (unsigned)layer);
        assert_int_equal(ranks.kinds.count, strchr(rows[i].layers, '-') == NULL ? 1 : 2);
        case_free(&made);
    }
}

static void layers_that_cannot_be_told_are_refused(void **state)
{
    static const struct {
        struct workload_repeated repeated;
        enum graph_remat remat;
        const char *schedule;
        uint32_t modules;
        enum status wanted;
        const char *where, *words;
    } rows[] = {
        {{.every = 2},
         GRAPH_REMAT_NONE,
         NULL,
         0,
         STATUS_INVALID,
         "/workload/remat/layers",
         "recomputes nothing"},
        {{.every = 5},
         GRAPH_REMAT_LAYER,
         NULL,
         0,
         STATUS_INVALID,
         "/workload/remat/layers/every",
         "no rank has 5 layers; the most is 4"},
        {{.first = 5},
         GRAPH_REMAT_LAYER,
         NULL,
         0,
         STATUS_INVALID,
         "/workload/remat/layers/first",
         "no stage has 5 layers; the most is 4"},
        {{.groups_of = 5},
         GRAPH_REMAT_LAYER,
         NULL,
         0,
         STATUS_INVALID,
         "/workload/remat/layers/groups_of",
         "no stage has 5 layers; the most is 4"},
        {{.every = 2},
         GRAPH_REMAT_LAYER,
         "dualpipe",
         0,
         STATUS_UNSUPPORTED,
         "/workload/remat/layers/every",
         "two ranks"},
        {{.every = 4},
         GRAPH_REMAT_LAYER,
         NULL,
         1,
         STATUS_UNSUPPORTED,
         "/workload/remat/layers",
         "modules of MTP"},
    };
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_DP] = "y"};
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct workload_case made;
        struct model model = drawn_small_experts;
        model.layers = 8;
        model.mtp_modules = rows[i].modules;
        case_ok(case_build_roles(&made, &model, "2x4", parts));
        made.plan.accumulate = 4;
        made.plan.remat = rows[i].remat;
        made.plan.stages.schedule = rows[i].schedule;
        made.plan.kept.repeated = rows[i].repeated;
        case_error = (struct error){0};
        case_refused(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh,
                                    &made.program, &case_error),
                     rows[i].wanted, rows[i].where, rows[i].words);
        case_free(&made);
    }
}

/* Layers of modules for multi-token prediction are recomputed with all others. */
static void all_layers_are_recomputed_with_modules(void **state)
{
    double bytes[2];
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        static struct workload_case made;
        drawn_build(&made, &drawn_blocks[1]);
        made.plan.model.mtp_modules = 1;
        made.plan.remat = GRAPH_REMAT_BLOCK;
        made.plan.kept.repeated.every = i;
        if (case_lower(&made) != STATUS_OK)
            fail_msg("%s: %s", made.error.where, made.error.message);
        bytes[i] = saved_bytes(&made.program, GRAPH_REMAT_BLOCK);
        case_free(&made);
    }
    near("modules", "saved bytes", bytes[0], bytes[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layer_counts_as_in_a_step_of_its_policy),
        cmocka_unit_test(lists_are_of_the_layers_that_are_recomputed),
        cmocka_unit_test(layers_that_differ_have_names_of_their_own),
        cmocka_unit_test(layers_are_chosen),
        cmocka_unit_test(layers_that_cannot_be_told_are_refused),
        cmocka_unit_test(all_layers_are_recomputed_with_modules),
    };
    return cmocka_run_group_tests_name("remat of some layers", tests, NULL, NULL);
}
