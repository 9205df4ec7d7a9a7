#include "sim/schedule/v_schedule.h"

#include <string.h>

#include "sim/base/arena.h"

enum {
    BLOCK_SLOTS = 6, /* Three passes of each of two stages. */
    EMPTY = 0,
};

/* What stands in a slot, plus 1. The order of a microbatch's passes on a rank, weights last. */
enum sort { FORWARD_DOWN, FORWARD_UP, INPUT_DOWN, INPUT_UP, WEIGHT, SORTS };

struct cell {
    uint8_t sort; /* EMPTY, or 1 + enum sort. */
    uint32_t number;
};

struct v_schedule {
    uint32_t rank_count, microbatch_count, slot_count;
    struct cell *cell;     /* [rank][slot] */
    uint32_t *slot[SORTS]; /* [rank][number] */
    int32_t *held;         /* [rank][slot]: activations after it. */
    int32_t held_max;
};

static struct cell *cell_at(const struct v_schedule *shape, uint32_t rank, uint32_t slot)
{
    return &shape->cell[(uint64_t)rank * shape->slot_count + slot];
}

static uint32_t *slot_of(const struct v_schedule *shape, enum sort sort, uint32_t rank,
                         uint32_t number)
{
    uint64_t const each = (uint64_t)shape->microbatch_count * (sort == WEIGHT ? 2 : 1);
    return &shape->slot[sort][rank * each + number];
}

static enum status shape_open(struct arena *arena, const struct schedule_request *request,
                              v_schedule_block_fn *block, struct v_schedule *shape,
                              struct error *reterr)
{
    uint32_t const p = request->rank_count, m = request->microbatch_count;
    void *memory = NULL;
    /* The longest life of a microbatch, one block for each of them, and their last weights. */
    *shape = (struct v_schedule){
        .rank_count = p, .microbatch_count = m, .slot_count = 6 * p + 8 + BLOCK_SLOTS * m + 2 * m};
    STATUS_TRY(
        arena_try(arena, (uint64_t)p * shape->slot_count, sizeof *shape->cell, &memory, reterr));
    shape->cell = memory;
    STATUS_TRY(
        arena_try(arena, (uint64_t)p * shape->slot_count, sizeof *shape->held, &memory, reterr));
    shape->held = memory;
    for (uint32_t sort = 0; sort < SORTS; sort++) {
        STATUS_TRY(arena_try(arena, (uint64_t)p * m * (sort == WEIGHT ? 2 : 1),
                             sizeof *shape->slot[sort], &memory, reterr));
        shape->slot[sort] = memory;
    }
    for (uint32_t r = 0; r < p; r++) {
        struct v_schedule_block const own = block(p, r);
        for (uint32_t sort = 0; sort < WEIGHT; sort++)
            for (uint32_t b = 0; b < m; b++) {
                uint32_t const slot = own.slot[sort] + BLOCK_SLOTS * b;
                SIM_ASSERT(cell_at(shape, r, slot)->sort == EMPTY);
                *cell_at(shape, r, slot) = (struct cell){(uint8_t)(1 + sort), b};
                *slot_of(shape, (enum sort)sort, r, b) = slot;
            }
    }
    return STATUS_OK;
}

/* Weight gradients into the slots that are left, as soon as there are any to do. */
static void weights_put(struct v_schedule *shape)
{
    for (uint32_t r = 0; r < shape->rank_count; r++) {
        uint32_t waiting = 0, done = 0;
        for (uint32_t s = 0; s < shape->slot_count; s++) {
            struct cell *cell = cell_at(shape, r, s);
            if (cell->sort == 1 + INPUT_DOWN || cell->sort == 1 + INPUT_UP) waiting++;
            if (cell->sort != EMPTY || waiting == 0) continue;
            *cell = (struct cell){1 + WEIGHT, done};
            *slot_of(shape, WEIGHT, r, done++) = s;
            waiting--;
        }
        SIM_ASSERT(waiting == 0);
    }
}

static void held_count(struct v_schedule *shape)
{
    for (uint32_t r = 0; r < shape->rank_count; r++) {
        int32_t held = 0;
        for (uint32_t s = 0; s < shape->slot_count; s++) {
            uint8_t const sort = cell_at(shape, r, s)->sort;
            held += sort == 1 + FORWARD_DOWN || sort == 1 + FORWARD_UP;
            held -= sort == 1 + WEIGHT;
            shape->held[(uint64_t)r * shape->slot_count + s] = held;
            if (held > shape->held_max) shape->held_max = held;
        }
    }
}

/* The first slot that a pass may have, by what must have been done before it. */
static uint32_t earliest(const struct v_schedule *shape, enum sort sort, uint32_t rank,
                         uint32_t number, const uint32_t *inputs)
{
    uint32_t slot = 0;
    bool const down = sort == FORWARD_DOWN || sort == INPUT_DOWN;
    const uint32_t *before[3] = {NULL};
    if (sort != WEIGHT && down && rank > 0) before[0] = slot_of(shape, sort, rank - 1, number);
    if (sort != WEIGHT && !down && rank + 1 < shape->rank_count)
        before[0] = slot_of(shape, sort, rank + 1, number);
    if (sort > FORWARD_DOWN && sort < WEIGHT)
        before[1] = slot_of(shape, (enum sort)(sort - 1), rank, number);
    if (sort == WEIGHT) before[1] = &inputs[number];
    if (number > 0) before[2] = slot_of(shape, sort, rank, number - 1);
    for (uint32_t i = 0; i < 3; i++)
        if (before[i] != NULL && *before[i] + 1 > slot) slot = *before[i] + 1;
    return slot;
}

