#include "sim/replay/flight_log.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/routed.h"
#include "sim/replay/transport.h"

/* A growing array. */
struct vector {
    void *items;
    uint32_t count, room;
};

struct saved_link {
    struct link_state state;
    struct link_waits waits;
};

struct flight_recorder {
    uint32_t chip;
    const struct flight_log *first;   /* Of whose links `start` speaks. */
    const struct flight_start *start; /* NULL: all is free. */
    struct flight_instant now;        /* Of the event at hand. */
    bool fails;
    struct flight_log log;
    int64_t seen_ps[SERVER_COUNT];    /* Granted when something was last recorded. */
    int64_t arrived_ps[SERVER_COUNT]; /* Granted for arrivals so far. */
    int64_t left_ps;                  /* Granted for leavings so far. */
    struct vector arrived_at, arrived, left_at, left, links, saved;
};

static void *vector_add(struct flight_recorder *recorder, struct vector *vector,
                        uint64_t item_bytes)
{
    if (vector->count == vector->room) {
        uint32_t const room = vector->room == 0 ? 64 : 2 * vector->room;
        void *items = realloc(vector->items, room * item_bytes);
        if (items == NULL) {
            recorder->fails = true;
            return NULL;
        }
        vector->items = items;
        vector->room = room;
    }
    return memset((char *)vector->items + vector->count++ * item_bytes, 0, item_bytes);
}

/* What a server has granted since something was last recorded. */
static int64_t granted_ps(struct replay *replay, enum server server)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    int64_t const all_ps = server_at(&replay->servers, server, recorder->chip)->dma_ps;
    int64_t const new_ps = all_ps - recorder->seen_ps[server];
    recorder->seen_ps[server] = all_ps;
    return new_ps;
}

static int64_t held_at_begin(struct flight_recorder *recorder, const struct link_state *link)
{
    if (recorder->start == NULL) return 0;
    for (uint32_t i = 0; i < recorder->first->link_count; i++)
        if (recorder->first->links[i].link == link) return recorder->start->free_ps[i];
    recorder->fails = true; /* Nobody has asked what holds it. */
    return 0;
}

void flight_record_link(struct replay *replay, struct link_state *link, struct link_waits *waits,
                        uint32_t port, bool waits_here)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    const struct flight_link *links = recorder->links.items;
    recorder->log.taken_ps = recorder->now.at_ps;
    for (uint32_t i = 0; i < recorder->links.count; i++)
        if (links[i].link == link) return;
    struct flight_link *added = vector_add(recorder, &recorder->links, sizeof *added);
    struct saved_link *saved =
        added == NULL ? NULL : vector_add(recorder, &recorder->saved, sizeof *saved);
    if (saved == NULL) { /* What the message does to the link cannot be taken back. */
        recorder->links.count = recorder->saved.count;
        if (replay->refusal.status == STATUS_OK)
            (void)error_set(&replay->refusal, STATUS_NO_MEMORY, "/run",
                            "no memory to record a collective");
        return;
    }
    /* Links of the grid are also wanted by messages that do not look whether they are flown. */
    if (port < MACHINE_GRID_PORTS) recorder->fails = true;
    *added =
        (struct flight_link){.link = link, .waits = waits, .port = port, .waits_here = waits_here};
    saved->state = *link;
    added->held_ps = held_at_begin(recorder, link);
    *link = (struct link_state){.free_ps = added->held_ps};
    if (waits == NULL) return;
    saved->waits = *waits;
    *waits = (struct link_waits){.messages = 0};
}

void flight_record_leaving(struct replay *replay, uint32_t chip, uint32_t way)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    struct flight_instant *at = vector_add(recorder, &recorder->left_at, sizeof *at);
    struct flight_leaving *left = vector_add(recorder, &recorder->left, sizeof *left);
    recorder->left_ps += granted_ps(replay, SERVER_HBM);
    if (at == NULL || left == NULL) return;
    *at = recorder->now;
    left->sum_ps = recorder->left_ps; /* Field by field: logs are compared byte by byte. */
    left->reads = *reads_at(&replay->servers, way, chip);
    left->way = way;
    recorder->log.ways |= 1u << way;
}

