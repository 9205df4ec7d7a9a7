/*
 * Folds along parts of an axis: groups, units of switches and ranks of a pipeline on random digits
 * of the node axis, several exchanges at once; steps with experts and copies beside stages. Folded
 * and full agree to the picosecond, the fast and the reference queue in every event; and what is
 * told apart by a unit that a group straddles, a queue, a hash or an overridden chip is not folded.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/scene.h"

enum { CASES = 900, DIGITS_MAX = 4, ROLES_MAX = 4, TEXT_BYTES = 1400 };

/* Axis 0: GPUs of a node; axis 1: nodes, whose number is made of digits. */
struct cluster {
    struct scene scene;
    uint32_t bound[DIGITS_MAX + 1]; /* Digit i goes from bound i to bound i + 1. */
    uint32_t digit_count;
    uint32_t role_digit; /* digit_count: there are no roles. */
    struct program_role role[ROLES_MAX];
    struct program_block block[ROLES_MAX];
};

static void tier_add(struct level *level, const uint32_t box[MACHINE_AXES_MAX])
{
    static const uint32_t cables[] = {1, 1, 2, 3, 4}, rates[] = {25, 50, 100, 400, 400};
    uint32_t const count = case_among(cables, 5);
    uint64_t const rate = UINT64_C(1000000000) * case_among(rates, 5);
    struct level_tier *tier = scene_tier(level, box, count, rate, (int64_t)case_below(3) * 250000);
    tier->policy =
        case_below(4) > 0 ? LEVEL_SPRAY : (enum level_policy)case_below(LEVEL_POLICY_COUNT);
}

/* A leaf holds a rail, or all GPUs of its nodes; mostly as many nodes as groups have, and now and
 * then any number of them. */
static void network_add(struct cluster *cluster)
{
    struct scene *scene = &cluster->scene;
    const uint32_t *shape = scene->machine.shape;
    uint32_t box[MACHINE_AXES_MAX] = {1, 1, 1, 1};
    box[0] = shape[0];
    tier_add(scene_level(scene, "node", 0), box);
    struct level *level = scene_level(scene, "network", 1);
    box[0] = case_below(3) == 0 ? shape[0] : 1;
    box[1] = case_below(4) > 0 ? cluster->bound[case_below(cluster->digit_count + 1)]
                               : 1 + case_below(shape[1]);
    tier_add(level, box);
    box[0] = shape[0];
    box[1] = shape[1];
    tier_add(level, box);
}

static void cluster_open(struct cluster *cluster)
{
    static const uint32_t sizes[] = {2, 2, 3, 4};
    *cluster = (struct cluster){.bound = {1}, .digit_count = 2 + case_below(3)};
    for (uint32_t i = 0; i < cluster->digit_count; i++) {
        uint32_t const left = 24 / cluster->bound[i];
        uint32_t const size = left < 2 ? 1 : case_among(sizes, left < 4 ? left : 4);
        cluster->bound[i + 1] = cluster->bound[i] * size;
        if (size == 1) cluster->digit_count = i;
    }
    uint32_t const shape[] = {1u << case_below(3), cluster->bound[cluster->digit_count], 1, 1};
    scene_open_axes(&cluster->scene, shape, 0);
    network_add(cluster);
    cluster->role_digit = case_below(cluster->digit_count + 1);
}

/* Ranks of a pipeline do the same a different number of times. */
static void roles_add(struct cluster *cluster)
{
    if (cluster->role_digit == cluster->digit_count) return;
    struct program *program = &cluster->scene.program;
    program->role_axis = 1;
    program->role_stride = cluster->bound[cluster->role_digit];
    program->role_count = cluster->bound[cluster->role_digit + 1] / program->role_stride;
    for (uint32_t r = 0; r < program->role_count; r++) {
        cluster->block[r] = cluster->scene.role->block[0];
        cluster->block[r].repeat = 1 + r;
        cluster->role[r] = *cluster->scene.role;
        cluster->role[r].block = &cluster->block[r];
    }
    program->roles = cluster->role;
}

/* Digits that lie side by side, and maybe the GPUs; no digit of roles. */
static struct group group_make(const struct cluster *cluster)
{
    struct group group = {.dimension_count = 0};
    uint32_t first = case_below(cluster->digit_count), end = first;
    while (end < cluster->digit_count && end != cluster->role_digit &&
           (end == first || case_below(2)))
        end++;
    struct group_dimension nodes = scene_dimension(&cluster->scene, 1);
    nodes.stride = cluster->bound[first];
    nodes.size = cluster->bound[end] / nodes.stride;
    if (end > first) group.dimension[group.dimension_count++] = nodes;
    if (cluster->scene.machine.shape[0] > 1 && (end == first || case_below(2) == 0))
        group.dimension[group.dimension_count++] = scene_dimension(&cluster->scene, 0);
    return group;
}

