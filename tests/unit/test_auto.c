/* What "auto" takes: nobody that it names is faster by much, and adders of switches count. */
#include <math.h>
#include <string.h>

#include "sim/measure/measure.h"
#include "sim/measure/measure_row.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

static struct measure_row_args args_of(const struct machine *machine, enum measure_op operation)
{
    struct measure_row_args args = {
        .machine = machine, .operation = operation, .format = FORMAT_BF16};
    case_ok(measure_group(machine, NULL, "--axes", &args.group, &case_error));
    (void)measure_group_text(machine, &args.group, args.axes);
    return args;
}

static const struct measure_row_choice *choose(const struct measure_row_args *args,
                                               uint64_t size_bytes, const char *algorithm)
{
    const struct measure_row_choice *choice = NULL;
    struct algorithm const asked = algorithm_read(algorithm);
    case_ok(measure_row_choose(case_arena, args, size_bytes, &asked, "", &choice, &case_error));
    return choice;
}

static int64_t played_ps(const struct measure_row_args *args,
                         const struct measure_row_choice *choice)
{
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    struct arena *arena = arena_create(0);
    case_ok(measure_run(arena, args->machine, &choice->request, 1, "", &options, &measured,
                        &case_error));
    arena_destroy(arena);
    return measured.time_ps[0];
}

/* Closed forms say how long an algorithm takes. */
static void estimate_near(const struct measure_row_args *args, uint64_t size_bytes,
                          const char *algorithm, double share)
{
    const struct measure_row_choice *choice = choose(args, size_bytes, algorithm);
    struct plan plan;
    struct collective_estimate estimate;
    case_ok(plan_build(case_arena, &choice->request, "", &plan, &case_error));
    collective_estimate(args->machine, &plan, NULL, &estimate);
    double const taken_ps = (double)played_ps(args, choice);
    if (fabs(estimate.time_s * 1e12 - taken_ps) > share * taken_ps)
        fail_msg("%s, %s of %s by %s: %.0f ps, estimated %.0f", args->machine->chip.name,
                 measure_op_name(args->operation), format_name(args->format), algorithm, taken_ps,
                 estimate.time_s * 1e12);
}

/* The fastest of the first few that run by a ranking; of its first that is known. */
static int64_t best_ps(const struct measure_row_args *args, uint64_t size_bytes,
                       const struct choose_ranking *ranking, int64_t first_ps)
{
    int64_t best = first_ps;
    for (uint32_t i = 1; i < ranking->count && i <= ROW_RUNNERS_MAX; i++) {
        const struct measure_row_choice *other = NULL;
        case_ok(measure_row_choose_other(case_arena, args, size_bytes, &ranking->candidate[i], "",
                                         &other, &case_error));
        int64_t const time_ps = played_ps(args, other);
        best = time_ps < best ? time_ps : best;
    }
    return best;
}

/* Asks for each machine, of a list ended by NULL, what each of some operations takes. */
static void ask_each(const char *const *machines, const enum measure_op *operations, size_t count,
                     void (*check)(const struct measure_row_args *args, const char *name))
{
    for (; *machines != NULL; machines++) {
        struct machine const machine = case_machine(*machines);
        for (size_t i = 0; i < count; i++) {
            struct measure_row_args const args = args_of(&machine, operations[i]);
            check(&args, *machines);
        }
    }
}

static uint32_t walked;

/* Sizes between the regimes, where estimates lie close together. */
static void nobody_is_faster(const struct measure_row_args *args, const char *machine)
{
    static const uint64_t sizes[] = {1 << 18, 1 << 28};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        if (sampling_skips(&walked)) continue;
        const struct measure_row_choice *choice = choose(args, sizes[s], "auto");
        int64_t const taken = played_ps(args, choice);
        int64_t const best = best_ps(args, sizes[s], choice->ranking, taken);
        double const estimate_ps = choice->candidate.estimate.time_s * 1e12;
        if ((double)taken > 1.03 * (double)best)
            fail_msg("%s, %s of %llu: %s takes %lld ps, one that it names %lld", machine,
                     measure_op_name(args->operation), (unsigned long long)sizes[s],
                     algorithm_text(&choice->candidate.algorithm).text, (long long)taken,
                     (long long)best);
        /* Closed forms see no collisions; what is much too low or high is a fault. */
        if (estimate_ps < 0.8 * (double)taken || estimate_ps > 1.45 * (double)taken)
            fail_msg("%s, %s of %llu: %s takes %lld ps, estimated %.0f", machine,
                     measure_op_name(args->operation), (unsigned long long)sizes[s],
                     algorithm_text(&choice->candidate.algorithm).text, (long long)taken,
                     estimate_ps);
    }
}