static void arrival_add(struct replay *replay, int64_t from_ps)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    struct flight_instant *at = vector_add(recorder, &recorder->arrived_at, sizeof *at);
    struct flight_arrival *arrived = vector_add(recorder, &recorder->arrived, sizeof *arrived);
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        recorder->arrived_ps[server] += granted_ps(replay, server);
    if (at == NULL || arrived == NULL) return;
    *at = recorder->now;
    arrived->from_ps = from_ps;
    memcpy(arrived->sum_ps, recorder->arrived_ps, sizeof arrived->sum_ps);
}

void flight_record_arrival(struct replay *replay, uint32_t chip, int64_t now_ps, int64_t link_ps)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    struct flight_log *log = &recorder->log;
    SIM_ASSERT(chip == recorder->chip);
    if (log->message_count < recorder->arrived_at.count)
        recorder->fails = true; /* After a shard. */
    arrival_add(replay, now_ps - link_ps);
    log->message_count++;
    if (link_ps > log->passage_ps) log->passage_ps = link_ps;
}

void flight_record_shard(struct replay *replay, uint32_t chip)
{
    SIM_ASSERT(chip == replay->lanes.flights->recorder->chip);
    arrival_add(replay, 0);
}

bool flight_record_leads_away(struct replay *replay, uint32_t chip)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    if (chip == recorder->chip) return false;
    recorder->fails = true;
    engine_pause(replay->engine);
    return true;
}

/* Events of the engine that simulates a collective by itself. */
static void handle_alone(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct replay *replay = owner;
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    (void)engine;
    if (recorder != NULL) {
        uint64_t const epoch = (UINT64_C(1) << KEY_EPOCH_BITS) - 1;
        recorder->now.at_ps = now_ps;
        recorder->now.key = event_key_names_epoch(key) ? key & ~(epoch << KEY_EPOCH_SHIFT) : key;
        if (event_key_kind(key) == EVENT_COLLECTIVE_END) {
            recorder->log.length_ps = now_ps;
            return;
        }
        recorder->log.event_count += count;
    } else if (now_ps == replay->lanes.flights->order.at_ps) {
        replay->lanes.flights->meets = true;
    }
    replay_event(replay, now_ps, key, chips, count);
}

enum status flight_engine_create(struct arena *arena, struct replay *replay, uint64_t pending_max,
                                 struct engine **ret_engine, struct error *reterr)
{
    struct engine_options const engine = {
        .queue = "reference",
        .chip_count = replay->chip_count,
        .channel_count = replay_channel_count(replay),
        .pending_max = pending_max,
        .handler = handle_alone,
        .owner = replay,
    };
    return engine_create(arena, &engine, ret_engine, reterr);
}

void flight_servers_save(struct replay *replay, uint32_t chip, struct flight_servers *ret_saved)
{
    struct servers *servers = &replay->servers;
    ret_saved->states = servers->states[chip];
    ret_saved->pasts = servers->pasts[chip];
    servers->states[chip] = (struct chip_servers){.of = {{.dma_ps = 0}}};
    servers->pasts[chip] = (struct chip_pasts){.of = {{.free_ps = 0}}};
    SIM_ASSERT(servers->read_ways <= MACHINE_PORTS_MAX + 1);
    for (uint32_t way = 0; way < servers->read_ways; way++) {
        ret_saved->reads[way] = *reads_at(servers, way, chip);
        *reads_at(servers, way, chip) = (struct server_reads){.work_ps = 0};
    }
}

void flight_servers_restore(struct replay *replay, uint32_t chip,
                            const struct flight_servers *saved)
{
    struct servers *servers = &replay->servers;
    servers->states[chip] = saved->states;
    servers->pasts[chip] = saved->pasts;
    for (uint32_t way = 0; way < servers->read_ways; way++)
        *reads_at(servers, way, chip) = saved->reads[way];
}

/* With such messages it is not closed, and handlers that run by themselves would take them. */
bool flight_has_ahead(const struct plan_table *plan, uint32_t chip)
{
    for (uint32_t i = 0; i < plan->lane_count; i++)
        for (uint32_t row = 0; row < EPOCHS_AHEAD; row++)
            if (plan->lane[i].routed->ahead[(uint64_t)chip * EPOCHS_AHEAD + row] > 0) return true;
    return false;
}

