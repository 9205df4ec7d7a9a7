/*
 * Loads on the engine alone: links and chips as the replay has them (a clock, a busy time, a count
 * of bytes for each link), but no program. What they cost is what the engine leaves to the replay.
 */
#include "sim/base/arena.h"
#include "sim/base/digest.h"
#include "sim/engine/engine.h"
#include "tools/podsim/bench/bench.h"

enum {
    SIDE = 16,
    CHIPS = SIDE * SIDE * SIDE,
    PORTS = 6,
    LINKS = CHIPS * PORTS,
    HOLDS = 400, /* Of a slot, on average. */
    LOCKSTEP_STEPS = 1600,
    ROUTED_TRIPS = 34, /* Of a chunk, of 12 hops on average. */
    UNEQUAL_STEPS = 400,
};

static const int64_t hop_latency_ps = 1000000;
static const int64_t hold_mean_ps = 1 << 23;
static const uint64_t link_bytes_per_us = 90000;

struct bench_link {
    int64_t free_ps;
    int64_t busy_ps;
    uint64_t bytes;
};

/* A chunk on its way; `to` is where it goes. */
struct bench_chunk {
    uint64_t random;
    uint32_t bytes;
    uint32_t to;
};

struct bench_load {
    uint32_t step_count; /* Of every chip, slot or chunk. */
    uint64_t count;
    uint64_t digest;
    uint64_t *random;         /* By chip, or by slot. */
    uint32_t *neighbours;     /* By port and chip. */
    struct bench_link *links; /* By port and chip. */
    struct bench_chunk *chunks;
    uint32_t *steps;            /* By chip, slot or chunk: so far. */
    uint32_t (*arrived)[PORTS]; /* By chip. */
};

static uint64_t random_next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 32;
}

/* First come, first served: returns the instant at which the last byte has arrived. */
static int64_t link_submit(struct bench_link *link, int64_t now_ps, uint64_t bytes)
{
    int64_t const work_ps =
        (int64_t)((bytes * (uint64_t)hop_latency_ps + link_bytes_per_us - 1) / link_bytes_per_us);
    int64_t const begin_ps = now_ps > link->free_ps ? now_ps : link->free_ps;
    link->free_ps = begin_ps + work_ps;
    link->busy_ps += work_ps;
    link->bytes += bytes;
    return link->free_ps + hop_latency_ps;
}

static uint32_t neighbour_of(uint32_t chip, uint32_t port)
{
    uint32_t const stride = port / 2 == 0 ? SIDE * SIDE : port / 2 == 1 ? SIDE : 1;
    uint32_t const at = chip / stride % SIDE;
    uint32_t const to = (at + (port % 2 == 0 ? 1 : SIDE - 1)) % SIDE;
    return chip - at * stride + to * stride;
}

static void handle_hold(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                        const uint32_t *chips, uint32_t count)
{
    struct bench_load *load = owner;
    for (uint32_t i = 0; i < count; i++) {
        load->digest += (uint64_t)now_ps ^ chips[i];
        if (now_ps >= load->step_count * hold_mean_ps) continue;
        int64_t const delay_ps = 1 + (int64_t)(random_next(&load->random[chips[i]]) >> 8);
        engine_post(engine, now_ps + delay_ps, key, 0, chips[i]);
    }
}

/* A step of a ring: what came by a port leaves by it. */
static void handle_lockstep(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                            const uint32_t *chips, uint32_t count)
{
    struct bench_load *load = owner;
    uint32_t const port = (uint32_t)key;
    struct bench_link *links = &load->links[port * CHIPS];
    const uint32_t *neighbours = &load->neighbours[port * CHIPS];
    load->count += count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        load->digest += (uint64_t)now_ps ^ chip;
        if (load->steps[chip] == load->step_count) continue;
        load->steps[chip] += port == 0;
        engine_post(engine, link_submit(&links[chip], now_ps, 65536), key, port, neighbours[chip]);
    }
}

