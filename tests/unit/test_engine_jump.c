/*
 * The engine's clock set forward with all that waits (engine_jump()).
 */
#include "sim/base/digest.h"
#include "sim/engine/engine.h"
#include "tests/support/case.h"

enum { JUMP_EVENTS = 4000, JUMP_PS = 123456789, JUMP_CHIPS = 5 };

/* Events of all parts of the queue: near and far ones, some alone and some of several chips. Each
 * posts another one, as late as its chip says. */
struct jumper {
    uint64_t random;
    int64_t pause_ps;
    int64_t shift_ps; /* What is taken from each instant. */
    uint64_t digest, seen, left;
};

static void jumper_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                          const uint32_t *chips, uint32_t count)
{
    struct jumper *jumper = owner;
    for (uint32_t i = 0; i < count; i++) {
        jumper->digest += digest_record(now_ps - jumper->shift_ps, key, chips[i]);
        if (jumper->left == 0) continue;
        jumper->left--;
        engine_post(engine, now_ps + 1 + (int64_t)(case_random(&jumper->random) >> 44) % 9000, key,
                    chips[i] % 4, chips[i]);
    }
    if (jumper->pause_ps != 0 && now_ps >= jumper->pause_ps) engine_pause(engine);
}

static void pending_see(void *owner, int64_t at_ps, uint64_t key, const uint32_t *chips,
                        uint32_t count)
{
    struct jumper *jumper = owner;
    for (uint32_t i = 0; i < count; i++)
        jumper->seen += digest_record(at_ps - jumper->shift_ps, key, chips[i]);
}

static struct jumper jumper_run(int64_t by_ps)
{
    struct jumper jumper = {.random = 7, .pause_ps = 20000, .left = JUMP_EVENTS};
    struct engine_options const options = {.queue = "fast",
                                           .chip_count = JUMP_CHIPS,
                                           .channel_count = 4,
                                           .pending_max = 2 * JUMP_EVENTS,
                                           .handler = jumper_handle,
                                           .owner = &jumper};
    struct engine *engine = NULL;
    case_ok(engine_create(case_arena, &options, &engine, &case_error));
    for (uint32_t i = 0; i < 600; i++)
        engine_post(engine, (int64_t)(case_random(&jumper.random) >> 40) % 100000, i % 3, i % 4,
                    i % JUMP_CHIPS);
    case_ok(engine_run(engine, &case_error));
    assert_true(engine_pending_count(engine) > 100);
    uint64_t const pending = engine_pending_count(engine), before = engine_event_count(engine);
    engine_jump(engine, by_ps, 11);
    assert_int_equal(engine_pending_count(engine), pending);
    assert_int_equal(engine_event_count(engine), before + 11);
    jumper.pause_ps = 0;
    jumper.shift_ps = by_ps;
    engine_pending_each(engine, pending_see, &jumper);
    case_ok(engine_run(engine, &case_error));
    assert_int_equal(engine_event_count(engine), 600 + JUMP_EVENTS + 11);
    return jumper;
}

/* Where what comes is known, the clock goes on, and all that waits moves with it. */
static void what_is_pending_at_a_jump_comes_as_much_later(void **state)
{
    (void)state;
    struct jumper const stays = jumper_run(0), jumps = jumper_run(JUMP_PS);
    assert_true(stays.seen != 0);
    assert_int_equal(stays.seen, jumps.seen);
    assert_int_equal(stays.digest, jumps.digest);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_pending_at_a_jump_comes_as_much_later),
    };
    return cmocka_run_group_tests_name("engine_jump", tests, case_arena_up, case_arena_down);
}