/* Runs the handlers of the collective, and keeps what its lanes have come to. */
static void collective_simulate(struct replay *replay, uint32_t stream, uint32_t chip,
                                struct lane_state *ret_lanes)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    struct error error = {.status = STATUS_OK};
    engine_restart(replay->engine, 0);
    transport_open(replay, stream, chip, 0);
    transport_operand(replay, stream, chip, 0);
    recorder->log.left_at_begin = recorder->left.count;
    if (engine_run(replay->engine, &error) != STATUS_OK) recorder->fails = true;
    engine_forget(replay->engine); /* What a message that leads away has left. */
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        ret_lanes[i] = plan->lane[i].states[chip];
        if (!ret_lanes[i].finished || ret_lanes[i].ahead > 0) recorder->fails = true;
        routed_end(replay, &plan->lane[i], chip);
    }
}

/* The links' states become what they were, and what they have become is kept. */
static void links_take(struct replay *replay)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    struct flight_link *links = recorder->links.items;
    const struct saved_link *saved = recorder->saved.items;
    for (uint32_t i = 0; i < recorder->links.count; i++) {
        struct flight_link *at = &links[i];
        at->after = *at->link;
        at->queued_ps = replay->tally.queued_ps[at->port];
        *at->link = saved[i].state;
        if (at->waits == NULL) continue;
        at->added = *at->waits;
        *at->waits = saved[i].waits;
    }
}

/* A copy in the run's memory; NULL: there is no room. */
static const void *kept(struct replay *replay, const struct vector *vector, uint64_t item_bytes)
{
    struct flights *flights = replay->lanes.flights;
    uint64_t const bytes = vector->count * item_bytes;
    if (flights->log_bytes + bytes > FLIGHT_LOG_BYTES) return NULL;
    flights->log_bytes += bytes;
    void *items = arena_take(flights->arena, vector->count + 1ull, item_bytes);
    if (items != NULL && bytes > 0) memcpy(items, vector->items, bytes);
    return items;
}

/* Whether what was recorded is what a log has, of which there is as much. */
static bool same_items(const struct vector *recorded, const void *kept, uint64_t item_bytes)
{
    return recorded->count == 0 || memcmp(recorded->items, kept, recorded->count * item_bytes) == 0;
}

/* The log of another chip, if it says the same of all but links. */
static const struct flight_log *same_of(const struct replay *replay, uint32_t plan)
{
    const struct flight_recorder *recorder = replay->lanes.flights->recorder;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint64_t const index = (uint64_t)plan * replay->chip_count + chip;
        const struct flight_log *log = &replay->lanes.flights->logs[index];
        if (replay->lanes.flights->states[index] != FLIGHT_LOGGED ||
            log->arrived_count != recorder->arrived.count ||
            log->left_count != recorder->left.count)
            continue;
        if (same_items(&recorder->arrived_at, log->arrived_at, sizeof *log->arrived_at) &&
            same_items(&recorder->arrived, log->arrived, sizeof *log->arrived) &&
            same_items(&recorder->left_at, log->left_at, sizeof *log->left_at) &&
            same_items(&recorder->left, log->left, sizeof *log->left))
            return log;
    }
    return NULL;
}

/* Moves what was recorded into the log. False: there is no memory. */
static bool log_keep(struct replay *replay, uint32_t plan, const struct lane_state *lanes,
                     struct flight_log *ret_log)
{
    struct flight_recorder *recorder = replay->lanes.flights->recorder;
    uint32_t const lane_count = replay->lanes.plans[plan].lane_count;
    struct flight_log log = recorder->log;
    const struct flight_log *same = same_of(replay, plan);
    struct vector const all_lanes = {.items = (void *)lanes, .count = lane_count};
    log.arrived_count = recorder->arrived.count;
    log.left_count = recorder->left.count;
    log.link_count = recorder->links.count;
    log.links = kept(replay, &recorder->links, sizeof *log.links);
    log.lanes = kept(replay, &all_lanes, sizeof *log.lanes);
    if (same != NULL) {
        log.arrived_at = same->arrived_at;
        log.arrived = same->arrived;
        log.left_at = same->left_at;
        log.left = same->left;
    } else {
        log.arrived_at = kept(replay, &recorder->arrived_at, sizeof *log.arrived_at);
        log.arrived = kept(replay, &recorder->arrived, sizeof *log.arrived);
        log.left_at = kept(replay, &recorder->left_at, sizeof *log.left_at);
        log.left = kept(replay, &recorder->left, sizeof *log.left);
    }
    if (log.links == NULL || log.lanes == NULL || log.arrived_at == NULL || log.arrived == NULL ||
        log.left_at == NULL || log.left == NULL)
        return false;
    *ret_log = log;
    return true;
}