/* The port of the next hop of a dimension-ordered route, the short way round. */
static uint32_t port_towards(uint32_t from, uint32_t to)
{
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t const shift = 8 - 4 * axis;
        uint32_t const ahead = ((to >> shift) - (from >> shift)) % SIDE;
        if (ahead != 0) return 2 * axis + (ahead > SIDE / 2);
    }
    return PORTS;
}

/* The order of an event is the number of its chunk. */
static void handle_routed(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                          const uint32_t *chips, uint32_t count)
{
    struct bench_load *load = owner;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        struct bench_chunk *chunk = &load->chunks[key];
        uint32_t port = port_towards(chip, chunk->to);
        if (port == PORTS) {
            load->digest += digest_record(now_ps, key, chip);
            if (load->steps[key]++ == load->step_count) continue;
            chunk->to = (chip + 1 + (uint32_t)random_next(&chunk->random) % (CHIPS - 1)) % CHIPS;
            chunk->bytes = 4096 + (uint32_t)random_next(&chunk->random) % 65536;
            port = port_towards(chip, chunk->to);
        }
        load->count++;
        uint32_t const link = chip * PORTS + port;
        engine_post(engine, link_submit(&load->links[link], now_ps, chunk->bytes), key, port,
                    load->neighbours[port * CHIPS + chip]);
    }
}

static uint32_t ports_missing(const uint32_t arrived[PORTS], uint32_t step)
{
    uint32_t missing = 0;
    for (uint32_t port = 0; port < PORTS; port++) missing += arrived[port] < step;
    return missing;
}

/* Order PORTS is the end of a chip's compute: it sends by every port. The others are arrivals; the
 * last of a step begins the next compute. */
static void handle_unequal(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                           const uint32_t *chips, uint32_t count)
{
    struct bench_load *load = owner;
    uint32_t const kind = (uint32_t)key;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        load->digest += (uint64_t)now_ps ^ chip;
        if (kind == PORTS) {
            load->steps[chip]++;
            for (uint32_t port = 0; port < PORTS; port++) {
                struct bench_link *link = &load->links[chip * PORTS + port];
                engine_post(engine, link_submit(link, now_ps, 65536), port, port,
                            load->neighbours[port * CHIPS + chip]);
            }
        } else {
            load->count++;
            load->arrived[chip][kind]++;
            /* A neighbour may be a step ahead: that arrival completes nothing now. */
            if (load->arrived[chip][kind] != load->steps[chip]) continue;
        }
        uint32_t const step = load->steps[chip];
        if (step == load->step_count || ports_missing(load->arrived[chip], step) > 0) continue;
        int64_t const compute_ps = 20000000 + (int64_t)(random_next(&load->random[chip]) % 5000000);
        engine_post(engine, now_ps + compute_ps, PORTS, PORTS, chip);
    }
}

/* The state of a torus; its arrays are zeroed. */
static enum status torus_make(struct arena *arena, struct bench_load *load, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, LINKS, sizeof *load->neighbours, &memory, reterr));
    load->neighbours = memory;
    for (uint32_t port = 0; port < PORTS; port++)
        for (uint32_t chip = 0; chip < CHIPS; chip++)
            load->neighbours[port * CHIPS + chip] = neighbour_of(chip, port);
    STATUS_TRY(arena_try(arena, LINKS, sizeof *load->links, &memory, reterr));
    load->links = memory;
    STATUS_TRY(arena_try(arena, LINKS, sizeof *load->chunks, &memory, reterr));
    load->chunks = memory;
    STATUS_TRY(arena_try(arena, LINKS, sizeof *load->steps, &memory, reterr));
    load->steps = memory;
    STATUS_TRY(arena_try(arena, CHIPS, sizeof *load->arrived, &memory, reterr));
    load->arrived = memory;
    STATUS_TRY(arena_try(arena, LINKS, sizeof *load->random, &memory, reterr));
    load->random = memory;
    for (uint32_t i = 0; i < LINKS; i++)
        load->random[i] = load->chunks[i].random = digest_record(0, 0, i);
    return STATUS_OK;
}

/* What distinguishes the loads; each begins with `order_count` events for every chip;
 * with `random_start` at instants of their own and each with an order of its own. */