static const struct primitive *primitive_choose(const struct group *group, bool flat)
{
    static const struct primitive *const own[] = {&exchange_direct, &exchange_lanes,
                                                  &exchange_scatter, &exchange_direct};
    uint32_t size = group->dimension[0].size;
    if (flat && group->dimension_count > 1) size *= group->dimension[1].size;
    if (case_below(2) == 0) return own[case_below(4)];
    for (;;) {
        const struct primitive *primitive = primitive_table[case_below(primitive_count)];
        if (!primitive->routed || primitive->kind == COLLECTIVE_PERMUTE) continue;
        if (primitive->refuses != NULL && primitive->refuses(size) != NULL) continue;
        if (primitive->network != PRIMITIVE_NETWORK_NONE) continue;
        if (!primitive->translates && case_below(4) > 0) continue;
        return primitive;
    }
}

/* Returns false if there is nobody to exchange with. */
static bool exchange_add(struct cluster *cluster)
{
    static const uint32_t unit_bytes[] = {1, 500, 25000, 100000, 123457};
    struct group const group = group_make(cluster);
    if (group.dimension_count == 0) return false;
    bool const flat = case_below(2) == 0;
    const struct primitive *primitive = primitive_choose(&group, flat);
    uint32_t const stream = scene_stream(&cluster->scene, "exchange");
    for (uint32_t ops = 1 + case_below(2); ops > 0; ops--) {
        uint32_t const bytes = case_among(unit_bytes, 5), pieces = 1 + case_below(2);
        (void)scene_routed(&cluster->scene, stream, primitive, &group, flat, bytes, pieces);
    }
    return true;
}

static void same(const struct trace *full, const struct trace *folded)
{
    assert_int_equal(full->step_ps, folded->step_ps);
    assert_int_equal(full->exposed_ps, folded->exposed_ps);
    assert_int_equal(full->waiting_ps, folded->waiting_ps);
    assert_int_equal(full->memory.peak_bytes, folded->memory.peak_bytes);
    assert_int_equal(full->role_count, folded->role_count);
    for (uint32_t r = 0; r < full->role_count; r++) {
        assert_int_equal(full->roles[r].last_end_ps, folded->roles[r].last_end_ps);
        assert_int_equal(full->roles[r].exposed_ps, folded->roles[r].exposed_ps);
        assert_int_equal(full->roles[r].waiting_ps, folded->roles[r].waiting_ps);
        assert_int_equal(full->roles[r].sent_bytes, folded->roles[r].sent_bytes);
    }
    uint64_t const times = full->fold.replayed / folded->fold.replayed;
    assert_int_equal(full->work.transfers, folded->work.transfers * times);
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        assert_int_equal(full->link[port].busy_ps, folded->link[port].busy_ps);
        assert_int_equal(full->link[port].queued_ps, folded->link[port].queued_ps);
    }
}

/* Whether some part of the axis is folded below a part that is not. */
static bool is_by_digits(const struct fold *fold)
{
    return fold->run_count[1] > 1 || (fold->run_count[1] == 1 && fold->run[1][0].stride > 1);
}

static void describe(const struct cluster *cluster, const struct fold *fold)
{
    const struct scene *scene = &cluster->scene;
    print_message("    %ux%u, %u roles a stride of %u; kept:", scene->machine.shape[0],
                  scene->machine.shape[1], scene->program.role_count, scene->program.role_stride);
    for (uint32_t i = 0; i < fold->run_count[1]; i++)
        print_message(" %u at %u", fold->run[1][i].size, fold->run[1][i].stride);
    for (uint32_t t = 0; t < 2; t++) {
        const struct level_tier *tier = &scene->machine.level[1].tier[t];
        print_message("\n    tier %u: boxes of %ux%u, %u cables, %s%s", t, tier->box[0],
                      tier->box[1], tier->cable_count, level_policy_name(tier->policy),
                      level_tier_queues(&scene->machine.level[1], t) ? ", queues" : "");
    }
    for (uint32_t i = 0; i < scene->program.plan_count; i++) {
        const struct group_dimension *at = &scene->plan[i].group.dimension[0];
        print_message("\n    %s%s: axis %u, %u at %u, %u dimensions",
                      scene->plan[i].item[0].primitive->name,
                      scene->plan[i].item[0].flat ? ", flat" : "", at->axis, at->size, at->stride,
                      scene->plan[i].group.dimension_count);
    }
    print_message("\n");
}

