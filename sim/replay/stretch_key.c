/* The name of a quiet state of a chip. */
#include "sim/replay/stretch_key.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"
#include "sim/replay/recur_state.h"

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

/* `base`: parts of the stream before the slot of the compute stream. `most`: parts from there to
 * which no stretch comes. */
struct mixing {
    struct stretch_key *key;
    int64_t now_ps, base, most;
    uint32_t half; /* Valid if has_half: not mixed yet. */
    bool has_half;
};

/* Numbers of 32 bits are mixed by pairs. */
static inline void mix_half(struct mixing *of, uint32_t value)
{
    if (of->has_half) mix(of->key, (uint64_t)of->half << 32 | value);
    of->half = value;
    of->has_half = !of->has_half;
}

static inline void mixing_end(struct mixing *of)
{
    if (of->has_half) mix(of->key, of->half);
    of->has_half = false;
}

/* What the name has of a field (state_fields.h). */
#define MIX(of, member, again, name, keeping) MIX_##name(of, member);
#define MIX_VALUE(of, member)                                                                      \
    sizeof(member) > 4 ? mix((of)->key, (uint64_t)(member)) : mix_half(of, (uint32_t)(member))
#define MIX_AGO(of, member) mix_signed((of)->key, (of)->now_ps - (member))
#define MIX_COUNT(of, member) mix_half(of, (uint32_t)((member) - (of)->base))
#define MIX_WANTED(of, member) mix_half(of, (uint32_t)wanted_from(member, (of)->base, (of)->most))
#define MIX_OWN(of, member)
#define MIX_QUIET(of, member)
#define MIX_FIXED(of, member)
#define MIX_UNREAD(of, member)
#define MIX_ASKED(of, member)
#define MIX_APART(of, member)
#define MIX_ADDS(of, member)

/* What a stream waits for, and where it is. */
static bool stream_mix(struct replay *replay, uint32_t chip, uint32_t stream, const int64_t *bases,
                       const int64_t *most, bool far, struct stretch_key *key)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    uint32_t const slot = replay->streams.states[chip].slot, role = replay->chips[chip].role;
    int64_t const base = bases[stream];
    struct mixing of = {.key = key, .base = base, .most = most[stream]};
    if ((int64_t)state->done - base < COUNT_LEAST / 2) return false;
    STREAM_STATE_FIELDS(MIX, &of, state->)
    mixing_end(&of);
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint32_t const wants = stream_at(replay, (uint32_t)__builtin_ctz(bits), chip)->wants;
        mix_signed(key, wanted_from(wants / 2, base, most[stream]) * 2 + (wants & 1));
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

static void server_mix(const struct replay *replay, uint32_t chip, enum server server,
                       int64_t now_ps, struct stretch_key *key)
{
    const struct server_state *state = server_at(&replay->servers, server, chip);
    const struct server_past *past = server_past_at(&replay->servers, server, chip);
    struct mixing of = {.key = key, .now_ps = now_ps};
    mix_signed(key, state->debt_ps);
    if (stretch_server_rests(state, past)) return;
    SERVER_STATE_FIELDS(MIX, &of, state->)
    SERVER_PAST_FIELDS(MIX, &of, past->)
    mixing_end(&of);
    mix_signed(key, state->dma_ps - state->settled_ps);
    bool const is_empty = stretch_run_is_empty(state, past);
    mix(key, is_empty);
    if (is_empty) mix_signed(key, past->room_ps[past->run_count]);
}

static void servers_mix(const struct replay *replay, uint32_t chip, int64_t now_ps,
                        struct stretch_key *key)
{
    struct mixing of = {.key = key, .now_ps = now_ps};
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        server_mix(replay, chip, server, now_ps, key);
    for (uint32_t way = 0; way < replay->servers.read_ways; way++) {
        const struct server_reads *reads = reads_at(&replay->servers, way, chip);
        if (reads->until_ps <= now_ps) continue;
        mix(key, way);
        SERVER_READS_FIELDS(MIX, &of, reads->)
    }
    if (!replay->servers.cores.is_on) return;
    const struct cores_state *cores = &replay->servers.cores.states[chip];
    CORES_STATE_FIELDS(MIX, &of, cores->)
    mixing_end(&of);
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
    struct mixing of = {.key = &key, .now_ps = now_ps, .half = next_class, .has_half = true};
    CHIP_STATE_FIELDS(MIX, &of, self->)
    mixing_end(&of);
    uint32_t const far = far_streams(replay, chip, bases, most);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (!stream_mix(replay, chip, stream, bases, most, far >> stream & 1, &key)) return false;
    servers_mix(replay, chip, now_ps, &key);
    *ret_key = key;
    return true;
}

bool stretch_leaves(const struct chip_state *was, const struct chip_state *is)
{
    bool stays = true;
#define STAYS(user, member, again, name, keeping)                                                  \
    if (RECUR_##again == RECUR_SAME &&                                                             \
        (NAMED_##name == NAMED_QUIET || NAMED_##name == NAMED_FIXED))                              \
        stays = stays && is->member == was->member;
    CHIP_STATE_FIELDS(STAYS, , )
#undef STAYS
    return stays;
}
