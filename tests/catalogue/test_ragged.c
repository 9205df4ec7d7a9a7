/* Ragged AllToAlls: drawn alike everywhere, as often as chance has it, proved, played. */
#include <string.h>

#include "sim/collective/ragged.h"
#include "sim/measure/measure.h"
#include "tests/support/case.h"

static const struct group node8 = {{{0, 8, 1, false, true, "gpu"}}, 1};

static struct plan_request request_of(const struct group *group, uint64_t tokens,
                                      uint32_t expert_count, uint32_t top_k, uint32_t skew_ppm)
{
    return (struct plan_request){
        .kind = COLLECTIVE_ALL_TO_ALL,
        .group = *group,
        .size_bytes = tokens * 100 * group_rank_count(group),
        .ragged = {expert_count, top_k, 100, 42, skew_ppm},
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
            struct plan_request const request = request_of(&groups[g], 50, 4 * ranks, 3, skew);
            struct plan plan = case_plan(&request);
            case_ok(plan_check(&plan, &case_error));
            assert_false(plan_item_is_uniform(&plan, &plan.item[0]));
        }
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
        {10, 12, 2, 0, NULL, "12 experts do not lie evenly on 8 ranks", STATUS_INVALID},
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
        request.algorithm = rows[i].algorithm;
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

static void a_matrix_that_loses_tokens_is_caught(void **state)
{
    (void)state;
    struct plan_request const request = request_of(&node8, 10, 16, 1, 0);
    struct plan plan = case_plan(&request);
    uint32_t units[64];
    memcpy(units, plan.ragged_units, sizeof units);
    plan.ragged_units = units;
    case_ok(plan_check(&plan, &case_error));
    uint32_t at = 9;
    while (units[at] == 0) at++;
    units[at] -= 2;
    case_refused(plan_check(&plan, &case_error), STATUS_INVALID, NULL, "copies of 10 tokens");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ragged_exchange_is_proved),
        cmocka_unit_test(the_same_seed_draws_the_same_tokens_and_another_others),
        cmocka_unit_test(copies_are_as_many_as_chance_has_it),
        cmocka_unit_test(skew_makes_some_ranks_wait_for_more),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(a_matrix_that_loses_tokens_is_caught),
        cmocka_unit_test(pairs_without_tokens_are_played_too),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
