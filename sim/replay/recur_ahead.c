/* How many more periods will be like the one that has been found (recur.h). */
#include "sim/replay/recur_search.h"
#include "sim/replay/state.h"

/* The least that all chips of a role have of a stream. */
static uint32_t least_count(struct replay *replay, uint32_t role, uint32_t stream, bool begun)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        if (replay->chips[chip].role != role) continue;
        const struct stream_state *state = stream_at(replay, stream, chip);
        uint32_t const count = begun ? state->begun : state->done;
        least = count < least ? count : least;
    }
    return least;
}

/* Whether an op asks for as many parts and messages more as a period has, than one a period before.
 * What has been met by all chips is met in both. */
static bool needs_move(struct replay *replay, uint32_t role, const struct need_cache *before,
                       const struct need_cache *after)
{
    const struct recur_role *own = &replay->recurrence.search->roles[role];
    for (uint32_t i = 0; i < after->op->need_count; i++) {
        const struct program_need *need = &after->op->need[i];
        if (after->count[i] - before->count[i] == own->parts[need->stream]) continue;
        uint64_t const most =
            (after->count[i] > before->count[i] ? after->count[i] : before->count[i]) +
            (uint64_t)after->op->parts * after->per_part[i];
        if (most > least_count(replay, role, need->stream, need->begun)) return false;
    }
    if (after->op->kind == PROGRAM_OP_RECEIVE &&
        after->arrivals - before->arrivals != own->came[after->op->stream])
        return false;
    return after->operand_parts == 0 ||
           after->operand_first - before->operand_first == own->parts[PROGRAM_COMPUTE];
}

/* Whether a slot has the template and the phase of the one a period before. */
static bool template_again(const struct role_table *table, uint32_t slots, uint32_t slot)
{
    return table->slot_template[slot] == table->slot_template[slot - slots] &&
           program_slot_block(table->role, slot)->phase ==
               program_slot_block(table->role, slot - slots)->phase;
}

/* Whether the ops of such a slot also ask for what those a period before asked for. */
static bool slot_again(struct replay *replay, uint32_t role, uint32_t slot)
{
    const struct role_table *table = &replay->roles[role];
    uint32_t const earlier = slot - replay->recurrence.search->roles[role].slots;
    const struct stream_ops *ops =
        &replay->streams.ops[table->slot_template[slot] * PROGRAM_STREAMS_MAX];
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t position = 0; position < ops[stream].op_count; position++) {
            struct need_cache before, after;
            struct stream_state at = {.slot = earlier, .position = (uint16_t)position};
            streams_needs_fill(replay, table, stream, &at, &before);
            at.slot = slot;
            streams_needs_fill(replay, table, stream, &at, &after);
            if (!needs_move(replay, role, &before, &after)) return false;
        }
    return true;
}

/* The slots at which streams of a role that go on are: the first and the last. */
struct slot_range {
    uint32_t least, most;
};

static struct slot_range slots_of(struct replay *replay, uint32_t role)
{
    const struct recur_role *own = &replay->recurrence.search->roles[role];
    struct slot_range range = {UINT32_MAX, 0};
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count && own->parts[stream] > 0; chip++) {
            uint32_t const slot = stream_at(replay, stream, chip)->slot;
            if (replay->chips[chip].role != role) continue;
            range.least = slot < range.least ? slot : range.least;
            range.most = slot > range.most ? slot : range.most;
        }
    return range;
}

/* How many more periods, `most` at most, the slots ahead of a role are like those behind: in their
 * templates, or also in their needs. */
static uint64_t role_slots_ahead(struct replay *replay, uint32_t role, bool needs, uint64_t most)
{
    const struct role_table *table = &replay->roles[role];
    const struct recur_role *own = &replay->recurrence.search->roles[role];
    if (!own->found || own->slots == 0) return most;
    struct slot_range const range = slots_of(replay, role);
    uint64_t const last = range.most + most * own->slots;
    uint32_t like = range.least;
    while (
        like < last && like + 1 < table->role->slot_count &&
        (needs ? slot_again(replay, role, like + 1) : template_again(table, own->slots, like + 1)))
        like++;
    return like <= range.most ? 0 : (like - range.most) / own->slots;
}

/* 0 where that is below `worth`. Templates are looked at first, which costs little. */
static uint64_t slots_ahead(struct replay *replay, uint64_t worth, uint64_t most)
{
    uint64_t ahead = most < UINT32_MAX ? most : UINT32_MAX;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t role = 0; role < replay->program->role_count; role++) {
            ahead = role_slots_ahead(replay, role, pass == 1, ahead);
            if (ahead < worth) return 0;
        }
    return ahead;
}