static void test_nobody_named_is_faster(void **state)
{
    (void)state;
    static const char *const machines[] = {
        "h100-sxm",      "h100-sxm:nodes=2",     "h100-sxm:nodes=16,leaf.oversubscription=4",
        "gb200-nvl72",   "tpu-v5e:4x4",          "tpu-v5e:8x16",
        "tpu-v5p:4x4x4", "tpu-v5e:4x4,slices=2", NULL};
    static const enum measure_op operations[] = {MEASURE_ALL_GATHER, MEASURE_REDUCE_SCATTER,
                                                 MEASURE_ALL_REDUCE, MEASURE_ALL_TO_ALL};
    walked = 0;
    ask_each(machines, operations, 4, nobody_is_faster);
}

/* From and to a root over nodes: each level has its own way, the node's switches copy or add. */
static void the_levels_have_their_ways(const struct measure_row_args *args, const char *machine)
{
    static const uint64_t sizes[] = {1 << 16, 1 << 18, 1 << 23};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct measure_row_choice *other = NULL;
        if (sampling_skips(&walked)) continue;
        const struct measure_row_choice *choice = choose(args, sizes[s], "auto");
        assert_non_null(strstr(algorithm_text(&choice->candidate.algorithm).text, "sharp+"));
        int64_t const taken = played_ps(args, choice);
        const struct choose_ranking *ranking = choice->ranking;
        for (uint32_t c = 1; c < ranking->count; c++) {
            const struct choose_candidate *candidate = &ranking->candidate[c];
            /* Too slow to be worth a play, however far estimates may be off. */
            if (candidate->estimate.time_s > 2 * ranking->candidate[0].estimate.time_s) continue;
            case_ok(measure_row_choose_other(case_arena, args, sizes[s], candidate, "", &other,
                                             &case_error));
            if ((double)taken > 1.02 * (double)played_ps(args, other))
                fail_msg("%s, %s of %llu: %s is slower than %s", machine,
                         measure_op_name(args->operation), (unsigned long long)sizes[s],
                         algorithm_text(&choice->candidate.algorithm).text,
                         algorithm_text(&candidate->algorithm).text);
        }
    }
}

static void test_levels_of_a_root(void **state)
{
    (void)state;
    static const char *const machines[] = {"gb200-nvl72:nodes=2", "h100-sxm:nodes=4",
                                           "h100-sxm:nodes=16,policy=hash", NULL};
    static const enum measure_op operations[] = {MEASURE_BROADCAST, MEASURE_REDUCE};
    walked = 0;
    ask_each(machines, operations, 2, the_levels_have_their_ways);
}

/* With few bits an element the adders are slower than the wires; estimates know by how much. */
static void adders_are_known(const struct measure_row_args *args, const char *machine)
{
    static const enum format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP8, FORMAT_INT4};
    (void)machine;
    if (args->machine->axis_count > 1 && args->operation == MEASURE_REDUCE) return;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        struct measure_row_args asked = *args;
        asked.format = formats[f];
        estimate_near(&asked, 1 << 28, "sharp", 0.01);
    }
}

static void test_adders_count(void **state)
{
    (void)state;
    static const char *const machines[] = {"h100-sxm", "h100-sxm:nodes=4", "gb200-nvl72", "b200",
                                           NULL};
    static const enum measure_op operations[] = {MEASURE_REDUCE_SCATTER, MEASURE_ALL_REDUCE,
                                                 MEASURE_REDUCE};
    ask_each(machines, operations, 3, adders_are_known);
}

static void test_links_that_messages_share_count(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        enum measure_op operation;
        uint64_t size_bytes;
        const char *algorithm;
        double share;
    } rows[] = {
        /* Between many nodes a hash names cables more than once, and algorithms that go step by
         * step wait for the fullest; estimates know, though the messages are too many. */
        {"h100-sxm:nodes=512,policy=hash", MEASURE_ALL_GATHER, 1 << 28, "bruck", 0.25},
        {"h100-sxm:nodes=512,policy=hash", MEASURE_ALL_GATHER, 1 << 28, "recursive", 0.25},
        /* What switches copy goes by one cable of a hashed bundle, not by a whole port. */
        {"h100-sxm:nodes=4,nvlink.policy=hash", MEASURE_ALL_GATHER, 1 << 28, "sharp", 0.1},
        /* Messages over a twisted torus go the ways of the replay, which load the links more evenly
         * than the first of equally short ones would. */
        {"v4p:4x4x8_twisted", MEASURE_ALL_TO_ALL, 1 << 25, "flat-direct", 0.03},
        /* One way round a ring each link carries all that a member sends; on a line its middle
         * carries half of what its end does. Axes that work side by side hide neither. */
        {"tpu-v5p:4x4x8", MEASURE_ALL_TO_ALL, 1 << 30, "ring-one-way", 0.01},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i].machine);
        struct measure_row_args const args = args_of(&machine, rows[i].operation);
        estimate_near(&args, rows[i].size_bytes, rows[i].algorithm, rows[i].share);
    }
}

