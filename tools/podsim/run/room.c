#include "tools/podsim/run/room.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "tools/podsim/common/largest_batch.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise.h"

enum { SETTING_BYTES = 48, PLAYED_EVENTS_MAX = 1000000 };

struct room_search {
    const struct session_source *source;
    const struct session *session;
    struct worker *worker;
    double more_bytes; /* That a chip holds beyond the least, for each sequence of a pass. */
    bool plays;        /* All batches, not only those that are asked for so. */
    uint64_t events_most;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct room_search *search = owner;
    search->too_long = progress->events > search->events_most;
    return !search->too_long && !worker_stops(search->worker);
}

static uint64_t batch_of(const struct workload_plan *plan)
{
    bool const asks = plan->kind == WORKLOAD_PREFILL || plan->kind == WORKLOAD_GENERATE;
    return asks ? plan->inference.prompts.count : plan->inference.decodes.count;
}

/* Sequences that pass through the layers together: each rank of pp has others. */
static double of_a_pass(const struct workload_plan *plan)
{
    return (double)units_ceil_divide(batch_of(plan), inference_batch_count(&plan->inference));
}

static enum status least_find(const struct room_search *search, struct session *part,
                              struct batch_held *held, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(session_batch_build(search->session, held->batch, part, reterr));
    STATUS_TRY(least_memory_of(part->arena, &part->program, &least, reterr));
    held->bytes =
        (double)least.total_bytes + search->more_bytes * of_a_pass(&part->scenario.workload);
    held->is_peak = least.is_peak;
    return STATUS_OK;
}

static enum status peak_find(struct room_search *search, struct session *session,
                             struct batch_held *held, struct error *reterr)
{
    struct replay_options const options = {.watch = watch, .watch_owner = search};
    struct session_source source = *search->source;
    struct least_memory least;
    char setting[SETTING_BYTES];
    (void)snprintf(setting, sizeof setting, "/workload/batch=%llu",
                   (unsigned long long)held->batch);
    source.full = false;
    source.chooser = &search->session->scenario.workload.inference.chooser;
    source.settings[source.setting_count++].text = setting;
    STATUS_TRY(session_build(session, &source, SESSION_PROGRAM, reterr));
    STATUS_TRY(least_memory_of(session->arena, &session->program, &least, reterr));
    held->bytes = (double)least.total_bytes;
    held->is_peak = least.is_peak;
    if (least.is_peak || least.total_bytes > session->machine.chip.hbm_capacity_bytes)
        return STATUS_OK;
    STATUS_TRY(session_replay(session, &source, &options, reterr));
    held->bytes = (double)session->trace.memory.peak_bytes;
    held->is_peak = true;
    return STATUS_OK;
}

static enum status held_find(void *owner, bool plays, struct batch_held *held, struct error *reterr)
{
    struct room_search *search = owner;
    struct session session;
    enum status const status = plays || search->plays ? peak_find(search, &session, held, reterr)
                                                      : least_find(search, &session, held, reterr);
    session_close(&session);
    STATUS_TRY(worker_check(search->worker, reterr));
    if (status == STATUS_NO_MEMORY || search->too_long) return status;
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

enum status room_find(const struct session_source *source, const struct session *session,
                      struct worker *worker, struct inference_room *room, struct error *reterr)
{
    struct room_search owner = {
        .source = source, .session = session, .worker = worker, .events_most = ADVISE_EVENTS_MAX};
    struct largest_batch search = {
        .hbm_bytes = (double)session->machine.chip.hbm_capacity_bytes,
        .high = {.batch = batch_of(&session->scenario.workload), .bytes = INFINITY},
        .held_find = held_find,
        .owner = &owner};
    if (source->setting_count >= SESSION_SETTINGS_MAX || !can_change(session)) return STATUS_OK;
    enum status const status = largest_batch_find(&search, room->most, true, reterr);
    if (owner.too_long) return STATUS_OK;
    STATUS_TRY(status);
    *room = (struct inference_room){.least = search.low.batch, .most = search.low.batch};
    return STATUS_OK;
}

/* By peaks, where batches may hold more than the least: from what was expected. */
static enum status peaks_search(struct largest_batch *search, const struct batch_held *own,
                                struct error *reterr)
{
    struct room_search *owner = search->owner;
    struct largest_batch played = *search;
    uint64_t const expected = search->low.batch;
    bool const fits = own->bytes <= search->hbm_bytes;
    owner->plays = true;
    played.before = (struct batch_held){.batch = 0};
    played.low = fits ? *own : played.before;
    played.high = fits ? played.before : *own;
    enum status const status = largest_batch_find(&played, expected, false, reterr);
    owner->plays = false;
    if (owner->too_long) return STATUS_OK;
    *search = played;
    return status;
}

enum status room_find_largest(const struct session_source *source, const struct session *session,
                              const struct least_memory *least,
                              const struct report_largest *expected, struct worker *worker,
                              struct report_largest *ret_largest, struct error *reterr)
{
    const struct chip *chip = &session->machine.chip;
    const struct workload_plan *plan = &session->scenario.workload;
    struct batch_held const own = {batch_of(plan), (double)session->trace.memory.peak_bytes, true};
    double const more_bytes = own.bytes - (double)least->total_bytes;
    struct room_search owner = {.source = source,
                                .session = session,
                                .worker = worker,
                                .more_bytes = more_bytes / of_a_pass(plan),
                                .events_most = PLAYED_EVENTS_MAX};
    struct largest_batch search = {
        .hbm_bytes = (double)chip->hbm_capacity_bytes, .held_find = held_find, .owner = &owner};
    if (source->setting_count >= SESSION_SETTINGS_MAX || !can_change(session)) return STATUS_OK;
    *(own.bytes <= search.hbm_bytes ? &search.low : &search.high) = own;
    STATUS_TRY(largest_batch_find(&search, expected->batch, false, reterr));
    if (!least->is_peak) STATUS_TRY(peaks_search(&search, &own, reterr));
    *ret_largest = (struct report_largest){.is = true, .batch = search.low.batch};
    search.hbm_bytes = (double)chip_gib_bytes(chip->hbm_capacity_bytes);
    if (search.high.batch != 0 && search.high.bytes <= search.hbm_bytes) {
        search.before = search.low;
        search.low = search.high;
    }
    search.high = (struct batch_held){.batch = 0};
    STATUS_TRY(largest_batch_find(&search, expected->batch_of_gib, false, reterr));
    ret_largest->batch_of_gib = search.low.batch;
    return STATUS_OK;
}
