/*
 * Where schedules change places: the scenarios of docs/rankings.md. Each test plays two or more
 * schedules in full, and the same orders with given times and nothing else (a hop at most, the time
 * that one message takes when it is alone): the second, and the published formula, keep a ranking
 * which the first turns round. With sanitizers the smaller ones are played.
 */
#include <stdio.h>

#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_play.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { SETTING_BYTES = 64, SETTINGS = 3, STAGES = 4 };

static const char *const fifo = "/run/arbitration=\"fifo\"";

#define FOLDER "scenarios/pipeline/"

/* What a mean rank spends on all of its passes. */
struct spent {
    int64_t forward_ps, backward_ps;
};

static void play_schedule(struct play *play, const char *path, const char *schedule,
                          uint32_t microbatches, const char *more)
{
    char text[2][SETTING_BYTES];
    (void)snprintf(text[0], SETTING_BYTES, "/workload/schedule=\"%s\"", schedule);
    (void)snprintf(text[1], SETTING_BYTES, "/workload/accumulate=%u", microbatches);
    struct scenario_setting const settings[SETTINGS] = {
        {.text = text[0]}, {.text = text[1]}, {.text = more}};
    struct play_options const options = {.settings = settings,
                                         .setting_count = more == NULL ? 2 : 3};
    play_run_file(play, path, &options);
    assert_int_equal(play->trace.role_count, STAGES);
}

static int64_t step_of(const char *path, const char *schedule, uint32_t microbatches,
                       const char *more)
{
    struct play play;
    play_schedule(&play, path, schedule, microbatches, more);
    int64_t const step_ps = play.trace.step_ps;
    play_close(&play);
    return step_ps;
}

static struct spent spent_of(const char *path, uint32_t microbatches, const char *more)
{
    struct play play;
    struct spent spent = {0};
    play_schedule(&play, path, "1f1b", microbatches, more);
    for (uint32_t r = 0; r < STAGES; r++) {
        const struct trace_role *role = &play.trace.roles[r];
        spent.forward_ps += (role->phase[PROGRAM_PHASE_FORWARD].compute_ps +
                             role->phase[PROGRAM_PHASE_FORWARD].exposed_ps) /
                            STAGES;
        spent.backward_ps += (role->phase[PROGRAM_PHASE_BACKWARD].compute_ps +
                              role->phase[PROGRAM_PHASE_BACKWARD].exposed_ps) /
                             STAGES;
    }
    play_close(&play);
    return spent;
}

/* The makespan with the same work for every schedule and count, and the published bubble. */
static int64_t abstract_of(const struct spent *spent, const char *name, uint32_t microbatches,
                           int64_t hop_ps, int64_t *ret_formula)
{
    struct arena *arena = arena_create(0);
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct schedule schedule;
    struct schedule_played played;
    case_ok(schedule_form_parse(name, "/", &form, &chunks, &case_error));
    int64_t const parts = (int64_t)microbatches * (chunks == 0 ? 1 : chunks);
    struct schedule_request const request = {
        .rank_count = STAGES,
        .microbatch_count = microbatches,
        .chunk_count = chunks,
        .times = {.forward = spent->forward_ps / parts,
                  .input = spent->backward_ps / (2 * parts),
                  .weight = spent->backward_ps / (2 * parts),
                  .hop = hop_ps},
    };
    case_ok(schedule_build(arena, form, &request, "/", &schedule, &case_error));
    case_ok(schedule_play(arena, &schedule, &request.times, NULL, "/", &played, &case_error));
    int64_t const formula = form->formula(&request).bubble_ticks;
    if (ret_formula != NULL) *ret_formula = formula;
    arena_destroy(arena);
    return played.makespan;
}

/* That by formula and by abstract play with that hop the first is faster than the second. */
static void abstractly_faster(const struct spent *spent, const char *fast,
                              uint32_t fast_microbatches, const char *slow,
                              uint32_t slow_microbatches, int64_t hop_ps)
{
    int64_t fast_bubble = 0, slow_bubble = 0;
    int64_t const fast_ps = abstract_of(spent, fast, fast_microbatches, hop_ps, &fast_bubble);
    int64_t const slow_ps = abstract_of(spent, slow, slow_microbatches, hop_ps, &slow_bubble);
    assert_true(fast_bubble < slow_bubble);
    assert_true(fast_ps < slow_ps);
}

/* In full: of two steps the first is faster by at least so many thousandths. */
static void assert_faster(int64_t fast_ps, int64_t slow_ps, int64_t per_mille)
{
    assert_true(fast_ps * (1000 + per_mille) < slow_ps * 1000);
}

/* Chunks make a microbatch go round more often, and each time it waits for a hop. */
static void far_stages_like_fewer_chunks(void **state)
{
    (void)state;
    static const char *const path = FOLDER "llama3-8b-pp4-h100-32-far.json";
    static const char *const near = "/machine/network={}";
    struct spent const spent = spent_of(path, 16, near);
    abstractly_faster(&spent, "interleaved:8", 16, "interleaved:4", 16, 0);
    abstractly_faster(&spent, "interleaved:4", 16, "interleaved:2", 16, 0);
    assert_faster(step_of(path, "interleaved:8", 16, near),
                  step_of(path, "interleaved:4", 16, near), 3);
    assert_faster(step_of(path, "interleaved:4", 16, near),
                  step_of(path, "interleaved:2", 16, near), 25);
    int64_t const two = step_of(path, "interleaved:2", 16, NULL);
    int64_t const four = step_of(path, "interleaved:4", 16, NULL);
    int64_t const eight = step_of(path, "interleaved:8", 16, NULL);
    int64_t const breadth = step_of(path, "looped-bfs:4", 16, NULL);
    assert_faster(two, four, 9);
    assert_faster(four, eight, 100);
    assert_faster(breadth, two, 40);
    assert_faster(step_of(path, "1f1b", 16, NULL), eight, 80);
    /* It loses a fiftieth to hops. */
    assert_faster(breadth, step_of(path, "looped-bfs:4", 16, near) * 103 / 100, 0);
}

