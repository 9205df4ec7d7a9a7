/* Published rows as `podsim validate` plays them: what stops one that takes too long, or too
 * little. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "tests/unit/published_case.h"
#include "tools/podsim/common/generate.h"
#include "tools/podsim/common/worker.h"

/* What a generation reports while it is played. */
struct seen {
    double share;
    uint64_t events, events_max;
};

static bool see(void *owner, const struct replay_progress *progress)
{
    struct seen *seen = owner;
    assert_true(progress->share >= seen->share && progress->share <= 1);
    assert_true(progress->events >= seen->events);
    seen->share = progress->share;
    seen->events = progress->events;
    return seen->events <= seen->events_max;
}

/* Events of the whole program are the first; those of all parts follow. */
static enum status generation_play(const struct published_row *row, uint64_t events_max,
                                   uint64_t *ret_begin, uint64_t *ret_seen)
{
    struct session session;
    struct session_source source = {.path = row->id};
    struct generation generation;
    struct seen seen = {.events_max = events_max};
    struct replay_options const none = {0}, options = {.watch = see, .watch_owner = &seen};
    case_ok(published_scenario(case_arena, row, &source.text, &case_error));
    source.text_bytes = strlen(source.text);
    case_ok(session_build(&session, &source, SESSION_PROGRAM, &case_error));
    case_ok(session_replay(&session, &source, &none, &case_error));
    *ret_begin = session.trace.work.events;
    enum status const status = generate_play(&session, &source, &options, &generation, &case_error);
    if (status == STATUS_OK) assert_int_equal(seen.events, session.trace.work.events);
    *ret_seen = seen.events;
    session_close(&session);
    return status;
}

static struct validate_result validated(const struct published_row *row, uint64_t events_max)
{
    struct published_row own = *row;
    const struct published_row *rows[] = {&own};
    struct published_set set = {.name = "T1", .row = rows, .row_count = 1};
    struct validate_result result = {0};
    struct validate_score score = {0};
    bool wanted = true;
    struct validate validate = {
        .arena = case_arena,
        .events_max = events_max,
        .published = {.row = &own, .row_count = 1, .set = &set, .set_count = 1},
        .result = &result,
        .wanted = &wanted,
        .score = &score};
    case_ok(
        worker_run(validate_play, &validate, (struct progress_words){"rows", NULL}, &case_error));
    return result;
}

static void parts_of_a_generation_count_towards_the_most_events(void **state)
{
    const struct published_row *row = row_of("vllm-ci-h200-llama3.1-8b-tp1-b8");
    uint64_t begin = 0, all = 0, seen = 0;
    (void)state;
    case_ok(generation_play(row, UINT64_MAX, &begin, &all));
    assert_true(begin < all - 1);
    assert_int_equal(generation_play(row, all - 1, &begin, &seen), STATUS_INTERRUPTED);
    assert_int_equal(seen, all);
    assert_int_equal(generation_play(row, begin, &begin, &seen), STATUS_INTERRUPTED);
    assert_true(seen < all);
    struct validate_result const refused = validated(row, all - 1);
    assert_int_equal(refused.state, VALIDATE_REFUSED);
    assert_non_null(strstr(refused.why, "it takes more than"));
    struct validate_result const played = validated(row, all);
    assert_int_equal(played.state, VALIDATE_PLAYED);
    assert_true(played.predicted_s > 0);
}

static void a_step_below_its_roofline_ends_as_soon_as_it_is_played(void **state)
{
    struct session session;
    struct session_source source = {.path = "a step"};
    struct replay_options const options = {0};
    (void)state;
    case_ok(published_scenario(case_arena, row_of("vllm-ci-h200-llama3.1-8b-tp1-b8"), &source.text,
                               &case_error));
    source.text_bytes = strlen(source.text);
    case_ok(session_build(&session, &source, SESSION_PROGRAM, &case_error));
    case_ok(session_replay(&session, &source, &options, &case_error));
    session.roofline.lower_s = units_seconds(session.trace.step_ps) * 1.000001;
    assert_int_equal(session_replay(&session, &source, &options, &case_error), STATUS_STUCK);
    session_close(&session);
}

/* The FLOP of a row are read without its stack, whose kernels a key of the row replaces. */
static void rows_that_replace_kernels_are_played(void **state)
{
    (void)state;
    struct validate_result const played =
        validated(row_of("korthikanti-a100-22B-full"), UINT64_MAX);
    if (played.state != VALIDATE_PLAYED) fail_msg("%s", played.why);
    assert_true(played.predicted_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_below_its_roofline_ends_as_soon_as_it_is_played),
        cmocka_unit_test(parts_of_a_generation_count_towards_the_most_events),
        cmocka_unit_test(rows_that_replace_kernels_are_played),
    };
    return cmocka_run_group_tests(tests, published_up, case_arena_down);
}
