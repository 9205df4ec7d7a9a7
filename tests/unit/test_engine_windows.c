/* Windows (sim/engine/windows.h): every chip sees its events in order, whatever other chips do in
 * the same window. */
#include "sim/base/digest.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"
#include "tests/support/case.h"

enum { CHIPS = 257, STEPS = 200, LOOKAHEAD_PS = 1000, KEYS = 300 };

/* Chips that post to themselves, at once or later, and to one another. */
struct posts {
    struct engine *engine;
    int64_t lookahead_ps;
    int64_t far_ps; /* The most that a post lies ahead. */
    uint32_t keys;
    uint64_t random[CHIPS];
    uint64_t chain[CHIPS]; /* What happened to the chip, in its order. */
    uint32_t steps[CHIPS];
    int64_t last_ps[CHIPS];
    uint32_t most; /* Events that were handed over together, at most. */
};

static uint32_t draw(struct posts *posts, uint32_t chip)
{
    posts->random[chip] = posts->random[chip] * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(posts->random[chip] >> 33);
}

static void post_own(struct posts *posts, uint32_t chip, int64_t now_ps)
{
    int64_t const delay_ps =
        draw(posts, chip) % 3 == 0 ? 0 : (int64_t)draw(posts, chip) % posts->lookahead_ps;
    uint64_t const key = (uint64_t)draw(posts, chip) % posts->keys;
    engine_post(posts->engine, now_ps + delay_ps, key, 0, chip);
}

static void post_other(struct posts *posts, uint32_t chip, int64_t now_ps)
{
    int64_t const delay_ps = posts->lookahead_ps + (int64_t)draw(posts, chip) % posts->far_ps;
    uint64_t const key = (uint64_t)draw(posts, chip) % posts->keys;
    /* Its payload is the sender, which is why no two senders have one key. */
    engine_post(posts->engine, now_ps + delay_ps, key << 32 | (chip + 1), 1,
                (chip + 1 + draw(posts, chip) % (CHIPS - 1)) % CHIPS);
}

static void handle_one(struct posts *posts, uint32_t chip, uint64_t key, int64_t at_ps)
{
    assert_true(at_ps >= posts->last_ps[chip]);
    posts->last_ps[chip] = at_ps;
    posts->chain[chip] =
        digest_record((int64_t)(posts->chain[chip] >> 1), digest_record(at_ps, key, chip), chip);
    posts->random[chip] ^= posts->chain[chip];
    if (posts->steps[chip]++ >= STEPS) return;
    post_other(posts, chip, at_ps);
    if (draw(posts, chip) % 4 == 0) post_own(posts, chip, at_ps);
}

static void handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                   const uint32_t *chips, uint32_t count)
{
    (void)engine;
    for (uint32_t i = 0; i < count; i++) handle_one(owner, chips[i], key, now_ps);
}

static void handle_window(void *owner, uint64_t key, const uint32_t *chips, const int64_t *at_ps,
                          uint32_t count)
{
    struct posts *posts = owner;
    if (count > posts->most) posts->most = count;
    for (uint32_t i = 0; i < count; i++) handle_one(posts, chips[i], key, at_ps[i]);
}

struct outcome {
    uint64_t chains;
    uint64_t events;
    uint32_t most;
};

/* What the chips see of events that were posted in the wrong order, of keys that occur once. */
static uint64_t run_late(const char *queue, bool in_windows)
{
    static struct posts posts;
    enum { LATE = 3000, LATE_CHIPS = 3 };
    struct arena *arena = arena_create(0);
    struct engine_options const options = {
        .queue = queue,
        .chip_count = CHIPS,
        .channel_count = 2,
        .pending_max = LATE * LATE_CHIPS,
        .handler = handle,
        .owner = &posts,
    };
    posts = (struct posts){.far_ps = 1, .keys = 1};
    case_ok(engine_create(arena, &options, &posts.engine, &case_error));
    if (in_windows)
        case_ok(engine_take_windows(arena, posts.engine, LOOKAHEAD_PS, handle_window, NULL,
                                    &case_error));
    for (uint32_t i = 0; i < LATE * LATE_CHIPS; i++)
        engine_post(posts.engine, LOOKAHEAD_PS - i % 100, LATE * LATE_CHIPS - i, i % 2,
                    i % LATE_CHIPS);
    for (uint32_t chip = 0; chip < LATE_CHIPS; chip++) posts.steps[chip] = STEPS;
    case_ok(engine_run(posts.engine, &case_error));
    assert_int_equal(engine_event_count(posts.engine), LATE * LATE_CHIPS);
    arena_destroy(arena);
    return posts.chain[0] ^ posts.chain[1] * 3 ^ posts.chain[2] * 5;
}

