/* NCCL's protocols, its tuner's files, and what a plan is estimated to take. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/choose/estimate.h"
#include "sim/choose/protocol.h"
#include "sim/choose/tuner.h"
#include "tests/oracle/plan_cost.h"
#include "tests/support/refusals.h"

static struct arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = arena_create(0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static struct machine machine_of(const char *chip, uint32_t nodes)
{
    struct machine_plan const plan = {
        .chip = chip, .profile = "ideal", .nodes = nodes, .wrap = {-1, -1, -1}};
    struct machine machine;
    struct error error = {0};
    if (machine_build(arena, &plan, &machine, &error) != STATUS_OK) fail_msg("%s", error.message);
    return machine;
}

static struct group group_of(const struct machine *machine)
{
    struct group group = {.dimension_count = 0};
    for (uint32_t axis = machine->axis_count; axis-- > 0;) {
        if (machine->shape[axis] == 1) continue;
        group.dimension[group.dimension_count++] =
            (struct group_dimension){.axis = axis,
                                     .size = machine->shape[axis],
                                     .stride = 1,
                                     .ring = machine->wrap[axis],
                                     .switched = machine->axis_level[axis] != LEVEL_NONE,
                                     .name = machine->axis_name[axis]};
    }
    return group;
}

static struct plan_protocol made_on(const struct machine *machine, const char *algorithm,
                                    enum protocol protocol, uint64_t bytes)
{
    struct group const group = group_of(machine);
    struct protocol_use const use = {
        machine, &group, COLLECTIVE_ALL_REDUCE, algorithm_read(algorithm),
        bytes,   false,  PROTOCOL_STANDS_ALONE};
    struct plan_protocol result;
    struct error error = {0};
    if (protocol_make(&use, protocol, "/protocol", &result, &error) != STATUS_OK)
        fail_msg("%s", error.message);
    return result;
}

static struct plan_protocol made(const char *chip, uint32_t nodes, const char *algorithm,
                                 enum protocol protocol, uint64_t bytes)
{
    struct machine const machine = machine_of(chip, nodes);
    return made_on(&machine, algorithm, protocol, bytes);
}

/* The way through NVLink takes 0.6 us by itself, that between nodes what it takes. */
static void constants_are_those_of_nccl_and_of_measurements(void **state)
{
    (void)state;
    struct plan_protocol got = made("h100-sxm", 1, "ring", PROTOCOL_LL, 65536);
    assert_string_equal(got.name, "LL");
    assert_int_equal(got.begin_ps, 6600000 * 123 / 100);
    assert_int_equal(got.message_ps[1], 600000 * 123 / 100 - 600000);
    assert_int_equal(got.wire_ppm, 3191489); /* 141 of 450 GB/s, less than half. */
    got = made("h100-sxm", 1, "ring", PROTOCOL_LL128, 65536);
    assert_int_equal(got.begin_ps, 14000000 * 123 / 100);
    assert_int_equal(got.message_ps[1], 1900000 * 123 / 100 - 600000);
    /* 12 channels copy slower than the wire: a step more than the 14 that send. */
    assert_int_equal(got.wire_ppm, 1164596);
    got = made("h100-sxm", 1, NULL, PROTOCOL_SIMPLE, 65536);
    assert_int_equal(got.begin_ps, 8400000 * 123 / 100);
    assert_int_equal(got.message_ps[1], 3400000 * 123 / 100 - 600000);
    assert_int_equal(got.wire_ppm, 1000000);
    got = made("h100-sxm", 1, "sharp", PROTOCOL_SIMPLE, 65536);
    assert_int_equal(got.begin_ps, INT64_C(25000000) * 123 / 100 - 600000);
    assert_int_equal(got.message_ps[1], 0);
    assert_int_equal(got.wire_ppm, 1494118); /* .85 of NVLink, and 1.27 times as long. */
    got = made("h100-sxm", 1, "double-tree", PROTOCOL_SIMPLE, 1u << 18);
    assert_int_equal(got.message_ps[1], 4000000 * 123 / 100 - 600000);
    assert_int_equal(got.wire_ppm, 2173913); /* .92, and .5 for 256 KiB. */
    got = made("h100-sxm", 1, "double-tree", PROTOCOL_SIMPLE, UINT64_C(1) << 30);
    assert_int_equal(got.wire_ppm, 1086957);
    got = made("a100-sxm", 1, "ring", PROTOCOL_LL, 65536);
    assert_int_equal(got.wire_ppm, 3420753); /* 87.7 of 300 GB/s. */
}

