/*
 * Pipeline schedules: each proved for 1 to 16 ranks and 1 to 64 microbatches (every pass once, no
 * circle, activations as announced), held to its published bubble where that is true, and to what
 * comes out where it is not.
 *
 * The figures were found with an independent in-order scheduler; sources of the formulas are with
 * the forms (workloads/schedules).
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_play.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"
#include "tests/support/sampling.h"

enum { HALF_PPM = PPM_ONE / 2 };

/* F, I, W, hop and O of a rank's whole share, in hundredths. */
struct times {
    uint32_t forward, input, weight, hop, pair;
};

/* As every run has one, on which a builder must not depend otherwise. */
static bool goes_on(void *owner)
{
    (void)owner;
    return false;
}

static struct cancel const goes_on_cancel = {goes_on, NULL};

/* A tick is a hundredth, divided by the chunks. */
static struct schedule_request request_of(uint32_t ranks, uint32_t microbatches, uint32_t chunks,
                                          const struct times *times)
{
    return (struct schedule_request){
        .rank_count = ranks,
        .microbatch_count = microbatches,
        .chunk_count = chunks,
        .kept_ppm = HALF_PPM,
        .times = {.forward = times->forward,
                  .input = times->input,
                  .weight = times->weight,
                  .pair = times->pair,
                  .hop = (int64_t)times->hop * chunks},
        .cancel = &goes_on_cancel,
    };
}

struct played {
    struct schedule schedule;
    struct schedule_played result;
    struct schedule_request request;
    const struct schedule_form *form;
};

static struct played play(struct arena *arena, const char *name, uint32_t ranks,
                          uint32_t microbatches, const struct times *times)
{
    struct played played;
    struct error error = {0};
    uint32_t chunks = 0;
    if (schedule_form_parse(name, "--schedules", &played.form, &chunks, &error) != STATUS_OK)
        fail_msg("%s", error.message);
    played.request = request_of(ranks, microbatches, chunks, times);
    if (schedule_build(arena, played.form, &played.request, name, &played.schedule, &error) !=
            STATUS_OK ||
        schedule_play(arena, &played.schedule, &played.request.times, NULL, name, &played.result,
                      &error) != STATUS_OK)
        fail_msg("%s: %s", name, error.message);
    return played;
}

static void peaks_check(const struct played *played)
{
    const struct schedule_request *request = &played->request;
    bool const exact =
        request->microbatch_count >= 2 * request->rank_count && played->form->list_all == NULL;
    for (uint32_t r = 0; r < request->rank_count; r++) {
        struct schedule_peak const announced = played->form->peak(request, r);
        uint64_t const most =
            (uint64_t)announced.whole * PPM_ONE + (uint64_t)announced.kept * HALF_PPM;
        uint64_t const held = schedule_peak_ppm(&played->schedule, r, HALF_PPM);
        if (held > most || (exact && held != most))
            fail_msg("%s, %u ranks, %u microbatches: rank %u holds %llu ppm instead of %llu",
                     played->schedule.name, request->rank_count, request->microbatch_count, r,
                     (unsigned long long)held, (unsigned long long)most);
    }
}

/* schedule_build() checks: every pass once, in order, on its rank, and no circle. */
static void every_schedule_is_proved(void **state)
{
    (void)state;
    static const struct times times = {100, 130, 70, 10, 0};
    uint32_t walked = 0, built = 0, refused = 0;
    for (uint32_t i = 0; i < schedule_form_count; i++)
        for (uint32_t ranks = 1; ranks <= 16; ranks++)
            for (uint32_t microbatches = 1; microbatches <= 64; microbatches++) {
                const struct schedule_form *form = schedule_form_table[i];
                if (sampling_skips(&walked)) continue;
                uint32_t const chunks = form->chunks != 0 ? form->chunks : 2 + microbatches % 3;
                struct schedule_request const request =
                    request_of(ranks, microbatches, chunks, &times);
                struct arena *arena = arena_create(0);
                struct error error = {0};
                struct played played = {.form = form, .request = request};
                enum status const status =
                    schedule_build(arena, form, &request, form->name, &played.schedule, &error);
                if (status == STATUS_OK) {
                    peaks_check(&played);
                    assert_int_equal(played.schedule.chunk_count, chunks);
                    built++;
                } else {
                    if (form->refuses == NULL || strstr(error.message, "nearest") == NULL)
                        fail_msg("%s, %u ranks, %u microbatches: %s", form->name, ranks,
                                 microbatches, error.message);
                    refused++;
                }
                arena_destroy(arena);
            }
    assert_true(built > 11000 / sampling_of() && refused > 1000 / sampling_of());
}

