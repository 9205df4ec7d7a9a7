#include "sim/schedule/schedule_traffic.h"

#include <string.h>

#include "sim/base/arena.h"

bool schedule_turns_at_once(const struct schedule_rank *list, uint32_t index)
{
    const struct schedule_pass *pass = &list->pass[index];
    bool const forward = pass->kind == SCHEDULE_FORWARD;
    if (pass->kind == SCHEDULE_WEIGHT || (forward ? index + 1 == list->count : index == 0))
        return false;
    const struct schedule_pass *first = forward ? pass : pass - 1, *second = first + 1;
    bool const paired = first->paired || second->paired || (first > list->pass && first[-1].paired);
    return first->kind == SCHEDULE_FORWARD && second->kind != SCHEDULE_FORWARD &&
           second->kind != SCHEDULE_WEIGHT && first->stage == second->stage &&
           first->microbatch == second->microbatch && !paired;
}

/* A pair of passes may be of one stage more than are kept. */
enum { AHEAD_MAX = SCHEDULE_STAGES_KEPT + 1 };

/* The next stages that passes from a place of the list on are of: the first pass of each. */
struct ahead {
    uint32_t pass[AHEAD_MAX];
    uint32_t count;
};

/* Of the list of a rank. */
struct lasts {
    uint32_t *backward; /* [stage]: the last pass that adds to its gradients. */
    uint32_t *pass;     /* [stage]: its last pass of any kind. */
};

/* The actions of one rank under construction. */
struct actions {
    const struct schedule_rank *list;
    struct schedule_action *action;
    uint32_t count, capacity;
    uint32_t given_next; /* Of those that the list has, which go between. */
    struct lasts last;
    struct ahead *ahead; /* [pass] */
    bool *held;          /* [stage]: gathered once. */
    bool reduces;        /* The list does not say when gradients are reduced. */
};

/* Of a place, what the list has itself comes first. */
static void given_add(struct actions *actions, uint32_t before)
{
    const struct schedule_rank *list = actions->list;
    while (actions->given_next < list->action_count &&
           list->action[actions->given_next].before <= before)
        actions->action[actions->count++] = list->action[actions->given_next++];
}

static void action_add(struct actions *actions, enum schedule_act act, uint32_t stage,
                       uint32_t before)
{
    given_add(actions, before);
    SIM_ASSERT(actions->count < actions->capacity);
    actions->action[actions->count++] =
        (struct schedule_action){.before = before, .stage = (uint16_t)stage, .act = (uint8_t)act};
}

/* The passes that begin with this one at once: a pair is one. */
static uint32_t passes_at(const struct schedule_rank *list, uint32_t at)
{
    return list->pass[at].paired ? 2 : 1;
}

static bool is_among(const uint32_t *stages, uint32_t count, uint32_t stage)
{
    for (uint32_t i = 0; i < count; i++)
        if (stages[i] == stage) return true;
    return false;
}

static void ahead_find(const struct schedule_rank *list, struct ahead *ahead)
{
    struct ahead next = {.count = 0};
    for (uint32_t i = list->count; i-- > 0;) {
        uint32_t place = 0;
        while (place < next.count && list->pass[next.pass[place]].stage != list->pass[i].stage)
            place++;
        if (place == AHEAD_MAX) place--; /* The last of them comes too late. */
        if (place == next.count) next.count++;
        memmove(&next.pass[1], &next.pass[0], place * sizeof *next.pass);
        next.pass[0] = i;
        ahead[i] = next;
    }
}

/* The first `kept` of these stages, in their order; a pair is not split. */
static uint32_t stages_next(const struct schedule_rank *list, const struct ahead *ahead,
                            uint32_t kept, uint32_t stages[AHEAD_MAX])
{
    const uint32_t *pass = ahead->pass;
    uint32_t count = ahead->count < kept ? ahead->count : kept;
    if (ahead->count > kept && pass[kept] == pass[kept - 1] + 1 &&
        list->pass[pass[kept - 1]].paired)
        count++;
    for (uint32_t i = 0; i < count; i++) stages[i] = list->pass[pass[i]].stage;
    return count;
}

