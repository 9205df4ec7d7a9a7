/* What passes took: means over stages, however many passes of a kind each of them has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/trace/trace.h"
#include "tools/podsim/pipeline/pipeline_run_times.h"

enum { RANKS = 4, MICROBATCHES = 16, SHARED_PS = 40 };

/* Stages are unlike: the later, the longer; and so are the kinds. */
static int64_t pass_ps(const struct schedule_pass *pass)
{
    static const int64_t each[SCHEDULE_KIND_COUNT] = {[SCHEDULE_FORWARD] = 100,
                                                      [SCHEDULE_BACKWARD] = 250,
                                                      [SCHEDULE_INPUT] = 150,
                                                      [SCHEDULE_WEIGHT] = 100};
    return each[pass->kind] * (1 + pass->stage * pass->stage);
}

static struct schedule_times measure(struct arena *arena, const char *name, bool mixes)
{
    struct error error = {0};
    const struct schedule_form *form = NULL;
    struct schedule_request request = {.rank_count = RANKS, .microbatch_count = MICROBATCHES};
    struct trace_role roles[RANKS] = {{0}};
    struct schedule schedule;
    struct schedule_times times;
    assert_int_equal(schedule_form_parse(name, "/test", &form, &request.chunk_count, &error),
                     STATUS_OK);
    assert_int_equal(schedule_build(arena, form, &request, "/test", &schedule, &error), STATUS_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct schedule_rank *list = &schedule.rank[r];
        roles[r].pass_ps = arena_take(arena, list->count, sizeof(int64_t));
        roles[r].pass_count = list->count;
        for (uint32_t i = 0; i < list->count; i++) {
            roles[r].pass_ps[i] += pass_ps(&list->pass[i]);
            if (!list->pass[i].paired || !mixes) continue;
            /* Most of the second is played in slots of the first. */
            roles[r].pass_ps[i] += pass_ps(&list->pass[i + 1]) - SHARED_PS - 7;
            roles[r].pass_ps[i + 1] = 7 - pass_ps(&list->pass[i + 1]);
        }
    }
    assert_int_equal(pipeline_run_times_measure(arena, &schedule, roles, &times, &error),
                     STATUS_OK);
    return times;
}

static void each_stage_counts_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t sum; /* Of 1 + s^2 over the stages, */
        int64_t stages;
        bool pairs, splits;
    } rows[] = {
        {"1f1b", 4 + 14, 4, false, false},   {"interleaved:2", 8 + 140, 8, false, false},
        {"zb-h1", 4 + 14, 4, false, true},   {"zb-v", 8 + 140, 8, false, true},
        {"dualpipe", 4 + 14, 4, true, true}, {"dualpipev", 8 + 140, 8, true, true},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t mixes = 0; mixes < 2; mixes++) {
            struct arena *arena = arena_create(0);
            struct schedule_times const times = measure(arena, rows[i].name, mixes != 0);
            int64_t const sum = rows[i].sum, stages = rows[i].stages;
            int64_t const shared_ps = mixes != 0 ? SHARED_PS : 0;
            assert_int_equal(times.forward, 100 * sum / stages);
            assert_int_equal(times.input + times.weight, 250 * sum / stages);
            assert_int_equal(times.input, (rows[i].splits ? 150 : 125) * sum / stages);
            assert_int_equal(times.pair, rows[i].pairs ? 350 * sum / stages - shared_ps : 0);
            arena_destroy(arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stage_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
