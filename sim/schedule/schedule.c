#include "sim/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_check.h"

#define SCHEDULE(name) extern const struct schedule_form schedule_form_##name;
#include "workloads/schedules.def"
#undef SCHEDULE

const struct schedule_form *const schedule_form_table[] = {
#define SCHEDULE(name) &schedule_form_##name,
#include "workloads/schedules.def"
#undef SCHEDULE
};

const uint32_t schedule_form_count = sizeof schedule_form_table / sizeof *schedule_form_table;

const char *schedule_kind_letter(enum schedule_kind kind)
{
    static const char *const letters[] = {
#define X(name, letter, text) letter,
        SCHEDULE_KIND_TABLE(X)
#undef X
    };
    SIM_ASSERT((uint32_t)kind < SCHEDULE_KIND_COUNT);
    return letters[kind];
}

const char *schedule_kind_name(enum schedule_kind kind)
{
    static const char *const names[] = {
#define X(name, letter, text) text,
        SCHEDULE_KIND_TABLE(X)
#undef X
    };
    SIM_ASSERT((uint32_t)kind < SCHEDULE_KIND_COUNT);
    return names[kind];
}

const char *schedule_act_word(enum schedule_act act)
{
    static const char *const words[] = {
#define X(name, word) word,
        SCHEDULE_ACT_TABLE(X)
#undef X
    };
    SIM_ASSERT((uint32_t)act < SCHEDULE_ACT_COUNT);
    return words[act];
}

void schedule_add(struct schedule_list *list, enum schedule_kind kind, uint32_t stage,
                  uint32_t microbatch)
{
    if (microbatch >= list->microbatch_count) return;
    SIM_ASSERT(list->count < list->capacity);
    list->pass[list->count++] = (struct schedule_pass){
        .microbatch = microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
}

void schedule_add_pair(struct schedule_list *list, uint32_t forward_stage,
                       uint32_t forward_microbatch, uint32_t backward_stage,
                       uint32_t backward_microbatch)
{
    SIM_ASSERT(forward_microbatch < list->microbatch_count);
    schedule_add(list, SCHEDULE_FORWARD, forward_stage, forward_microbatch);
    list->pass[list->count - 1].paired = true;
    schedule_add(list, SCHEDULE_BACKWARD, backward_stage, backward_microbatch);
}

const struct schedule_form *schedule_form_at(uint32_t place)
{
    SIM_ASSERT(place < schedule_form_count);
    for (uint32_t i = 0; i < schedule_form_count; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < schedule_form_count; k++)
            before += strcmp(schedule_form_table[k]->name, schedule_form_table[i]->name) < 0;
        if (before == place) return schedule_form_table[i];
    }
    return NULL;
}

static bool is_called(const char *name, const char *text, size_t length)
{
    return name != NULL && strlen(name) == length && strncasecmp(name, text, length) == 0;
}

static const struct schedule_form *form_find(const char *text, size_t length)
{
    for (uint32_t i = 0; i < schedule_form_count; i++) {
        const struct schedule_form *const form = schedule_form_table[i];
        if (is_called(form->name, text, length) || is_called(form->pytorch, text, length))
            return form;
    }
    return NULL;
}

enum status schedule_form_parse(const char *text, const char *where,
                                const struct schedule_form **ret_form, uint32_t *ret_chunks,
                                struct error *reterr)
{
    const char *colon = strchr(text, ':');
    size_t const length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    const struct schedule_form *form = form_find(text, length);
    if (form == NULL) {
        const char *names[64] = {NULL};
        SIM_ASSERT(schedule_form_count < sizeof names / sizeof *names);
        for (uint32_t i = 0; i < schedule_form_count; i++) names[i] = schedule_form_at(i)->name;
        return error_set(reterr, STATUS_NOT_FOUND, where, "there is no schedule \"%s\"%s", text,
                         name_offer(text, names, "; the nearest is \"", "\"", NULL).text);
    }
    uint32_t chunks = form->chunks == 0 ? 2 : form->chunks;
    if (colon != NULL) {
        char *end = NULL;
        unsigned long const asked = strtoul(colon + 1, &end, 10);
        if (form->chunks != 0)
            return error_set(reterr, STATUS_INVALID, where,
                             "\"%s\" always has %u %s a rank; write \"%s\"", form->name,
                             form->chunks, form->chunks == 1 ? "stage" : "stages", form->name);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || asked < 2 ||
            asked > SCHEDULE_CHUNKS_MAX)
            return error_set(reterr, STATUS_INVALID, where,
                             "\"%s\": stages a rank are a number from 2 to %d, as in \"%s:2\"",
                             text, SCHEDULE_CHUNKS_MAX, form->name);
        chunks = (uint32_t)asked;
    }
    *ret_form = form;
    *ret_chunks = chunks;
    return STATUS_OK;
}

