#include "sim/replay/host.h"
#include "sim/replay/flight.h"
#include "sim/replay/fold_prefix.h"

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/promise.h"
#include "sim/replay/route.h"
#include "sim/replay/state.h"

/* Four MiB take a quarter of a millisecond over 16 GB/s. */
enum { PIECE_BYTES = 1 << 22, PIECES_MAX = 1 << 15 };

static enum status copies_build(struct arena *arena, const struct replay *replay,
                                struct host_links *host, struct error *reterr)
{
    const struct program *program = replay->program;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, program->copy_count, sizeof *host->copies, &memory, reterr));
    host->copies = memory;
    for (uint32_t i = 0; i < program->copy_count; i++) {
        const struct program_copy *copy = &program->copies[i];
        uint64_t const wanted = units_ceil_divide(copy->size_bytes, PIECE_BYTES);
        uint32_t const pieces = wanted < PIECES_MAX ? (uint32_t)wanted : PIECES_MAX;
        int64_t const link_ps =
            units_duration_ps(copy->size_bytes, replay->machine->host.bytes_per_s);
        if (link_ps == TIME_PS_NEVER / 4)
            return error_set(
                reterr, STATUS_LIMIT, "/run",
                "a copy of %llu bytes over %s takes longer than %lld days, more than a "
                "run can hold",
                (unsigned long long)copy->size_bytes, replay->machine->host.cable_name,
                (long long)(TIME_PS_NEVER / 4 / (86400 * TIME_PS_PER_S)));
        int64_t const hbm_ps =
            units_duration_ps(copy->size_bytes, replay->machine->chip.hbm_bytes_per_s);
        host->copies[i] = (struct copy_table){
            .piece_count = pieces,
            .longer = (uint32_t)(link_ps % pieces),
            .bytes_larger = (uint32_t)(copy->size_bytes % pieces),
            .to_host = copy->to_host,
            .link_ps = link_ps / pieces,
            .bytes = copy->size_bytes / pieces,
            .hbm_ps = (int64_t)units_ceil_divide((uint64_t)hbm_ps, pieces),
        };
    }
    return STATUS_OK;
}

/* Which link each replayed chip has. Boxes lie whole in what is replayed: fold.c. */
static enum status units_build(struct arena *arena, const struct replay *replay,
                               struct host_links *host, struct error *reterr)
{
    const struct machine_host *link = &replay->machine->host;
    void *units = NULL, *places = NULL;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof(uint32_t), &units, reterr));
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof(uint32_t), &places, reterr));
    host->unit = units;
    host->place = places;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX], unit = 0, count = 1, place = 0;
        fold_coordinates(replay->fold, chip, at);
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
            uint32_t const along =
                (uint32_t)units_ceil_divide(replay->fold->period[axis], link->box[axis]);
            unit = unit * along + at[axis] / link->box[axis];
            place = place * link->box[axis] + at[axis] % link->box[axis];
            count *= along;
        }
        ((uint32_t *)units)[chip] = unit;
        ((uint32_t *)places)[chip] = place;
        host->unit_count = count;
    }
    return STATUS_OK;
}

enum status host_build_links(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct machine *machine = replay->machine;
    void *memory = NULL;
    if (replay->program->copy_count == 0) return STATUS_OK;
    if (machine->host.bytes_per_s == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, "/machine",
                         "%s has no link to a host, so nothing can be copied there",
                         machine->chip.title);
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->host, &memory, reterr));
    struct host_links *host = replay->host = memory;
    STATUS_TRY(copies_build(arena, replay, host, reterr));
    STATUS_TRY(units_build(arena, replay, host, reterr));
    host->on_level = machine->host.level != LEVEL_NONE;
    for (uint32_t down = 0; down < 2; down++) {
        host->port[down] = (uint8_t)machine_host_port(machine, down);
        if (host->on_level) {
            struct tier_links *tier = &replay->routes->level[machine->host.level].tier[0];
            SIM_ASSERT(tier->cable_count == 1 && tier->unit_count == host->unit_count);
            host->links[down] = tier->links[down];
            host->kind = tier->kind;
            host->waits[down] = tier->waits[down];
            continue;
        }
        STATUS_TRY(arena_try(arena, host->unit_count, sizeof *host->links[down], &memory, reterr));
        host->links[down] = memory;
        STATUS_TRY(arena_try(arena, host->unit_count, sizeof *host->waits[down], &memory, reterr));
        host->waits[down] = memory;
    }
    return STATUS_OK;
}

static uint64_t host_key(const struct replay *replay, enum replay_event event, uint32_t stream,
                         uint32_t chip)
{
    return event_key_make(event, KEY_HOST, stream, 0) | replay->host->place[chip];
}

static const struct copy_table *copy_of(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->host->copies[streams_needs(replay, stream, chip)->op->index];
}

static int64_t piece_ps(const struct copy_table *copy, uint32_t piece)
{
    return copy->link_ps + (piece < copy->longer);
}

void host_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    int64_t const latency_ps = replay->machine->host.latency_ps;
    engine_post(replay->engine, now_ps + (latency_ps > 0 ? latency_ps : 1),
                host_key(replay, EVENT_HOP, stream, chip), channel_of(replay, EVENT_HOP, stream),
                chip);
}