/* Factors of a stack. */
static void no_factor_sends_faster_than_the_link(void **state)
{
    (void)state;
    struct machine machine = machine_of("h100-sxm", 1);
    machine.chip.kernels.nccl = (struct chip_nccl){.byte_ppm = 500000, .nvls_ppm = 500000};
    static const char *const algorithms[] = {"ring", "double-tree", "sharp"};
    for (uint32_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        assert_int_equal(made_on(&machine, algorithms[i], PROTOCOL_SIMPLE, 1u << 30).wire_ppm,
                         1000000);
    assert_int_equal(made_on(&machine, "ring", PROTOCOL_LL128, 1u << 30).wire_ppm, 1000000);
    machine.chip.kernels.nccl = (struct chip_nccl){.nvls_ppm = 900000};
    assert_int_equal(made_on(&machine, "sharp", PROTOCOL_SIMPLE, 1u << 30).wire_ppm, 1058824);
}

static void bytes_in_a_node_take_what_is_measured(void **state)
{
    (void)state;
    assert_int_equal(made("a100-sxm", 1, NULL, PROTOCOL_SIMPLE, 1u << 27).wire_ppm, 1060000);
    assert_int_equal(made("a100-sxm", 1, NULL, PROTOCOL_LL128, 1u << 27).wire_ppm, 1152174);
    assert_int_equal(made("b200", 1, "sharp", PROTOCOL_SIMPLE, 1u << 27).wire_ppm, 1891892);
    assert_int_equal(made("b200", 1, NULL, PROTOCOL_SIMPLE, 1u << 27).wire_ppm, 1000000);
}

/* Kernels of a graph do not wait for their launch. */
static void a_graph_has_latencies_of_nccl(void **state)
{
    (void)state;
    struct machine machine = machine_of("a100-sxm", 1);
    assert_int_equal(made_on(&machine, "ring", PROTOCOL_LL, 65536).begin_ps, 6600000 * 178 / 100);
    machine.chip.launch.by = CHIP_LAUNCHES_GRAPH;
    assert_int_equal(made_on(&machine, "ring", PROTOCOL_LL, 65536).begin_ps, 6600000);
    machine.chip.launch.by = CHIP_LAUNCHES_EAGER;
    assert_int_equal(made_on(&machine, "ring", PROTOCOL_LL, 65536).begin_ps, 6600000 * 178 / 100);
}

static void rings_across_nodes_pay_for_posting_and_for_the_plateau(void **state)
{
    (void)state;
    struct plan_protocol near = made("h100-sxm", 1, "ring", PROTOCOL_SIMPLE, 1u << 30);
    struct plan_protocol far = made("h100-sxm", 4, "ring", PROTOCOL_SIMPLE, 1u << 30);
    assert_int_equal(near.begin_ps, 8400000 * 123 / 100);
    assert_int_equal(far.begin_ps,
                     151200000 * 14 / 10); /* And 42 steps more, as test_series has. */
    assert_int_equal(far.message_ps[1], 3400000 * 14 / 10 - 600000);
    assert_true(far.message_ps[2] > 14000000 && far.message_ps[2] < 14000000 * 14 / 10);
    assert_int_equal(made("h100-sxm", 4, "ring", PROTOCOL_SIMPLE, 64).begin_ps,
                     INT64_C(151200000) * 123 / 100);
    assert_int_equal(made("h100-sxm", 4, "ring", PROTOCOL_LL, 64).message_ps[1], 1000000 - 600000);
    struct machine machine = machine_of("h100-sxm", 4);
    machine.chip.network.nvlink_generation = 2;
    assert_int_equal(made_on(&machine, "ring", PROTOCOL_SIMPLE, 1u << 30).begin_ps,
                     INT64_C(151200000) * 19 / 10);
    /* LL: 20.4 of the node's 400 GB/s. */
    assert_int_equal(made("h100-sxm", 4, "ring", PROTOCOL_LL, 64).wire_ppm, 19607843);
}

static void a_protocol_that_cannot_be_used_is_refused(void **state)
{
    (void)state;
    struct machine const h100 = machine_of("h100-sxm", 1), a100 = machine_of("a100-sxm", 1);
    struct machine_plan const plan = {
        .chip = "tpu-v5e", .shape = "4x4", .profile = "ideal", .wrap = {-1, -1, -1}};
    struct machine tpu;
    struct error error = {0};
    assert_int_equal(machine_build(arena, &plan, &tpu, &error), STATUS_OK);
    struct group const ring = group_of(&h100), grid = group_of(&tpu);
    struct plan_protocol result;
    struct protocol_use use = {&h100, &ring, COLLECTIVE_ALL_REDUCE, algorithm_read("sharp"),
                               1000,  false, PROTOCOL_STANDS_ALONE};
    assert_int_equal(protocol_make(&use, PROTOCOL_LL, "/protocol", &result, &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.message, "Simple is"));
    refusals_hold(&error, __FILE__);
    struct group pair = group_of(&h100);
    pair.dimension[0].size = 2;
    use.group = &pair;
    assert_int_equal(protocol_make(&use, PROTOCOL_SIMPLE, "/protocol", &result, &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.message, "NCCL takes a ring"));
    refusals_hold(&error, __FILE__);
    use.group = &ring;
    use.machine = &a100;
    assert_int_equal(protocol_make(&use, PROTOCOL_SIMPLE, "/protocol", &result, &error),
                     STATUS_UNSUPPORTED);
    use = (struct protocol_use){&tpu, &grid, COLLECTIVE_ALL_REDUCE, algorithm_read("ring"),
                                1000, false, PROTOCOL_STANDS_ALONE};
    assert_int_equal(protocol_make(&use, PROTOCOL_LL, "/protocol", &result, &error),
                     STATUS_UNSUPPORTED);
    assert_string_equal(error.where, "/protocol");
    assert_int_equal(protocol_make(&use, PROTOCOL_NONE, "/protocol", &result, &error), STATUS_OK);
    assert_int_equal(result.wire_ppm, 0);
    enum protocol protocol;
    assert_int_equal(protocol_find("ll128", "--protocol", &protocol, &error), STATUS_OK);
    assert_int_equal(protocol, PROTOCOL_LL128);
    assert_int_equal(protocol_find("simpel", "--protocol", &protocol, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"Simple\""));
    refusals_hold(&error, __FILE__);
}

static enum status read_text(const char *text, struct tuner *ret_tuner, struct error *reterr)
{
    return tuner_read(arena, "t.csv", text, strlen(text), ret_tuner, reterr);
}

static void the_first_line_that_fits_decides(void **state)
{
    (void)state;
    struct tuner tuner;
    struct error error = {0};
    enum status const status = read_text("# comment\n\n"
                                         "allreduce,0,65536,tree,ll,2,1,-1\r\n"
                                         " allreduce , 0 ,\t100 , ring,LL128,-1,-1,-1,-1,-1\n"
                                         "allreduce,0,1000000,nvls,simple,-1,-1,8,4,-1\n"
                                         "allreduce,0,1000000,nvls,simple,-1,-1,8,1,1\n"
                                         "allreduce,0,1000000,nvls,simple,-1,-1,8,1,0\n"
                                         "allgather,5,9223372036854775807,flat-ring,simple,-1,2,-1",
                                         &tuner, &error);
    if (status != STATUS_OK) fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(tuner.rule_count, 6);
    const struct tuner_rule *rule = tuner_find(&tuner, COLLECTIVE_ALL_REDUCE, 65536, 1, 8);
    assert_string_equal(algorithm_text(&rule->algorithm).text, "double-tree");
    assert_int_equal(rule->protocol, PROTOCOL_LL);
    assert_int_equal(rule->line, 3);
    assert_int_equal(rule->channel_count, 2);
    assert_int_equal(rule->algorithm_column, 19);
    rule = tuner_find(&tuner, COLLECTIVE_ALL_REDUCE, 100, 2, 16);
    assert_int_equal(rule->line, 4);
    rule = tuner_find(&tuner, COLLECTIVE_ALL_REDUCE, 65537, 1, 8);
    assert_string_equal(algorithm_text(&rule->algorithm).text, "sharp");
    assert_int_equal(rule->line, 7); /* Other lines are for several operations, or registered. */
    assert_null(tuner_find(&tuner, COLLECTIVE_ALL_REDUCE, 65537, 1, 4));
    assert_null(tuner_find(&tuner, COLLECTIVE_ALL_GATHER, 4, 2, 4));
    rule = tuner_find(&tuner, COLLECTIVE_ALL_GATHER, 5, 2, 4);
    assert_string_equal(algorithm_text(&rule->algorithm).text, "flat-ring");
    assert_null(tuner_find(NULL, COLLECTIVE_ALL_REDUCE, 1, 1, 8));
}

static void a_malformed_line_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *message;
    } cases[] = {
        {"allreduce,0,1,ring,ll,-1,-1", "t.csv:1:26", "7 fields"},
        {"#\nallreduce,0,1,ring,ll,-1,-1,-1,-1,-1,-1", "t.csv:2:38", "more than 10"},
        {"allreduse,0,1,ring,ll,-1,-1,-1", "t.csv:1:1", "\"allreduce\""},
        {"allreduce,0,1,rign,ll,-1,-1,-1", "t.csv:1:15", "\"ring\""},
        {"allreduce,0,1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,ll,-1,-1,-"
         "1",
         "t.csv:1:15", "no algorithm"},
        {"allreduce,0,1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,ll,-1,-1,-"
         "1",
         "t.csv:1:15", "a field of 64 bytes"},
        {"allreduce,0,1,pat,ll,-1,-1,-1", "t.csv:1:15", "not modelled"},
        {"allreduce,0,1,ring,lll,-1,-1,-1", "t.csv:1:20", "\"LL\""},
        {"allreduce,0,1,ring,ll,-2,-1,-1", "t.csv:1:23", "-1 for any"},
        {"allreduce,0x,1,ring,ll,-1,-1,-1", "t.csv:1:11", "whole number"},
        {"allreduce,-1,1,ring,ll,-1,-1,-1", "t.csv:1:11", "whole number"},
        {"allreduce,,1,ring,ll,-1,-1,-1", "t.csv:1:11", "whole number"},
        {"allreduce,0,9223372036854775808,ring,ll,-1,-1,-1", "t.csv:1:13", "2^63"},
        {"allreduce,5,1,ring,ll,-1,-1,-1", "t.csv:1:13", "below"},
        {"\n\nallreduce,0,1,ring,ll,-1,-2,-1", "t.csv:3:26", "-1 for any"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tuner tuner;
        struct error error = {0};
        assert_int_not_equal(read_text(cases[i].text, &tuner, &error), STATUS_OK);
        assert_string_equal(error.where, cases[i].where);
        if (strstr(error.message, cases[i].message) == NULL) fail_msg("%s", error.message);
        refusals_hold(&error, __FILE__);
    }
}