enum status schedule_request_check(const struct schedule_form *form,
                                   const struct schedule_request *request, const char *where,
                                   struct error *reterr)
{
    uint64_t const stages = (uint64_t)request->rank_count * request->chunk_count;
    if (request->rank_count < 1 || request->rank_count > SCHEDULE_RANKS_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%u ranks are not between 1 and %d",
                         request->rank_count, SCHEDULE_RANKS_MAX);
    if (request->microbatch_count < 1 || request->microbatch_count > SCHEDULE_MICROBATCHES_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%u microbatches are not between 1 and %d",
                         request->microbatch_count, SCHEDULE_MICROBATCHES_MAX);
    if (stages > SCHEDULE_STAGES_MAX ||
        stages * request->microbatch_count * 3 > SCHEDULE_PASSES_MAX)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%u ranks of %u stages with %u microbatches are more than %d passes",
                         request->rank_count, request->chunk_count, request->microbatch_count,
                         SCHEDULE_PASSES_MAX);
    char buffer[320];
    const char *reason =
        form->refuses == NULL ? NULL : form->refuses(request, buffer, sizeof buffer);
    if (reason == NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where, "%s: %s", form->name, reason);
}

/* Where stages lie: round the ranks, or down and up again; a second copy from the other end. */
static void stage_ranks_fill(const struct schedule_form *form, struct schedule *schedule)
{
    uint32_t const p = schedule->rank_count, stages = schedule->stage_count;
    for (uint32_t s = 0; s < stages; s++) {
        uint32_t const place = form->from_both_ends && s >= p ? 2 * p - 1 - s : s % p;
        schedule->rank_of[s] = (uint16_t)place;
        if (form->model_replicas == 2) schedule->rank_of[stages + s] = (uint16_t)(p - 1 - place);
    }
}

enum status schedule_times_check(const struct schedule_times *times, uint64_t passes,
                                 const char *where, struct error *reterr)
{
    const int64_t each[] = {times->forward, times->input, times->weight,
                            times->pair,    times->hop,   times->backward};
    units_wide sum = 0;
    for (uint32_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (each[i] < 0) return error_set(reterr, STATUS_INVALID, where, "a duration is negative");
        sum += (uint64_t)each[i];
    }
    if (sum * passes > (units_wide)TIME_PS_END)
        return error_set(reterr, STATUS_LIMIT, where, "the durations of %llu passes are too long",
                         (unsigned long long)passes);
    return STATUS_OK;
}

enum status schedule_places(struct arena *arena, const struct schedule_form *form,
                            const struct schedule_request *request, const char *where,
                            struct schedule *ret_schedule, struct error *reterr)
{
    uint32_t const chunks = request->chunk_count;
    void *memory = NULL;
    STATUS_TRY(schedule_request_check(form, request, where, reterr)); /* Before memory. */
    struct schedule schedule = {
        .name = form->chunks == 0 ? arena_format(arena, "%s:%u", form->name, chunks) : form->name,
        .rank_count = request->rank_count,
        .stage_count = request->rank_count * chunks,
        .microbatch_count = request->microbatch_count,
        .chunk_count = chunks,
        .copy_count = form->model_replicas,
    };
    if (schedule.name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for a name");
    STATUS_TRY(arena_try(arena, (uint64_t)form->model_replicas * schedule.stage_count,
                         sizeof *schedule.rank_of, &memory, reterr));
    schedule.rank_of = memory;
    stage_ranks_fill(form, &schedule);
    *ret_schedule = schedule;
    return STATUS_OK;
}

enum status schedule_build(struct arena *arena, const struct schedule_form *form,
                           const struct schedule_request *asked, const char *where,
                           struct schedule *ret_schedule, struct error *reterr)
{
    struct schedule_request request = *asked;
    if (request.chunk_count == 0) request.chunk_count = form->chunks == 0 ? 2 : form->chunks;
    uint32_t const p = request.rank_count, m = request.microbatch_count;
    void *memory = NULL;
    struct schedule schedule;
    STATUS_TRY(schedule_places(arena, form, &request, where, &schedule, reterr));
    STATUS_TRY(schedule_times_check(&request.times, (uint64_t)3 * p * m * request.chunk_count,
                                    where, reterr));
    STATUS_TRY(arena_try(arena, p, sizeof *schedule.rank, &memory, reterr));
    schedule.rank = memory;
    STATUS_TRY(arena_try(arena, p, sizeof(struct schedule_list), &memory, reterr));
    struct schedule_list *lists = memory;
    for (uint32_t r = 0; r < p; r++) {
        uint32_t const capacity = 3 * m * request.chunk_count;
        STATUS_TRY(cancel_check(request.cancel, reterr));
        STATUS_TRY(arena_try(arena, capacity, sizeof *lists->pass, &memory, reterr));
        lists[r] = (struct schedule_list){memory, 0, capacity, m};
        if (form->list != NULL) form->list(&request, r, &lists[r]);
    }
    if (form->list_all != NULL) STATUS_TRY(form->list_all(arena, &request, lists, reterr));
    for (uint32_t r = 0; r < p; r++)
        schedule.rank[r] = (struct schedule_rank){.pass = lists[r].pass, .count = lists[r].count};
    STATUS_TRY(schedule_check(&schedule, request.cancel, where, reterr));
    *ret_schedule = schedule;
    return STATUS_OK;
}