/* Through oversubscribed leaves all replicas send at once; alone, a message is as fast as ever. */
static void crowded_leaves_like_fewer_chunks(void **state)
{
    (void)state;
    if (sampling_of() > 1) return;
    static const char *const path = FOLDER "llama3-8b-pp4-h100-1024.json";
    static const char *const even = "/machine/network/leaf/oversubscription=1";
    static const char *const sixteen = "/machine/network/leaf/oversubscription=16";
    /* 4,096 tokens' activations over 8 GPUs: 4 MiB at 50 GB/s, and cables and switches. */
    int64_t const hop_ps = units_duration_ps(UINT64_C(4096) * 4096 * 2 / 8, UINT64_C(50000000000)) +
                           5 * TIME_PS_PER_US;
    struct spent const spent = spent_of(path, 16, even);
    abstractly_faster(&spent, "looped-bfs:8", 16, "interleaved:4", 16, hop_ps);
    abstractly_faster(&spent, "interleaved:8", 16, "interleaved:4", 16, 0);
    abstractly_faster(&spent, "looped-bfs:4", 16, "interleaved:2", 16, hop_ps);
    assert_faster(step_of(path, "looped-bfs:8", 16, even), step_of(path, "interleaved:4", 16, even),
                  15);
    assert_faster(step_of(path, "looped-bfs:4", 16, even), step_of(path, "interleaved:2", 16, even),
                  20);
    assert_faster(step_of(path, "interleaved:4", 16, NULL), step_of(path, "looped-bfs:8", 16, NULL),
                  40);
    assert_faster(step_of(path, "interleaved:2", 16, sixteen),
                  step_of(path, "looped-bfs:4", 16, sixteen), 20);
}

/* Weights are gathered for each microbatch: more of them gather more often. */
static void regathering_likes_fewer_microbatches(void **state)
{
    (void)state;
    static const char *const path = FOLDER "llama3-8b-pp4-fsdp-h100-32.json";
    struct spent const spent = spent_of(path, 8, NULL);
    abstractly_faster(&spent, "1f1b", 32, "1f1b", 8, 0);
    abstractly_faster(&spent, "interleaved:4", 32, "1f1b", 8, 0);
    abstractly_faster(&spent, "looped-bfs:4", 16, "1f1b", 16, 0);
    assert_faster(step_of(path, "1f1b", 8, NULL), step_of(path, "interleaved:4", 32, NULL), 300);
    /* Breadth first, what an end stage gathers beside its layers comes all at once: its bubble is
     * a fourth, and its step the same. In one queue for all streams it is slower. */
    assert_faster(step_of(path, "1f1b", 16, NULL),
                  step_of(path, "looped-bfs:4", 16, NULL) * 1010 / 1000, 0);
    assert_faster(step_of(path, "1f1b", 16, fifo), step_of(path, "looped-bfs:4", 16, fifo), 5);
    assert_faster(step_of(path, "looped-bfs:4", 8, NULL), step_of(path, "interleaved:4", 8, NULL),
                  10);
}

/* Breadth first is behind where weights are gathered for each pass, and leads where they stay. */
static void kept_weights_like_breadth(void **state)
{
    (void)state;
    if (sampling_of() > 1) return;
    static const char *const path = FOLDER "llama3-8b-pp4-fsdp16-h100-64.json";
    static const char *const stage = "/workload/regather=\"stage\"";
    struct spent const spent = spent_of(path, 16, stage);
    abstractly_faster(&spent, "looped-bfs:4", 16, "1f1b", 16, 0);
    assert_faster(step_of(path, "interleaved:4", 16, NULL), step_of(path, "looped-bfs:4", 16, NULL),
                  40);
    assert_faster(step_of(path, "1f1b", 16, fifo), step_of(path, "looped-bfs:4", 16, fifo), 5);
    int64_t const breadth = step_of(path, "looped-bfs:4", 16, stage);
    assert_faster(breadth, step_of(path, "interleaved:4", 16, stage), 10);
    assert_faster(breadth, step_of(path, "1f1b", 16, stage), 100);
}

/* Each op has an overhead and short matmuls are slow: more microbatches take longer in all. */
static void overheads_like_fewer_microbatches(void **state)
{
    (void)state;
    if (sampling_of() > 1) return;
    static const char *const path = FOLDER "llama3-8b-pp4-h100-32-short.json";
    static const char *const ideal = "/machine/profile=\"ideal\"";
    struct spent const spent = spent_of(path, 16, NULL);
    abstractly_faster(&spent, "interleaved:8", 64, "interleaved:8", 16, 0);
    abstractly_faster(&spent, "interleaved:8", 64, "1f1b", 16, 0);
    assert_faster(step_of(path, "interleaved:8", 64, ideal),
                  step_of(path, "interleaved:8", 16, ideal), 10);
    int64_t const many = step_of(path, "interleaved:8", 64, NULL);
    assert_faster(step_of(path, "interleaved:8", 16, NULL), many, 80);
    assert_faster(step_of(path, "1f1b", 16, NULL), many, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_stages_like_fewer_chunks),
        cmocka_unit_test(crowded_leaves_like_fewer_chunks),
        cmocka_unit_test(regathering_likes_fewer_microbatches),
        cmocka_unit_test(kept_weights_like_breadth),
        cmocka_unit_test(overheads_like_fewer_microbatches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