static double estimated_s(const struct machine *machine, struct group group,
                          enum collective_kind kind, const char *algorithm, uint64_t bytes,
                          struct plan *ret_plan)
{
    struct plan_request request = {
        .kind = kind, .algorithm = algorithm_read(algorithm), .group = group, .size_bytes = bytes};
    struct error error = {0};
    plan_request_links(machine, &request);
    if (plan_build(arena, &request, "/plan", ret_plan, &error) != STATUS_OK)
        fail_msg("%s", error.message);
    struct collective_estimate estimate;
    collective_estimate(machine, ret_plan, NULL, &estimate);
    double const sum = estimate.alpha_s + estimate.beta_s_per_byte * (double)bytes;
    assert_true(sum > estimate.time_s * (1 - 1e-12) && sum < estimate.time_s * (1 + 1e-12));
    return estimate.time_s;
}

/* One axis of a torus: where the plan's own closed form is exact. */
static void an_axis_is_estimated_by_its_closed_form(void **state)
{
    (void)state;
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL};
    static const char *const algorithms[] = {"ring", "ring-one-way", "line"};
    struct machine_plan const plan = {
        .chip = "tpu-v5e", .shape = "16x16", .profile = "ideal", .wrap = {-1, -1, -1}};
    struct machine machine;
    struct error error = {0};
    assert_int_equal(machine_build(arena, &plan, &machine, &error), STATUS_OK);
    struct group group = group_of(&machine);
    group.dimension_count = 1;
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
            if (kinds[k] == COLLECTIVE_ALL_TO_ALL && a == 1) continue; /* There is none. */
            struct plan built;
            double const got =
                estimated_s(&machine, group, kinds[k], algorithms[a], 1u << 26, &built);
            double const wanted = (double)plan_closed_form_ps(&built, machine.chip.ici_bytes_per_s,
                                                              machine.chip.hop_latency_ps) *
                                  1e-12;
            if (got < wanted * (1 - 1e-6) || got > wanted * (1 + 1e-6))
                fail_msg("%s %s: %g s instead of %g", collective_kind_name(kinds[k]), algorithms[a],
                         got, wanted);
        }
}

