#include "sim/replay/recur_state.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/p2p.h"
#include "sim/replay/port.h"
#include "sim/replay/route.h"
#include "sim/replay/stretch.h"

#define FIELD(kind, type, member)                                                                  \
    {                                                                                              \
        RECUR_##kind, offsetof(struct type, member), sizeof(((struct type *)0)->member), 1         \
    }
#define FIELDS(kind, type, member, each)                                                           \
    {                                                                                              \
        RECUR_##kind, offsetof(struct type, member), sizeof(each),                                 \
            sizeof(((struct type *)0)->member) / (sizeof(each))                                    \
    }

static const struct recur_field chip_fields[] = {FIELD(INSTANT, chip_state, part_begin_ps),
                                                 FIELD(INSTANT, chip_state, part_end_ps),
                                                 FIELD(INSTANT, chip_state, breakdown_ps),
                                                 FIELD(SAME, chip_state, first_begin_ps),
                                                 FIELD(INSTANT, chip_state, last_end_ps),
                                                 FIELD(SAME, chip_state, start_ps),
                                                 FIELD(SUM, chip_state, exposed_ps),
                                                 FIELD(SUM, chip_state, exposed_last_ps),
                                                 FIELD(SAME, chip_state, exposed_first_ps),
                                                 FIELD(SAME, chip_state, running),
                                                 FIELD(SAME, chip_state, sends),
                                                 FIELD(SAME, chip_state, chip_class),
                                                 FIELD(SAME, chip_state, role),
                                                 FIELD(SAME, chip_state, block_phase),
                                                 FIELD(SAME, chip_state, last_phase),
                                                 FIELD(SAME, chip_state, computes),
                                                 FIELD(SAME, chip_state, shown),
                                                 {0}};
HAS_BYTES(chip_state, 128);

/* recur.c holds the counts of a stream against its program. */
static const struct recur_field stream_fields[] = {
    FIELD(SUM, stream_state, done),           FIELD(SUM, stream_state, begun),
    FIELD(SUM, stream_state, op_first),       FIELD(SUM, stream_state, slot),
    FIELD(SAME, stream_state, position),      FIELD(SAME, stream_state, phase),
    FIELD(SAME, stream_state, lanes_left),    FIELD(SAME, stream_state, waiters),
    FIELD(SUM, stream_state, wake_done),      FIELD(SUM, stream_state, wake_begun),
    FIELD(SAME, stream_state, part),          FIELD(SAME, stream_state, part_runs),
    FIELD(SUM, stream_state, epoch),          FIELD(SUM, stream_state, operand_first),
    FIELD(SAME, stream_state, operand_parts), FIELD(SUM, stream_state, wants),
    FIELD(INSTANT, stream_state, begin_ps),   {0}};
HAS_BYTES(stream_state, 64);

static const struct recur_field lane_fields[] = {FIELD(INSTANT, lane_state, free_ps),
                                                 FIELD(SAME, lane_state, ahead),
                                                 FIELD(SAME, lane_state, sent),
                                                 FIELD(SAME, lane_state, counted),
                                                 FIELD(SAME, lane_state, sends),
                                                 FIELD(SAME, lane_state, arrivals),
                                                 FIELD(SAME, lane_state, waiting),
                                                 FIELD(SAME, lane_state, finished),
                                                 FIELD(SAME, lane_state, alone_before),
                                                 FIELD(SAME, lane_state, alone_behind),
                                                 {0}};
HAS_BYTES(lane_state, 32);

/* recur.c compares what is settled with what was granted, and the breaks between runs. */
#define SERVER_FIELDS(server)                                                                      \
    FIELD(SUM, chip_servers, of[server].dma_ps), FIELD(INSTANT, chip_servers, of[server].edge_ps), \
        FIELD(SUM, chip_servers, of[server].settled_ps),                                           \
        FIELD(SAME, chip_servers, of[server].debt_ps)
static const struct recur_field server_fields[] = {
    SERVER_FIELDS(SERVER_HBM), SERVER_FIELDS(SERVER_VPU), {0}};
HAS_BYTES(chip_servers, 32 * SERVER_COUNT);