static void published_bubbles_are_met_where_they_hold(void **state)
{
    (void)state;
    static const struct times sets[] = {
        {100, 100, 100, 0, 0},   {100, 130, 70, 0, 0},    {100, 90, 110, 0, 0},
        {100, 130, 120, 0, 0},   {200, 100, 100, 0, 0},   {70, 100, 40, 0, 0},
        {100, 50, 100, 0, 0},    {100, 100, 100, 0, 200}, {100, 100, 100, 0, 260},
        {100, 100, 100, 0, 300}, {100, 100, 100, 0, 350}};
    uint32_t met = 0, missed = 0;
    for (uint32_t i = 0; i < schedule_form_count; i++)
        for (uint32_t ranks = 2; ranks <= 16; ranks *= 2)
            for (uint32_t rounds = 1; rounds <= 4; rounds++)
                for (uint32_t t = 0; t < sizeof sets / sizeof *sets; t++) {
                    const struct schedule_form *form = schedule_form_table[i];
                    struct error error = {0};
                    struct played played = {
                        .form = form,
                        .request =
                            request_of(ranks, 2 * rounds * ranks,
                                       form->chunks == 0 ? rounds + 1 : form->chunks, &sets[t])};
                    struct arena *arena = arena_create(0);
                    assert_int_equal(schedule_build(arena, form, &played.request, form->name,
                                                    &played.schedule, &error),
                                     STATUS_OK);
                    assert_int_equal(schedule_play(arena, &played.schedule, &played.request.times,
                                                   NULL, form->name, &played.result, &error),
                                     STATUS_OK);
                    struct schedule_formula const formula = form->formula(&played.request);
                    int64_t const bubble = formula.measure == SCHEDULE_MAKESPAN
                                               ? played.result.bubble_makespan
                                               : played.result.bubble_per_rank;
                    if (formula.exact && bubble != formula.bubble_ticks)
                        fail_msg("%s, %u ranks, %u microbatches, times %u: %lld instead of %lld",
                                 played.schedule.name, ranks, 2 * rounds * ranks, t,
                                 (long long)bubble, (long long)formula.bubble_ticks);
                    met += formula.exact;
                    missed += formula.measure != SCHEDULE_NO_FORMULA && !formula.exact &&
                              bubble != formula.bubble_ticks;
                    arena_destroy(arena);
                }
    assert_true(met > 600 && missed > 100);
}