static struct choose_ranking *ranked(const struct machine *machine, enum collective_kind kind,
                                     uint64_t bytes, bool protocols, const struct tuner *tuner)
{
    struct choose_args const args = {
        .machine = machine,
        .request = {.kind = kind, .group = group_of(machine), .size_bytes = bytes},
        .protocols = protocols,
        .tuner = tuner,
        .size_bytes = bytes,
    };
    struct choose_ranking *ranking = arena_take(arena, 1, sizeof *ranking);
    struct error error = {0};
    if (choose_rank(arena, &args, "/choose", ranking, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    for (uint32_t i = 1; i < ranking->count; i++)
        assert_true(ranking->rule != NULL || ranking->candidate[i].estimate.time_s >=
                                                 ranking->candidate[i - 1].estimate.time_s);
    return ranking;
}

static void the_cheapest_comes_first(void **state)
{
    (void)state;
    struct machine const h100 = machine_of("h100-sxm", 1);
    struct choose_ranking *big = ranked(&h100, COLLECTIVE_ALL_REDUCE, 1u << 30, false, NULL);
    assert_string_equal(algorithm_text(&big->candidate[0].algorithm).text,
                        "sharp"); /* V/W against 2V·7/(8·W). */
    assert_int_equal(big->candidate[0].protocol, PROTOCOL_NONE);
    assert_true(big->count > 1 && big->rule == NULL);
    assert_false(choose_by_protocols(&h100));
    struct choose_ranking *small = ranked(&h100, COLLECTIVE_ALL_TO_ALL, 1u << 12, true, NULL);
    struct choose_ranking *large = ranked(&h100, COLLECTIVE_ALL_TO_ALL, 1u << 30, true, NULL);
    assert_string_equal(algorithm_text(&small->candidate[0].algorithm).text, "direct");
    assert_int_equal(small->candidate[0].protocol, PROTOCOL_LL);
    assert_int_equal(large->candidate[0].protocol, PROTOCOL_SIMPLE);
    assert_int_equal(small->count, 2); /* Peers have no LL128. */
    struct machine_plan const plan = {.chip = "tpu-v5e",
                                      .shape = "8x4",
                                      .profile = "measured",
                                      .unrealisable = true,
                                      .wrap = {-1, -1, -1}};
    struct machine tpu;
    struct error error = {0};
    assert_int_equal(machine_build(arena, &plan, &tpu, &error), STATUS_OK);
    assert_false(choose_by_protocols(&tpu));
    struct choose_ranking *lines = ranked(&tpu, COLLECTIVE_ALL_GATHER, 1u << 25, false, NULL);
    assert_string_equal(algorithm_text(&lines->candidate[0].algorithm).text, "line");
}

/* "hierarchical" of the same sort on both levels is what that sort's own name builds. */
static void a_plan_is_ranked_once_by_its_own_name(void **state)
{
    (void)state;
    struct machine const h100 = machine_of("h100-sxm", 2);
    struct choose_ranking *ranking = ranked(&h100, COLLECTIVE_ALL_GATHER, 1u << 25, false, NULL);
    uint32_t direct = 0;
    for (uint32_t i = 0; i < ranking->count; i++) {
        if (strcmp(algorithm_text(&ranking->candidate[i].algorithm).text, "direct") == 0) direct++;
        assert_string_not_equal(algorithm_text(&ranking->candidate[i].algorithm).text,
                                "hierarchical");
    }
    assert_int_equal(direct, 1);
    assert_true(ranking->count > 3);
}

static void a_tuner_goes_before_what_is_cheaper(void **state)
{
    (void)state;
    struct machine const h100 = machine_of("h100-sxm", 1);
    struct tuner tuner;
    struct error error = {0};
    assert_int_equal(read_text("allreduce,0,4000000000,direct,ll128,-1,-1,-1\n"
                               "reducescatter,0,4000000000,line,simple,-1,-1,-1\n",
                               &tuner, &error),
                     STATUS_OK);
    struct choose_ranking *ranking = ranked(&h100, COLLECTIVE_ALL_REDUCE, 1u << 30, true, &tuner);
    assert_string_equal(algorithm_text(&ranking->candidate[0].algorithm).text, "direct");
    assert_int_equal(ranking->candidate[0].protocol, PROTOCOL_LL128);
    assert_int_equal(ranking->rule->line, 1);
    assert_true(ranking->candidate[1].estimate.time_s < ranking->candidate[0].estimate.time_s);
    struct choose_args const args = {
        .machine = &h100,
        .request = {.kind = COLLECTIVE_REDUCE_SCATTER,
                    .group = group_of(&h100),
                    .size_bytes = 1000},
        .protocols = true,
        .tuner = &tuner,
        .size_bytes = 1000,
    };
    assert_int_not_equal(choose_rank(arena, &args, "/choose", ranking, &error), STATUS_OK);
    assert_string_equal(error.where, "t.csv:2:28");
}

/* Direct exchange: one latency, and the book's forms of a node and between nodes. */
static void a_direct_exchange_is_estimated_by_the_books_forms(void **state)
{
    (void)state;
    struct machine const node = machine_of("h100-sxm", 1), pod = machine_of("h100-sxm", 4);
    struct plan plan;
    double const v = 1u << 30;
    double got =
        estimated_s(&node, group_of(&node), COLLECTIVE_ALL_GATHER, "direct", 1u << 30, &plan);
    assert_true(fabs(got / (v * 7 / 8 / 450e9 + 0.6e-6) - 1) < 1e-6);
    got = estimated_s(&node, group_of(&node), COLLECTIVE_ALL_TO_ALL, "direct", 1u << 30, &plan);
    assert_true(fabs(got / (v * 7 / 64 / 450e9 + 0.6e-6) - 1) < 1e-6);
    struct collective_estimate estimate;
    got = estimated_s(&pod, group_of(&pod), COLLECTIVE_ALL_TO_ALL, "flat-direct", 1u << 30, &plan);
    collective_estimate(&pod, &plan, NULL, &estimate);
    assert_true(fabs(estimate.beta_s_per_byte * 400e9 * 16 / 3 - 1) < 1e-6);
    /* Too many to go through message by message: 72 times 63 of 4608 are beyond a node of 72. */
    struct machine const racks = machine_of("gb200-nvl72", 64);
    (void)estimated_s(&racks, group_of(&racks), COLLECTIVE_ALL_TO_ALL, "flat-direct",
                      UINT64_C(4608) * 4608 * 1000, &plan);
    collective_estimate(&racks, &plan, NULL, &estimate);
    double const sent = 72.0 * 63 / (4608.0 * 4608);
    assert_true(fabs(estimate.beta_s_per_byte * 50e9 / sent - 1) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_those_of_nccl_and_of_measurements),
        cmocka_unit_test(no_factor_sends_faster_than_the_link),
        cmocka_unit_test(bytes_in_a_node_take_what_is_measured),
        cmocka_unit_test(a_graph_has_latencies_of_nccl),
        cmocka_unit_test(rings_across_nodes_pay_for_posting_and_for_the_plateau),
        cmocka_unit_test(a_protocol_that_cannot_be_used_is_refused),
        cmocka_unit_test(the_first_line_that_fits_decides),
        cmocka_unit_test(a_malformed_line_is_refused_with_its_place),
        cmocka_unit_test(an_axis_is_estimated_by_its_closed_form),
        cmocka_unit_test(a_direct_exchange_is_estimated_by_the_books_forms),
        cmocka_unit_test(the_cheapest_comes_first),
        cmocka_unit_test(a_plan_is_ranked_once_by_its_own_name),
        cmocka_unit_test(a_tuner_goes_before_what_is_cheaper),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
