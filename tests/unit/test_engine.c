/* Engine: both queues against a plain scan of what was posted. */
#include <string.h>

#include "sim/engine/engine.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"

enum { MODEL_PENDING_MAX = 4000, MODEL_CHANNELS = 7 };

struct model_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
};

/* How far ahead the handler posts. */
enum delays {
    DELAYS_TIES,    /* Few instants, few orders: nearly everything is shared. */
    DELAYS_RANDOM,  /* Anything within a range. */
    DELAYS_OCTAVES, /* From 0 to the far future, each power of two equally often. */
    DELAYS_NOW,     /* Mostly at once, with smaller, equal and larger orders. */
    DELAYS_CLUSTER, /* Much within a few ps, the rest far off: a hard case for bucket widths. */
    DELAYS_COUNT,
};

struct model {
    struct model_event pending[MODEL_PENDING_MAX];
    uint32_t pending_count;
    uint32_t pending_goal;
    uint64_t posts_left;
    uint64_t random;
    uint32_t chip_count;
    enum delays delays;
    bool pieces_allowed; /* A list may come in pieces, between which smaller keys may be posted. */
    int64_t last_at_ps;
    uint64_t last_order;
    uint64_t handled;
};

static int64_t model_delay_ps(struct model *model)
{
    uint64_t const random = case_random(&model->random) >> 20; /* 44 bits: an instant. */
    switch (model->delays) {
    case DELAYS_TIES:
        return (int64_t)(random % 4) * 1000;
    case DELAYS_RANDOM:
        return (int64_t)(random % 1000003);
    case DELAYS_OCTAVES:
        return (int64_t)(random >> (random % 44));
    case DELAYS_NOW:
        return random % 8 == 0 ? (int64_t)(random >> 8) % 50 : 0;
    case DELAYS_CLUSTER:
        return random % 5 < 2 ? (int64_t)(random >> 8) % 10 : (int64_t)(random >> 8) % (1 << 30);
    case DELAYS_COUNT:
        break;
    }
    return 0;
}

static void model_post(struct model *model, struct engine *engine)
{
    bool const few = model->delays == DELAYS_TIES || model->delays == DELAYS_NOW;
    struct model_event event = {.at_ps = engine_now_ps(engine) + model_delay_ps(model)};
    event.key = case_random(&model->random) % (few ? 5 : 1000);
    event.chip = (uint32_t)(case_random(&model->random) % model->chip_count);
    assert_true(model->pending_count < MODEL_PENDING_MAX);
    model->pending[model->pending_count++] = event;
    engine_post(engine, event.at_ps, event.key, (uint32_t)(event.key % MODEL_CHANNELS), event.chip);
}

/* Takes the event out of the model and checks that it was there and that none comes before it. */
static void model_take(struct model *model, struct model_event event, bool first)
{
    uint32_t found = MODEL_PENDING_MAX;
    for (uint32_t i = 0; i < model->pending_count; i++) {
        const struct model_event *other = &model->pending[i];
        if (other->at_ps == event.at_ps && other->key == event.key && other->chip == event.chip)
            found = i;
        if (!first) continue;
        assert_true(other->at_ps >= event.at_ps);
        assert_true(other->at_ps > event.at_ps || other->key >= event.key);
    }
    assert_true(found < model->pending_count);
    model->pending[found] = model->pending[--model->pending_count];
    model->handled++;
}

static void model_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct model *model = owner;
    assert_int_equal(now_ps, engine_now_ps(engine));
    assert_true(count > 0);
    bool const same = now_ps == model->last_at_ps && key == model->last_order;
    bool const strict = !(same && model->pieces_allowed);
    model->last_at_ps = now_ps;
    model->last_order = key;
    for (uint32_t i = 0; i < count; i++)
        model_take(model, (struct model_event){now_ps, key, chips[i]}, strict && i == 0);
    while (model->posts_left > 0 && model->pending_count < model->pending_goal) {
        model->posts_left--;
        model_post(model, engine);
    }
}

static struct engine *engine_made(struct arena *arena, const struct engine_options *options)
{
    struct engine *engine = NULL;
    case_ok(engine_create(arena, options, &engine, &case_error));
    return engine;
}

