/* Ragged AllToAlls: drawn alike everywhere, as often as chance has it, proved, played. */
#include <string.h>

#include "sim/collective/ragged.h"
#include "sim/measure/measure.h"
#include "tests/support/case.h"

static const struct group node8 = {{{0, 8, 1, false, true, "gpu"}}, 1};
static const struct group nodes4 = {{{0, 8, 1, false, true, "gpu"}, {1, 4, 1, false, true, "node"}},
                                    2};

static struct plan_request request_of(const struct group *group, uint64_t tokens,
                                      uint32_t expert_count, uint32_t top_k, uint32_t skew_ppm)
{
    return (struct plan_request){
        .kind = COLLECTIVE_ALL_TO_ALL,
        .group = *group,
        .size_bytes = tokens * 100 * group_rank_count(group),
        .ragged = {.expert_count = expert_count,
                   .top_k = top_k,
                   .token_bytes = 100,
                   .seed = 42,
                   .skew_ppm = skew_ppm},
    };
}

/* Copies that a rank sends and gets, itself left out. */
static uint64_t sent(const struct plan *plan, uint32_t ranks, uint32_t rank)
{
    uint64_t copies = 0;
    for (uint32_t to = 0; to < ranks; to++)
        if (to != rank) copies += plan->ragged_units[rank * ranks + to] / 2;
    return copies;
}

static uint64_t got(const struct plan *plan, uint32_t ranks, uint32_t rank)
{
    uint64_t copies = 0;
    for (uint32_t from = 0; from < ranks; from++)
        copies += plan->ragged_units[from * ranks + rank] / 2;
    return copies;
}

static void every_ragged_exchange_is_proved(void **state)
{
    (void)state;
    static const struct group groups[] = {
        {{{0, 2, 1, false, true, "gpu"}}, 1},
        {{{0, 16, 1, true, false, "x"}}, 1},
        {{{0, 8, 1, false, true, "gpu"}, {1, 4, 1, false, true, "node"}}, 2},
        {{{0, 3, 1, false, false, "x"}, {1, 4, 1, true, false, "y"}}, 2},
    };
    for (uint32_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (uint32_t skew = 0; skew <= 1000000; skew += 500000) {
            uint32_t const ranks = (uint32_t)group_rank_count(&groups[g]);
            struct plan_request request = request_of(&groups[g], 50, 4 * ranks, 3, skew);
            struct plan plan = case_plan(&request);
            case_ok(plan_check(&plan, &case_error));
            assert_false(plan_item_is_uniform(&plan, &plan.item[0]));
            /* The last rank has none, the one before it fewer than its buffer holds. */
            request.ragged.tokens = 50 * (ranks - 1) - 7;
            plan = case_plan(&request);
            case_ok(plan_check(&plan, &case_error));
            assert_int_equal(sent(&plan, ranks, ranks - 1), 0);
            assert_int_not_equal(sent(&plan, ranks, 0), 0);
        }
}

/* A unit is half a token: of one with an odd number of bytes, the larger half. */
static void tokens_of_odd_bytes_are_carried_whole(void **state)
{
    (void)state;
    for (uint32_t bytes = 99; bytes <= 101; bytes++) {
        struct plan_request request = request_of(&node8, 50, 32, 3, 0);
        request.ragged.token_bytes = bytes;
        request.size_bytes = UINT64_C(50) * 8 * bytes;
        struct plan plan = case_plan(&request);
        assert_int_equal(plan.item[0].unit_bytes, (bytes + 1) / 2);
        case_ok(plan_check(&plan, &case_error));
        plan.item[0].unit_bytes++;
        case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "whole tokens");
        plan.item[0].unit_bytes -= 2;
        case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "whole tokens");
    }
}