/* With as many microbatches as a formula asks for it is met; with one less it makes no claim. */
static void formulas_claim_to_be_met_from_their_first_microbatch_on(void **state)
{
    (void)state;
    static const struct times equal = {100, 100, 100, 0, 0};
    static const struct {
        const char *name;
        uint32_t rounds, less; /* Of the ranks. */
    } firsts[] = {{"looped-bfs:3", 1, 0}, {"zb-h1", 1, 0}, {"zb-h2", 2, 1}, {"zb-v", 2, 0}};
    for (uint32_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        for (uint32_t ranks = 2; ranks <= 8; ranks++) {
            struct arena *arena = arena_create(0);
            uint32_t const first = firsts[i].rounds * ranks - firsts[i].less;
            struct played played = play(arena, firsts[i].name, ranks, first, &equal);
            struct schedule_formula const formula = played.form->formula(&played.request);
            int64_t const bubble = formula.measure == SCHEDULE_MAKESPAN
                                       ? played.result.bubble_makespan
                                       : played.result.bubble_per_rank;
            assert_true(formula.exact);
            assert_int_equal(bubble, formula.bubble_ticks);
            played.request.microbatch_count--;
            assert_false(played.form->formula(&played.request).exact);
            arena_destroy(arena);
        }
}

/* Makespan less work, and per rank, in thousandths of a rank's unit. */
struct expected {
    const char *name;
    uint32_t ranks, microbatches;
    struct times times;
    int32_t makespan, per_rank; /* -1: not asked. */
};

static void expect(const struct expected *row)
{
    struct arena *arena = arena_create(0);
    struct played const played = play(arena, row->name, row->ranks, row->microbatches, &row->times);
    int64_t const chunks = played.schedule.chunk_count;
    int64_t const makespan = played.result.bubble_makespan * 10,
                  per_rank = played.result.bubble_per_rank * 10;
    if ((row->makespan >= 0 && makespan != row->makespan * chunks) ||
        (row->per_rank >= 0 && per_rank != row->per_rank * chunks))
        fail_msg("%s of %u, %u microbatches: makespan %lld/%lld, per rank %lld/%lld", row->name,
                 row->ranks, row->microbatches, (long long)makespan, (long long)chunks,
                 (long long)per_rank, (long long)chunks);
    arena_destroy(arena);
}

/* Where the published formulas stop being true. */
static void counter_examples_come_out(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {"zb-h1", 8, 32, {100, 130, 120, 0, 0}, 9100, 9100}, /* Formula: 7.7. */
        {"zb-h2", 8, 32, {100, 100, 100, 0, 0}, 7000, 0},    /* A skew of (p-1)F is left. */
        {"zb-h2", 8, 32, {100, 90, 110, 0, 0}, 7000, 0},     /* Formula: -2.1. */
        {"zb-v", 8, 32, {100, 100, 100, 0, 0}, 3500, 0},
        {"zb-v", 8, 32, {100, 130, 70, 0, 0}, 4550, 4200},      /* Formula: 0. */
        {"dualpipe", 8, 32, {100, 130, 70, 0, 300}, 7800, -1},  /* Formula: 8.7. */
        {"dualpipe", 8, 32, {100, 120, 100, 0, 320}, 6600, -1}, /* 7.2. */
        {"dualpipe", 8, 32, {100, 90, 110, 0, 300}, 6000, -1},  /* 5.1. */
        {"dualpipe", 8, 32, {100, 100, 100, 0, 255}, 4650, -1}, /* The worst rank. */
        /* DualPipeV's times are per stage: half of these on 4 ranks. */
        {"dualpipev", 4, 32, {100, 130, 70, 0, 300}, 3900, -1},
        {"dualpipev", 4, 32, {100, 120, 100, 0, 320}, 3300, -1},
        {"dualpipev", 4, 32, {100, 90, 110, 0, 300}, 3000, -1},
        /* V-Half: 0.28, 0.40 and 0.46 of 1F1B's; V-Min: 0.61, 0.64 and 0.66, but where I and W
         * differ more than twice 1F1B's. */
        {"v-half", 4, 16, {100, 100, 100, 0, 0}, 2500, -1},
        {"v-half", 8, 32, {100, 100, 100, 0, 0}, 8500, -1},
        {"v-half", 16, 64, {100, 100, 100, 0, 0}, 21000, -1},
        {"v-min", 4, 16, {100, 100, 100, 0, 0}, 5500, -1},
        {"v-min", 8, 32, {100, 100, 100, 0, 0}, 13500, -1},
        {"v-min", 16, 64, {100, 100, 100, 0, 0}, 29500, -1},
        {"v-min", 8, 32, {100, 130, 70, 0, 0}, 43200, -1},
        {"1f1b", 8, 32, {100, 130, 70, 0, 0}, 21000, -1},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) expect(&rows[i]);
}

/* ZB-H1 and ZB-H2 as they fit every case tried, whatever F, I and W. */
static void zero_bubble_schedules_follow_their_true_forms(void **state)
{
    (void)state;
    for (uint32_t p = 4; p <= 8; p += 4)
        for (int32_t i = 70; i <= 140; i += 14)
            for (int32_t w = 60; w <= 160; w += 20) {
                struct times const times = {100, (uint32_t)i, (uint32_t)w, 0, 0};
                struct arena *arena = arena_create(0);
                struct played const h1 = play(arena, "zb-h1", p, 4 * p, &times);
                struct played const h2 = play(arena, "zb-h2", p, 4 * p, &times);
                int32_t const n = (int32_t)p - 1, both = 100 + i;
                int32_t h1_most = both - w > 100 ? both - w : 100, h2_most = i - 100;
                h1_most = i > h1_most ? i : h1_most;
                h2_most = both - 2 * w > h2_most ? both - 2 * w : h2_most;
                assert_int_equal(h1.result.bubble_makespan, n * h1_most);
                assert_int_equal(h1.result.bubble_per_rank, n * (i + (w < 100 ? 100 - w : 0)));
                assert_int_equal(h2.result.bubble_makespan,
                                 n * (both - 2 * w > 100 ? both - 2 * w : 100));
                assert_int_equal(h2.result.bubble_per_rank, n * (h2_most > 0 ? h2_most : 0));
                arena_destroy(arena);
            }
}