static void piece_record(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t port,
                         int64_t begin_ps, int64_t end_ps, uint64_t bytes)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    uint32_t const slot = state->slot;
    uint32_t const at = fold_machine_chip(replay->fold, replay->machine, chip);
    bool const to_host = port == replay->host->port[0];
    struct trace_record const record = {.begin_ps = begin_ps,
                                        .end_ps = end_ps,
                                        .bytes = bytes,
                                        .wait_ps = begin_ps - engine_now_ps(replay->engine),
                                        .chip = chip,
                                        .from = to_host ? at : trace_no_chip,
                                        .to = to_host ? trace_no_chip : at,
                                        .at = at,
                                        .number = state->part,
                                        .slot = role_at(replay, chip)->slot_template[slot],
                                        .op = streams_op_index(replay, stream, chip),
                                        .kind = TRACE_TRANSFER,
                                        .stream = (uint8_t)stream,
                                        .port = (uint16_t)port};
    record_add(&replay->records, &record);
}

/* The copy's next piece joins the queue, first come, first served. */
static void piece_send(struct replay *replay, const struct copy_table *copy, uint32_t stream,
                       uint32_t chip, int64_t now_ps)
{
    const struct host_links *host = replay->host;
    uint32_t const piece = stream_at(replay, stream, chip)->part;
    uint32_t const down = !copy->to_host, port = host->port[down];
    struct link_state *link = &host->links[down][host->unit[chip]];
    flights_clear_link(replay, link);
    struct link_waits *waits = &host->waits[down][host->unit[chip]];
    int64_t const link_ps = piece_ps(copy, piece);
    struct port_ticket const place = {
        .link = link, .waits = waits, .kind = host->kind, .port = port};
    bool const meets = host->on_level && promise_meets(replay, link, stream, NULL, now_ps);
    int64_t start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    if (meets) start_ps = promise_whole(replay, &place, link_ps, now_ps);
    int64_t depart_ps = start_ps + link_ps;
    if (copy->to_host) {
        int64_t const read_ps = dma_read_ps(&replay->servers, chip, copy->hbm_ps, now_ps);
        depart_ps = depart_ps > read_ps ? depart_ps : read_ps;
        dma_leave(&replay->servers, reads_at(&replay->servers, replay->servers.read_ways - 1, chip),
                  chip, copy->hbm_ps, now_ps, depart_ps);
    }
    uint64_t const key = host_key(replay, EVENT_ARRIVE, stream, chip);
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error; nothing may overflow before. */
        engine_post(replay->engine, TIME_PS_END, key, 0, chip);
        link->free_ps = TIME_PS_END;
        return;
    }
    wait_count(replay, port, waits, start_ps - now_ps);
    uint64_t const bytes = copy->bytes + (piece < copy->bytes_larger);
    link->free_ps = meets ? link->free_ps + link_ps : depart_ps;
    link->busy_ps += link_ps;
    link->bytes += bytes;
    if (!meets) link->stream = (uint8_t)stream;
    replay->tally.transfers++;
    if (replay->records.active && replay->chips[chip].shown)
        piece_record(replay, stream, chip, port, start_ps, depart_ps, bytes);
    engine_post(replay->engine, depart_ps, key, channel_of(replay, EVENT_ARRIVE, stream), chip);
}

/* A piece is where it belongs: the next, or the end. */
static void piece_end(struct replay *replay, const struct copy_table *copy, uint32_t stream,
                      uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    state->part++;
    if (state->part < copy->piece_count) {
        piece_send(replay, copy, stream, chip, now_ps);
        return;
    }
    state->phase = STREAM_ENDS;
    engine_post(replay->engine, now_ps, event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
}

static void piece_arrive(struct replay *replay, uint64_t key, const struct copy_table *copy,
                         uint32_t stream, uint32_t chip, int64_t now_ps)
{
    uint32_t const piece = stream_at(replay, stream, chip)->part;
    digest_add(replay, now_ps, key, chip);
    if (!copy->to_host) {
        int64_t const link_ps = piece_ps(copy, piece);
        struct message_cost const cost = {.link_ps = link_ps, .write_ps = copy->hbm_ps};
        int64_t const land_ps = arrival_cost_ps(&replay->servers, &cost, link_ps, chip, now_ps);
        if (land_ps > now_ps) {
            engine_post(replay->engine, land_ps, host_key(replay, EVENT_LAND, stream, chip),
                        channel_of(replay, EVENT_LAND, stream), chip);
            return;
        }
    }
    piece_end(replay, copy, stream, chip, now_ps);
}

void host_event(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                int64_t now_ps)
{
    uint32_t const stream = event_key_stream(key);
    enum replay_event const event = event_key_kind(key);
    for (uint32_t i = 0; i < count; i++) {
        const struct copy_table *copy = copy_of(replay, stream, chips[i]);
        if (event == EVENT_HOP)
            piece_send(replay, copy, stream, chips[i], now_ps);
        else if (event == EVENT_ARRIVE)
            piece_arrive(replay, key, copy, stream, chips[i], now_ps);
        else
            piece_end(replay, copy, stream, chips[i], now_ps);
    }
}