#define PAST_FIELDS(server)                                                                        \
    FIELD(INSTANT, chip_pasts, of[server].run_begin_ps),                                           \
        FIELD(SAME, chip_pasts, of[server].spared_ps),                                             \
        FIELD(INSTANT, chip_pasts, of[server].free_ps),                                            \
        FIELD(SAME, chip_pasts, of[server].needed), FIELD(SAME, chip_pasts, of[server].run_count), \
        FIELDS(INSTANT, chip_pasts, of[server].run, int64_t),                                      \
        FIELDS(SAME, chip_pasts, of[server].room_ps, int64_t)
static const struct recur_field past_fields[] = {
    PAST_FIELDS(SERVER_HBM), PAST_FIELDS(SERVER_VPU), {0}};
HAS_BYTES(server_past, 32 + SERVER_RUNS * 16 + (SERVER_RUNS + 1) * 8);
_Static_assert(SERVER_COUNT == 2, "every server's fields are compared");

static const struct recur_field cores_fields[] = {FIELD(INSTANT, cores_state, edge_ps),
                                                  FIELD(SAME, cores_state, lost_ps),
                                                  FIELD(SAME, cores_state, held),
                                                  {0}};
HAS_BYTES(cores_state, 24);

static const struct recur_field reads_fields[] = {FIELD(SAME, server_reads, work_ps),
                                                  FIELD(INSTANT, server_reads, since_ps),
                                                  FIELD(INSTANT, server_reads, until_ps),
                                                  {0}};
HAS_BYTES(server_reads, 24);

static const struct recur_field link_fields[] = {
    FIELD(INSTANT, link_state, free_ps), FIELD(SUM, link_state, busy_ps),
    FIELD(SUM, link_state, bytes),       FIELD(SAME, link_state, queue),
    FIELD(SAME, link_state, lane),       FIELD(SAME, link_state, stream),
    FIELD(SAME, link_state, flown),      {0}};
HAS_BYTES(link_state, 32);

static const struct recur_field port_fields[] = {FIELD(INSTANT, grid_port, link.free_ps),
                                                 FIELD(SUM, grid_port, link.busy_ps),
                                                 FIELD(SUM, grid_port, link.bytes),
                                                 FIELD(SAME, grid_port, link.queue),
                                                 FIELD(SAME, grid_port, link.lane),
                                                 FIELD(SAME, grid_port, link.stream),
                                                 FIELD(SAME, grid_port, link.flown),
                                                 FIELD(SAME, grid_port, reads.work_ps),
                                                 FIELD(INSTANT, grid_port, reads.since_ps),
                                                 FIELD(INSTANT, grid_port, reads.until_ps),
                                                 {0}};
HAS_BYTES(grid_port, 64);

static const struct recur_field waits_fields[] = {
    FIELD(SUM, link_waits, waited_ps), FIELD(SUM, link_waits, messages), {0}};
HAS_BYTES(link_waits, 16);

static const struct recur_field breakdown_fields[] = {FIELD(SUM, breakdown, compute_ps),
                                                      FIELD(SUM, breakdown, exposed_ps),
                                                      FIELD(SUM, breakdown, idle_ps),
                                                      FIELD(SUM, breakdown, waiting_ps),
                                                      {0}};
HAS_BYTES(breakdown, 32);

static const struct recur_field span_fields[] = {
    FIELD(SAME, phase_span, begin_ps), FIELD(INSTANT, phase_span, end_ps), {0}};
HAS_BYTES(phase_span, 16);

static const struct recur_field class_fields[] = {FIELD(SUM, class_total, count),
                                                  FIELD(SUM, class_total, busy_ps),
                                                  FIELD(SUM, class_total, exposed_ps),
                                                  FIELD(SUM, class_total, idle_ps),
                                                  {0}};
HAS_BYTES(class_total, 32);

static const struct recur_field tally_fields[] = {
    FIELD(SUM, tally, transfers),  FIELD(SUM, tally, bound_checks),
    FIELD(SUM, tally, parts_done), FIELD(SUM, tally, flown),
    FIELD(SUM, tally, recorded),   FIELD(SUM, tally, posted),
    FIELD(SUM, tally, landed),     FIELD(SUM, tally, landed_off),
    FIELD(SUM, tally, simulated),  FIELD(SUM, tally, stretches),
    FIELD(SUM, tally, repeated),   FIELD(SUM, tally, broken),
    FIELD(SAME, tally, queued_ps), {0}};

