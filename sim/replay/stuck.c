/* Which rank did not come to its end, and what it waits for. */
#include "sim/replay/stuck.h"

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/replay/p2p.h"
#include "sim/replay/state.h"

/* "5 messages, of which 3 came" */
static const char *receive_text(struct arena *arena, struct replay *replay, uint32_t stream,
                                uint32_t chip)
{
    uint64_t const row = (uint64_t)stream * replay->chip_count + chip;
    uint32_t const arrivals = streams_needs(replay, stream, chip)->arrivals;
    return arena_format(arena, "%s of other ranks, of which %u came",
                        counted(arrivals, "message").text, replay->p2p->came[row]);
}

static const char *waits_for(struct arena *arena, struct replay *replay, uint32_t stream,
                             uint32_t chip)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    const struct need_cache *cache = streams_needs(replay, stream, chip);
    if (state->phase == STREAM_RUNS && cache->op->kind == PROGRAM_OP_RECEIVE)
        return receive_text(arena, replay, stream, chip);
    if (state->phase == STREAM_RUNS && stream != PROGRAM_COMPUTE) {
        const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
        uint32_t missing = 0;
        for (uint32_t i = 0; i < plan->lane_count; i++) {
            const struct lane_state *lane = &plan->lane[i].states[chip];
            missing += lane->arrivals - lane->counted;
        }
        return arena_format(arena, "%s of its group that did not arrive",
                            counted(missing, "message").text);
    }
    uint32_t const part = state->phase == STREAM_RUNS ? state->part : 0;
    for (uint32_t i = 0; i < cache->op->need_count; i++) {
        const struct program_need *need = &cache->op->need[i];
        const struct stream_state *other = stream_at(replay, need->stream, chip);
        uint32_t const count = cache->count[i] + part * cache->per_part[i];
        uint32_t const have = need->begun ? other->begun : other->done;
        if (have >= count) continue;
        bool const receives = replay->program->stream[need->stream].kind == PROGRAM_OP_RECEIVE &&
                              other->phase == STREAM_RUNS;
        return arena_format(arena, "%s of stream %s, of which %u %s %s%s%s",
                            counted(count, "part").text, replay->program->stream[need->stream].name,
                            have, have == 1 ? "is" : "are", need->begun ? "begun" : "done",
                            receives ? "; the next waits for " : "",
                            receives ? receive_text(arena, replay, need->stream, chip) : "");
    }
    return "nothing that it names";
}

enum status stuck_check(struct arena *arena, struct replay *replay, struct error *reterr)
{
    uint32_t stuck = 0, first_chip = 0, first_stream = 0;
    for (uint32_t chip = replay->chip_count; chip-- > 0;) {
        if (replay->steps.finished_ps[chip] != TIME_PS_NEVER) continue;
        stuck++;
        first_chip = chip;
        for (uint32_t stream = replay->stream_count; stream-- > 0;)
            if (stream_at(replay, stream, chip)->phase != STREAM_FINISHED) first_stream = stream;
    }
    if (stuck == 0) return STATUS_OK;
    char slot[96], role[32];
    const struct chip_state *chip = &replay->chips[first_chip];
    program_slot_name(&replay->program->roles[chip->role],
                      stream_at(replay, first_stream, first_chip)->slot, slot, sizeof slot);
    program_role_name(replay->program, chip->role, role, sizeof role);
    uint32_t at[MACHINE_AXES_MAX];
    fold_coordinates(replay->fold, first_chip, at);
    const char *waits = waits_for(arena, replay, first_stream, first_chip);
    char where[sizeof reterr->where];
    program_op_where(replay->program, &replay->program->roles[chip->role],
                     stream_at(replay, first_stream, first_chip)->slot,
                     streams_op_index(replay, first_stream, first_chip), "/run", where,
                     sizeof where);
    return error_set(
        reterr, STATUS_STUCK, where,
        "%u of %u replayed chips did not finish: chip (%u,%u,%u,%u)%s%s, stream %s, at "
        "%s of %s, waits for %s",
        stuck, replay->chip_count, at[0], at[1], at[2], at[3], role[0] != '\0' ? ", " : "", role,
        replay->program->stream[first_stream].name,
        streams_needs(replay, first_stream, first_chip)->op->name, slot,
        waits == NULL ? "more than memory can tell" : waits);
}
