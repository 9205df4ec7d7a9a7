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

/* Numbers that move are compared one by one. */
#define FIELD_BYTES(type, member) (uint16_t)sizeof(((struct type *)0)->member)
#define NUMBER_BYTES(again, type, member)                                                          \
    (RECUR_##again != RECUR_SAME && FIELD_BYTES(type, member) > 8 ? 8 : FIELD_BYTES(type, member))
#define FIELD(type, member, again, name, keeping)                                                  \
    {RECUR_##again, offsetof(struct type, member), NUMBER_BYTES(again, type, member),              \
     FIELD_BYTES(type, member) / NUMBER_BYTES(again, type, member)},
#define FIELDS(type, LIST)                                                                         \
    static const struct recur_field type##_fields[] = {LIST(FIELD, type, ){0}};

FIELDS(chip_state, CHIP_STATE_FIELDS)
FIELDS(stream_state, STREAM_STATE_FIELDS)
FIELDS(lane_state, LANE_STATE_FIELDS)
FIELDS(cores_state, CORES_STATE_FIELDS)
FIELDS(server_reads, SERVER_READS_FIELDS)
FIELDS(link_state, LINK_STATE_FIELDS)
FIELDS(grid_port, GRID_PORT_FIELDS)
FIELDS(link_waits, LINK_WAITS_FIELDS)
FIELDS(breakdown, BREAKDOWN_FIELDS)
FIELDS(phase_span, PHASE_SPAN_FIELDS)
FIELDS(class_total, CLASS_TOTAL_FIELDS)
FIELDS(tally, TALLY_FIELDS)
FIELDS(memory_state, MEMORY_STATE_FIELDS)
FIELDS(p2p_wait, P2P_WAIT_FIELDS)
FIELDS(flight, FLIGHT_FIELDS)
FIELDS(chain, CHAIN_FIELDS)
FIELDS(stretch_run, STRETCH_RUN_FIELDS)

static const struct recur_field chip_servers_fields[] = {
    SERVER_STATE_FIELDS(FIELD, chip_servers, of[SERVER_HBM].)
        SERVER_STATE_FIELDS(FIELD, chip_servers, of[SERVER_VPU].){0}};
static const struct recur_field chip_pasts_fields[] = {SERVER_PAST_FIELDS(
    FIELD, chip_pasts, of[SERVER_HBM].) SERVER_PAST_FIELDS(FIELD, chip_pasts, of[SERVER_VPU].){0}};
_Static_assert(SERVER_COUNT == 2, "every server's fields are compared");

/* recur.c holds messages that came against those of the role. */
static const struct recur_field sum_32_fields[] = {{RECUR_SUM, 0, 4, 1}, {0}};
static const struct recur_field same_16_fields[] = {{RECUR_SAME, 0, 2, 1}, {0}};
static const struct recur_field same_32_fields[] = {{RECUR_SAME, 0, 4, 1}, {0}};
static const struct recur_field same_64_fields[] = {{RECUR_SAME, 0, 8, 1}, {0}};
static const struct recur_field instant_64_fields[] = {{RECUR_INSTANT, 0, 8, 1}, {0}};
static const struct recur_field sum_64_fields[] = {{RECUR_SUM, 0, 8, 1}, {0}};
static const struct recur_field unnamed_fields[] = {{0}};

static void list_add(struct recur_state *state, void *items, uint64_t count, uint32_t item_bytes,
                     const struct recur_field *fields)
{
    if (count == 0 || items == NULL || fields->bytes == 0) return;
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

static void arrays_list(struct replay *replay, struct recur_state *state)
{
    uint64_t const chips = replay->chip_count, streams = replay->stream_count;
#define X(array, rows, fields)                                                                     \
    list_add(state, replay->array, (uint64_t)(rows)*chips, sizeof *replay->array, fields##_fields);
    REPLAY_STATE_TABLE(X)
#undef X
    if (replay->p2p != NULL) {
        struct p2p *p2p = replay->p2p;
        list_add(state, p2p->came, streams * chips, sizeof *p2p->came, sum_32_fields);
        list_add(state, p2p->transfer_ps, streams * chips, sizeof *p2p->transfer_ps,
                 same_64_fields);
        list_add(state, p2p->waits, chips, sizeof *p2p->waits, p2p_wait_fields);
    }
    if (replay->streams.chains != NULL)
        list_add(state, replay->streams.chains->of, chips, sizeof *replay->streams.chains->of,
                 chain_fields);
    if (replay->streams.stretches != NULL)
        list_add(state, replay->streams.stretches->runs, chips,
                 sizeof *replay->streams.stretches->runs, stretch_run_fields);
    if (replay->lanes.flights != NULL) {
        struct flights *flights = replay->lanes.flights;
        list_add(state, flights->aloft, streams * chips, sizeof *flights->aloft, flight_fields);
        list_add(state, flights->of_chip, chips, sizeof *flights->of_chip, same_32_fields);
        list_add(state, flights->timer_ps, streams, sizeof *flights->timer_ps, instant_64_fields);
    }
    list_add(state, replay->breakdowns.class_end_ps, replay->program->class_count, sizeof(int64_t),
             instant_64_fields);
    list_add(state, &replay->tally, 1, sizeof replay->tally, tally_fields);
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            struct tier_links *tier = &replay->routes->level[index].tier[t];
            uint64_t const count = (uint64_t)tier->unit_count * tier->cable_count;
            for (uint32_t down = 0; down < 2; down++) {
                list_add(state, tier->links[down], count, sizeof **tier->links, link_state_fields);
                list_add(state, tier->waits[down], count, sizeof **tier->waits, link_waits_fields);
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
const void *recur_item_at(struct recur_array *array, uint64_t index)
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
    return recur_item_at(&state->array[i], index);
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

bool recur_item_again(const struct recur_field *fields, const char *then, const char *now,
                      int64_t image_ps, int64_t period_ps)
{
    for (const struct recur_field *field = fields; field->bytes != 0; field++) {
        uint32_t const at = field->offset;
        if (field->kind == RECUR_SAME &&
            memcmp(then + at, now + at, (size_t)field->bytes * field->count) != 0)
            return false;
        for (uint32_t k = 0; field->kind == RECUR_INSTANT && k < field->count; k++)
            if (!instant_again(then + at + 8 * k, now + at + 8 * k, image_ps, period_ps))
                return false;
    }
    return true;
}

bool recur_array_again(const struct recur_array *array, struct recur_array *then, int64_t image_ps,
                       int64_t period_ps)
{
    if (array->only_sums) return true;
    for (uint64_t i = 0; i < array->count; i++)
        if (!recur_item_again(array->fields, recur_item_at(then, i),
                              (const char *)array->items + i * array->item_bytes, image_ps,
                              period_ps))
            return false;
    return true;
}

bool recur_state_again(struct recur_state *state, int64_t image_ps, int64_t period_ps)
{
    for (uint32_t i = 0; i < state->array_count; i++)
        if (!recur_array_again(&state->array[i], &state->array[i], image_ps, period_ps))
            return false;
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

static bool moves(const struct recur_field *field)
{
    return field->kind == RECUR_INSTANT || field->kind == RECUR_SUM;
}

static void array_repeat(struct recur_array *array, uint64_t times)
{
    for (uint64_t item = 0; item < array->count; item++) {
        char *now = (char *)array->items + item * array->item_bytes;
        const char *then = recur_item_at(array, item);
        for (const struct recur_field *field = array->fields; field->bytes != 0; field++)
            for (uint32_t k = 0; moves(field) && k < field->count; k++) {
                uint32_t const at = field->offset + k * field->bytes;
                number_repeat(then + at, now + at, field->bytes, times);
            }
    }
}

void recur_state_repeat(struct recur_state *state, uint64_t times)
{
    for (uint32_t i = 0; i < state->array_count; i++) array_repeat(&state->array[i], times);
}