/* `from` in rising order. */
static void stages_sort(const uint32_t from[AHEAD_MAX], uint32_t count, uint32_t to[AHEAD_MAX])
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = i;
        for (; place > 0 && to[place - 1] > from[i]; place--) to[place] = to[place - 1];
        to[place] = from[i];
    }
}

static void ahead_add(struct actions *actions, uint32_t kept)
{
    const struct schedule_rank *list = actions->list;
    uint32_t held[AHEAD_MAX], next[AHEAD_MAX], held_count = 0;
    SIM_ASSERT(kept <= SCHEDULE_STAGES_KEPT);
    ahead_find(list, actions->ahead);
    for (uint32_t at = 0; at < list->count;) {
        uint32_t const count = stages_next(list, &actions->ahead[at], kept, next);
        uint32_t const passes = passes_at(list, at);
        for (uint32_t i = 0; i < held_count; i++)
            if (!is_among(next, count, held[i])) action_add(actions, SCHEDULE_RESHARD, held[i], at);
        for (uint32_t i = 0; i < count; i++)
            if (!is_among(held, held_count, next[i]))
                action_add(actions, SCHEDULE_UNSHARD, next[i], at);
        held_count = count;
        stages_sort(next, count, held);
        at += passes;
        for (uint32_t i = at - passes; i < at; i++)
            if (actions->reduces && actions->last.backward[list->pass[i].stage] == i)
                action_add(actions, SCHEDULE_REDUCE, list->pass[i].stage, at);
    }
    for (uint32_t i = 0; i < held_count; i++)
        action_add(actions, SCHEDULE_RESHARD, held[i], list->count);
}

static void once_add(struct actions *actions)
{
    const struct schedule_rank *list = actions->list;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t const stage = list->pass[i].stage;
        if (!actions->held[stage]) action_add(actions, SCHEDULE_UNSHARD, stage, 0);
        actions->held[stage] = true;
    }
    for (uint32_t at = 0; at < list->count;) {
        uint32_t const passes = passes_at(list, at);
        at += passes;
        for (uint32_t i = at - passes; i < at; i++)
            if (actions->last.pass[list->pass[i].stage] == i)
                action_add(actions, SCHEDULE_RESHARD, list->pass[i].stage, at);
    }
}

static enum status lasts_open(struct arena *arena, uint32_t stages, struct lasts *lasts,
                              struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, stages, sizeof *lasts->pass, &memory, reterr));
    lasts->pass = memory;
    STATUS_TRY(arena_try(arena, stages, sizeof *lasts->backward, &memory, reterr));
    lasts->backward = memory;
    return STATUS_OK;
}

static void lasts_find(const struct schedule_rank *list, uint32_t stages, struct lasts *lasts)
{
    memset(lasts->backward, 0xff, stages * sizeof *lasts->backward);
    memset(lasts->pass, 0xff, stages * sizeof *lasts->pass);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        lasts->pass[pass->stage] = i;
        if (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_WEIGHT)
            lasts->backward[pass->stage] = i;
    }
}

/* `kept` 0: once. The schedule gets lists of ranks of its own. */
static enum status actions_build(struct arena *arena, struct schedule *schedule, uint32_t kept,
                                 struct error *reterr)
{
    uint32_t const stages = schedule->stage_count;
    uint32_t most = 0;
    void *memory = NULL;
    struct actions actions = {.reduces = !schedule->has_reductions};
    SIM_ASSERT(!schedule->has_gathers);
    STATUS_TRY(lasts_open(arena, stages, &actions.last, reterr));
    STATUS_TRY(arena_try(arena, stages, sizeof *actions.held, &memory, reterr));
    actions.held = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        most = schedule->rank[r].count > most ? schedule->rank[r].count : most;
    STATUS_TRY(arena_try(arena, kept == 0 ? 0 : most, sizeof *actions.ahead, &memory, reterr));
    actions.ahead = memory;
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof *schedule->rank, &memory, reterr));
    struct schedule_rank *ranks = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        const struct schedule_rank *list = &schedule->rank[r];
        /* At each pass no more than one stage comes and one goes, besides the ends' own; and
         * gradients are of a pass. */
        actions.capacity = 3 * (list->count + AHEAD_MAX) + list->action_count;
        actions.count = actions.given_next = 0;
        actions.list = list;
        memset(actions.held, 0, stages * sizeof *actions.held);
        STATUS_TRY(arena_try(arena, actions.capacity, sizeof *actions.action, &memory, reterr));
        actions.action = memory;
        lasts_find(list, stages, &actions.last);
        if (kept == 0)
            once_add(&actions);
        else
            ahead_add(&actions, kept);
        given_add(&actions, list->count);
        ranks[r] = (struct schedule_rank){.pass = list->pass,
                                          .count = list->count,
                                          .cell = list->cell,
                                          .action = actions.action,
                                          .action_count = actions.count};
    }
    schedule->rank = ranks;
    schedule->has_gathers = true;
    schedule->has_reductions = schedule->has_reductions || kept > 0;
    return STATUS_OK;
}

