/* Lists of arrays for remat: what they keep and repeat, that steps find what they read, and that
 * policies are lists. */
#include <math.h>
#include <string.h>

#include "sim/graph/named.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

enum { DRAWN = 480, NAMES_MAX = 12 };

struct lists {
    struct graph_label label[3 * NAMES_MAX];
    const char *name[3][NAMES_MAX];
    uint32_t count[3];
};

/* Up to twelve arrays of a kind of layer that a list may have, an array in one list alone. */
static void lists_draw(uint64_t *state, const struct graph *graph, struct lists *lists)
{
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        uint32_t const list = case_draw(state, 6);
        if (list > 2 || !graph_is_listed(graph, t) || lists->count[list] == NAMES_MAX) continue;
        struct graph_label *label = &lists->label[list * NAMES_MAX + lists->count[list]];
        *label = graph_listed_name(graph, t);
        if (graph_named_fit(graph, label->text, list == 1) != GRAPH_NAMED_FITS) continue;
        lists->name[list][lists->count[list]++] = label->text;
    }
}

static struct graph_named named_of(const struct lists *lists)
{
    return (struct graph_named){.save = {lists->name[0], lists->count[0]},
                                .repeat = {lists->name[1], lists->count[1]},
                                .offload = {lists->name[2], lists->count[2]}};
}

/* What is kept and not repeated is there, and nothing is kept that no list and no policy keeps. */
static void kept_hold(const struct graph_case *part)
{
    uint64_t const offloaded = graph_offloaded_bytes(&part->sharded, &part->kept);
    assert_true(offloaded <= graph_kept_bytes(&part->sharded, &part->kept));
    for (uint8_t t = 0; t < part->graph.tensor_count; t++) {
        const struct graph_tensor *at = &part->graph.tensor[t];
        assert_false(at->repeated && at->saved);
        assert_false(at->offloaded && !at->saved);
        if (at->repeated && !part->graph.op[at->made_by].fused)
            assert_true(part->kept.again[at->made_by]);
    }
}

/* What the forward pass leaves is what is kept, and what the backward pass finds. */
static void left_hold(const struct graph_case *part)
{
    static struct graph_steps steps;
    static struct graph_live live;
    for (uint32_t backward = 0; backward < 2; backward++) {
        uint64_t bytes = 0;
        graph_steps(&part->sharded, &part->backward, &part->kept,
                    (struct graph_request){.backward = backward == 1}, &steps);
        graph_live(&part->sharded, &part->kept, &steps, NULL, &live);
        for (uint32_t i = 0; i < live.count; i++)
            if (backward == 1 ? live.life[i].before : live.life[i].after)
                bytes += live.life[i].bytes;
        assert_int_equal(bytes, graph_kept_bytes(&part->sharded, &part->kept));
    }
}

static void drawn_hold(struct workload_case *made, uint64_t *state)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    graph_ranks(&made->plan, &made->machine, &made->mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    struct lists lists = {.count = {0}};
    for (uint32_t i = 0; i < cases.count; i++)
        if (cases.part[i].which.part == BLOCK_LAYER && case_draw(state, 2) == 0)
            lists_draw(state, &cases.part[i].graph, &lists);
    made->plan.kept.named = named_of(&lists);
    if (made->plan.remat == GRAPH_REMAT_LAYER) made->plan.remat = GRAPH_REMAT_BLOCK;
    graph_cases_build(&ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) {
        graph_values_hold("drawn lists", &cases.part[i]);
        graph_lives_hold("drawn lists", &cases.part[i]);
        graph_steps_are_read("drawn lists", &cases.part[i]);
        kept_hold(&cases.part[i]);
        if (cases.part[i].which.part == BLOCK_LAYER) left_hold(&cases.part[i]);
    }
}

/* Dense layers, experts, latents, norms of all kinds, over tp, cp and ep. */
static void steps_find_what_drawn_lists_keep(void **state)
{
    uint64_t drawn = 15;
    (void)state;
    for (uint32_t i = 0; i < DRAWN; i++) {
        static struct workload_case made;
        if (i % 3 == 0)
            drawn_build(&made, &drawn_dense[i / 3 % DRAWN_DENSE]);
        else if (i % 3 == 1)
            drawn_build(&made, &drawn_blocks[i / 3 % DRAWN_BLOCKS]);
        else
            drawn_build_nodes(&made, &drawn_experts[i / 3 % DRAWN_EXPERTS]);
        drawn_vary(&made, i / 3);
        bool const decoder = made.plan.model.kind == MODEL_DECODER;
        if (i % 3 == 1) {
            made.plan.model.norms.behind = i / 3 % 4 == 1;
            made.plan.model.norms.none_before = i / 3 % 4 == 2;
            if (i / 3 % 4 == 2) made.plan.model.norms.behind = true;
        }
        if (i % 3 == 2 && i / 3 % 2 == 0 && decoder) drawn_set_mla(&made.plan.model);
        drawn_hold(&made, &drawn);
        case_free(&made);
    }
}

