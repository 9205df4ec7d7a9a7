#include "tools/podsim/run/room.h"

#include <math.h>

#include "tools/podsim/common/largest_batch.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise.h"

enum { PLAYED_EVENTS_MAX = 1000000 };

struct room_search {
    const struct session *session;
    struct worker *worker;
    uint64_t events_most; /* Of a step that is played. */
    bool estimates;       /* Goes on where a step has more: else it ends. */
    double hbm_bytes;     /* Of the search that goes on. */
    double peak_bytes;    /* Of the step that is played, up to now. */
    bool exceeds, is_long;
    bool is_estimate; /* Some step was too long, so that its peak is not known. */
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct room_search *search = owner;
    search->peak_bytes = (double)progress->peak_bytes;
    search->exceeds = search->peak_bytes > search->hbm_bytes;
    search->is_long = !search->exceeds && progress->events > search->events_most;
    return !search->exceeds && !search->is_long && !worker_stops(search->worker);
}

/* A step ends as soon as it holds too much. */
static enum status peak_find(struct room_search *search, struct session *part,
                             struct batch_held *held, struct error *reterr)
{
    struct replay_options const options = {
        .watch_memory = true, .watch = watch, .watch_owner = search};
    struct session_source const folded = {.full = false};
    search->exceeds = search->is_long = false;
    enum status const status = session_replay(part, &folded, &options, reterr);
    held->is_peak = !search->exceeds;
    if (status == STATUS_OK) held->bytes = (double)part->trace.memory.peak_bytes;
    search->is_estimate = search->is_estimate || search->is_long;
    if (!search->exceeds && !(search->is_long && search->estimates)) return status;
    held->bytes = fmax(held->bytes, search->peak_bytes);
    return STATUS_OK;
}

static enum status batch_take(struct room_search *search, bool plays, struct session *part,
                              struct batch_held *held, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(session_batch_build(search->session, held->batch, plays, part, reterr));
    STATUS_TRY(least_memory_of(part->arena, &part->program, &least, reterr));
    held->bytes = (double)least.total_bytes;
    held->is_peak = least.is_peak;
    if (!plays || held->is_peak || held->bytes > search->hbm_bytes) return STATUS_OK;
    return peak_find(search, part, held, reterr);
}

static enum status held_find(void *owner, double hbm_bytes, bool plays, struct batch_held *held,
                             struct error *reterr)
{
    struct room_search *search = owner;
    struct session part;
    search->hbm_bytes = hbm_bytes;
    enum status const status = batch_take(search, plays, &part, held, reterr);
    session_close(&part);
    STATUS_TRY(worker_check(search->worker, reterr));
    if (status == STATUS_NO_MEMORY || status == STATUS_INTERRUPTED) return status;
    if (status != STATUS_OK) held->bytes = INFINITY; /* It cannot be. */
    return STATUS_OK;
}

/* Whether another batch is one key more, and building its step takes no longer than this one. */
static bool can_change(const struct session *session)
{
    const struct workload_plan *plan = &session->scenario.workload;
    const struct lengths *lengths[] = {&plan->inference.decodes.context,
                                       &plan->inference.prompts.tokens};
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i]->count > 1 && lengths[i]->of.mean == 0) return false;
    return plan->routing.skew_ppm == 0;
}

static struct largest_batch search_of(struct room_search *owner)
{
    const struct workload_held_anyway *held = &owner->session->roofline.counts.held_anyway;
    return (struct largest_batch){
        .step = held->batches * held->keepers, .held_find = held_find, .owner = owner};
}

static uint64_t batch_of(const struct session *session)
{
    const struct inference_plan *plan = &session->scenario.workload.inference;
    return inference_batch_part(plan) == INFERENCE_DECODES ? plan->decodes.count
                                                           : plan->prompts.count;
}

enum status room_find(const struct session *session, struct worker *worker,
                      struct inference_room *room, struct error *reterr)
{
    struct room_search owner = {
        .session = session, .worker = worker, .events_most = ADVISE_EVENTS_MAX};
    struct largest_batch search = search_of(&owner);
    struct batch_held const own = {batch_of(session), INFINITY, false};
    double const hbm_bytes = (double)session->machine.chip.hbm_capacity_bytes;
    uint64_t batch = 0;
    if (!can_change(session)) return STATUS_OK;
    largest_batch_add(&search, &own);
    enum status const status = largest_batch_find(&search, hbm_bytes, room->most, &batch, reterr);
    if (owner.is_estimate) return STATUS_OK;
    STATUS_TRY(status);
    *room = (struct inference_room){.least = batch, .most = batch};
    return STATUS_OK;
}

enum status room_find_largest(const struct session *session, const struct least_memory *least,
                              const struct report_largest *expected, struct worker *worker,
                              struct report_largest *ret_largest, struct error *reterr)
{
    struct room_search owner = {
        .session = session, .worker = worker, .events_most = PLAYED_EVENTS_MAX, .estimates = true};
    struct largest_batch search = search_of(&owner);
    uint64_t const hbm_bytes = session->machine.chip.hbm_capacity_bytes;
    struct batch_held const own = {batch_of(session), (double)session->trace.memory.peak_bytes,
                                   true};
    struct batch_held const own_least = {own.batch, (double)least->total_bytes, least->is_peak};
    if (!can_change(session)) return STATUS_OK;
    largest_batch_add(&search, &own_least);
    largest_batch_add(&search, &own);
    STATUS_TRY(largest_batch_find(&search, (double)hbm_bytes, expected->batch, &ret_largest->batch,
                                  reterr));
    STATUS_TRY(largest_batch_find(&search, (double)chip_gib_bytes(hbm_bytes),
                                  expected->batch_of_gib, &ret_largest->batch_of_gib, reterr));
    ret_largest->is = true;
    ret_largest->is_estimate = owner.is_estimate;
    return STATUS_OK;
}