static void any_digits_of_the_nodes_may_be_folded(void **state)
{
    (void)state;
    uint32_t folds = 0, by_digits = 0, walked = 0, taken = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        struct cluster cluster;
        struct fold fold;
        struct trace full, folded;
        if (sampling_skips(&walked)) continue;
        taken++;
        case_chance = i * 7919 + 3;
        cluster_open(&cluster);
        struct scene *scene = &cluster.scene;
        uint32_t added = 0;
        for (uint32_t streams = 1 + case_below(3); streams > 0; streams--)
            added += exchange_add(&cluster);
        roles_add(&cluster);
        /* Some let a member run ahead of others further than a run allows. */
        if (added > 0 && scene_try(scene, 1, true, false, &full, &case_error) == STATUS_OK) {
            case_ok(fold_build(scene->arena, &scene->machine, &scene->program, false, &fold,
                               &case_error));
            case_ok(scene_try(scene, 1, false, false, &folded, &case_error));
            scene->engine = "reference";
            struct trace const slow = scene_run(scene, 1, true, false);
            if (full.step_ps != folded.step_ps || full.digest != slow.digest)
                describe(&cluster, &fold);
            assert_int_equal(full.digest, slow.digest);
            same(&full, &folded);
            folds += folded.fold.replayed < full.fold.replayed;
            by_digits += is_by_digits(&fold);
        }
        scene_close(scene);
    }
    print_message("    %u of %u cases were folded, %u by digits\n", folds, taken, by_digits);
    assert_true(folds > taken / 3 && by_digits > taken / 6);
}

/* 16 nodes of two GPUs; leaves hold four of a rail, or eight with switches of sixteen ports. */
static const struct {
    const char *machine, *mesh, *workload;
    uint64_t chips; /* Replayed, of 32. */
} rows[] = {
    /* Groups of four nodes, each in a leaf: stages are left. */
    {"\"network\": {\"switch_ports\": 8}",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 4},
    {"\"network\": {\"switch_ports\": 8}",
     "\"dp\": [\"gpu\"], \"ep\": [\"node:4\"], \"pp\": [\"node:4\"]", "\"schedule\": \"zb-h1\"", 4},
    {"\"network\": {\"switch_ports\": 8}",
     "\"tp\": [\"gpu\"], \"fsdp\": [\"node:4\"], \"pp\": [\"node:4\"]", "\"schedule\": \"1f1b\"",
     4},
    /* Stages between the two. */
    {"\"network\": {\"switch_ports\": 16}",
     "\"tp\": [\"gpu\"], \"ep\": [\"node:2\"], \"pp\": [\"node:4\"], \"fsdp\": [\"node:2\"]"
     ", \"order\": [\"tp\", \"ep\", \"pp\", \"fsdp\"]",
     "\"schedule\": \"1f1b\"", 4},
    /* Groups of eight nodes, in two leaves each: who leaves its leaf differs. */
    {"\"network\": {\"switch_ports\": 8}", "\"ep\": [\"node:8\", \"gpu\"], \"pp\": [\"node:2\"]",
     "\"schedule\": \"1f1b\"", 8},
    /* Messages between stages queue behind each other; and hashes know no symmetry. */
    {"\"network\": {\"switch_ports\": 8, \"leaf\": {\"oversubscription\": 4}}",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 16},
    {"\"network\": {\"switch_ports\": 8, \"policy\": \"hash\"}",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 32},
    /* A chip that is slower than others. */
    {"\"network\": {\"switch_ports\": 8}, \"chips\": [{\"at\": [1, 6], \"math\": 0.5}]",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 32},
    /* A node whose chips are as slow as one another. */
    {"\"network\": {\"switch_ports\": 8}, \"chips\": [{\"at\": [\"*\", 6], \"math\": 0.5}]",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 16},
    /* All chips alike: slower than without overrides, or as fast. */
    {"\"network\": {\"switch_ports\": 8}, \"chips\": [{\"at\": [\"*\", \"*\"], \"math\": 0.5}]",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 4},
    {"\"network\": {\"switch_ports\": 8}, \"chips\": [{\"at\": [1, 6], \"math\": 1}]",
     "\"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"], \"pp\": [\"node:4\"]",
     "\"schedule\": \"1f1b\", \"zero\": 1", 4},
    /* Without stages. */
    {"\"network\": {\"switch_ports\": 8}", "\"ep\": [\"node:4\", \"gpu\"], \"dp\": [\"node:4\"]",
     "\"zero\": 1", 4},
    {"\"network\": {\"switch_ports\": 8}",
     "\"ep\": [\"node:2\", \"gpu\"], \"cp\": [\"node:2\"], \"pp\": [\"node:4\"]"
     ", \"order\": [\"ep\", \"cp\", \"pp\"]",
     "\"schedule\": \"interleaved:2\", \"layout\": \"Et|||t|t||t|L\"", 4},
};