/* From the outermost level in, whatever the order of the group's dimensions; whole or in pieces. */
static void every_exchange_over_levels_is_proved(void **state)
{
    (void)state;
    static const struct group groups[] = {
        {{{0, 8, 1, false, true, "gpu"}, {1, 4, 1, false, true, "node"}}, 2},
        {{{1, 4, 1, false, true, "node"}, {0, 8, 1, false, true, "gpu"}}, 2},
        {{{0, 2, 1, true, false, "x"},
          {1, 3, 1, false, true, "gpu"},
          {2, 4, 1, false, true, "node"}},
         3},
        {{{0, 2, 1, false, false, "x"},
          {1, 3, 1, true, false, "y"},
          {3, 5, 1, false, true, "slice"}},
         3},
    };
    for (uint32_t g = 0; g < 2 * sizeof groups / sizeof *groups; g++)
        for (uint32_t pieces = 0; pieces <= 70; pieces = 3 * pieces + 1) {
            const struct group *group = &groups[g / 2];
            uint32_t const ranks = (uint32_t)group_rank_count(group);
            struct plan_request request = request_of(group, 50, 4 * ranks, 5, 300000);
            request.algorithm = algorithm_read("hierarchical");
            request.piece_count = pieces;
            request.ragged.returns = g % 2 == 1;
            struct plan const plan = case_plan(&request);
            assert_int_equal(plan.item_count, group->dimension_count);
            assert_int_equal(plan.item[0].piece_count, pieces == 0   ? plan.item[1].piece_count
                                                       : pieces < 50 ? pieces
                                                                     : 50);
            case_ok(plan_check(&plan, &case_error));
        }
}

/* Tokens of nodes of 8 ranks, counted one by one: copies for ranks of other nodes, and for nodes.
 */
struct tally {
    uint64_t to_ranks, to_nodes;
    uint64_t left[8]; /* [node]: the latter, by the sender's. */
};

static struct tally tally_of(const struct plan_request *request)
{
    struct tally tally = {.to_ranks = 0};
    uint32_t const ranks = (uint32_t)group_rank_count(&request->group);
    struct ragged_draw draw;
    uint32_t wanted[RAGGED_TOP_K_MAX];
    case_ok(ragged_draw_begin(case_arena, &request->ragged, ranks, &draw, &case_error));
    for (uint32_t source = 0; source < ranks; source++)
        for (uint64_t token = 0; token < ragged_tokens(request); token++) {
            uint32_t nodes = 0;
            for (uint32_t count = ragged_draw_next(&draw, wanted); count > 0; count--) {
                uint32_t const node = wanted[count - 1] / 8;
                if (node == source / 8) continue;
                tally.to_ranks++;
                if ((nodes >> node & 1) == 0) tally.left[source / 8]++;
                nodes |= 1u << node;
            }
        }
    for (uint32_t node = 0; node < 8; node++) tally.to_nodes += tally.left[node];
    return tally;
}

/* What the ranks of a node send to others in the first item, which goes over the network. */
static uint64_t left_node(const struct plan *plan, uint32_t node)
{
    const struct plan_item *item = &plan->item[0];
    uint64_t units = 0;
    for (uint32_t piece = 0; piece < item->piece_count; piece++)
        for (uint32_t gpu = 0; gpu < 8; gpu++)
            for (uint32_t to = 0; to < item->size; to++)
                if (to != node)
                    units += item->ragged_units[(piece * 32 + node * 8 + gpu) * item->size + to];
    return units / 2;
}

/* Of 256 experts, 64 a node and 8 a rank, a token wants 8: it goes to
 * 3·(1 - C(192,8)/C(256,8)) other nodes, and to 24·(1 - C(248,8)/C(256,8)) ranks there. */
static void one_copy_of_a_token_goes_to_a_node(void **state)
{
    (void)state;
    struct plan_request request = request_of(&nodes4, 2000, 256, 8, 0);
    struct tally const tally = tally_of(&request);
    double node_missed = 1, rank_missed = 1;
    for (uint32_t i = 0; i < 8; i++) {
        node_missed *= (192.0 - i) / (256.0 - i);
        rank_missed *= (248.0 - i) / (256.0 - i);
    }
    double const tokens = 32 * 2000;
    case_near((double)tally.to_nodes, tokens * 3 * (1 - node_missed), 0.005);
    case_near((double)tally.to_ranks, tokens * 24 * (1 - rank_missed), 0.005);
    assert_true(tally.to_ranks > 2 * tally.to_nodes);

    struct plan const flat = case_plan(&request);
    request.algorithm = algorithm_read("hierarchical");
    struct plan const plan = case_plan(&request);
    assert_memory_equal(plan.ragged_units, flat.ragged_units, 32 * 32 * sizeof(uint32_t));
    for (uint32_t node = 0; node < 4; node++)
        assert_int_equal(left_node(&plan, node), tally.left[node]);
    assert_int_equal(ragged_farthest_bytes(&plan), tally.to_nodes * 100);
    assert_int_equal(ragged_farthest_bytes(&flat), tally.to_ranks * 100);
}

