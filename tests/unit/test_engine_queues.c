/* Engine: the fast and the reference queue give every chip the same sequence of events. */
#include <string.h>

#include "sim/base/digest.h"
#include "sim/engine/engine.h"
#include "tests/support/case.h"

enum { CHIPS = 512, PORTS = 6, STEPS = 60, SIDE = 8 };

/* A torus of 8x8x8 chips that pass tokens on: kind 0 begins a step, kind 1 is an arrival. */
struct torus {
    uint64_t random[CHIPS];
    uint64_t chain[CHIPS]; /* What happened to this chip, in its order. */
    uint32_t steps[CHIPS];
    uint32_t arrived[CHIPS];
    uint64_t digest;
    uint32_t jitter_chips; /* How many chips have times of their own. */
    uint32_t jitter_ps;
    bool at_once; /* Whether a step begins by an event of its own, at once, of a smaller order. */
};

static uint32_t torus_neighbour(uint32_t chip, uint32_t port)
{
    static const uint32_t strides[] = {SIDE * SIDE, SIDE, 1};
    uint32_t const stride = strides[port / 2];
    uint32_t const at = chip / stride % SIDE;
    uint32_t const to = (at + (port % 2 == 0 ? 1 : SIDE - 1)) % SIDE;
    return chip - at * stride + to * stride;
}

static uint64_t torus_order(uint32_t kind, uint32_t port)
{
    return (uint64_t)kind << 32 | port;
}

static void torus_send(struct torus *torus, struct engine *engine, uint32_t chip)
{
    int64_t delay_ps = 1000;
    if (chip < torus->jitter_chips) {
        torus->random[chip] = torus->random[chip] * UINT64_C(6364136223846793005) + 1;
        delay_ps += (int64_t)((torus->random[chip] >> 33) % torus->jitter_ps);
    }
    if (torus->steps[chip]++ == STEPS) return;
    for (uint32_t port = 0; port < PORTS; port++)
        engine_post(engine, engine_now_ps(engine) + delay_ps + port % 3,
                    torus_order(1, port | torus->steps[chip] << 3), port,
                    torus_neighbour(chip, port));
}

static void torus_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct torus *torus = owner;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        uint64_t const record = digest_record(now_ps, key, chip);
        torus->digest += record;
        torus->chain[chip] = digest_record((int64_t)(torus->chain[chip] >> 1), record, chip);
        if (key == 0)
            torus_send(torus, engine, chip);
        else if (++torus->arrived[chip] % PORTS == 0 && torus->at_once)
            engine_post(engine, now_ps, 0, PORTS, chip);
        else if (torus->arrived[chip] % PORTS == 0)
            torus_send(torus, engine, chip);
    }
}

struct outcome {
    uint64_t digest;
    uint64_t chains;
    uint64_t events;
    uint64_t entries;
    int64_t end_ps;
};

static struct outcome torus_run(const char *queue, uint32_t jitter_chips, uint32_t jitter_ps,
                                bool at_once)
{
    static struct torus torus;
    torus =
        (struct torus){.jitter_chips = jitter_chips, .jitter_ps = jitter_ps, .at_once = at_once};
    struct engine *engine = NULL;
    struct arena *arena = arena_create(0);
    struct engine_options const options = {
        .queue = queue,
        .chip_count = CHIPS,
        .channel_count = PORTS + 1,
        .pending_max = CHIPS * 4 * PORTS,
        .handler = torus_handle,
        .owner = &torus,
    };
    case_ok(engine_create(arena, &options, &engine, &case_error));
    for (uint32_t chip = 0; chip < CHIPS; chip++) {
        torus.random[chip] = chip * UINT64_C(0x9e3779b97f4a7c15);
        engine_post(engine, 0, 0, PORTS, chip);
    }
    case_ok(engine_run(engine, &case_error));
    struct outcome outcome = {torus.digest, 0, engine_event_count(engine),
                              engine_entry_count(engine), engine_now_ps(engine)};
    for (uint32_t chip = 0; chip < CHIPS; chip++) outcome.chains += torus.chain[chip];
    arena_destroy(arena);
    return outcome;
}

