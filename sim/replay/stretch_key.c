/* The name of a quiet state of a chip. */
#include "sim/replay/stretch_key.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"

enum {
    CLASSES_MAX = 256,        /* Of slots of a role. */
    NEEDS_KEPT_MAX = 64,      /* Of a slot, that speak of other slots. */
    COUNT_LEAST = -(1 << 20), /* A need of fewer parts before a slot than this is met. */
};

/* What ops of a slot need of other slots, in parts behind those before the slot. */
struct slot_class {
    uint16_t template_index;
    uint8_t phase;
    uint16_t need_count;
    int32_t needs[NEEDS_KEPT_MAX];
};

/* The needs of a template that speak of other slots. */
struct template_needs {
    const struct program_need *need[NEEDS_KEPT_MAX];
    uint32_t count; /* Above NEEDS_KEPT_MAX: they are too many. */
};

struct role_slots {
    uint16_t *class_of; /* [slot] 1 + class; 0: not known. */
    struct slot_class *classes;
    uint32_t class_count;
};

struct stretch_slots {
    struct template_needs *needs; /* [template] */
    struct role_slots *roles;
};

static const struct program_block *block_of(const struct role_table *role, uint32_t slot)
{
    if (role->slot_block == NULL) return program_slot_block(role->role, slot);
    return &role->role->block[role->slot_block[slot]];
}

static int64_t start_of(const struct replay *replay, const struct role_table *role, uint32_t stream,
                        int64_t slot)
{
    if (slot >= role->role->slot_count) return (int64_t)role->role->stream_total[stream];
    const struct program_block *block = block_of(role, (uint32_t)slot);
    const struct program_template *template = &replay->program->templates[block->template_index];
    return (int64_t)block->stream_first[stream] +
           (slot - block->slot_first) * (int64_t) template->stream_parts[stream];
}

static void needs_list(const struct program_template *template, struct template_needs *ret_needs)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t k = 0; k < template->op[i].need_count; k++) {
            if (template->op[i].need[k].slot == 0) continue;
            if (ret_needs->count < NEEDS_KEPT_MAX)
                ret_needs->need[ret_needs->count] = &template->op[i].need[k];
            ret_needs->count++;
        }
}

enum status stretch_slots_build(struct arena *arena, struct replay *replay,
                                struct stretch_slots **ret_slots, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof **ret_slots, &memory, reterr));
    struct stretch_slots *slots = *ret_slots = memory;
    STATUS_TRY(
        arena_try(arena, replay->program->role_count, sizeof *slots->roles, &memory, reterr));
    slots->roles = memory;
    STATUS_TRY(
        arena_try(arena, replay->program->template_count, sizeof *slots->needs, &memory, reterr));
    slots->needs = memory;
    for (uint32_t t = 0; t < replay->program->template_count; t++)
        needs_list(&replay->program->templates[t], &slots->needs[t]);
    for (uint32_t r = 0; r < replay->program->role_count; r++) {
        STATUS_TRY(arena_try(arena, replay->roles[r].role->slot_count,
                             sizeof *slots->roles[r].class_of, &memory, reterr));
        slots->roles[r].class_of = memory;
        STATUS_TRY(arena_try(arena, CLASSES_MAX, sizeof *slots->roles[r].classes, &memory, reterr));
        slots->roles[r].classes = memory;
    }
    return STATUS_OK;
}

/* False: there are too many needs. */
static bool class_find(const struct replay *replay, const struct role_table *role, uint32_t slot,
                       struct slot_class *ret_class)
{
    const struct program_block *block = block_of(role, slot);
    const struct template_needs *needs =
        &replay->streams.stretches->slots->needs[block->template_index];
    if (needs->count > NEEDS_KEPT_MAX) return false;
    ret_class->template_index = block->template_index;
    ret_class->phase = (uint8_t)block->phase;
    ret_class->need_count = (uint16_t)needs->count;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct program_need *need = needs->need[i];
        int64_t const from = program_need_slot(need, block, slot);
        int64_t count = COUNT_LEAST;
        if (from >= 0)
            count = start_of(replay, role, need->stream, from) -
                    start_of(replay, role, need->stream, slot);
        ret_class->needs[i] = (int32_t)(count < COUNT_LEAST ? COUNT_LEAST : count);
    }
    return true;
}