/* What was tallied is what NICs carry, in whichever engine; copies inside a node go by NVLink. */
static void network_carries_what_was_tallied(void **state)
{
    (void)state;
    static const struct measure_options options[] = {{.engine = "fast"}, {.engine = "reference"}};
    struct machine const machine = case_machine("h100-sxm:nodes=4");
    struct group const group = case_group(&machine, NULL);
    struct plan_request request = request_of(&group, 300, 256, 8, 200000);
    struct tally const tally = tally_of(&request);
    plan_request_links(&machine, &request);
    int64_t time_ps[2] = {0};
    for (uint32_t chained = 0; chained < 2; chained++) {
        struct measured measured[2];
        request.algorithm = algorithm_read(chained ? "hierarchical" : "flat-direct");
        for (uint32_t i = 0; i < 2; i++)
            case_ok(measure_run(case_arena, &machine, &request, 1, "/test", &options[i],
                                &measured[i], &case_error));
        assert_int_equal(measured[0].trace.digest, measured[1].trace.digest);
        assert_int_equal(measured[0].fold.chip_count, 32);
        const struct plan *plan = &measured[0].plans[0];
        uint64_t const inside = chained ? ragged_item_load(plan, &plan->item[1]).sent_bytes
                                        : ragged_load(plan).sent_bytes - tally.to_ranks * 100;
        const struct trace_link *link = measured[0].trace.link;
        assert_int_equal(link[machine_level_port(1, 0, false)].sum_bytes,
                         (chained ? tally.to_nodes : tally.to_ranks) * 100);
        assert_int_equal(link[machine_level_port(0, 0, false)].sum_bytes, inside);
        time_ps[chained] = measured[0].time_ps[0];
    }
    assert_true(time_ps[1] > 0 && time_ps[1] < time_ps[0]);
}

static void the_same_seed_draws_the_same_tokens_and_another_others(void **state)
{
    (void)state;
    struct plan_request request = request_of(&node8, 1000, 64, 8, 250000);
    struct plan const one = case_plan(&request), again = case_plan(&request);
    assert_memory_equal(one.ragged_units, again.ragged_units, 64 * sizeof(uint32_t));
    request.ragged.seed++;
    struct plan const other = case_plan(&request);
    assert_memory_not_equal(one.ragged_units, other.ragged_units, 64 * sizeof(uint32_t));
    /* What this seed has always drawn: no compiler, no machine changes it. */
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 64; i++) sum = sum * 31 + one.ragged_units[i];
    assert_int_equal(sum, UINT64_C(0x86ede3e9ca8e6344));
}

/* A rank with e of E experts is missed by k different ones with probability
 * C(E-e, k) / C(E, k); to a thousandth of the tokens, as 100,000 draws have it. */
static void copies_are_as_many_as_chance_has_it(void **state)
{
    (void)state;
    struct plan_request const request = request_of(&node8, 100000, 64, 8, 0);
    struct plan const plan = case_plan(&request);
    uint64_t missed_ppm = 1000000;
    for (uint64_t i = 0; i < 8; i++) missed_ppm = missed_ppm * (56 - i) / (64 - i);
    uint64_t const wanted = 100000 * (1000000 - missed_ppm) / 1000000;
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(plan.ragged_units[i] % 2, 0);
        assert_in_range(plan.ragged_units[i] / 2, wanted - 800, wanted + 800);
    }
    /* All experts: a copy for every rank. */
    struct plan_request const all = request_of(&node8, 10, 8, 8, 1000000);
    struct plan const everywhere = case_plan(&all);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(everywhere.ragged_units[i], 20);
    struct ragged_load const load = ragged_load(&everywhere);
    assert_int_equal(load.sent_bytes, 8 * 7 * 10 * 100);
    assert_int_equal(load.sent_least_bytes, 7 * 10 * 100);
    assert_int_equal(load.received_most_bytes, 7 * 10 * 100);
}