static void every_chip_sees_the_same_sequence_in_both_queues(void **state)
{
    static const uint32_t jitter_chips[] = {0, 1, 100, CHIPS};
    static const uint32_t jitter_ps[] = {1, 7, 500, 1000000000};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            for (uint32_t k = 0; k < 2; k++) {
                struct outcome fast = torus_run("fast", jitter_chips[i], jitter_ps[j], k == 1);
                struct outcome plain =
                    torus_run("reference", jitter_chips[i], jitter_ps[j], k == 1);
                assert_int_equal(fast.events, plain.events);
                assert_true(fast.events > UINT64_C(1) * CHIPS * STEPS * PORTS);
                assert_int_equal(fast.digest, plain.digest);
                assert_int_equal(fast.chains, plain.chains);
                assert_int_equal(fast.end_ps, plain.end_ps);
            }
        }
    }
}

static void chips_in_lockstep_share_the_entries(void **state)
{
    (void)state;
    struct outcome const outcome = torus_run("fast", 0, 1, true);
    assert_true(outcome.entries <= (STEPS + 1) * (PORTS + 1));
}

/* Events that were posted: each chip as it came, under a key of its list. */
struct heard {
    uint64_t digest;
    uint32_t calls, longest;
};

static void hear(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                 const uint32_t *chips, uint32_t count)
{
    struct heard *heard = owner;
    (void)engine;
    for (uint32_t i = 0; i < count; i++)
        heard->digest =
            digest_record((int64_t)(heard->digest >> 1), key + (uint64_t)now_ps, chips[i]);
    heard->calls++;
    if (count > heard->longest) heard->longest = count;
}

enum { LISTS = 40, LIST_MAX = 150 };

/* Lists of drawn lengths, at few instants, so that lists follow one another in one entry. */
static struct heard lists_run(const char *queue, bool many, uint64_t pending_max,
                              enum status *ret_status)
{
    struct heard heard = {0};
    struct engine *engine = NULL;
    struct arena *arena = arena_create(0);
    struct engine_options const options = {.queue = queue,
                                           .chip_count = CHIPS,
                                           .channel_count = 2,
                                           .pending_max = pending_max,
                                           .pending_is_limit = true,
                                           .handler = hear,
                                           .owner = &heard};
    uint64_t random = 5;
    case_ok(engine_create(arena, &options, &engine, &case_error));
    for (uint32_t list = 0; list < LISTS; list++) {
        uint32_t chips[LIST_MAX];
        uint32_t const count = (uint32_t)(case_random(&random) % (LIST_MAX + 1));
        uint32_t const channel = (uint32_t)(case_random(&random) % 2);
        int64_t const at_ps = 1 + (int64_t)(case_random(&random) % 2);
        /* The first of a list comes once, as the first of an entry has to. */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t const drawn = (uint32_t)(case_random(&random) % (CHIPS - LISTS));
            chips[i] = i == 0 ? list : LISTS + drawn;
            if (i > 1 && chips[i] == chips[i - 1]) chips[i] = LISTS + (drawn + 1) % (CHIPS - LISTS);
        }
        if (many) engine_post_many(engine, at_ps, channel, channel, chips, count);
        for (uint32_t i = 0; !many && i < count; i++)
            engine_post(engine, at_ps, channel, channel, chips[i]);
    }
    *ret_status = engine_run(engine, &case_error);
    arena_destroy(arena);
    return heard;
}

static void many_posts_are_as_one_after_the_other(void **state)
{
    static const char *const queues[] = {"fast", "reference"};
    static const uint64_t rooms[] = {LISTS * LIST_MAX, 700};
    (void)state;
    for (uint32_t q = 0; q < 2; q++)
        for (uint32_t room = 0; room < 2; room++) {
            enum status status[2];
            struct heard const one = lists_run(queues[q], false, rooms[room], &status[0]);
            struct heard const many = lists_run(queues[q], true, rooms[room], &status[1]);
            assert_int_equal(status[0], room == 0 ? STATUS_OK : STATUS_LIMIT);
            assert_int_equal(status[1], status[0]);
            assert_int_equal(many.digest, one.digest);
            assert_int_equal(many.calls, one.calls);
            assert_true(many.longest <= ENGINE_BATCH_MAX);
            assert_true(q == 1 || room == 1 || many.longest == ENGINE_BATCH_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chip_sees_the_same_sequence_in_both_queues),
        cmocka_unit_test(chips_in_lockstep_share_the_entries),
        cmocka_unit_test(many_posts_are_as_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