/* recur.c holds what is held at the most against what is held. */
static const struct recur_field memory_fields[] = {
    FIELDS(SUM, memory_state, held_bytes, int64_t),
    FIELDS(SUM, memory_state, each_peak_bytes, int64_t),
    FIELDS(SUM, memory_state, at_peak_bytes, int64_t),
    FIELD(SUM, memory_state, total_bytes),
    FIELD(SUM, memory_state, peak_bytes),
    FIELD(SUM, memory_state, peak_at_ps),
    FIELD(SUM, memory_state, peak_slot),
    FIELD(SAME, memory_state, peak_op),
    {0}};
HAS_BYTES(memory_state, 3 * 8 * PROGRAM_MEMORY_COUNT + 32);

static const struct recur_field wait_fields[] = {
    FIELD(SAME, p2p_wait, idle_ps),     FIELDS(SAME, p2p_wait, phase_ps, int64_t),
    FIELD(SAME, p2p_wait, transfer_ps), FIELD(SAME, p2p_wait, ended),
    FIELD(SAME, p2p_wait, received),    FIELD(SUM, p2p_wait, waiting_ps),
    FIELD(SUM, p2p_wait, sent_bytes),   {0}};
HAS_BYTES(p2p_wait, 8 * PROGRAM_PHASE_COUNT + 40);

static const struct recur_field flight_fields[] = {FIELD(SAME, flight, log),
                                                   FIELD(INSTANT, flight, begin_ps),
                                                   FIELD(INSTANT, flight, void_ps),
                                                   FIELD(SAME, flight, arrived),
                                                   FIELD(SAME, flight, left),
                                                   FIELD(SAME, flight, is_off),
                                                   {0}};
HAS_BYTES(flight, 40);

static const struct recur_field chain_fields[] = {
    FIELD(INSTANT, chain, end_ps), FIELD(SAME, chain, left), FIELD(SAME, chain, runs), {0}};
HAS_BYTES(chain, 16);

static const struct recur_field stretch_fields[] = {FIELD(SAME, stretch_run, of),
                                                    FIELD(INSTANT, stretch_run, begin_ps),
                                                    FIELD(INSTANT, stretch_run, end_ps),
                                                    {0}};
HAS_BYTES(stretch_run, 24);

/* recur.c holds messages that came against those of the role. */
static const struct recur_field sum_32[] = {{RECUR_SUM, 0, 4, 1}, {0}};
static const struct recur_field same_16[] = {{RECUR_SAME, 0, 2, 1}, {0}};
static const struct recur_field same_32[] = {{RECUR_SAME, 0, 4, 1}, {0}};
static const struct recur_field same_64[] = {{RECUR_SAME, 0, 8, 1}, {0}};
static const struct recur_field instant_64[] = {{RECUR_INSTANT, 0, 8, 1}, {0}};
static const struct recur_field sum_64[] = {{RECUR_SUM, 0, 8, 1}, {0}};

static void list_add(struct recur_state *state, void *items, uint64_t count, uint32_t item_bytes,
                     const struct recur_field *fields)
{
    if (count == 0 || items == NULL) return;
    SIM_ASSERT(state->array_count < RECUR_ARRAYS_MAX);
    state->item_count += count;
    bool only_sums = true;
    for (const struct recur_field *field = fields; field->bytes != 0; field++)
        only_sums = only_sums && field->kind == RECUR_SUM;
    state->array[state->array_count++] = (struct recur_array){.items = items,
                                                              .count = count,
                                                              .item_bytes = item_bytes,
                                                              .only_sums = only_sums,
                                                              .fields = fields};
}

