/*
 * Turns at a link.
 *
 * The segment. On GPUs in any profile but `ideal` it is NCCL's: the Simple protocol keeps
 * NCCL_STEPS = 8 buffers of a connection's 4 MiB (DEFAULT_BUFFSIZE) and hands two of them to the
 * network at a time (ALLGATHER_SLICESTEPS, REDUCESCATTER_SLICESTEPS, ALLREDUCE_SLICESTEPS =
 * NCCL_STEPS / 4): slices of 1 MiB. It cuts messages that are alone just so, and what that costs is
 * in the rates that were measured, so a turn costs nothing more. Source: NVIDIA/nccl,
 * src/include/device.h and src/init.cc. Elsewhere a turn costs nothing either, and 64 KiB is so
 * little that steps do not depend on it. docs/engine.md says what half or twice of either changes.
 */
#include "sim/replay/port.h"

#include "sim/base/arena.h"

static int64_t left_ps(const struct port_flow *flow)
{
    return flow->asked_ps - flow->served_ps;
}

/* How many streams take turns now: those in front that are equally urgent. */
static uint32_t front_count(const struct ports *ports, const struct port_queue *queue)
{
    uint32_t count = 0;
    while (count < queue->count &&
           ports->urgency[queue->turn[count]] == ports->urgency[queue->turn[0]])
        count++;
    return count;
}

/* Whole rounds until some stream's work ends, or the instant comes. */
static void rounds_pass(struct port_queue *queue, uint32_t front, int64_t segment_ps,
                        int64_t now_ps)
{
    int64_t const round_ps = segment_ps * front;
    int64_t rounds = (now_ps - queue->turn_ps) / round_ps;
    for (uint32_t i = 0; i < front && rounds > 0; i++) {
        int64_t const whole = (left_ps(&queue->flow[queue->turn[i]]) - 1) / segment_ps;
        if (whole < rounds) rounds = whole;
    }
    if (rounds == 0) return;
    for (uint32_t i = 0; i < front; i++)
        queue->flow[queue->turn[i]].served_ps += rounds * segment_ps;
    queue->turn_ps += rounds * round_ps;
    queue->current = queue->turn[front - 1];
}

/* One turn of the stream in front, which goes behind its like. */
static void turn_pass(struct port_queue *queue, uint32_t front, int64_t segment_ps)
{
    uint8_t const stream = queue->turn[0];
    struct port_flow *flow = &queue->flow[stream];
    int64_t const left = left_ps(flow);
    int64_t const work_ps = left < segment_ps ? left : segment_ps;
    flow->served_ps += work_ps;
    queue->turn_ps += work_ps;
    bool const more = work_ps < left;
    uint32_t const behind = more ? front : queue->count;
    for (uint32_t i = 1; i < behind; i++) queue->turn[i - 1] = queue->turn[i];
    if (more)
        queue->turn[front - 1] = stream;
    else
        queue->count--;
    queue->current = stream;
}

void port_advance(const struct ports *ports, struct port_queue *queue, int64_t segment_ps,
                  int64_t now_ps)
{
    while (queue->turn_ps < now_ps && (queue->whole_ps > 0 || queue->count > 0)) {
        if (queue->whole_ps > 0) {
            queue->turn_ps += queue->whole_ps;
            queue->whole_ps = 0;
            queue->current = PORT_NO_STREAM;
            continue;
        }
        uint32_t const front = front_count(ports, queue);
        rounds_pass(queue, front, segment_ps, now_ps);
        if (queue->turn_ps < now_ps) turn_pass(queue, front, segment_ps);
    }
}

void port_ask(const struct ports *ports, struct port_queue *queue, uint32_t stream, int64_t work_ps)
{
    struct port_flow *flow = &queue->flow[stream];
    bool const waits = left_ps(flow) > 0;
    flow->asked_ps += work_ps;
    if (waits || work_ps == 0) return;
    uint32_t at = 0;
    while (at < queue->count && ports->urgency[queue->turn[at]] <= ports->urgency[stream]) at++;
    if (at > 0 && queue->turn[at - 1] == queue->current &&
        ports->urgency[queue->current] == ports->urgency[stream])
        at--;
    for (uint32_t i = queue->count; i > at; i--) queue->turn[i] = queue->turn[i - 1];
    queue->turn[at] = (uint8_t)stream;
    queue->count++;
}