/* Draws a pass forward to the first free slot from which no more is held than allowed. */
static void draw(struct v_schedule *shape, uint32_t rank, uint32_t from, uint32_t first)
{
    struct cell *own = cell_at(shape, rank, from);
    enum sort const sort = (enum sort)(own->sort - 1);
    int32_t *held = &shape->held[(uint64_t)rank * shape->slot_count];
    int32_t const more = sort <= FORWARD_UP ? 1 : sort == WEIGHT ? -1 : 0;
    uint32_t to = from;
    for (uint32_t s = from; s-- > first;) {
        if (more > 0 && held[s] + more > shape->held_max) break;
        if (cell_at(shape, rank, s)->sort == EMPTY) to = s;
    }
    if (to == from) return;
    for (uint32_t s = to; s < from; s++) held[s] += more;
    *cell_at(shape, rank, to) = *own;
    *slot_of(shape, sort, rank, own->number) = to;
    own->sort = EMPTY;
}

/* Between the first input gradient that ends a microbatch and the last one that begins, the blocks
 * stay as they are. */
enum phase { WARM_UP, STEADY, COOL_DOWN };

static enum status draw_together(struct arena *arena, struct v_schedule *shape,
                                 const struct cancel *cancel, bool with_weights,
                                 struct error *reterr)
{
    void *memory = NULL;
    uint32_t const m = shape->microbatch_count;
    STATUS_TRY(
        arena_try(arena, (uint64_t)shape->rank_count * 2 * m, sizeof(uint32_t), &memory, reterr));
    uint32_t *inputs = memory; /* [rank][number]: slots of its input gradients as they come. */
    STATUS_TRY(arena_try(arena, shape->rank_count, sizeof(uint32_t), &memory, reterr));
    uint32_t *input_count = memory;
    bool last_began = false;
    enum phase phase = WARM_UP;
    for (uint32_t s = 0; s < shape->slot_count; s++) {
        STATUS_TRY(cancel_check(cancel, reterr));
        for (uint32_t r = 0; r < shape->rank_count; r++) {
            struct cell const cell = *cell_at(shape, r, s);
            if (cell.sort == EMPTY) continue;
            enum sort const sort = (enum sort)(cell.sort - 1);
            uint32_t *own = &inputs[(uint64_t)r * 2 * m];
            if (phase == WARM_UP && sort == INPUT_UP && r == 0) phase = STEADY;
            bool const moves = phase == COOL_DOWN ? with_weights || sort >= INPUT_DOWN
                                                  : phase == WARM_UP && with_weights;
            last_began = last_began || (sort == FORWARD_DOWN && cell.number == m - 1);
            if (phase == STEADY && last_began) phase = COOL_DOWN;
            if (moves) draw(shape, r, s, earliest(shape, sort, r, cell.number, own));
            if (sort == INPUT_DOWN || sort == INPUT_UP)
                own[input_count[r]++] = *slot_of(shape, sort, r, cell.number);
        }
    }
    return STATUS_OK;
}

static void weights_clear(struct v_schedule *shape)
{
    for (uint64_t i = 0; i < (uint64_t)shape->rank_count * shape->slot_count; i++)
        if (shape->cell[i].sort == 1 + WEIGHT) shape->cell[i].sort = EMPTY;
}

/* The order that the slots give; weight gradients of the later stage first, of a stage in order. */
static void rank_list(const struct v_schedule *shape, uint32_t rank, struct schedule_list *list)
{
    static const enum schedule_kind kinds[] = {SCHEDULE_FORWARD, SCHEDULE_FORWARD, SCHEDULE_INPUT,
                                               SCHEDULE_INPUT};
    uint32_t const stage[2] = {rank, 2 * shape->rank_count - 1 - rank};
    uint32_t waiting[2] = {0}, done[2] = {0};
    for (uint32_t s = 0; s < shape->slot_count; s++) {
        const struct cell *cell = cell_at(shape, rank, s);
        if (cell->sort == EMPTY) continue;
        enum sort const sort = (enum sort)(cell->sort - 1);
        if (sort == WEIGHT) {
            uint32_t const chunk = waiting[1] > 0 ? 1 : 0;
            SIM_ASSERT(waiting[chunk] > 0);
            waiting[chunk]--;
            schedule_add(list, SCHEDULE_WEIGHT, stage[chunk], done[chunk]++);
            continue;
        }
        uint32_t const chunk = sort == FORWARD_UP || sort == INPUT_DOWN ? 1 : 0;
        if (kinds[sort] == SCHEDULE_INPUT) waiting[chunk]++;
        schedule_add(list, kinds[sort], stage[chunk], cell->number);
    }
}

enum status v_schedule_list(struct arena *arena, const struct schedule_request *request,
                            v_schedule_block_fn *block, struct schedule_list *lists,
                            struct error *reterr)
{
    struct v_schedule shape;
    STATUS_TRY(shape_open(arena, request, block, &shape, reterr));
    weights_put(&shape);
    held_count(&shape);
    STATUS_TRY(draw_together(arena, &shape, request->cancel, true, reterr));
    /* Input gradients of the end may have the slots of weight gradients, which can wait. */
    weights_clear(&shape);
    STATUS_TRY(draw_together(arena, &shape, request->cancel, false, reterr));
    weights_put(&shape);
    for (uint32_t r = 0; r < shape.rank_count; r++) rank_list(&shape, r, &lists[r]);
    return STATUS_OK;
}

struct schedule_formula v_schedule_formula(const char *text)
{
    return (struct schedule_formula){.measure = SCHEDULE_NO_FORMULA, .text = text};
}

struct schedule_peak v_schedule_peak(const struct schedule_request *request, uint32_t shares)
{
    uint32_t const all = 2 * request->microbatch_count;
    return (struct schedule_peak){2 * shares < all ? 2 * shares : all, 0};
}