static void check_against_model(const char *queue, enum delays delays, uint32_t pending_goal)
{
    static struct model model;
    uint64_t const posts = pending_goal > 1000 ? 8000 : 30000;
    model = (struct model){
        .pending_goal = pending_goal,
        .posts_left = posts,
        .random = 42 + delays,
        .chip_count = 300,
        .delays = delays,
        .pieces_allowed = pending_goal > 62,
        .last_at_ps = -1,
    };
    struct arena *arena = arena_create(0);
    struct engine *engine = engine_made(arena, &(struct engine_options){
                                                   .queue = queue,
                                                   .chip_count = model.chip_count,
                                                   .channel_count = MODEL_CHANNELS,
                                                   .pending_max = pending_goal,
                                                   .handler = model_handle,
                                                   .owner = &model,
                                               });
    for (uint32_t i = 0; i < pending_goal; i++) model_post(&model, engine);
    case_ok(engine_run(engine, &case_error));
    assert_int_equal(model.pending_count, 0);
    assert_int_equal(model.handled, posts + pending_goal);
    assert_int_equal(engine_event_count(engine), posts + pending_goal);
    assert_true(engine_entry_count(engine) <= engine_event_count(engine));
    arena_destroy(arena);
}

static void both_queues_serve_in_order_whatever_is_posted(void **state)
{
    static const uint32_t goals[] = {1, 2, 50, 200, 3000};
    (void)state;
    for (enum delays delays = 0; delays < DELAYS_COUNT; delays++) {
        for (uint32_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
            check_against_model("fast", delays, goals[i]);
            check_against_model("reference", delays, goals[i]);
        }
    }
}

/* Handlers of the small tests: they write down what came. */
struct log {
    uint64_t orders[64];
    uint32_t counts[64];
    uint32_t call_count;
    uint32_t chip_sum;
};

static void log_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                       const uint32_t *chips, uint32_t count)
{
    struct log *log = owner;
    (void)engine;
    (void)now_ps;
    assert_true(log->call_count < 64);
    log->orders[log->call_count] = key;
    log->counts[log->call_count++] = count;
    for (uint32_t i = 0; i < count; i++) log->chip_sum += chips[i];
}

static struct engine_options log_options(struct log *log, const char *queue)
{
    return (struct engine_options){
        .queue = queue,
        .chip_count = 4096,
        .channel_count = 2,
        .pending_max = 5000,
        .handler = log_handle,
        .owner = log,
    };
}

static void simultaneous_events_of_a_channel_share_an_entry(void **state)
{
    (void)state;
    struct log log = {0};
    struct engine_options const options = log_options(&log, "fast");
    struct engine *engine = engine_made(case_arena, &options);
    for (uint32_t chip = 0; chip < 1000; chip++) engine_post(engine, 7, 3, 0, chip);
    case_ok(engine_run(engine, &case_error));
    assert_int_equal(engine_entry_count(engine), 1);
    assert_int_equal(engine_event_count(engine), 1000);
    assert_int_equal(log.chip_sum, 1000 * 999 / 2);
    assert_true(log.call_count <= 1000 / 60 + 1);
}

/* The first event of an order posts one that comes before others of that order. */
static void twice_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct log *log = owner;
    bool const first = log->chip_sum == 0;
    for (uint32_t i = 0; i < count; i++) log->chip_sum = 10 * log->chip_sum + (uint32_t)key;
    if (first) engine_post(engine, now_ps, 2, 1, chips[0]);
}

/* What comes, as the digits of keys, of chips that post at one instant with one key. */
static uint32_t twice_run(const char *queue, const uint32_t *chips, uint32_t count)
{
    struct log log = {0};
    struct engine_options options = log_options(&log, queue);
    options.handler = twice_handle;
    struct engine *engine = engine_made(case_arena, &options);
    for (uint32_t i = 0; i < count; i++) engine_post(engine, 7, 3, 0, chips[i]);
    case_ok(engine_run(engine, &case_error));
    return (uint32_t)log.chip_sum;
}

/* Also where the event of another chip lies between them: the first chip's second event is the
 * last. */
static void the_same_event_twice_is_no_batch(void **state)
{
    static const uint32_t one[] = {5, 5}, two[] = {5, 6, 5};
    (void)state;
    assert_int_equal(twice_run("fast", one, 2), 323);
    assert_int_equal(twice_run("reference", one, 2), 323);
    assert_int_equal(twice_run("fast", two, 3), 3323);
    assert_int_equal(twice_run("reference", two, 3), 3233);
}

static void the_reference_queue_batches_nothing(void **state)
{
    (void)state;
    struct log log = {0};
    struct engine_options const options = log_options(&log, "reference");
    struct engine *engine = engine_made(case_arena, &options);
    for (uint32_t chip = 50; chip-- > 0;) engine_post(engine, 7, 3, 0, chip);
    case_ok(engine_run(engine, &case_error));
    assert_int_equal(engine_entry_count(engine), 50);
    assert_int_equal(log.call_count, 50);
    for (uint32_t i = 0; i < 50; i++) assert_int_equal(log.counts[i], 1);
}

/* A list of chips that posts to itself, at once, with the order it has now: the first entry is
 * closed, so that the posts must open another and not be lost in the one being handled. */