struct bench_kind {
    const char *queue;
    engine_handler_fn *handler;
    uint32_t step_count;
    uint32_t chip_count;
    uint32_t order_first;
    uint32_t order_count;
    bool random_start;
};

static void load_start(struct bench_load *load, const struct bench_kind *kind,
                       struct engine *engine)
{
    for (uint32_t i = 0; i < kind->order_count; i++) {
        for (uint32_t chip = 0; chip < kind->chip_count; chip++) {
            uint32_t const slot = i * kind->chip_count + chip;
            uint32_t const key = kind->random_start ? slot : kind->order_first + i;
            int64_t const at_ps =
                kind->random_start ? (int64_t)(random_next(&load->random[slot]) >> 8) : 0;
            load->chunks[slot].to = chip;
            engine_post(engine, at_ps, key, key % (PORTS + 1), chip);
        }
    }
}

static enum status load_play(struct arena *arena, const struct bench_kind *kind,
                             struct bench_sample *ret_sample, struct error *reterr)
{
    struct bench_load load = {.step_count = kind->step_count};
    struct engine *engine = NULL;
    struct engine_options const options = {
        .queue = kind->queue,
        .chip_count = kind->chip_count,
        .channel_count = PORTS + 1,
        .pending_max = 2 * LINKS,
        .handler = kind->handler,
        .owner = &load,
    };
    STATUS_TRY(torus_make(arena, &load, reterr));
    STATUS_TRY(engine_create(arena, &options, &engine, reterr));
    load_start(&load, kind, engine);
    double const begin_s = bench_clock_s();
    STATUS_TRY(engine_run(engine, reterr));
    *ret_sample = (struct bench_sample){
        .count = load.count != 0 ? load.count : engine_event_count(engine),
        .event_count = engine_event_count(engine),
        .entry_count = engine_entry_count(engine),
        .chip_count = kind->chip_count == CHIPS ? CHIPS : 0,
        .reserved_bytes = arena_taken_bytes(arena),
        .digest = load.digest + engine_event_count(engine),
        .wall_s = bench_clock_s() - begin_s,
    };
    return STATUS_OK;
}

static enum status load_run(const struct bench_kind *kind, struct bench_sample *ret_sample,
                            struct error *reterr)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a benchmark");
    enum status const status = load_play(arena, kind, ret_sample, reterr);
    arena_destroy(arena);
    return status;
}

static uint32_t steps_of(uint32_t count, uint32_t shrink)
{
    return count / shrink > 0 ? count / shrink : 1;
}

enum status bench_hold_fast(uint32_t shrink, struct bench_sample *ret_sample, struct error *reterr)
{
    struct bench_kind const kind = {"fast", handle_hold, steps_of(HOLDS, shrink), LINKS, 0,
                                    1,      true};
    return load_run(&kind, ret_sample, reterr);
}

enum status bench_hold_reference(uint32_t shrink, struct bench_sample *ret_sample,
                                 struct error *reterr)
{
    struct bench_kind const kind = {"reference", handle_hold, steps_of(HOLDS, shrink), LINKS, 0,
                                    1,           true};
    return load_run(&kind, ret_sample, reterr);
}

enum status bench_torus_lockstep(uint32_t shrink, struct bench_sample *ret_sample,
                                 struct error *reterr)
{
    struct bench_kind const kind = {
        "fast", handle_lockstep, steps_of(LOCKSTEP_STEPS, shrink), CHIPS, 0, PORTS, false};
    return load_run(&kind, ret_sample, reterr);
}

enum status bench_torus_routed(uint32_t shrink, struct bench_sample *ret_sample,
                               struct error *reterr)
{
    struct bench_kind const kind = {"fast", handle_routed, steps_of(ROUTED_TRIPS, shrink), CHIPS, 0,
                                    PORTS,  true};
    return load_run(&kind, ret_sample, reterr);
}

enum status bench_torus_unequal(uint32_t shrink, struct bench_sample *ret_sample,
                                struct error *reterr)
{
    struct bench_kind const kind = {
        "fast", handle_unequal, steps_of(UNEQUAL_STEPS, shrink), CHIPS, PORTS, 1, false};
    return load_run(&kind, ret_sample, reterr);
}