/* Eight ranks, 32 microbatches, F = I = W: latency between ranks reorders the ranking. */
static void hops_reorder_the_ranking(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b",         "interleaved:2", "interleaved:4",
                                        "looped-bfs:4", "zb-h1",         "zb-v"};
    static const struct {
        uint32_t hop;
        int32_t makespan[6];
    } rows[] = {{0, {21000, 10500, 5250, 5250, 7000, 3500}},
                {5, {24400, 12000, 8350, 5950, 8400, 5150}},
                {10, {27800, 13500, 11450, 6650, 9800, 6800}},
                {20, {34600, 16500, 17650, 8050, 12600, 10100}}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t k = 0; k < 6; k++)
            expect(&(struct expected){
                names[k], 8, 32, {100, 100, 100, rows[i].hop, 0}, rows[i].makespan[k], -1});
}

/* The list scheduler is never worse than 1F1B, and fills what weight gradients can fill. */
static void the_list_scheduler_fills_bubbles(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 16; ranks *= 2)
        for (uint32_t weight = 50; weight <= 150; weight += 25) {
            struct times const times = {100, 120, weight, 0, 0};
            struct arena *arena = arena_create(0);
            struct played const plain = play(arena, "1f1b", ranks, 4 * ranks, &times);
            struct played const filled = play(arena, "auto", ranks, 4 * ranks, &times);
            assert_true(filled.result.makespan <
                        plain.result.makespan - (int64_t)(ranks - 1) * weight / 2);
            arena_destroy(arena);
        }
}

/* Canaries. */
static void is_caught(struct schedule *schedule, const char *words)
{
    struct error error = {0};
    assert_int_not_equal(schedule_check(schedule, NULL, "/test", &error), STATUS_OK);
    if (strstr(error.message, words) == NULL) print_error("%s\n", error.message);
    assert_non_null(strstr(error.message, words));
    refusals_hold(&error, __FILE__);
}

static void swap(struct schedule_pass *a, struct schedule_pass *b)
{
    struct schedule_pass const kept = *a;
    *a = *b;
    *b = kept;
}

static void broken_schedules_are_caught(void **state)
{
    (void)state;
    static const struct times times = {100, 100, 100, 0, 0};
    struct arena *arena = arena_create(0);
    struct played played = play(arena, "zb-h1", 4, 8, &times);
    struct schedule_rank *rank = &played.schedule.rank[2];
    uint32_t const count = rank->count;
    rank->count--;
    is_caught(&played.schedule, "never does the weight gradient of microbatch 7");
    rank->count = count;
    rank->pass[0].stage = 1;
    is_caught(&played.schedule, "rank 2, pass 0, 1F0: the stage lies on another rank");
    rank->pass[0].stage = 2;
    rank->pass[1].microbatch = 0;
    is_caught(&played.schedule, "2F0: it has been done");
    rank->pass[1].microbatch = 1;
    rank->pass[0].kind = SCHEDULE_INPUT;
    is_caught(&played.schedule, "its forward pass is not before it");
    rank->pass[0].kind = SCHEDULE_FORWARD;
    rank->pass[0].paired = true;
    is_caught(&played.schedule, "overlap");
    rank->pass[0].paired = false;
    /* Rank 1 wants the gradient of microbatch 0 before it has passed on microbatch 1, rank 2 the
     * other way about. */
    played = play(arena, "1f1b", 2, 4, &times);
    swap(&played.schedule.rank[0].pass[1], &played.schedule.rank[0].pass[2]);
    swap(&played.schedule.rank[1].pass[1], &played.schedule.rank[1].pass[2]);
    is_caught(&played.schedule, "rank 0 at 0B0 for 1B0, rank 1 at 1F1 for 0F1");
    arena_destroy(arena);
}