static void repost_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                          const uint32_t *chips, uint32_t count)
{
    struct log *log = owner;
    for (uint32_t i = 0; i < count; i++) {
        log->chip_sum++;
        if (log->chip_sum <= 200) engine_post(engine, now_ps, key, 0, chips[i]);
        if (log->chip_sum <= 200) engine_post(engine, now_ps, key - 1, 1, chips[i]);
    }
}

static void posts_to_the_entry_being_handled_are_not_lost(void **state)
{
    (void)state;
    static const char *const queues[] = {"fast", "reference"};
    for (uint32_t i = 0; i < 2; i++) {
        struct log log = {0};
        struct arena *arena = arena_create(0);
        struct engine_options options = log_options(&log, queues[i]);
        options.handler = repost_handle;
        struct engine *engine = engine_made(arena, &options);
        for (uint32_t chip = 0; chip < 100; chip++) engine_post(engine, 7, 1000, 0, chip);
        case_ok(engine_run(engine, &case_error));
        assert_int_equal(log.chip_sum, 100 + 2 * 200);
        assert_int_equal(engine_now_ps(engine), 7);
        arena_destroy(arena);
    }
}

/* Posts its successor for ever. */
static void endless_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                           const uint32_t *chips, uint32_t count)
{
    (void)owner;
    for (uint32_t i = 0; i < count; i++) engine_post(engine, now_ps + 5, key, 0, chips[i]);
}

static void an_endless_run_ends_at_its_limit(void **state)
{
    static const char *const queues[] = {"fast", "reference"};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct arena *arena = arena_create(0);
        struct engine_options options = log_options(NULL, queues[i]);
        options.handler = endless_handle;
        options.event_count_max = 100000;
        struct engine *engine = engine_made(arena, &options);
        for (uint32_t chip = 0; chip < 10; chip++) engine_post(engine, 1, 0, 0, chip);
        case_refused(engine_run(engine, &case_error), STATUS_LIMIT, NULL, "");
        assert_int_equal(engine_event_count(engine), 100000);
        assert_non_null(strstr(case_error.message, "100000 events"));
        refusals_hold(&case_error, __FILE__);
        arena_destroy(arena);
    }
}

static void a_run_that_ends_exactly_at_its_limit_is_whole(void **state)
{
    (void)state;
    struct log log = {0};
    struct engine_options options = log_options(&log, "reference");
    options.event_count_max = 20;
    struct engine *engine = engine_made(case_arena, &options);
    for (uint32_t chip = 0; chip < 20; chip++) engine_post(engine, 1, 0, 0, chip);
    case_ok(engine_run(engine, &case_error));
}

struct stopper {
    uint64_t calls;
    uint64_t events_last;
    uint64_t gap_max;
    uint64_t stop_at_call;
};

static bool watch_count(void *owner, int64_t now_ps, uint64_t event_count)
{
    struct stopper *watch = owner;
    uint64_t const gap = event_count - watch->events_last;
    assert_true(now_ps >= 0);
    if (gap > watch->gap_max) watch->gap_max = gap;
    watch->events_last = event_count;
    return ++watch->calls < watch->stop_at_call;
}

static void the_watcher_is_called_often_and_stops_the_run(void **state)
{
    static const uint32_t chip_counts[] = {1, 4096};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct stopper watch = {.stop_at_call = 20};
        struct arena *arena = arena_create(0);
        struct engine_options options = log_options(NULL, "fast");
        options.handler = endless_handle;
        options.watch = watch_count;
        options.watch_owner = &watch;
        struct engine *engine = engine_made(arena, &options);
        for (uint32_t chip = 0; chip < chip_counts[i]; chip++) engine_post(engine, 1, 0, 0, chip);
        case_refused(engine_run(engine, &case_error), STATUS_INTERRUPTED, NULL, "");
        assert_int_equal(watch.calls, 20);
        assert_int_equal(engine_event_count(engine), watch.events_last);
        assert_true(watch.gap_max <= 65536 + 4096);
        arena_destroy(arena);
    }
}

/* Where the most that may wait is a limit and not proved, one event more ends the run. */
static void more_events_than_may_wait_are_an_error(void **state)
{
    (void)state;
    static const char *const queues[] = {"fast", "reference"};
    for (uint32_t q = 0; q < 2; q++)
        for (uint32_t more = 0; more < 2; more++) {
            struct log log = {0};
            struct engine_options options = log_options(&log, queues[q]);
            options.pending_max = 8;
            options.pending_is_limit = true;
            struct engine *engine = engine_made(case_arena, &options);
            for (uint32_t i = 0; i < 8 + more; i++) engine_post(engine, 10 + i, i, 0, i);
            enum status const status = engine_run(engine, &case_error);
            assert_int_equal(status, more == 1 ? STATUS_LIMIT : STATUS_OK);
            if (more == 0) {
                assert_int_equal(log.call_count, 8);
                continue;
            }
            assert_non_null(strstr(case_error.message, "more than 8 events wait at once"));
            refusals_hold(&case_error, __FILE__);
        }
}