/* What tells most states apart comes first. */
static void arrays_list(struct replay *replay, struct recur_state *state)
{
    uint64_t const chips = replay->chip_count, streams = replay->stream_count;
#define ADD(array, rows, fields)                                                                   \
    list_add(state, replay->array, (uint64_t)(rows)*chips, sizeof *replay->array, fields)
    ADD(streams.states, streams, stream_fields);
    ADD(chips, 1, chip_fields);
    ADD(breakdowns.memories, 1, memory_fields);
    ADD(lanes.running, streams, same_16);
    ADD(servers.states, 1, server_fields);
    ADD(servers.pasts, 1, past_fields);
    if (replay->servers.cores.is_on) ADD(servers.cores.states, 1, cores_fields);
    ADD(servers.reads, replay->servers.read_ways - replay->grid.port_count, reads_fields);
    ADD(lanes.states, replay->lanes.count, lane_fields);
    ADD(grid.ports, replay->grid.port_count, port_fields);
    ADD(grid.waits, replay->grid.port_count, waits_fields);
    ADD(breakdowns.of_phase, PROGRAM_PHASE_COUNT, breakdown_fields);
    ADD(breakdowns.spans, PROGRAM_PHASE_COUNT, span_fields);
    ADD(breakdowns.links_ps, replay->breakdowns.link_sets, sum_64);
    ADD(breakdowns.stream_ps, PROGRAM_PHASE_COUNT * streams, sum_64);
    ADD(breakdowns.classes, replay->program->class_count, class_fields);
    ADD(steps.finished_ps, 1, same_64);
    ADD(steps.ended, 1, same_32);
    if (replay->p2p != NULL) {
        struct p2p *p2p = replay->p2p;
        list_add(state, p2p->came, streams * chips, sizeof *p2p->came, sum_32);
        list_add(state, p2p->transfer_ps, streams * chips, sizeof *p2p->transfer_ps, same_64);
        list_add(state, p2p->waits, chips, sizeof *p2p->waits, wait_fields);
    }
    if (replay->streams.chains != NULL) ADD(streams.chains->of, 1, chain_fields);
    if (replay->streams.stretches != NULL) ADD(streams.stretches->runs, 1, stretch_fields);
    if (replay->lanes.flights != NULL) {
        struct flights *flights = replay->lanes.flights;
        list_add(state, flights->aloft, streams * chips, sizeof *flights->aloft, flight_fields);
        list_add(state, flights->of_chip, chips, sizeof *flights->of_chip, same_32);
        list_add(state, flights->timer_ps, streams, sizeof *flights->timer_ps, instant_64);
    }
#undef ADD
    list_add(state, replay->breakdowns.class_end_ps, replay->program->class_count, sizeof(int64_t),
             instant_64);
    list_add(state, &replay->tally, 1, sizeof replay->tally, tally_fields);
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            struct tier_links *tier = &replay->routes->level[index].tier[t];
            uint64_t const count = (uint64_t)tier->unit_count * tier->cable_count;
            for (uint32_t down = 0; down < 2; down++) {
                list_add(state, tier->links[down], count, sizeof **tier->links, link_fields);
                list_add(state, tier->waits[down], count, sizeof **tier->waits, waits_fields);
            }
        }
}

enum status recur_state_build(struct arena *arena, struct replay *replay,
                              struct recur_state *ret_state, struct error *reterr)
{
    arrays_list(replay, ret_state);
    for (uint32_t i = 0; i < ret_state->array_count; i++) {
        struct recur_array *array = &ret_state->array[i];
        void *memory = NULL;
        STATUS_TRY(arena_try_unset(arena, array->count, array->item_bytes, &memory, reterr));
        array->runs = memory;
        STATUS_TRY(arena_try_unset(arena, array->count, sizeof *array->run_ends, &memory, reterr));
        array->run_ends = memory;
    }
    return STATUS_OK;
}

static void array_take(struct recur_array *array)
{
    const char *items = array->items;
    uint64_t const bytes = array->item_bytes;
    array->run_count = array->run_latest = 0;
    for (uint64_t i = 0; i < array->count; i++) {
        bool const more = i > 0 && memcmp(items + i * bytes, items + (i - 1) * bytes, bytes) == 0;
        if (!more) memcpy(array->runs + array->run_count++ * bytes, items + i * bytes, bytes);
        array->run_ends[array->run_count - 1] = (uint32_t)i + 1;
    }
}

void recur_image_take(struct recur_state *state)
{
    for (uint32_t i = 0; i < state->array_count; i++) array_take(&state->array[i]);
}