int64_t port_done_ps(const struct ports *ports, const struct port_queue *queue, uint32_t stream,
                     int64_t done_ps, int64_t segment_ps)
{
    int64_t const ahead_ps = done_ps - queue->flow[stream].served_ps;
    if (ahead_ps <= 0) return stream == queue->current ? queue->turn_ps + ahead_ps : 0;
    int64_t const turns = (ahead_ps + segment_ps - 1) / segment_ps;
    int64_t at_ps = queue->turn_ps + queue->whole_ps + ahead_ps;
    bool before = true;
    for (uint32_t i = 0; i < queue->count; i++) {
        uint8_t const other = queue->turn[i];
        int64_t const others_ps = left_ps(&queue->flow[other]);
        if (other == stream) {
            before = false;
        } else if (ports->urgency[other] < ports->urgency[stream]) {
            at_ps += others_ps;
        } else if (ports->urgency[other] == ports->urgency[stream]) {
            int64_t const turns_ps = segment_ps * (before ? turns : turns - 1);
            at_ps += others_ps < turns_ps ? others_ps : turns_ps;
        }
    }
    return at_ps;
}

bool port_done_certain(const struct ports *ports, const struct port_queue *queue, uint32_t stream,
                       int64_t done_ps, int64_t segment_ps)
{
    int64_t const ahead_ps = done_ps - queue->flow[stream].served_ps;
    return ahead_ps <= 0 ||
           (ahead_ps <= segment_ps && ports->urgency[stream] == 0 && stream != queue->current);
}

bool ports_wanted(const struct replay *replay)
{
    return replay->options->arbitration != ARBITRATION_FIFO;
}

static uint64_t link_count(const struct replay *replay)
{
    uint64_t count = (uint64_t)replay->grid.port_count * replay->chip_count;
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->routes->level[index].level->tier_count; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            count += 2ull * tier->unit_count * tier->cable_count;
        }
    return count;
}

/* Routes of several links are followed message by message. */
static enum status passed_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++) {
            struct lane_table *lane = &replay->lanes.plans[i].lane[l];
            if (lane->routed != NULL || lane->route.hop_count < 2) continue;
            STATUS_TRY(arena_try(arena, lane->route.hop_count * (uint64_t)replay->chip_count,
                                 sizeof *lane->route.passed, &memory, reterr));
            lane->route.passed = memory;
        }
    return STATUS_OK;
}

static uint64_t segment_bytes(const struct replay *replay)
{
    const struct chip *chip = &replay->machine->chip;
    if (replay->options->segment_bytes > 0) return replay->options->segment_bytes;
    return chip->kind == CHIP_GPU && !chip->is_ideal ? PORT_SEGMENT_NCCL_BYTES : PORT_SEGMENT_BYTES;
}

/* Messages that are kept, at all links together. */
static const uint64_t entries_max = UINT64_C(1) << 21;

enum status ports_build(struct arena *arena, struct replay *replay, uint64_t message_max,
                        struct error *reterr)
{
    void *memory = NULL;
    bool const by_urgency = replay->options->arbitration == ARBITRATION_PRIORITY;
    if (!ports_wanted(replay)) return STATUS_OK;
    uint32_t const kinds = replay->routes->kind_count;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->ports, &memory, reterr));
    struct ports *ports = replay->ports = memory;
    STATUS_TRY(arena_try(arena, kinds, sizeof *ports->segment_ps, &memory, reterr));
    ports->segment_ps = memory;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        uint64_t const rate = replay->routes->rate[kind];
        int64_t const ps = rate == 0 ? 1 : units_duration_ps(segment_bytes(replay), rate);
        ports->segment_ps[kind] = ps > 0 ? ps : 1;
    }
    for (uint32_t s = 0; s < replay->stream_count; s++)
        if (by_urgency) ports->urgency[s] = replay->program->stream[s].urgency;
    ports->queue_capacity = (uint32_t)link_count(replay);
    STATUS_TRY(
        arena_try(arena, ports->queue_capacity + 1ull, sizeof *ports->queues, &memory, reterr));
    ports->queues = memory;
    ports->stream_count = replay->stream_count;
    STATUS_TRY(arena_try(arena, (ports->queue_capacity + 1ull) * replay->stream_count,
                         sizeof *ports->flows, &memory, reterr));
    ports->flows = memory;
    STATUS_TRY(
        arena_try(arena, ports->queue_capacity + 1ull, sizeof *ports->kept, &memory, reterr));
    ports->kept = memory;
    message_max = message_max < entries_max ? message_max : entries_max;
    STATUS_TRY(arena_try_unset(arena, message_max + 1, sizeof *ports->lanes, &memory, reterr));
    ports->lanes = memory;
    ports->entry_capacity = ports->void_capacity = (uint32_t)message_max;
    STATUS_TRY(arena_try_unset(arena, message_max + 1, sizeof *ports->entries, &memory, reterr));
    ports->entries = memory;
    STATUS_TRY(arena_try_unset(arena, message_max + 1, sizeof *ports->voids, &memory, reterr));
    ports->voids = memory;
    STATUS_TRY(hashed_build(arena, ports->entry_capacity, &ports->named, reterr));
    STATUS_TRY(hashed_build(arena, ports->void_capacity, &ports->void_named, reterr));
    return passed_build(arena, replay, reterr);
}
