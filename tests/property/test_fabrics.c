/*
 * Random fabrics: levels of one to three tiers with any cables and policies, grids with slices;
 * random exchanges, several at once. Folded and full agree to the picosecond, the fast and the
 * reference queue in every event, and bytes are conserved.
 */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/sampling.h"
#include "tests/support/scene.h"

enum { CASES = 600 };

/* Rates and latencies are round, so that ties are many; some tiers are slower than what feeds them.
 */
static void random_tier(struct level *level, const uint32_t box[MACHINE_AXES_MAX])
{
    static const uint32_t cables[] = {1, 1, 2, 3, 4}, rates[] = {25, 50, 100, 100, 400};
    /* One draw a line: compilers may evaluate arguments in any order. */
    uint32_t const cable_count = case_among(cables, 5);
    uint64_t const bytes_per_s = UINT64_C(1000000000) * case_among(rates, 5);
    int64_t const latency_ps = (int64_t)case_below(3) * 250000;
    struct level_tier *tier = scene_tier(level, box, cable_count, bytes_per_s, latency_ps);
    tier->policy = (enum level_policy)case_below(LEVEL_POLICY_COUNT);
    tier->multicasts = true;
    tier->reduce_flop_per_s = UINT64_C(100000000000) << case_below(12);
}

/* Boxes that grow from tier to tier; the last one holds everything. */
static void random_level(struct scene *scene, uint32_t axis, uint32_t axes)
{
    struct level *level = scene_level(scene, "level", axis);
    uint32_t box[MACHINE_AXES_MAX] = {1, 1, 1, 1};
    for (uint32_t tiers = case_below(3); tiers > 0; tiers--) {
        for (uint32_t i = 0; i < MACHINE_AXES_MAX; i++)
            if (axes >> i & 1 && case_below(2) == 0 && box[i] * 2 <= scene->machine.shape[i])
                box[i] *= 2;
        random_tier(level, box);
    }
    for (uint32_t i = 0; i < MACHINE_AXES_MAX; i++)
        if (axes >> i & 1) box[i] = scene->machine.shape[i];
    random_tier(level, box);
}

/* A cluster of nodes, or slices of a grid. Returns the axes that are there, as bits. */
static uint32_t random_machine(struct scene *scene)
{
    static const uint32_t lengths[] = {2, 3, 4, 6, 8};
    if (case_below(2) == 0) {
        uint32_t const gpus = case_among(lengths, 5),
                       shape[] = {gpus, case_among(lengths, 4), 1, 1};
        scene_open_axes(scene, shape, 0);
        random_level(scene, 0, 1);
        random_level(scene, 1, 3);
        return 3;
    }
    uint32_t const x = case_among(lengths, 4), y = case_among(lengths, 4);
    uint32_t const shape[] = {x, y, 1 + case_below(2), 1};
    scene_open_axes(scene, shape, 2);
    if (shape[2] > 1) random_level(scene, 2, 7);
    return shape[2] > 1 ? 7 : 3;
}

/* By hand, or any of the catalogue that can run there. */
static const struct primitive *random_primitive(const struct group *group, bool flat)
{
    static const struct primitive *const own[] = {&exchange_direct, &exchange_lanes,
                                                  &exchange_scatter, &exchange_unlike};
    uint32_t size = group->dimension[0].size;
    bool switched = group->dimension[0].switched;
    for (uint32_t d = 1; flat && d < group->dimension_count; d++) {
        size *= group->dimension[d].size;
        switched = group->dimension[d].switched;
    }
    if (case_below(3) == 0) return own[case_below(4)];
    for (;;) {
        const struct primitive *primitive = primitive_table[case_below(primitive_count)];
        if (!primitive->routed || primitive->kind == COLLECTIVE_PERMUTE) continue;
        if (primitive->refuses != NULL && primitive->refuses(size) != NULL) continue;
        if (primitive->network != PRIMITIVE_NETWORK_NONE && !switched) continue;
        return primitive;
    }
}

static void random_exchange(struct scene *scene, uint32_t axes, uint32_t *ret_bits)
{
    static const uint32_t unit_bytes[] = {1, 500, 25000, 100000, 123457};
    struct group group = {.dimension_count = 0};
    uint32_t wanted = case_below(8) & axes;
    if (wanted == 0) wanted = axes;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        if (wanted >> axis & 1)
            group.dimension[group.dimension_count++] = scene_dimension(scene, axis);
    *ret_bits |= wanted;
    uint32_t const stream = scene_stream(scene, "exchange");
    bool const flat = case_below(2) == 0;
    const struct primitive *primitive = random_primitive(&group, flat);
    for (uint32_t ops = 1 + case_below(2); ops > 0; ops--) {
        uint32_t const bytes = case_among(unit_bytes, 5), pieces = 1 + case_below(2);
        (void)scene_routed(scene, stream, primitive, &group, flat, bytes, pieces);
    }
}

/* Whether switches copy or add anything. */
static bool uses_network(const struct scene *scene)
{
    for (uint32_t i = 0; i < scene->program.plan_count; i++)
        if (scene->plan[i].item[0].primitive->network != PRIMITIVE_NETWORK_NONE) return true;
    return false;
}

/* What goes up a tier comes down it; what leaves chips arrives at chips. */
static void bytes_are_conserved(const struct scene *scene, const struct trace *trace)
{
    for (uint32_t level = 0; level < scene->machine.level_count; level++)
        for (uint32_t tier = 0; tier < scene->machine.level[level].tier_count; tier++)
            assert_int_equal(trace->link[machine_level_port(level, tier, false)].sum_bytes,
                             trace->link[machine_level_port(level, tier, true)].sum_bytes);
}