static void skew_makes_some_ranks_wait_for_more(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (uint32_t skew = 0; skew <= 1000000; skew += 500000) {
        struct plan_request const request = request_of(&node8, 10000, 8, 1, skew);
        struct plan const plan = case_plan(&request);
        uint64_t most = 0, all = 0, total = 0;
        for (uint32_t r = 0; r < 8; r++) {
            most = got(&plan, 8, r) > most ? got(&plan, 8, r) : most;
            all += got(&plan, 8, r);
            assert_true(sent(&plan, 8, r) <= 10000);
            total += sent(&plan, 8, r);
        }
        struct ragged_load const load = ragged_load(&plan);
        assert_int_equal(load.sent_bytes, total * 100);
        assert_true(load.sent_least_bytes <= load.sent_bytes / 8);
        assert_true(load.received_most_bytes >= load.sent_bytes / 8);
        assert_true(load.received_most_bytes < most * 100); /* Its own are not sent. */
        assert_int_equal(all, 80000);
        assert_true(most > before + 1000);
        before = most;
    }
    /* Zipf over 8: the most popular expert has 1 of 2.718 parts. */
    assert_in_range(before, 80000 * 1000 / 2718 - 600, 80000 * 1000 / 2718 + 600);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t tokens;
        uint32_t experts, top_k, skew_ppm;
        const char *algorithm, *reason;
        enum status status;
    } rows[] = {
        {10, 12, 2, 0, NULL, "12 experts cannot lie evenly on 8 ranks", STATUS_INVALID},
        {10, 16, 0, 0, NULL, "1 to 16 can be asked for", STATUS_INVALID},
        {10, 16, 17, 0, NULL, "a token cannot go to 17 experts", STATUS_INVALID},
        {10, 16, 2, 1000001, NULL, "more than one", STATUS_INVALID},
        {10, 16, 2, 0, "bruck", "exchanged directly", STATUS_UNSUPPORTED},
        {10, 80000, 2, 0, NULL, "80000 experts on 8 ranks are more", STATUS_LIMIT},
        {1u << 24, 16, 2, 0, NULL, "too many", STATUS_LIMIT},
    };
    struct plan plan;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan_request request =
            request_of(&node8, rows[i].tokens, rows[i].experts, rows[i].top_k, rows[i].skew_ppm);
        request.algorithm = algorithm_read(rows[i].algorithm);
        case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), rows[i].status,
                     NULL, rows[i].reason);
    }
    struct plan_request request = request_of(&node8, 10, 16, 2, 0);
    request.size_bytes = 799;
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_INVALID,
                 NULL, "less than a token of 100 bytes");
    request.size_bytes = 800;
    request.kind = COLLECTIVE_ALL_GATHER;
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_INVALID,
                 NULL, "AllGather cannot be ragged");
}

/* Whomever the tokens are from, and for, be it the rank itself. */
static void a_matrix_that_loses_or_adds_tokens_is_caught(void **state)
{
    (void)state;
    struct plan_request const request = request_of(&node8, 10, 16, 1, 0);
    struct plan plan = case_plan(&request);
    uint32_t units[64];
    memcpy(units, plan.ragged_units, sizeof units);
    plan.ragged_units = units;
    case_ok(plan_check(&plan, &case_error));
    for (uint32_t at = 0; at < 64; at++) {
        uint32_t const drawn = units[at];
        units[at] = drawn == 0 ? 2 : drawn - 2;
        case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "were drawn");
        units[at] = drawn;
    }
}