static void what_cannot_be_is_refused_with_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
        uint32_t ranks, microbatches;
    } rows[] = {
        {"interleaved:2", "nearest counts are 8 and 10", 4, 9},
        {"dualpipe", "nearest to 3 are 2 and 4", 3, 12},
        {"dualpipe", "nearest to 7 is 8", 4, 7},
        {"dualpipe", "nearest to 11 are 10 and 12", 4, 11},
        {"dualpipev", "nearest is 8", 4, 5},
        {"1f1b", "not between 1 and", 0, 5},
        {"gpipe", "not between 1 and", 5, 0},
        {"interleaved:64", "more than", 512, 100000},
    };
    static const struct times times = {1, 1, 1, 0, 0};
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct schedule_form *form = NULL;
        struct schedule schedule;
        struct error error = {0};
        uint32_t chunks = 0;
        assert_int_equal(schedule_form_parse(rows[i].name, "", &form, &chunks, &error), STATUS_OK);
        struct schedule_request const request =
            request_of(rows[i].ranks, rows[i].microbatches, chunks, &times);
        assert_int_not_equal(schedule_build(arena, form, &request, "", &schedule, &error),
                             STATUS_OK);
        if (strstr(error.message, rows[i].words) == NULL) fail_msg("%s", error.message);
        refusals_hold(&error, __FILE__);
    }
    static const char *const bad[][2] = {{"zbh1", "nearest is \"zb-h1\""},
                                         {"interleaved:1", "from 2 to"},
                                         {"interleaved:x", "from 2 to"},
                                         {"gpipe:2", "always has 1"}};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct schedule_form *form = NULL;
        struct error error = {0};
        uint32_t chunks = 0;
        assert_int_not_equal(schedule_form_parse(bad[i][0], "", &form, &chunks, &error), STATUS_OK);
        if (strstr(error.message, bad[i][1]) == NULL) fail_msg("%s", error.message);
        refusals_hold(&error, __FILE__);
    }
    arena_destroy(arena);
}

struct patience {
    uint32_t asked, most;
};

static bool is_at_an_end(void *owner)
{
    struct patience *patience = owner;
    return ++patience->asked > patience->most;
}

/* Whatever is reached when it stops, what was there stays; asked to go on, it does. */
static void building_stops_when_asked(void **state)
{
    (void)state;
    static const struct times times = {100, 130, 70, 10, 0};
    static const char untouched[] = "as it was";
    for (uint32_t i = 0; i < schedule_form_count; i++) {
        const struct schedule_form *form = schedule_form_table[i];
        struct patience patience = {.most = UINT32_MAX};
        struct cancel const cancel = {is_at_an_end, &patience};
        struct arena *arena = arena_create(0);
        struct schedule schedule = {.name = untouched};
        struct error error = {0};
        struct schedule_request request =
            request_of(8, 64, form->chunks == 0 ? 2 : form->chunks, &times);
        request.cancel = &cancel;
        assert_int_equal(schedule_build(arena, form, &request, "", &schedule, &error), STATUS_OK);
        uint32_t const asked = patience.asked;
        assert_true(asked >= 24);
        schedule = (struct schedule){.name = untouched};
        for (uint32_t k = 0; k < 16; k++) {
            patience = (struct patience){.most = (uint32_t)((uint64_t)asked * k / 16)};
            assert_int_equal(schedule_build(arena, form, &request, "", &schedule, &error),
                             STATUS_INTERRUPTED);
            assert_int_equal(patience.asked, patience.most + 1);
            assert_ptr_equal(schedule.name, untouched);
            assert_int_equal(schedule.rank_count, 0);
        }
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_is_proved),
        cmocka_unit_test(published_bubbles_are_met_where_they_hold),
        cmocka_unit_test(formulas_claim_to_be_met_from_their_first_microbatch_on),
        cmocka_unit_test(counter_examples_come_out),
        cmocka_unit_test(zero_bubble_schedules_follow_their_true_forms),
        cmocka_unit_test(hops_reorder_the_ranking),
        cmocka_unit_test(the_list_scheduler_fills_bubbles),
        cmocka_unit_test(broken_schedules_are_caught),
        cmocka_unit_test(what_cannot_be_is_refused_with_the_nearest),
        cmocka_unit_test(building_stops_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