/* Posts to others lie `lookahead_ps` ahead at least. */
static struct outcome run(const char *queue, bool in_windows, uint32_t keys, int64_t far_ps,
                          int64_t lookahead_ps)
{
    static struct posts posts;
    struct arena *arena = arena_create(0);
    struct engine_options const options = {
        .queue = queue,
        .chip_count = CHIPS,
        .channel_count = 2,
        .pending_max = CHIPS * 2 * (STEPS + 2),
        .handler = handle,
        .owner = &posts,
    };
    posts = (struct posts){.far_ps = far_ps, .keys = keys, .lookahead_ps = lookahead_ps};
    case_ok(engine_create(arena, &options, &posts.engine, &case_error));
    if (in_windows)
        case_ok(engine_take_windows(arena, posts.engine, lookahead_ps, handle_window, NULL,
                                    &case_error));
    for (uint32_t chip = 0; chip < CHIPS; chip++) {
        posts.random[chip] = (chip + 1) * UINT64_C(0x9e3779b97f4a7c15);
        engine_post(posts.engine, 0, 0, 0, chip);
    }
    case_ok(engine_run(posts.engine, &case_error));
    struct outcome outcome = {0, engine_event_count(posts.engine), posts.most};
    for (uint32_t chip = 0; chip < CHIPS; chip++) outcome.chains += posts.chain[chip];
    arena_destroy(arena);
    return outcome;
}

static void compare(uint32_t keys, int64_t far_ps, int64_t lookahead_ps)
{
    struct outcome const windows = run("fast", true, keys, far_ps, lookahead_ps);
    struct outcome const wheel = run("fast", false, keys, far_ps, lookahead_ps);
    struct outcome const heap = run("reference", false, keys, far_ps, lookahead_ps);
    assert_true(windows.chains == heap.chains && wheel.chains == heap.chains);
    assert_true(windows.events == heap.events);
}

/* Posts within the ring of buckets, and far behind it; few keys, and more than a round has. */
static void every_chip_sees_what_it_sees_without_windows(void **state)
{
    static const int64_t far_ps[] = {1, 700, 30000, 4000000, INT64_C(1) << 40};
    static const uint32_t keys[] = {1, 3, KEYS};
    (void)state;
    for (uint32_t i = 0; i < sizeof far_ps / sizeof *far_ps; i++)
        for (uint32_t k = 0; k < sizeof keys / sizeof *keys; k++)
            compare(keys[k], far_ps[i], LOOKAHEAD_PS);
}

/* Instants of a window of the longest buckets have 23 bits, those of a post 32. */
static void a_window_may_be_shorter_than_a_long_lookahead(void **state)
{
    (void)state;
    compare(3, 1 << 22, 1 << 22);
    compare(3, INT64_C(1) << 36, INT64_C(1) << 36);
}

static void a_post_behind_the_last_instant_ends_the_run(void **state)
{
    static struct posts posts;
    struct engine_options const options = {
        .queue = "fast",
        .chip_count = CHIPS,
        .channel_count = 2,
        .pending_max = CHIPS,
        .handler = handle,
        .owner = &posts,
    };
    (void)state;
    posts = (struct posts){.far_ps = 1, .keys = 1, .lookahead_ps = LOOKAHEAD_PS};
    case_ok(engine_create(case_arena, &options, &posts.engine, &case_error));
    case_ok(engine_take_windows(case_arena, posts.engine, LOOKAHEAD_PS, handle_window, NULL,
                                &case_error));
    posts.steps[0] = posts.steps[1] = STEPS;
    engine_post(posts.engine, TIME_PS_END, 0, 0, 0);
    engine_post(posts.engine, TIME_PS_END - 1, 0, 0, 1);
    assert_int_equal(engine_run(posts.engine, &case_error), STATUS_LIMIT);
    assert_int_equal(posts.last_ps[0], 0);
    assert_true(posts.last_ps[1] == TIME_PS_END - 1);
}

static void events_of_several_instants_are_handed_over_together(void **state)
{
    (void)state;
    assert_int_equal(run("fast", true, 1, 700, LOOKAHEAD_PS).most, CHIPS);
}

static void events_of_a_chip_that_are_posted_late_come_in_order(void **state)
{
    (void)state;
    assert_true(run_late("fast", true) == run_late("reference", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chip_sees_what_it_sees_without_windows),
        cmocka_unit_test(a_window_may_be_shorter_than_a_long_lookahead),
        cmocka_unit_test(a_post_behind_the_last_instant_ends_the_run),
        cmocka_unit_test(events_of_several_instants_are_handed_over_together),
        cmocka_unit_test(events_of_a_chip_that_are_posted_late_come_in_order),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