/* Where there is too much to play, too, doublings pass one level after the other: three of twelve
 * are within a node, nine between nodes, each as late as a message to the farthest. */
static void test_doublings_pass_one_level_after_the_other(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=512,policy=hash");
    struct measure_row_args const args = args_of(&machine, MEASURE_ALL_REDUCE);
    const struct level *nodes = &machine.level[1];
    struct plan plan;
    struct collective_estimate estimate;
    const struct measure_row_choice *choice = choose(&args, 1 << 28, "flat-recursive-doubling");
    case_ok(plan_build(case_arena, &choice->request, "", &plan, &case_error));
    collective_estimate(&machine, &plan, NULL, &estimate);
    int64_t const far_ps = level_way_ps(nodes, nodes->tier_count - 1);
    case_near(estimate.alpha_s * 1e12, 3 * 600000 + 9 * (double)far_ps, 1e-9);
}

/* By one cable copies are slower than what goes by all of them. */
static void test_copies_over_one_cable_are_not_taken(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=4,nvlink.policy=hash");
    struct measure_row_args const args = args_of(&machine, MEASURE_ALL_GATHER);
    assert_null(
        strstr(algorithm_text(&choose(&args, 1 << 28, "auto")->candidate.algorithm).text, "sharp"));
}

/* The first by estimate is not the fastest here, and the ranking says what was played. */
static void test_played_is_said(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x4");
    struct measure_row_args const args = args_of(&machine, MEASURE_ALL_REDUCE);
    const struct measure_row_choice *choice = choose(&args, 1 << 22, NULL);
    const struct choose_candidate *candidate = choice->ranking->candidate;
    assert_string_equal(algorithm_text(&candidate[0].algorithm).text, "double-tree");
    assert_true(candidate[0].estimate.time_s > candidate[1].estimate.time_s);
    assert_int_equal(candidate[0].played_ps, played_ps(&args, choice));
    assert_true(candidate[1].played_ps > candidate[0].played_ps);
}

/* An axis that closes beside one that does not: each is played as what it is. */
static void a_ring_and_a_line_are_taken(const struct measure_row_args *args, const char *machine)
{
    const struct measure_row_choice *choice = choose(args, UINT64_C(1) << 30, NULL);
    (void)machine;
    assert_string_equal(algorithm_text(&choice->candidate.algorithm).text, "ring+line");
    int64_t const taken = played_ps(args, choice);
    assert_true(played_ps(args, choose(args, UINT64_C(1) << 30, "line")) > taken);
}

static void test_each_axis_is_what_it_is(void **state)
{
    (void)state;
    static const enum measure_op operations[] = {MEASURE_ALL_GATHER, MEASURE_REDUCE_SCATTER,
                                                 MEASURE_ALL_REDUCE};
    static const char *const machines[] = {"tpu-v5e:8x16", "tpu-v6e:8x16", NULL};
    ask_each(machines, operations, 3, a_ring_and_a_line_are_taken);
}

/* Of a reduction on a grid what one order adds up beside the chains of another holds these up no
 * more for large arrays, whose messages dwarf their way, than for small ones. */
static void test_a_reduction_keeps_its_rate(void **state)
{
    (void)state;
    static const char *const machines[] = {"tpu-v5e:8x16", "tpu-v5p:4x4x4,slices=2"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct machine const machine = case_machine(machines[m]);
        struct measure_row_args const args = args_of(&machine, MEASURE_REDUCE);
        int64_t time_ps[2];
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t const size_bytes = UINT64_C(1) << (30 + 2 * i);
            time_ps[i] = played_ps(&args, choose(&args, size_bytes, "hierarchical"));
        }
        assert_true(time_ps[1] * 100 < time_ps[0] * 402);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_named_is_faster, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(test_levels_of_a_root, case_arena_up, case_arena_down),
        cmocka_unit_test_setup_teardown(test_adders_count, case_arena_up, case_arena_down),
        cmocka_unit_test_setup_teardown(test_links_that_messages_share_count, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(test_doublings_pass_one_level_after_the_other,
                                        case_arena_up, case_arena_down),
        cmocka_unit_test_setup_teardown(test_copies_over_one_cable_are_not_taken, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(test_played_is_said, case_arena_up, case_arena_down),
        cmocka_unit_test_setup_teardown(test_a_reduction_keeps_its_rate, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(test_each_axis_is_what_it_is, case_arena_up,
                                        case_arena_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