/* A token that changes its way, from one rail to another, in either half of it. */
static void a_token_that_leaves_its_rail_is_caught(void **state)
{
    (void)state;
    struct plan_request request = request_of(&nodes4, 10, 64, 3, 0);
    request.algorithm = algorithm_read("hierarchical");
    for (uint32_t i = 0; i < 2; i++) {
        struct plan plan = case_plan(&request);
        uint32_t const size = plan.item[i].size;
        uint32_t units[32 * 8];
        assert_int_equal(plan.item[i].piece_count, 1);
        memcpy(units, plan.item[i].ragged_units, 32 * size * sizeof *units);
        plan.item[i].ragged_units = units;
        case_ok(plan_check(&plan, &case_error));
        uint32_t at = 1;
        while (units[at] == 0) at++;
        units[at] -= 2;
        units[at + size] += 2;
        case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "were drawn");
    }
}

/* Inside first, a token would leave for a node by several rails. */
static void levels_in_the_wrong_order_are_caught(void **state)
{
    (void)state;
    struct plan_request request = request_of(&nodes4, 10, 64, 6, 0);
    request.algorithm = algorithm_read("hierarchical");
    struct plan plan = case_plan(&request);
    struct plan_item const first = plan.item[0];
    case_ok(plan_check(&plan, &case_error));
    plan.item[0] = plan.item[1];
    plan.item[1] = first;
    plan.item[0].after = PLAN_NO_ITEM;
    plan.item[1].after = 0;
    plan.item[0].last = false;
    plan.item[1].last = true;
    for (uint32_t l = 0; l < plan.lane_count; l++) plan.lane[l].item ^= 1;
    case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "a second copy of a token");
}

/* One token a rank leaves most pairs with nothing to say. */
static void pairs_without_tokens_are_played_too(void **state)
{
    (void)state;
    struct measure_options const options = {.engine = "fast"};
    struct machine const machine = case_machine("h100-sxm:nodes=2");
    struct group const group = case_group(&machine, NULL);
    struct measured few, many;
    struct plan_request request = request_of(&group, 1, 64, 2, 0);
    plan_request_links(&machine, &request);
    case_ok(measure_run(case_arena, &machine, &request, 1, "/test", &options, &few, &case_error));
    request.size_bytes *= 10000;
    case_ok(measure_run(case_arena, &machine, &request, 1, "/test", &options, &many, &case_error));
    assert_true(few.time_ps[0] > 0 && many.time_ps[0] > few.time_ps[0]);
}

/* Requests whose tokens go elsewhere share no plan. */
static void exchanges_that_differ_in_a_field_are_not_equal(void **state)
{
    (void)state;
    struct plan_request const request = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .ragged = {.expert_count = 16, .top_k = 2, .token_bytes = 8, .tokens = 5, .seed = 1}};
    struct plan_request other[7];
    assert_true(plan_request_equal(&request, &request));
    for (size_t i = 0; i < 7; i++) other[i] = request;
    other[0].ragged.expert_count = 32;
    other[1].ragged.top_k = 4;
    other[2].ragged.token_bytes = 16;
    other[3].ragged.tokens = 6;
    other[4].ragged.seed = 2;
    other[5].ragged.skew_ppm = 1;
    other[6].ragged.returns = true;
    for (size_t i = 0; i < 7; i++) {
        assert_false(plan_ragged_equal(&request.ragged, &other[i].ragged));
        assert_false(plan_request_equal(&request, &other[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ragged_exchange_is_proved),
        cmocka_unit_test(tokens_of_odd_bytes_are_carried_whole),
        cmocka_unit_test(every_exchange_over_levels_is_proved),
        cmocka_unit_test(one_copy_of_a_token_goes_to_a_node),
        cmocka_unit_test(network_carries_what_was_tallied),
        cmocka_unit_test(the_same_seed_draws_the_same_tokens_and_another_others),
        cmocka_unit_test(copies_are_as_many_as_chance_has_it),
        cmocka_unit_test(skew_makes_some_ranks_wait_for_more),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(a_matrix_that_loses_or_adds_tokens_is_caught),
        cmocka_unit_test(a_token_that_leaves_its_rail_is_caught),
        cmocka_unit_test(levels_in_the_wrong_order_are_caught),
        cmocka_unit_test(pairs_without_tokens_are_played_too),
        cmocka_unit_test(exchanges_that_differ_in_a_field_are_not_equal),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