static void row_text(char text[TEXT_BYTES], uint32_t row)
{
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 16, "
              "\"gpus\": 2, \"profile\": \"ideal\", %s}, \"mesh\": {%s}, \"workload\": "
              "{\"kind\": \"train_step\", \"model\": \"tests/property/experts.json\", "
              "\"batch_tokens\": 262144, \"sequence_length\": 1024, \"accumulate\": 4, %s}}",
              rows[row].machine, rows[row].mesh, rows[row].workload);
}

static void row_play(struct play *play, uint32_t row, bool full, const char *engine)
{
    char text[TEXT_BYTES];
    struct play_options const options = {.full = full, .engine = engine};
    row_text(text, row);
    play_run(play, text, &options);
}

static void steps_fold_along_what_lies_beside_their_stages(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play folded, whole, slow;
        row_play(&folded, i, false, "fast");
        row_play(&whole, i, true, "fast");
        row_play(&slow, i, false, "reference");
        assert_int_equal(folded.trace.fold.replayed, rows[i].chips);
        assert_int_equal(folded.trace.digest, slow.trace.digest);
        same(&whole.trace, &folded.trace);
        play_close(&folded);
        play_close(&whole);
        play_close(&slow);
    }
}

/* Ten nodes fill two leaves of four and half of a third. Pairs of nodes exchange rail by rail, so
 * no message leaves its leaf, and no chip is told apart by its leaf. All pairs at once also meet in
 * the spine, above leaves of unlike size. */
static void groups_within_units_fold_whatever_fills_the_units(void **state)
{
    static const struct {
        const char *algorithm;
        uint64_t chips;
    } ways[] = {{"direct", 1}, {"flat-direct", 10}};
    (void)state;
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[TEXT_BYTES];
        struct play folded, whole, slow;
        case_text(text, sizeof text,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 10, "
                  "\"gpus\": 2, \"profile\": \"ideal\", \"network\": {\"switch_ports\": 8}}, "
                  "\"mesh\": {\"dp\": [\"node:5\"], \"ep\": [\"node:2\", \"gpu\"]}, "
                  "\"workload\": {\"kind\": \"decode\", \"model\": "
                  "\"tests/property/experts.json\", \"batch\": 320, \"context\": 512}, "
                  "\"run\": {\"algorithm\": \"%s\"}}",
                  ways[i].algorithm);
        play_run(&folded, text, NULL);
        play_run(&whole, text, &(struct play_options){.full = true});
        play_run(&slow, text, &(struct play_options){.engine = "reference"});
        assert_int_equal(folded.trace.fold.replayed, ways[i].chips);
        assert_int_equal(folded.trace.digest, slow.trace.digest);
        same(&whole.trace, &folded.trace);
        play_close(&folded);
        play_close(&whole);
        play_close(&slow);
    }
}

/* A collective over all nodes behind the last one, as memory may hold it, folds nothing less. */
static void no_plan_behind_the_last_is_read(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    struct fold fold;
    struct error error = {0};
    static const struct play_options lower_only = {.lower_only = true};
    row_text(text, 0);
    play_run(&play, text, &lower_only);
    struct program *program = &play.program;
    struct plan *plans = arena_take(play.arena, program->plan_count + 1, sizeof *plans);
    assert_non_null(plans);
    memcpy(plans, program->plans, program->plan_count * sizeof *plans);
    for (uint32_t i = 0; i < program->plan_count; i++)
        if (plans[i].group.dimension_count == 1 && plans[i].group.dimension[0].axis == 1)
            plans[program->plan_count] = plans[i];
    assert_int_equal(plans[program->plan_count].group.dimension_count, 1);
    plans[program->plan_count].group.dimension[0].size = 16;
    plans[program->plan_count].group.dimension[0].stride = 1;
    program->plans = plans;
    assert_int_equal(fold_build(play.arena, &play.machine, program, false, &fold, &error),
                     STATUS_OK);
    assert_int_equal(fold.chip_count, rows[0].chips);
    program->plan_count++;
    assert_int_equal(fold_build(play.arena, &play.machine, program, false, &fold, &error),
                     STATUS_OK);
    assert_true(fold.chip_count > rows[0].chips);
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_digits_of_the_nodes_may_be_folded),
        cmocka_unit_test(steps_fold_along_what_lies_beside_their_stages),
        cmocka_unit_test(groups_within_units_fold_whatever_fills_the_units),
        cmocka_unit_test(no_plan_behind_the_last_is_read),
    };
    return cmocka_run_group_tests_name("digit folds", tests, NULL, NULL);
}
