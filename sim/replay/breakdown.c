/* The books of a run: where time went, what memory was held. */
#include "sim/replay/breakdown.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/p2p.h"
#include "sim/replay/state.h"
#include "sim/replay/stretch.h"

/* What few calls do stands apart, so that the others keep no registers for it. */
#define APART __attribute__((noinline))

/* Of the streams in `among`, as bits, the one at which `stream` has named itself; else none of the
 * program's. */
static uint32_t waited_for(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t among)
{
    for (uint32_t bits = among; bits != 0; bits &= bits - 1) {
        uint32_t const other = (uint32_t)__builtin_ctz(bits);
        if ((stream_at(replay, other, chip)->waiters >> stream & 1) != 0) return other;
    }
    return replay->stream_count;
}

/* The running stream that the chip's compute waits for: the one at which it has named itself, or
 * if that waits too, the one at which that has. Where compute has ended, or waits for another rank
 * of the pipeline, the first that runs. */
static uint32_t awaited_stream(struct replay *replay, uint32_t chip)
{
    uint32_t const running = replay->chips[chip].running;
    uint32_t stream = PROGRAM_COMPUTE;
    for (uint32_t links = 0; links < replay->stream_count; links++) {
        uint32_t const runs = waited_for(replay, stream, chip, running);
        if (runs != replay->stream_count) return runs;
        stream = waited_for(replay, stream, chip, (1u << replay->stream_count) - 1);
        if (stream == replay->stream_count) break;
    }
    return (uint32_t)__builtin_ctz(running);
}

static struct class_total *total_of(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct program_op *op = streams_needs(replay, stream, chip)->op;
    return &replay->breakdowns.classes[(uint64_t)op->class_index * replay->chip_count + chip];
}

/* A plan's machine axes as bits; of a copy, the bit behind those of the axes. */
static uint32_t links_of(const struct program *program, const struct program_op *op)
{
    uint32_t bits = 0;
    if (op->kind == PROGRAM_OP_COPY) return 1u << MACHINE_AXES_MAX;
    if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) return 0;
    const struct group *group = &program->plans[op->index].group;
    for (uint32_t d = 0; d < group->dimension_count; d++) bits |= 1u << group->dimension[d].axis;
    return bits;
}

void breakdown_links_build(struct replay *replay)
{
    const struct program *program = replay->program;
    struct breakdowns *breakdowns = &replay->breakdowns;
    uint32_t all = 0;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            uint32_t const bits = links_of(program, op);
            breakdowns->stream_links[op->stream] |= (uint8_t)bits;
            all |= bits;
        }
    breakdowns->link_sets = 1;
    while (breakdowns->link_sets <= all) breakdowns->link_sets *= 2;
    SIM_ASSERT(breakdowns->link_sets <= TRACE_LINK_SETS_MAX);
}

void breakdown_span(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct chip_state *self = &replay->chips[chip];
    int64_t const span_ps = now_ps - self->breakdown_ps;
    self->breakdown_ps = now_ps;
    if (replay->breakdowns.is_off) return;
    uint64_t const index = breakdown_row(replay, self->block_phase, chip);
    struct breakdown *breakdown = &replay->breakdowns.of_phase[index];
    struct phase_span *span = &replay->breakdowns.spans[index];
    if (span->end_ps == 0) span->begin_ps = now_ps - span_ps;
    span->end_ps = now_ps;
    if (replay->p2p != NULL) p2p_account(replay, chip, span_ps);
    uint32_t links = 0;
    for (uint32_t bits = self->running; bits != 0; bits &= bits - 1) {
        uint32_t const stream = (uint32_t)__builtin_ctz(bits);
        *breakdown_stream_ps(replay, self->block_phase, stream, chip) += span_ps;
        links |= replay->breakdowns.stream_links[stream];
    }
    if (self->computes) {
        for (uint32_t bits = self->sends; bits != 0; bits &= bits - 1)
            links |= replay->breakdowns.stream_links[__builtin_ctz(bits)];
        replay->breakdowns.links_ps[breakdown_row(replay, links, chip)] += span_ps;
        breakdown->compute_ps += span_ps;
        return;
    }
    if (stream_at(replay, PROGRAM_COMPUTE, chip)->phase == STREAM_RUNS) /* Between its parts. */
        total_of(replay, PROGRAM_COMPUTE, chip)->idle_ps += span_ps;
    if (self->running == 0) {
        breakdown->idle_ps += span_ps;
        return;
    }
    breakdown->exposed_ps += span_ps;
    self->exposed_ps += span_ps;
    uint32_t const awaited = awaited_stream(replay, chip);
    for (uint32_t bits = self->running; bits != 0; bits &= bits - 1) {
        uint32_t const stream = (uint32_t)__builtin_ctz(bits);
        struct class_total *total = total_of(replay, stream, chip);
        total->idle_ps += span_ps;
        if (stream == awaited) total->exposed_ps += span_ps;
    }
}