void flight_reads_start(struct replay *replay, uint32_t chip, uint32_t ways,
                        const struct flight_start *start, int64_t begin_ps)
{
    uint32_t number = 0;
    for (; ways != 0; ways &= ways - 1, number++) {
        struct server_reads reads = start->reads[number];
        if (reads.until_ps == 0) continue;
        reads.since_ps += begin_ps;
        reads.until_ps += begin_ps;
        *reads_at(&replay->servers, (uint32_t)__builtin_ctz(ways), chip) = reads;
    }
}

bool flight_record(struct replay *replay, uint32_t stream, uint32_t chip,
                   struct flight_log *ret_log)
{
    return flight_record_from(replay, stream, chip, NULL, NULL, ret_log);
}

bool flight_record_from(struct replay *replay, uint32_t stream, uint32_t chip,
                        const struct flight_log *first, const struct flight_start *start,
                        struct flight_log *ret_log)
{
    struct flights *flights = replay->lanes.flights;
    uint32_t const index = *running_at(replay, stream, chip);
    const struct plan_table *plan = &replay->lanes.plans[index];
    struct stream_state const state = *stream_at(replay, stream, chip);
    struct tally const tally = replay->tally;
    struct engine *engine = replay->engine;
    struct ports *ports = replay->ports;
    struct flight_servers servers;
    struct lane_state before[REPLAY_LANES_MAX], after[REPLAY_LANES_MAX];
    struct flight_recorder recorder = {.chip = chip, .first = first, .start = start};
    if (flight_has_ahead(plan, chip)) return false;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        before[i] = plan->lane[i].states[chip];
        plan->lane[i].states[chip] = (struct lane_state){.free_ps = 0};
    }
    flight_servers_save(replay, chip, &servers);
    if (start != NULL) flight_reads_start(replay, chip, first->ways, start, 0);
    replay->tally = (struct tally){.transfers = 0};
    replay->engine = flights->engine;
    replay->ports = NULL; /* Its messages have their links for themselves, without turns. */
    flights->recorder = &recorder;
    stream_at(replay, stream, chip)->operand_parts = 0;
    collective_simulate(replay, stream, chip, after);
    recorder.log.transfers = replay->tally.transfers;
    recorder.log.start = start;
    if (start != NULL && recorder.log.ways != first->ways) recorder.fails = true;
    links_take(replay);
    replay->ports = ports;
    replay->engine = engine;
    replay->tally = tally;
    flight_servers_restore(replay, chip, &servers);
    *stream_at(replay, stream, chip) = state;
    for (uint32_t i = 0; i < plan->lane_count; i++) plan->lane[i].states[chip] = before[i];
    bool const flies =
        !recorder.fails && recorder.log.length_ps > 0 && log_keep(replay, index, after, ret_log);
    flights->recorder = NULL;
    struct vector *const vectors[] = {&recorder.arrived_at, &recorder.arrived, &recorder.left_at,
                                      &recorder.left,       &recorder.links,   &recorder.saved};
    for (uint32_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]->items);
    return flies;
}

/* A run spends much of its time here, so the loop stands there once for each kind of log. */
static inline __attribute__((always_inline)) uint64_t digest_of(const struct flight_log *log,
                                                                const uint16_t *senders,
                                                                int64_t begin_ps, uint32_t epoch,
                                                                uint32_t chip)
{
    const struct flight_instant *at = log->arrived_at;
    uint64_t const epoch_bits = (uint64_t)epoch << KEY_EPOCH_SHIFT;
    uint32_t const count = log->message_count;
    uint64_t digest = 0;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; i++)
        digest += digest_record(begin_ps + at[i].at_ps, at[i].key | epoch_bits,
                                senders == NULL ? chip : senders[i]);
    return digest;
}

uint64_t flight_digest(const struct flight_log *log, int64_t begin_ps, uint32_t epoch,
                       uint32_t chip)
{
    return log->senders == NULL ? digest_of(log, NULL, begin_ps, epoch, chip)
                                : digest_of(log, log->senders, begin_ps, epoch, chip);
}