/* One collective gathers keys, which have norms of their own, and values. */
static void whole_sequences_are_kept_together(void **state)
{
    uint64_t drawn = 7;
    (void)state;
    for (uint32_t i = 0; i < DRAWN; i++) {
        static struct workload_case made;
        drawn_build(&made, &drawn_blocks[4 + i % 2]);
        drawn_vary(&made, i / 6);
        if (made.mesh.axis[MESH_CP].size > 1)
            made.plan.attention.context = (enum workload_context)(i / 2 % 3);
        made.plan.sequence_length = 8192;
        made.plan.model.norms.qk = MODEL_QK_NORMS_SHARED;
        drawn_hold(&made, &drawn);
        case_free(&made);
    }
}

/* A policy as the list of the arrays that it keeps has the steps of the policy: by `none` without
 * the arrays that the policy does not keep, and by `block` with the arrays that it keeps. */
static uint64_t listed_bytes(struct workload_case *made, enum graph_remat policy,
                             enum graph_remat base, uint64_t *ret_kept)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    static struct graph_steps steps;
    struct lists lists = {.count = {0}};
    uint64_t bytes = 0;
    made->plan.remat = base;
    graph_ranks(&made->plan, &made->machine, &made->mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    const struct graph_case *layer = &cases.part[0];
    for (uint8_t t = 0; policy != base && t < layer->graph.tensor_count; t++) {
        bool const kept = layer->graph.tensor[t].kept >= policy;
        uint32_t const list = base == GRAPH_REMAT_NONE;
        if (!graph_is_listed(&layer->graph, t) || kept == (list == 1)) continue;
        if (layer->kept.read[t] == GRAPH_NOTHING && list == 1) continue;
        lists.label[lists.count[0] + lists.count[1]] = graph_listed_name(&layer->graph, t);
        lists.name[list][lists.count[list]] = lists.label[lists.count[0] + lists.count[1]].text;
        lists.count[list]++;
    }
    made->plan.kept.named = named_of(&lists);
    graph_cases_build(&ranks, &cases);
    made->plan.kept.named = (struct graph_named){.save.count = 0};
    graph_steps(&layer->sharded, &layer->backward, &layer->kept,
                (struct graph_request){.backward = true}, &steps);
    *ret_kept = graph_kept_bytes(&layer->sharded, &layer->kept);
    for (uint32_t i = 0; i < steps.count; i++) bytes += work_matmul_flop(&steps.step[i].work);
    return bytes;
}

static void policies_are_lists(void **state)
{
    static const enum graph_remat policies[] = {GRAPH_REMAT_NORMS, GRAPH_REMAT_BIG_MATMULS};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        static struct workload_case made;
        uint64_t kept, listed;
        enum graph_remat const policy = policies[i / 2];
        drawn_build(&made, &drawn_blocks[1]);
        uint64_t const flop = listed_bytes(&made, policy, policy, &kept);
        enum graph_remat const base = i % 2 == 0 ? GRAPH_REMAT_NONE : GRAPH_REMAT_BLOCK;
        assert_int_equal(listed_bytes(&made, policy, base, &listed), flop);
        assert_int_equal(listed, kept);
        case_free(&made);
    }
}

/* --- Steps with lists --- */

/* FLOP and bytes of a lowered step, as the counts that rooflines are computed from have them. */
static void step_holds(struct workload_case *made, const struct lists *lists)
{
    struct workload_counts counts;
    made->plan.kept.named = named_of(lists);
    case_ok(workload_count(&made->plan, &made->machine, &made->mesh, &counts, &case_error));
    case_ok(case_lower(made));
    struct case_sums const sums = case_sum(&made->program, "");
    assert_true(fabs(sums.matmul_flop - counts.matmul_flop) <= 1e-9 * counts.matmul_flop);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) assert_int_equal(sums.effects[m], 0);
    graph_step_hold("lists of a step", made);
}

