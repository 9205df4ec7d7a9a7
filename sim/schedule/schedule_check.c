#include "sim/schedule/schedule_check.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/schedule/schedule_play.h"

/* Bits of what a stage has done of a microbatch. */
enum { DONE_FORWARD = 1, DONE_INPUT = 2, DONE_WEIGHT = 4, DONE_ALL = 7 };

const char *schedule_pass_text(const struct schedule_pass *pass,
                               char buffer[SCHEDULE_PASS_TEXT_BYTES])
{
    (void)snprintf(buffer, SCHEDULE_PASS_TEXT_BYTES, "%u%s%u", pass->stage,
                   schedule_kind_letter((enum schedule_kind)pass->kind), pass->microbatch);
    return buffer;
}

/* Why a pass may not come now; NULL if it may. */
static const char *pass_check(const struct schedule *schedule, uint32_t rank,
                              const struct schedule_pass *pass, uint8_t done)
{
    static const uint8_t needs[] = {[SCHEDULE_FORWARD] = 0,
                                    [SCHEDULE_BACKWARD] = DONE_FORWARD,
                                    [SCHEDULE_INPUT] = DONE_FORWARD,
                                    [SCHEDULE_WEIGHT] = DONE_FORWARD | DONE_INPUT};
    static const uint8_t makes[] = {[SCHEDULE_FORWARD] = DONE_FORWARD,
                                    [SCHEDULE_BACKWARD] = DONE_INPUT | DONE_WEIGHT,
                                    [SCHEDULE_INPUT] = DONE_INPUT,
                                    [SCHEDULE_WEIGHT] = DONE_WEIGHT};
    if (schedule_rank_of(schedule, pass->stage, pass->microbatch) != rank)
        return "the stage lies on another rank";
    bool const is_half = pass->kind == SCHEDULE_INPUT || pass->kind == SCHEDULE_WEIGHT;
    if ((done & makes[pass->kind]) != 0)
        return is_half ? "it has been done (B is both gradients; I and W are one each)"
                       : "it has been done";
    if ((done & needs[pass->kind]) != needs[pass->kind])
        return pass->kind == SCHEDULE_WEIGHT ? "its input gradient is not before it"
                                             : "its forward pass is not before it";
    return NULL;
}

const char *schedule_place_text(const struct schedule *schedule, uint32_t rank, uint32_t index,
                                char buffer[SCHEDULE_PLACE_BYTES])
{
    const uint32_t *cell = schedule->rank[rank].cell;
    if (cell != NULL)
        (void)snprintf(buffer, SCHEDULE_PLACE_BYTES, "line %u, cell %u", rank + 1, cell[index] + 1);
    else
        (void)snprintf(buffer, SCHEDULE_PLACE_BYTES, "rank %u, pass %u", rank, index);
    return buffer;
}

static enum status rank_check(const struct schedule *schedule, uint32_t rank, uint8_t *done,
                              const char *where, struct error *reterr)
{
    const struct schedule_rank *list = &schedule->rank[rank];
    char text[SCHEDULE_PASS_TEXT_BYTES], place[SCHEDULE_PLACE_BYTES];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        const char *reason = NULL;
        if (pass->kind >= SCHEDULE_KIND_COUNT || pass->stage >= schedule->stage_count ||
            pass->microbatch >= schedule->microbatch_count)
            return error_set(
                reterr, STATUS_INVALID, where, "%s: there is no stage %u or no microbatch %u",
                schedule_place_text(schedule, rank, i, place), pass->stage, pass->microbatch);
        uint8_t *of = &done[(uint64_t)pass->stage * schedule->microbatch_count + pass->microbatch];
        reason = pass_check(schedule, rank, pass, *of);
        /* A pair begins at once, so that neither may need the other. */
        if (reason == NULL && pass->paired &&
            (i + 1 == list->count || list->pass[i + 1].paired || pass->kind != SCHEDULE_FORWARD ||
             list->pass[i + 1].kind != SCHEDULE_BACKWARD ||
             (list->pass[i + 1].stage == pass->stage &&
              list->pass[i + 1].microbatch == pass->microbatch)))
            reason = "only a forward pass and a backward pass of another microbatch overlap";
        if (reason != NULL)
            return error_set(reterr, STATUS_INVALID, where, "%s, %s: %s",
                             schedule_place_text(schedule, rank, i, place),
                             schedule_pass_text(pass, text), reason);
        switch ((enum schedule_kind)pass->kind) {
        case SCHEDULE_FORWARD:
            *of |= DONE_FORWARD;
            break;
        case SCHEDULE_BACKWARD:
            *of |= DONE_INPUT | DONE_WEIGHT;
            break;
        case SCHEDULE_INPUT:
            *of |= DONE_INPUT;
            break;
        case SCHEDULE_WEIGHT:
            *of |= DONE_WEIGHT;
            break;
        case SCHEDULE_KIND_COUNT:
            break;
        }
    }
    return STATUS_OK;
}

static enum status all_check(const struct schedule *schedule, const uint8_t *done,
                             const char *where, struct error *reterr)
{
    static const char *const missing[] = {
        [0] = "forward pass", [1] = "backward pass", [3] = "weight gradient"};
    for (uint32_t s = 0; s < schedule->stage_count; s++)
        for (uint32_t b = 0; b < schedule->microbatch_count; b++) {
            uint8_t const of = done[(uint64_t)s * schedule->microbatch_count + b];
            if (of == DONE_ALL) continue;
            return error_set(
                reterr, STATUS_INVALID, where, "%s %u: stage %u never does the %s of microbatch %u",
                schedule->rank[0].cell == NULL ? "rank" : "line",
                schedule_rank_of(schedule, s, b) + (schedule->rank[0].cell == NULL ? 0u : 1u), s,
                missing[of & (DONE_FORWARD | DONE_INPUT)], b);
        }
    return STATUS_OK;
}

enum status schedule_check(const struct schedule *schedule, const struct cancel *cancel,
                           const char *where, struct error *reterr)
{
    static const struct schedule_times units = {.forward = 1, .input = 1, .weight = 1};
    void *memory = NULL;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the check");
    enum status status = arena_try(
        arena, (uint64_t)schedule->stage_count * schedule->microbatch_count, 1, &memory, reterr);
    for (uint32_t r = 0; status == STATUS_OK && r < schedule->rank_count; r++) {
        status = cancel_check(cancel, reterr);
        if (status == STATUS_OK) status = rank_check(schedule, r, memory, where, reterr);
    }
    if (status == STATUS_OK) status = all_check(schedule, memory, where, reterr);
    struct schedule_played unused;
    if (status == STATUS_OK)
        status = schedule_play(arena, schedule, &units, cancel, where, &unused, reterr);
    arena_destroy(arena);
    return status;
}