/* The run of an item: mostly the one that was asked for last, or the next. */
static const char *array_then(struct recur_array *array, uint64_t index)
{
    uint32_t run = array->run_latest;
    if (index >= array->run_ends[run] && run + 1 < array->run_count) run++;
    if (index >= array->run_ends[run] || (run > 0 && index < array->run_ends[run - 1])) {
        uint32_t least = 0, most = array->run_count - 1;
        while (least < most) {
            uint32_t const middle = (least + most) / 2;
            if (index < array->run_ends[middle])
                most = middle;
            else
                least = middle + 1;
        }
        run = least;
    }
    array->run_latest = run;
    return array->runs + (uint64_t)run * array->item_bytes;
}

const void *recur_image_of(struct recur_state *state, const void *items, uint64_t index)
{
    uint32_t i = 0;
    while (state->array[i].items != items) i++;
    return array_then(&state->array[i], index);
}

static int64_t instant_at(const char *at)
{
    int64_t ps = 0;
    memcpy(&ps, at, sizeof ps);
    return ps;
}

static bool instant_again(const char *then, const char *now, int64_t image_ps, int64_t period_ps)
{
    int64_t const then_ps = instant_at(then), now_ps = instant_at(now);
    if (now_ps == then_ps) return then_ps <= image_ps || then_ps == lane_held_ps;
    return now_ps - then_ps == period_ps;
}

static bool array_again(struct recur_array *array, int64_t image_ps, int64_t period_ps)
{
    if (array->only_sums) return true;
    for (uint64_t i = 0; i < array->count; i++) {
        const char *now = (const char *)array->items + i * array->item_bytes;
        const char *then = array_then(array, i);
        for (const struct recur_field *field = array->fields; field->bytes != 0; field++) {
            uint32_t const at = field->offset;
            if (field->kind == RECUR_SAME && memcmp(then + at, now + at, field->bytes) != 0)
                return false;
            for (uint32_t k = 0; field->kind == RECUR_INSTANT && k < field->count; k++)
                if (!instant_again(then + at + 8 * k, now + at + 8 * k, image_ps, period_ps))
                    return false;
        }
    }
    return true;
}

bool recur_state_again(struct recur_state *state, int64_t image_ps, int64_t period_ps)
{
    for (uint32_t i = 0; i < state->array_count; i++)
        if (!array_again(&state->array[i], image_ps, period_ps)) return false;
    return true;
}

/* Sums wrap as they would have. What does not move is not written: most of a large table may lie in
 * pages that nobody has touched. */
static void number_repeat(const char *then, char *now, uint32_t bytes, uint64_t times)
{
    if (memcmp(then, now, bytes) == 0) return;
    uint64_t wide[2] = {0, 0};
    uint32_t word[2];
    if (bytes == 8) {
        memcpy(&wide[0], then, 8);
        memcpy(&wide[1], now, 8);
        wide[1] += times * (wide[1] - wide[0]);
        memcpy(now, &wide[1], 8);
    } else if (bytes == 4) {
        memcpy(&word[0], then, 4);
        memcpy(&word[1], now, 4);
        word[1] += (uint32_t)times * (word[1] - word[0]);
        memcpy(now, &word[1], 4);
    } else {
        SIM_ASSERT(bytes == 1);
        uint8_t const was = (uint8_t)*then, is = (uint8_t)*now;
        *now = (char)(uint8_t)(is + times * (uint64_t)(is - was));
    }
}

static void array_repeat(struct recur_array *array, uint64_t times)
{
    for (uint64_t item = 0; item < array->count; item++) {
        char *now = (char *)array->items + item * array->item_bytes;
        const char *then = array_then(array, item);
        for (const struct recur_field *field = array->fields; field->bytes != 0; field++)
            for (uint32_t k = 0; field->kind != RECUR_SAME && k < field->count; k++) {
                uint32_t const at = field->offset + k * field->bytes;
                number_repeat(then + at, now + at, field->bytes, times);
            }
    }
}

void recur_state_repeat(struct recur_state *state, uint64_t times)
{
    for (uint32_t i = 0; i < state->array_count; i++) array_repeat(&state->array[i], times);
}