/* Each op of a layer waits for what it reads, in a program whose memory ends as it began. */
static void lowered_steps_wait_for_what_lists_repeat(void **state)
{
    static const struct {
        enum graph_remat policy;
        struct lists lists;
    } rows[] = {
        {GRAPH_REMAT_BLOCK, {.name = {{"Q", "A"}}, .count = {2}}},
        {GRAPH_REMAT_BLOCK, {.name = {{"attention.In", "mlp.In", "Gate"}}, .count = {3}}},
        {GRAPH_REMAT_NONE, {.name = {{0}, {"A", "attention.Out", "mlp.*"}}, .count = {0, 3}}},
        {GRAPH_REMAT_NORMS, {.name = {{0}, {"Up"}}, .count = {0, 1}}},
        {GRAPH_REMAT_BLOCK, {.name = {{"A"}, {0}, {"Gate", "attention.X"}}, .count = {1, 0, 2}}},
    };
    (void)state;
    for (uint32_t i = 0; i < DRAWN_BLOCKS * sizeof rows / sizeof *rows; i++) {
        static struct workload_case made;
        drawn_build(&made, &drawn_blocks[i % DRAWN_BLOCKS]);
        made.plan.model.layers = 3;
        made.plan.remat = rows[i / DRAWN_BLOCKS].policy;
        step_holds(&made, &rows[i / DRAWN_BLOCKS].lists);
        case_free(&made);
    }
}

/* Arrays of frameworks are given back, whether lists keep them or not. */
static void arrays_of_frameworks_are_given_back(void **state)
{
    static const struct lists rows[] = {
        {.name = {{"Gate", "A"}}, .count = {2}},
        {.name = {{"Tmp"}}, .count = {1}},
        {.name = {{0}, {"Tmp", "A"}}, .count = {0, 2}},
    };
    (void)state;
    for (uint32_t i = 0; i < 3 * (GRAPH_REMAT_BLOCK + 1); i++) {
        static struct workload_case made;
        drawn_build_nodes(&made, &drawn_experts[2]);
        made.plan.remat = (enum graph_remat)(i / 3);
        made.plan.software.memory = WORKLOAD_MEMORY_FRAMEWORK;
        made.plan.kept.named = named_of(&rows[i % 3]);
        case_ok(case_lower(&made));
        struct case_sums const sums = case_sum(&made.program, "");
        assert_int_equal(sums.effects[PROGRAM_MEMORY_ACTIVATIONS], 0);
        assert_int_equal(sums.effects[PROGRAM_MEMORY_ACTIVATED], 0);
        assert_int_equal(sums.effects[PROGRAM_MEMORY_MASKS], 0);
        case_free(&made);
    }
}

/* --- Names --- */

static void names_of_no_array_are_refused(void **state)
{
    static const struct {
        struct lists lists;
        const char *where, *words;
    } rows[] = {
        {{.name = {{"A", "Gat"}}, .count = {2}},
         "/workload/remat/save/1",
         "the nearest is \"Gate\""},
        {{.name = {{"Tmp"}}, .count = {1}}, "/workload/remat/save/0", "never in memory"},
        {{.name = {{0}, {"attention.X"}}, .count = {0, 1}},
         "/workload/remat/repeat/0",
         "always kept"},
        {{.name = {{"A"}, {"Q", "A"}}, .count = {1, 2}}, "/workload/remat/repeat/1", "both kept"},
        {{.name = {{"A", "Q", "A"}}, .count = {3}}, "/workload/remat/save/2", "place 0"},
        {{.name = {{"A"}, {0}, {"Q", "A"}}, .count = {1, 0, 2}},
         "/workload/remat/offload/1",
         "in \"save\", too"},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct workload_case made;
        drawn_build(&made, &drawn_blocks[0]);
        made.plan.remat = GRAPH_REMAT_BLOCK;
        made.plan.kept.named = named_of(&rows[i].lists);
        assert_int_equal(case_lower(&made), STATUS_INVALID);
        assert_string_equal(made.error.where, rows[i].where);
        assert_non_null(strstr(made.error.message, rows[i].words));
        case_free(&made);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_find_what_drawn_lists_keep),
        cmocka_unit_test(whole_sequences_are_kept_together),
        cmocka_unit_test(policies_are_lists),
        cmocka_unit_test(lowered_steps_wait_for_what_lists_repeat),
        cmocka_unit_test(arrays_of_frameworks_are_given_back),
        cmocka_unit_test(names_of_no_array_are_refused),
    };
    return cmocka_run_group_tests_name("lists of arrays for remat", tests, NULL, NULL);
}
