/* Ragged AllToAlls: drawn alike everywhere, as often as chance has it, proved, played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/collective/plan.h"
#include "sim/collective/ragged.h"
#include "sim/machine/machine.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"

static const struct group node8 = {{{0, 8, 1, false, true, "gpu"}}, 1};

static int setup(void **state)
{
    *state = arena_create(0);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

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

static struct plan built(void **state, const struct plan_request *request)
{
    struct plan plan;
    struct error error = {0};
    if (plan_build(*state, request, "/test", &plan, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    return plan;
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
            struct plan plan = built(state, &request);
            struct error error = {0};
            if (plan_check(&plan, &error) != STATUS_OK) fail_msg("%s", error.message);
            assert_false(plan_item_is_uniform(&plan, &plan.item[0]));
        }
}

static void the_same_seed_draws_the_same_tokens_and_another_others(void **state)
{
    struct plan_request request = request_of(&node8, 1000, 64, 8, 250000);
    struct plan const one = built(state, &request), again = built(state, &request);
    assert_memory_equal(one.ragged_units, again.ragged_units, 64 * sizeof(uint32_t));
    request.ragged.seed++;
    struct plan const other = built(state, &request);
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
    struct plan_request const request = request_of(&node8, 100000, 64, 8, 0);
    struct plan const plan = built(state, &request);
    uint64_t missed_ppm = 1000000;
    for (uint64_t i = 0; i < 8; i++) missed_ppm = missed_ppm * (56 - i) / (64 - i);
    uint64_t const wanted = 100000 * (1000000 - missed_ppm) / 1000000;
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(plan.ragged_units[i] % 2, 0);
        assert_in_range(plan.ragged_units[i] / 2, wanted - 800, wanted + 800);
    }
    /* All experts: a copy for every rank. */
    struct plan_request const all = request_of(&node8, 10, 8, 8, 1000000);
    struct plan const everywhere = built(state, &all);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(everywhere.ragged_units[i], 20);
    struct ragged_load const load = ragged_load(&everywhere);
    assert_int_equal(load.sent_bytes, 8 * 7 * 10 * 100);
    assert_int_equal(load.sent_least_bytes, 7 * 10 * 100);
    assert_int_equal(load.received_most_bytes, 7 * 10 * 100);
}

static void skew_makes_some_ranks_wait_for_more(void **state)
{
    uint64_t before = 0;
    for (uint32_t skew = 0; skew <= 1000000; skew += 500000) {
        struct plan_request const request = request_of(&node8, 10000, 8, 1, skew);
        struct plan const plan = built(state, &request);
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
        struct error error = {0};
        struct plan_request request =
            request_of(&node8, rows[i].tokens, rows[i].experts, rows[i].top_k, rows[i].skew_ppm);
        request.algorithm = rows[i].algorithm;
        assert_int_equal(plan_build(*state, &request, "/test", &plan, &error), rows[i].status);
        if (strstr(error.message, rows[i].reason) == NULL) fail_msg("%s", error.message);
    }
    struct error error = {0};
    struct plan_request request = request_of(&node8, 10, 16, 2, 0);
    request.size_bytes = 799;
    assert_int_equal(plan_build(*state, &request, "/test", &plan, &error), STATUS_INVALID);
    assert_non_null(strstr(error.message, "less than a token of 100 bytes"));
    request.size_bytes = 800;
    request.kind = COLLECTIVE_ALL_GATHER;
    assert_int_equal(plan_build(*state, &request, "/test", &plan, &error), STATUS_INVALID);
    assert_non_null(strstr(error.message, "AllGather cannot be ragged"));
}

static void a_matrix_that_loses_tokens_is_caught(void **state)
{
    struct plan_request const request = request_of(&node8, 10, 16, 1, 0);
    struct plan plan = built(state, &request);
    struct error error = {0};
    uint32_t units[64];
    memcpy(units, plan.ragged_units, sizeof units);
    plan.ragged_units = units;
    assert_int_equal(plan_check(&plan, &error), STATUS_OK);
    uint32_t at = 9;
    while (units[at] == 0) at++;
    units[at] -= 2;
    assert_int_equal(plan_check(&plan, &error), STATUS_INVALID);
    assert_non_null(strstr(error.message, "copies of 10 tokens"));
}

/* One token a rank leaves most pairs with nothing to say. */
static void pairs_without_tokens_are_played_too(void **state)
{
    struct machine_plan const machine_plan = {
        .chip = "h100-sxm", .nodes = 2, .profile = "ideal", .wrap = {-1, -1, -1}};
    struct measure_options const options = {.engine = "fast"};
    struct machine machine;
    struct group group;
    struct measured few, many;
    struct error error = {0};
    assert_int_equal(machine_build(*state, &machine_plan, &machine, &error), STATUS_OK);
    assert_int_equal(measure_group(&machine, NULL, "/test", &group, &error), STATUS_OK);
    struct plan_request request = request_of(&group, 1, 64, 2, 0);
    plan_request_links(&machine, &request);
    if (measure_run(*state, &machine, &request, 1, "/test", &options, &few, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    request.size_bytes *= 10000;
    if (measure_run(*state, &machine, &request, 1, "/test", &options, &many, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
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
    return cmocka_run_group_tests(tests, setup, teardown);
}