/* As a whole machine goes on where a few chips of it have run, each for several. */
static void what_continues_another_takes_its_clock_and_counts(void **state)
{
    (void)state;
    struct log log = {0};
    struct engine_options const options = log_options(&log, "fast");
    struct engine *few = engine_made(case_arena, &options);
    struct engine *whole = engine_made(case_arena, &options);
    for (uint32_t i = 0; i < 5; i++) engine_post(few, 10 + i / 2, 0, 0, i);
    case_ok(engine_run(few, &case_error));
    engine_continue(whole, few, 4);
    assert_int_equal(engine_now_ps(whole), 12);
    assert_int_equal(engine_event_count(whole), 20);
    assert_int_equal(engine_entry_count(whole), engine_entry_count(few));
    assert_int_equal(engine_entry_count(few), 3);
}

static void what_is_forgotten_never_comes(void **state)
{
    (void)state;
    static const char *const queues[] = {"fast", "reference"};
    for (uint32_t q = 0; q < 2; q++) {
        struct log log = {0};
        struct engine_options const options = log_options(&log, queues[q]);
        struct engine *engine = engine_made(case_arena, &options);
        for (uint32_t i = 0; i < 5; i++) engine_post(engine, 10 + i, 0, 0, i);
        engine_forget(engine);
        assert_int_equal(engine_pending_count(engine), 0);
        assert_int_equal(engine_now_ps(engine), 0);
        engine_post(engine, 11, 0, 0, 1);
        case_ok(engine_run(engine, &case_error));
        assert_int_equal(log.call_count, 1);
        assert_int_equal(engine_event_count(engine), 1);
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    struct engine *engine = NULL;
    struct arena *arena = arena_create(1 << 20);
    struct engine_options options = log_options(NULL, "fastest");
    case_refused(engine_create(arena, &options, &engine, &case_error), STATUS_NOT_FOUND, NULL,
                 "\"reference\"");
    options.queue = "fast";
    options.pending_max = UINT64_C(1) << 31;
    case_refused(engine_create(arena, &options, &engine, &case_error), STATUS_LIMIT, NULL, "");
    options.pending_max = UINT64_C(1) << 24;
    case_refused(engine_create(arena, &options, &engine, &case_error), STATUS_NO_MEMORY, NULL, "");
    assert_null(engine);
    arena_destroy(arena);
}

/* An engine is used for one thing after another, up to an instant and key that do not come. */
static void a_restarted_engine_stops_before_an_event(void **state)
{
    (void)state;
    struct log log = {0};
    struct engine_options const options = log_options(&log, "reference");
    struct engine *engine = engine_made(case_arena, &options);
    for (uint32_t round = 0; round < 2; round++) {
        engine_restart(engine, 100);
        assert_int_equal(engine_event_count(engine), 0);
        engine_post(engine, 100, 1, 0, 1);
        engine_post(engine, 200, 4, 0, 2);
        engine_post(engine, 200, 5, 0, 3);
        engine_post(engine, 300, 1, 0, 4);
        engine_run_before(engine, 200, 5);
        assert_int_equal(engine_event_count(engine), 2);
        assert_int_equal(engine_pending_count(engine), 2);
        case_ok(engine_run(engine, &case_error));
        engine_count(engine, 10);
        engine_count(engine, -3);
        assert_int_equal(engine_event_count(engine), 4 + 10 - 3);
        assert_int_equal(engine_now_ps(engine), 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_queues_serve_in_order_whatever_is_posted),
        cmocka_unit_test(simultaneous_events_of_a_channel_share_an_entry),
        cmocka_unit_test(the_same_event_twice_is_no_batch),
        cmocka_unit_test(the_reference_queue_batches_nothing),
        cmocka_unit_test(posts_to_the_entry_being_handled_are_not_lost),
        cmocka_unit_test(an_endless_run_ends_at_its_limit),
        cmocka_unit_test(a_run_that_ends_exactly_at_its_limit_is_whole),
        cmocka_unit_test(the_watcher_is_called_often_and_stops_the_run),
        cmocka_unit_test(more_events_than_may_wait_are_an_error),
        cmocka_unit_test(what_continues_another_takes_its_clock_and_counts),
        cmocka_unit_test(what_is_forgotten_never_comes),
        cmocka_unit_test(a_restarted_engine_stops_before_an_event),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