void breakdown_pass_add(struct role_table *role, const struct need_cache *needs, int64_t counted_ps,
                        int64_t begin_ps, int64_t end_ps)
{
    role->pass_ps[needs->pass] += counted_ps;
    role->pass_until_ps += counted_ps;
    /* Both passes of a pair are under way as long as it is. */
    uint32_t const last = needs->pass + (needs->pass > 0 && needs->phase == PROGRAM_PHASE_PAIR);
    for (uint32_t pass = needs->pass; pass <= last; pass++) {
        if (role->pass_end_ps[pass] == 0) role->pass_begin_ps[pass] = begin_ps;
        role->pass_end_ps[pass] = end_ps;
    }
}

int64_t breakdown_passes_ps(const struct replay *replay, uint32_t chip)
{
    int64_t passes_ps = 0;
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_UPDATE; phase++) {
        const struct breakdown *breakdown =
            &replay->breakdowns.of_phase[breakdown_row(replay, phase, chip)];
        passes_ps += breakdown->compute_ps + breakdown->exposed_ps;
    }
    return passes_ps;
}

/* Of the chip whose passes are counted. */
static APART void pass_count(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                             int64_t begin_ps, int64_t end_ps, struct role_table *role)
{
    int64_t const until_ps = breakdown_passes_ps(replay, chip);
    int64_t const counted_ps = until_ps - role->pass_until_ps;
    if (replay->recurrence.keeps) recur_pass(replay, chip, counted_ps, begin_ps, end_ps);
    breakdown_pass_add(role, needs, counted_ps, begin_ps, end_ps);
    if (stretch_is_recorded(replay, chip))
        stretch_note_pass(replay, chip, until_ps, begin_ps, end_ps);
}

void breakdown_pass(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                    int64_t begin_ps, int64_t end_ps)
{
    struct role_table *role = role_at(replay, chip);
    if (role->pass_ps != NULL && role->pass_chip == chip)
        pass_count(replay, needs, chip, begin_ps, end_ps, role);
}

void breakdown_class(struct replay *replay, const struct program_op *op, uint32_t chip,
                     int64_t begin_ps, int64_t end_ps)
{
    struct class_total *total =
        &replay->breakdowns.classes[(uint64_t)op->class_index * replay->chip_count + chip];
    total->count++;
    total->busy_ps += end_ps - begin_ps;
    int64_t *class_end_ps = &replay->breakdowns.class_end_ps[op->class_index];
    if (end_ps > *class_end_ps) *class_end_ps = end_ps;
    if (stretch_is_recorded(replay, chip))
        stretch_note_class(replay, chip, op->class_index, end_ps);
}

enum status breakdown_curve_build(struct arena *arena, const struct program *program,
                                  struct role_table *table, struct error *reterr)
{
    uint64_t count = 1;
    for (uint32_t b = 0; b < table->role->block_count; b++) {
        const struct program_block *block = &table->role->block[b];
        const struct program_template *template = &program->templates[block->template_index];
        for (uint32_t i = 0; i < template->op_count; i++)
            count += (uint64_t)block->repeat * template->op[i].effect_count;
    }
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof *table->curve.at_ps, &memory, reterr));
    table->curve.at_ps = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *table->curve.bytes, &memory, reterr));
    table->curve.bytes = memory;
    return STATUS_OK;
}

/* Of what changes at one instant, only what is held behind it is kept. */
static void curve_add(struct trace_curve *curve, int64_t now_ps, uint64_t bytes)
{
    if (curve->count == 0 || curve->at_ps[curve->count - 1] != now_ps)
        curve->at_ps[curve->count++] = now_ps;
    curve->bytes[curve->count - 1] = bytes;
}

/* Of a program that was read: it balances what it takes and gives in no order that it can have. */
static void refuse_overdrawn(struct replay *replay, enum program_memory memory, uint32_t slot,
                             uint16_t op, uint32_t chip)
{
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_MEMORY_TABLE(X)
#undef X
    };
    const struct program_role *role = role_at(replay, chip)->role;
    char name[96], where[sizeof replay->refusal.where];
    if (replay->refusal.status != STATUS_OK) return;
    program_slot_name(role, slot, name, sizeof name);
    program_op_where(replay->program, role, slot, op, "", where, sizeof where);
    (void)error_set(
        &replay->refusal, STATUS_INVALID, where,
        "\"%.48s\" of slot %u (%s) gives back more of %s than the chip holds then",
        replay->program->templates[program_slot_block(role, slot)->template_index].op[op].name,
        slot, name, names[memory]);
}