enum status schedule_gather_once(struct arena *arena, struct schedule *schedule,
                                 struct error *reterr)
{
    return actions_build(arena, schedule, 0, reterr);
}

enum status schedule_gather_ahead(struct arena *arena, struct schedule *schedule, uint32_t kept,
                                  struct error *reterr)
{
    SIM_ASSERT(kept > 0);
    return actions_build(arena, schedule, kept, reterr);
}

/* What has become of a stage. */
struct fate {
    bool held, read, reduced;
};

static enum status refuse(uint32_t line, uint32_t cell, uint32_t stage, const char *reason,
                          const char *where, struct error *reterr)
{
    return error_set(reterr, STATUS_INVALID, where, "line %u, cell %u: stage %u %s", line + 1,
                     cell + 1, stage, reason);
}

/* Why an action may not come now; NULL if it may. */
static const char *action_refused(const struct lasts *lasts, const struct schedule_action *action,
                                  struct fate *fate)
{
    switch ((enum schedule_act)action->act) {
    case SCHEDULE_UNSHARD:
        if (fate->held) return "is unsharded already";
        fate->held = true;
        fate->read = false;
        return NULL;
    case SCHEDULE_RESHARD:
        if (!fate->held) return "is not unsharded";
        if (!fate->read) return "was unsharded, but no pass of the stage followed";
        fate->held = false;
        return NULL;
    case SCHEDULE_REDUCE:
        if (fate->reduced) return "has its gradients reduced already";
        if (lasts->backward[action->stage] == UINT32_MAX ||
            lasts->backward[action->stage] >= action->before)
            return "gets more gradients later, so they cannot be reduced here";
        fate->reduced = true;
        return NULL;
    case SCHEDULE_ACT_COUNT:
        break;
    }
    return NULL;
}

static enum status rank_check(const struct schedule *schedule, uint32_t rank,
                              const struct lasts *lasts, struct fate *fate, const char *where,
                              struct error *reterr)
{
    const struct schedule_rank *list = &schedule->rank[rank];
    uint32_t next = 0;
    for (uint32_t i = 0; i <= list->count; i++) {
        for (; next < list->action_count && list->action[next].before == i; next++) {
            const struct schedule_action *action = &list->action[next];
            const char *reason =
                action->stage >= schedule->stage_count || schedule->rank_of[action->stage] != rank
                    ? "has no pass in this line"
                    : action_refused(lasts, action, &fate[action->stage]);
            if (reason != NULL)
                return refuse(rank, list->action_cell[next], action->stage, reason, where, reterr);
        }
        if (i == list->count) return STATUS_OK;
        uint32_t const stage = list->pass[i].stage;
        if (schedule->has_gathers && !fate[stage].held)
            return refuse(rank, list->cell[i], stage, "computes and is not unsharded", where,
                          reterr);
        fate[stage].read = true;
    }
    return STATUS_OK;
}

enum status schedule_traffic_check(const struct schedule *schedule, const char *where,
                                   struct error *reterr)
{
    uint32_t const stages = schedule->stage_count;
    struct lasts lasts = {0};
    void *memory = NULL;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the check");
    enum status status = arena_try(arena, stages, sizeof(struct fate), &memory, reterr);
    struct fate *fate = memory;
    if (status == STATUS_OK) status = lasts_open(arena, stages, &lasts, reterr);
    for (uint32_t r = 0; status == STATUS_OK && r < schedule->rank_count; r++) {
        lasts_find(&schedule->rank[r], stages, &lasts);
        status = rank_check(schedule, r, &lasts, fate, where, reterr);
    }
    arena_destroy(arena);
    return status;
}