/* What a failing case is made of. */
static void describe(const struct scene *scene)
{
    const struct machine *machine = &scene->machine;
    print_message("    %ux%ux%u\n", machine->shape[0], machine->shape[1], machine->shape[2]);
    for (uint32_t i = 0; i < machine->level_count; i++) {
        for (uint32_t t = 0; t < machine->level[i].tier_count; t++) {
            const struct level_tier *tier = &machine->level[i].tier[t];
            print_message(
                "    level %u tier %u: boxes of %ux%ux%u, %u cables of %llu, %lld ps, %s, "
                "%llu FLOP/s%s\n",
                i, t, tier->box[0], tier->box[1], tier->box[2], tier->cable_count,
                (unsigned long long)tier->cable_bytes_per_s, (long long)tier->latency_ps,
                level_policy_name(tier->policy), (unsigned long long)tier->reduce_flop_per_s,
                level_tier_queues(&machine->level[i], t) ? ", queues" : "");
        }
    }
    for (uint32_t i = 0; i < scene->program.plan_count; i++) {
        const struct plan *plan = &scene->plan[i];
        print_message("    %s of %llu bytes a unit, %u pieces%s, axes from %u, %u of them\n",
                      plan->item[0].primitive->name, (unsigned long long)plan->item[0].unit_bytes,
                      plan->item[0].piece_count, plan->item[0].flat ? ", flat" : "",
                      plan->group.dimension[0].axis, plan->group.dimension_count);
    }
}

/* The run, folded and by the reference queue, is the same. Returns whether folding made it smaller.
 */
static bool compare(struct scene *scene, uint32_t number)
{
    struct trace full;
    struct error error = {0};
    if (scene_try(scene, 1, true, false, &full, &error) != STATUS_OK) {
        describe(scene);
        fail_msg("case %u: %s", number, error.message);
    }
    struct trace const folded = scene_run(scene, 1, false, false);
    scene->engine = "reference";
    struct trace const reference = scene_run(scene, 1, true, false);
    if (full.step_ps != folded.step_ps || full.digest != reference.digest) {
        describe(scene);
        fail_msg("case %u: full %lld ps, folded %lld ps", number, (long long)full.step_ps,
                 (long long)folded.step_ps);
    }
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++)
        assert_int_equal(full.link[port].busy_ps, folded.link[port].busy_ps);
    if (!uses_network(scene)) {
        bytes_are_conserved(scene, &full);
        bytes_are_conserved(scene, &folded);
    }
    return folded.fold.replayed < full.fold.replayed;
}

/* One level goes along with the other, message by message: nodes of a cluster, any cut. */
static void random_hierarchy(struct scene *scene)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_REDUCE};
    static const char *const algorithms[] = {"direct", "direct", "ring+direct", "bruck+direct"};
    struct plan_request request = {
        .kind = kinds[case_below(3)],
        .group = {{scene_dimension(scene, 1), scene_dimension(scene, 0)}, 2},
    };
    request.algorithm = algorithm_read(algorithms[case_below(4)]);
    request.size_bytes = 1000 + case_below(1u << 26);
    request.piece_count = case_below(4);
    request.portion_count = case_below(9);
    if (request.kind != COLLECTIVE_ALL_REDUCE && case_below(3) == 0)
        request.chunk_count = 1 + case_below(4);
    plan_request_links(&scene->machine, &request);
    uint32_t const stream = scene_stream(scene, "hierarchy");
    for (uint32_t ops = 1 + case_below(2); ops > 0; ops--)
        (void)scene_plan(scene, stream, &request);
}

static void levels_that_go_along_agree_as_well(void **state)
{
    (void)state;
    static const uint32_t nodes[] = {2, 3, 5, 6, 7, 12}, inside[] = {2, 3, 4, 8};
    uint32_t folds = 0, cut = 0, walked = 0, taken = 0;
    for (uint32_t i = 0; i < CASES / 2; i++) {
        struct scene scene;
        if (sampling_skips(&walked)) continue;
        taken++;
        case_chance = i * 7919 + 5;
        uint32_t const gpus = case_among(inside, 4), shape[] = {gpus, case_among(nodes, 6), 1, 1};
        scene_open_axes(&scene, shape, 0);
        random_level(&scene, 0, 1);
        random_level(&scene, 1, 3);
        for (uint32_t streams = 1 + case_below(2); streams > 0; streams--) random_hierarchy(&scene);
        for (uint32_t item = 0; item < scene.plan[0].item_count; item++)
            cut += scene.plan[0].item[item].portion_end != NULL;
        folds += compare(&scene, i);
        scene_close(&scene);
    }
    print_message("    %u of %u cases were folded, %u items cut into portions\n", folds, taken,
                  cut);
    assert_true(folds > taken / 8 && cut > taken / 2); /* A sample may have 3 of 17. */
}

static void folded_and_full_and_both_queues_agree(void **state)
{
    (void)state;
    uint32_t folds = 0, walked = 0, taken = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        struct scene scene;
        uint32_t spanned = 0;
        if (sampling_skips(&walked)) continue;
        taken++;
        case_chance = i * 7919 + 1;
        uint32_t const axes = random_machine(&scene);
        for (uint32_t streams = 1 + case_below(2); streams > 0; streams--)
            random_exchange(&scene, axes, &spanned);
        folds += compare(&scene, i);
        scene_close(&scene);
    }
    print_message("    %u of %u cases were folded\n", folds, taken);
    assert_true(folds > taken / 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_and_full_and_both_queues_agree),
        cmocka_unit_test(levels_that_go_along_agree_as_well),
    };
    return cmocka_run_group_tests_name("fabrics", tests, NULL, NULL);
}