/* Where in its program a chip takes memory or gives it back. */
struct memory_place {
    uint32_t slot;
    uint16_t op;
};

static void peak_set(struct memory_state *state, const struct memory_place *place, int64_t now_ps)
{
    state->peak_bytes = state->total_bytes;
    state->peak_at_ps = now_ps;
    state->peak_slot = place->slot;
    state->peak_op = place->op;
    memcpy(state->at_peak_bytes, state->held_bytes, sizeof state->held_bytes);
}

static void memory_record(struct replay *replay, uint32_t chip, enum program_memory memory,
                          const struct memory_place *place, int64_t now_ps)
{
    struct trace_record const record = {
        .begin_ps = now_ps,
        .end_ps = now_ps,
        .bytes = (uint64_t)replay->breakdowns.memories[chip].held_bytes[memory],
        .chip = chip,
        .slot = place->slot,
        .op = place->op,
        .kind = TRACE_MEMORY,
        .lane = (uint16_t)memory};
    record_add(&replay->records, &record);
}

static inline void held_add(struct memory_state *state, enum program_memory memory, int64_t bytes)
{
    int64_t const held_bytes = state->held_bytes[memory] += bytes;
    state->total_bytes += bytes;
    if (held_bytes > state->each_peak_bytes[memory]) state->each_peak_bytes[memory] = held_bytes;
}

/* Whether more than the sums of what is held has to be written. */
static inline bool memory_is_noted(const struct replay *replay, const struct memory_state *state,
                                   enum program_memory memory, uint32_t chip)
{
    return state->total_bytes > state->peak_bytes || state->held_bytes[memory] < 0 ||
           replay->options->curves || replay->chips[chip].shown;
}

static void memory_note(struct replay *replay, uint32_t chip, enum program_memory memory,
                        const struct memory_place *place, int64_t now_ps)
{
    struct memory_state *state = &replay->breakdowns.memories[chip];
    if (state->held_bytes[memory] < 0)
        refuse_overdrawn(replay, memory, place->slot, place->op, chip);
    if (state->total_bytes > state->peak_bytes) peak_set(state, place, now_ps);
    if (replay->options->curves && role_at(replay, chip)->pass_chip == chip)
        curve_add(&role_at(replay, chip)->curve, now_ps, (uint64_t)state->total_bytes);
    if (replay->chips[chip].shown) memory_record(replay, chip, memory, place, now_ps);
}

static APART void effect_note(struct replay *replay, const struct program_effect *effect,
                              uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct memory_state *state = &replay->breakdowns.memories[chip];
    if (stretch_is_recorded(replay, chip))
        stretch_note_effect(replay, effect, stream, chip, now_ps);
    if (!memory_is_noted(replay, state, effect->memory, chip)) return;
    struct memory_place const place = {.slot = stream_at(replay, stream, chip)->slot,
                                       .op = streams_op_index(replay, stream, chip)};
    memory_note(replay, chip, effect->memory, &place, now_ps);
}

void breakdown_effect(struct replay *replay, const struct program_effect *effect, uint32_t stream,
                      uint32_t chip, int64_t now_ps)
{
    struct memory_state *state = &replay->breakdowns.memories[chip];
    held_add(state, effect->memory, effect->bytes);
    if (state->total_bytes > state->peak_bytes || state->held_bytes[effect->memory] < 0 ||
        replay->breakdowns.effect_watchers != 0 || replay->chips[chip].shown)
        effect_note(replay, effect, stream, chip, now_ps);
}

void breakdown_effect_at(struct replay *replay, const struct program_effect *effect, uint32_t slot,
                         uint16_t op, uint32_t chip, int64_t now_ps)
{
    struct memory_state *state = &replay->breakdowns.memories[chip];
    struct memory_place const place = {.slot = slot, .op = op};
    held_add(state, effect->memory, effect->bytes);
    if (memory_is_noted(replay, state, effect->memory, chip))
        memory_note(replay, chip, effect->memory, &place, now_ps);
}

void breakdown_resident(struct replay *replay, uint32_t chip)
{
    struct memory_state *state = &replay->breakdowns.memories[chip];
    struct memory_place const start = {.slot = 0};
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        enum program_memory const memory = (enum program_memory)m;
        held_add(state, memory, (int64_t)role_at(replay, chip)->role->resident_bytes[m]);
        if (memory_is_noted(replay, state, memory, chip))
            memory_note(replay, chip, memory, &start, 0);
    }
}