static bool class_is(const struct slot_class *class, const struct slot_class *other)
{
    return class->template_index == other->template_index && class->phase == other->phase &&
           class->need_count == other->need_count &&
           memcmp(class->needs, other->needs, class->need_count * sizeof *class->needs) == 0;
}

/* The number of a slot's class, from 1; behind the last slot CLASSES_MAX + 1; 0: it has none. */
static uint32_t class_at(const struct replay *replay, uint32_t role_index, int64_t slot)
{
    const struct role_table *role = &replay->roles[role_index];
    struct role_slots *slots = &replay->streams.stretches->slots->roles[role_index];
    struct slot_class found;
    if (slot >= role->role->slot_count) return CLASSES_MAX + 1;
    if (slots->class_of[slot] != 0) return slots->class_of[slot];
    if (!class_find(replay, role, (uint32_t)slot, &found)) return 0;
    uint32_t index = 0;
    while (index < slots->class_count && !class_is(&slots->classes[index], &found)) index++;
    if (index == CLASSES_MAX) return 0;
    if (index == slots->class_count) slots->classes[slots->class_count++] = found;
    slots->class_of[slot] = (uint16_t)(index + 1);
    return index + 1;
}

static inline void mix(struct stretch_key *key, uint64_t value)
{
    key->mixed[0] = (key->mixed[0] ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    key->mixed[0] ^= key->mixed[0] >> 32;
    key->mixed[1] = (key->mixed[1] + value) * UINT64_C(0xbf58476d1ce4e5b9);
    key->mixed[1] ^= key->mixed[1] >> 29;
}

static inline void mix_signed(struct stretch_key *key, int64_t value)
{
    mix(key, (uint64_t)value);
}

/* Two numbers that fit 32 bits. */
static inline void mix_pair(struct stretch_key *key, int64_t first, int64_t second)
{
    mix(key, (uint64_t)first << 32 | (uint32_t)second);
}

/* Parts of each stream before a slot. */
static void starts_of(const struct replay *replay, const struct role_table *role, uint32_t slot,
                      int64_t *ret_starts)
{
    if (slot >= role->role->slot_count) {
        for (uint32_t stream = 0; stream < replay->stream_count; stream++)
            ret_starts[stream] = (int64_t)role->role->stream_total[stream];
        return;
    }
    const struct program_block *block = block_of(role, slot);
    const struct program_template *template = &replay->program->templates[block->template_index];
    int64_t const slots = slot - block->slot_first;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        ret_starts[stream] =
            (int64_t)block->stream_first[stream] + slots * (int64_t) template->stream_parts[stream];
}

void stretch_bases(const struct replay *replay, uint32_t chip, int64_t *ret_bases)
{
    starts_of(replay, role_at(replay, chip), replay->streams.states[chip].slot, ret_bases);
}

/* A count that somebody waits for, from a base; `most`: one that is not reached in the stretch. */
static int64_t wanted_from(uint32_t count, int64_t base, int64_t most)
{
    int64_t const from = (int64_t)count - base;
    return from > most ? most + 1 : from;
}

/* What a stream waits for, and where it is. */
static bool stream_mix(struct replay *replay, uint32_t chip, uint32_t stream, const int64_t *bases,
                       const int64_t *most, bool far, struct stretch_key *key)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    uint32_t const slot = replay->streams.states[chip].slot, role = replay->chips[chip].role;
    int64_t const base = bases[stream];
    int64_t const done = (int64_t)state->done - base;
    if (done < COUNT_LEAST / 2) return false;
    mix_pair(key, done, (int64_t)state->begun - base);
    mix(key, (uint64_t)state->phase << 32 | state->waiters);
    mix_pair(key, wanted_from(state->wake_done, base, most[stream]),
             wanted_from(state->wake_begun, base, most[stream]));
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint32_t const wants = stream_at(replay, (uint32_t)__builtin_ctz(bits), chip)->wants;
        mix_pair(key, wanted_from(wants / 2, base, most[stream]), wants & 1);
    }
    if (far || state->phase == STREAM_FINISHED) return true;
    uint32_t const class = class_at(replay, role, state->slot);
    if (class == 0) return false;
    mix(key,
        (uint64_t)(uint32_t)(state->slot - slot) << 32 | (uint64_t)state->position << 16 | class);
    if (state->slot <= slot + 1 && state->slot >= slot) return true;
    int64_t starts[PROGRAM_STREAMS_MAX];
    starts_of(replay, &replay->roles[role], state->slot, starts);
    for (uint32_t other = 0; other < replay->stream_count; other++)
        mix_signed(key, starts[other] - bases[other]);
    return true;
}