/* Periods until a count that grows by `parts` in each comes to what somebody waits for. */
static uint64_t periods_until(uint32_t count, uint32_t wanted, uint32_t parts)
{
    if (parts == 0 || count >= wanted) return UINT64_MAX;
    return (wanted - count - 1) / parts;
}

/* How many more periods those go on waiting who wait for counts of a stream that do not move. */
static uint64_t waiters_ahead(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct recur_state *image = &replay->recurrence.search->state;
    const struct stream_state *states = replay->streams.states, *then;
    const struct stream_state *state = &states[(uint64_t)stream * replay->chip_count + chip];
    uint32_t const parts = recur_role_of(replay, chip)->parts[stream];
    uint64_t least = UINT64_MAX;
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint64_t const waiter = (uint64_t)__builtin_ctz(bits) * replay->chip_count + chip;
        then = recur_image_of(image, states, waiter);
        uint32_t const wants = states[waiter].wants, moved = wants - then->wants;
        if (moved == 2 * parts) continue;
        if (moved != 0) return 0;
        uint64_t const most =
            periods_until((wants & 1) != 0 ? state->begun : state->done, wants / 2, parts);
        least = most < least ? most : least;
    }
    return least;
}

/* How many more periods no stream that waits where it was can go on. */
static uint64_t waits_ahead(struct replay *replay)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            const struct recur_role *role = recur_role_of(replay, chip);
            const struct stream_state *state = stream_at(replay, stream, chip);
            uint64_t most = waiters_ahead(replay, stream, chip);
            least = most < least ? most : least;
            if (role->parts[stream] > 0 || state->phase == STREAM_FINISHED) continue;
            if (state->phase != STREAM_WAITS) return 0;
            const struct need_cache *needs = streams_needs(replay, stream, chip);
            for (uint32_t i = 0; i < needs->op->need_count; i++) {
                const struct program_need *need = &needs->op->need[i];
                const struct stream_state *other = stream_at(replay, need->stream, chip);
                most = periods_until(need->begun ? other->begun : other->done, needs->count[i],
                                     role->parts[need->stream]);
                least = most < least ? most : least;
            }
        }
    return least;
}

/* What the ops of a period's slots give back of a kind of memory on a chip. */
static int64_t given_bytes(struct replay *replay, uint32_t chip, enum program_memory memory)
{
    const struct role_table *role = role_at(replay, chip);
    uint32_t const end = stream_at(replay, PROGRAM_COMPUTE, chip)->slot;
    int64_t sum = 0;
    for (uint32_t slot = end - recur_role_of(replay, chip)->slots; slot < end; slot++) {
        const struct program_template *template =
            &replay->program->templates[role->slot_template[slot]];
        for (uint32_t i = 0; i < template->op_count; i++)
            for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
                const struct program_effect *effect = &template->op[i].effect[e];
                if (effect->memory == memory && effect->bytes < 0) sum -= effect->bytes;
            }
    }
    return sum;
}

/* Periods that give back no more than is held: a program that was read may, and is refused where it
 * does. */
static uint64_t memory_ahead(struct replay *replay)
{
    struct recur_state *image = &replay->recurrence.search->state;
    const struct memory_state *now = replay->breakdowns.memories, *then;
    uint64_t least = UINT64_MAX;
    for (enum program_memory k = 0; k < PROGRAM_MEMORY_COUNT; k++) {
        int64_t given = -1;
        uint16_t role = 0;
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            int64_t const held = now[chip].held_bytes[k];
            then = recur_image_of(image, now, chip);
            int64_t const less = then->held_bytes[k] - held;
            if (less <= 0) continue;
            if (given < 0 || role != replay->chips[chip].role) given = given_bytes(replay, chip, k);
            role = replay->chips[chip].role;
            uint64_t const most = held > given ? (uint64_t)((held - given) / less) : 0;
            least = most < least ? most : least;
        }
    }
    return least;
}

/* Periods until the clock has no room for what waits. */
static uint64_t clock_ahead(const struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = engine_now_ps(replay->engine) - recur->image_ps;
    int64_t const room_ps = TIME_PS_END / 2 - recur->pending.latest_ps;
    return room_ps <= 0 ? 0 : (uint64_t)(room_ps / period_ps);
}

/* Slots are looked at last, no farther than the other limits allow: a program has many. */
uint64_t recur_periods_ahead(struct replay *replay, uint64_t worth, uint64_t most)
{
    uint64_t (*const limits[])(struct replay *) = {waits_ahead, memory_ahead};
    uint64_t least = clock_ahead(replay);
    least = most < least ? most : least;
    for (uint32_t i = 0; i < 2 && least >= worth; i++) {
        uint64_t const limit = limits[i](replay);
        least = limit < least ? limit : least;
    }
    return least < worth ? 0 : slots_ahead(replay, worth, least);
}
