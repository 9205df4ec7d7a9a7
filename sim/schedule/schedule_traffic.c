#include "sim/schedule/schedule_traffic.h"

#include <string.h>

#include "sim/base/arena.h"

/* The actions of one rank under construction. */
struct actions {
    const struct schedule_rank *list;
    struct schedule_action *action;
    uint32_t count, capacity;
    uint32_t *last_backward; /* [stage]: the last pass that adds to its gradients. */
    uint32_t *last_pass;     /* [stage]: its last pass of any kind. */
    bool *held;              /* [stage] */
};

static void action_add(struct actions *actions, enum schedule_act act, uint32_t stage,
                       uint32_t before)
{
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

/* The first `kept` stages that passes from here on are of, in their order; a pair is not split. */
static uint32_t stages_next(const struct schedule_rank *list, uint32_t at, uint32_t kept,
                            uint32_t *stages)
{
    uint32_t count = 0;
    while (at < list->count && count < kept) {
        uint32_t const passes = passes_at(list, at);
        for (uint32_t i = 0; i < passes; i++)
            if (!is_among(stages, count, list->pass[at + i].stage))
                stages[count++] = list->pass[at + i].stage;
        at += passes;
    }
    return count;
}

static void ahead_add(struct actions *actions, uint32_t stage_count, uint32_t kept)
{
    const struct schedule_rank *list = actions->list;
    uint32_t next[SCHEDULE_STAGES_KEPT + 1];
    SIM_ASSERT(kept <= SCHEDULE_STAGES_KEPT);
    for (uint32_t at = 0; at < list->count;) {
        uint32_t const count = stages_next(list, at, kept, next), passes = passes_at(list, at);
        for (uint32_t s = 0; s < stage_count; s++) {
            if (!actions->held[s] || is_among(next, count, s)) continue;
            action_add(actions, SCHEDULE_RESHARD, s, at);
            actions->held[s] = false;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (actions->held[next[i]]) continue;
            action_add(actions, SCHEDULE_UNSHARD, next[i], at);
            actions->held[next[i]] = true;
        }
        at += passes;
        for (uint32_t i = at - passes; i < at; i++)
            if (actions->last_backward[list->pass[i].stage] == i)
                action_add(actions, SCHEDULE_REDUCE, list->pass[i].stage, at);
    }
    for (uint32_t s = 0; s < stage_count; s++)
        if (actions->held[s]) action_add(actions, SCHEDULE_RESHARD, s, list->count);
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
            if (actions->last_pass[list->pass[i].stage] == i)
                action_add(actions, SCHEDULE_RESHARD, list->pass[i].stage, at);
    }
}

static void lasts_find(struct actions *actions)
{
    const struct schedule_rank *list = actions->list;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        actions->last_pass[pass->stage] = i;
        if (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_WEIGHT)
            actions->last_backward[pass->stage] = i;
    }
}

/* `kept` 0: once. */
static enum status actions_build(struct arena *arena, struct schedule *schedule, uint32_t kept,
                                 struct error *reterr)
{
    uint32_t const stages = schedule->stage_count;
    void *memory = NULL;
    struct actions actions = {0};
    STATUS_TRY(arena_try(arena, stages, sizeof *actions.last_pass, &memory, reterr));
    actions.last_pass = memory;
    STATUS_TRY(arena_try(arena, stages, sizeof *actions.last_backward, &memory, reterr));
    actions.last_backward = memory;
    STATUS_TRY(arena_try(arena, stages, sizeof *actions.held, &memory, reterr));
    actions.held = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        struct schedule_rank *rank = &schedule->rank[r];
        /* At each pass no more than one stage comes and one goes, beside those of the ends. */
        actions.capacity = 3 * (rank->count + stages);
        actions.count = 0;
        actions.list = rank;
        memset(actions.last_backward, 0xff, stages * sizeof *actions.last_backward);
        memset(actions.last_pass, 0xff, stages * sizeof *actions.last_pass);
        memset(actions.held, 0, stages * sizeof *actions.held);
        STATUS_TRY(arena_try(arena, actions.capacity, sizeof *actions.action, &memory, reterr));
        actions.action = memory;
        lasts_find(&actions);
        if (kept == 0)
            once_add(&actions);
        else
            ahead_add(&actions, stages, kept);
        rank->action = actions.action;
        rank->action_count = actions.count;
    }
    schedule->has_gathers = true;
    schedule->has_reductions = kept > 0;
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
static const char *action_refused(const struct actions *actions,
                                  const struct schedule_action *action, struct fate *fate)
{
    switch ((enum schedule_act)action->act) {
    case SCHEDULE_UNSHARD:
        if (fate->held) return "is unsharded already";
        fate->held = true;
        fate->read = false;
        return NULL;
    case SCHEDULE_RESHARD:
        if (!fate->held) return "is not unsharded";
        if (!fate->read) return "was unsharded for nothing: no pass of it came since";
        fate->held = false;
        return NULL;
    case SCHEDULE_REDUCE:
        if (fate->reduced) return "has its gradients reduced already";
        if (actions->last_backward[action->stage] == UINT32_MAX ||
            actions->last_backward[action->stage] >= action->before)
            return "gets more gradients later, so they cannot be reduced here";
        fate->reduced = true;
        return NULL;
    }
    return NULL;
}

static enum status rank_check(const struct schedule *schedule, uint32_t rank,
                              const struct actions *actions, struct fate *fate, const char *where,
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
                    : action_refused(actions, action, &fate[action->stage]);
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
    struct actions actions = {0};
    void *memory = NULL;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the check");
    enum status status = arena_try(arena, stages, sizeof(struct fate), &memory, reterr);
    struct fate *fate = memory;
    if (status == STATUS_OK)
        status = arena_try(arena, stages, sizeof *actions.last_pass, &memory, reterr);
    actions.last_pass = memory;
    if (status == STATUS_OK)
        status = arena_try(arena, stages, sizeof *actions.last_backward, &memory, reterr);
    actions.last_backward = memory;
    if (status == STATUS_OK) memset(memory, 0xff, stages * sizeof *actions.last_backward);
    for (uint32_t r = 0; status == STATUS_OK && r < schedule->rank_count; r++) {
        actions.list = &schedule->rank[r];
        lasts_find(&actions);
        status = rank_check(schedule, r, &actions, fate, where, reterr);
    }
    arena_destroy(arena);
    return status;
}