/* Streams that wait for more than the stretch can come to, as bits. */
static uint32_t far_streams(struct replay *replay, uint32_t chip, const int64_t *bases,
                            const int64_t *most)
{
    uint32_t far = 0;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        const struct stream_state *state = stream_at(replay, stream, chip);
        for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
            uint32_t const waiter = (uint32_t)__builtin_ctz(bits);
            const struct stream_state *own = stream_at(replay, waiter, chip);
            if (own->phase == STREAM_WAITS &&
                (int64_t)(own->wants / 2) - bases[stream] > most[stream])
                far |= 1u << waiter;
        }
    }
    return far;
}

static void server_mix(struct replay *replay, uint32_t chip, enum server server, int64_t now_ps,
                       struct stretch_key *key)
{
    const struct server_state *state = server_at(&replay->servers, server, chip);
    const struct server_past *past = server_past_at(&replay->servers, server, chip);
    mix_signed(key, state->debt_ps);
    if (stretch_server_rests(state, past)) return;
    mix_signed(key, state->dma_ps - state->settled_ps);
    mix_signed(key, now_ps - state->edge_ps);
    bool const is_empty = stretch_run_is_empty(state, past);
    mix(key, (uint64_t)is_empty << 1 | past->needed);
    if (is_empty) mix_signed(key, past->room_ps[past->run_count]);
}

static void servers_mix(struct replay *replay, uint32_t chip, int64_t now_ps,
                        struct stretch_key *key)
{
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        server_mix(replay, chip, server, now_ps, key);
    for (uint32_t way = 0; way < replay->servers.read_ways; way++) {
        const struct server_reads *reads = reads_at(&replay->servers, way, chip);
        if (reads->until_ps <= now_ps) continue;
        mix(key, way);
        mix_signed(key, reads->work_ps);
        mix_signed(key, now_ps - reads->since_ps);
        mix_signed(key, reads->until_ps - now_ps);
    }
    if (!replay->servers.cores.is_on) return;
    const struct cores_state *cores = &replay->servers.cores.states[chip];
    mix_signed(key, now_ps - cores->edge_ps);
    mix_signed(key, cores->lost_ps);
    mix(key, cores->held);
}

bool stretch_key_find(struct replay *replay, uint32_t chip, int64_t now_ps,
                      struct stretch_key *ret_key)
{
    const struct chip_state *self = &replay->chips[chip];
    const struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, chip);
    struct stretch_key key = {{1, 2}};
    int64_t bases[PROGRAM_STREAMS_MAX], most[PROGRAM_STREAMS_MAX];
    uint32_t const next_class = class_at(replay, self->role, (int64_t)compute->slot + 1);
    if (next_class == 0) return false;
    stretch_bases(replay, chip, bases);
    starts_of(replay, role_at(replay, chip), compute->slot + 2, most);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        most[stream] -= bases[stream];
    mix(&key, (uint64_t)next_class << 32 | (uint64_t)self->chip_class << 16 |
                  (uint64_t)self->block_phase << 8 | self->last_phase);
    mix_signed(&key, self->part_end_ps - now_ps);
    mix_signed(&key, now_ps - self->breakdown_ps);
    uint32_t const far = far_streams(replay, chip, bases, most);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (!stream_mix(replay, chip, stream, bases, most, far >> stream & 1, &key)) return false;
    servers_mix(replay, chip, now_ps, &key);
    *ret_key = key;
    return true;
}
