#include "tools/podsim/run/room.h"

#include <stdio.h>

#include "sim/program/least_memory.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise.h"

enum { SETTING_BYTES = 48 };

struct room_search {
    const struct session_source *source;
    const struct session *session;
    struct worker *worker;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct room_search *search = owner;
    search->too_long = progress->events > ADVISE_EVENTS_MAX;
    return !search->too_long && !worker_stops(search->worker);
}

static enum status peak_find(struct room_search *search, const struct session_source *source,
                             struct session *session, uint64_t *ret_peak_bytes,
                             struct error *reterr)
{
    struct replay_options const options = {.watch = watch, .watch_owner = search};
    struct least_memory least;
    STATUS_TRY(session_build(session, source, SESSION_PROGRAM, reterr));
    STATUS_TRY(least_memory_of(session->arena, &session->program, &least, reterr));
    *ret_peak_bytes = least.total_bytes;
    if (least.is_peak || least.total_bytes > session->machine.chip.hbm_capacity_bytes)
        return STATUS_OK;
    STATUS_TRY(session_replay(session, source, &options, reterr));
    *ret_peak_bytes = session->trace.memory.peak_bytes;
    return STATUS_OK;
}

/* The peak with another batch; of one that cannot fit it may be what is held at least. */
static enum status batch_peak(struct room_search *search, uint64_t batch, uint64_t *ret_peak_bytes,
                              struct error *reterr)
{
    struct session_source source = *search->source;
    struct session session;
    char setting[SETTING_BYTES];
    (void)snprintf(setting, sizeof setting, "/workload/batch=%llu", (unsigned long long)batch);
    source.full = false;
    source.chooser = &search->session->scenario.workload.inference.chooser;
    source.settings[source.setting_count++].text = setting;
    enum status const status = peak_find(search, &source, &session, ret_peak_bytes, reterr);
    session_close(&session);
    STATUS_TRY(worker_check(search->worker, reterr));
    return status;
}

/* 0: the step has two kinds of sequences. */
static uint64_t batch_of(const struct workload_plan *plan)
{
    if (plan->kind == WORKLOAD_MIXED) return 0;
    return plan->kind == WORKLOAD_DECODE ? plan->inference.decodes.count
                                         : plan->inference.prompts.count;
}

/* Between a batch that fits and one that does not: away from what the step's own memory points to
 * by steps that double, and by halves where these lead outside. */
enum status room_find(const struct session_source *source, const struct session *session,
                      struct worker *worker, struct inference_room *room, struct error *reterr)
{
    struct room_search search = {.source = source, .session = session, .worker = worker};
    uint64_t const capacity = session->machine.chip.hbm_capacity_bytes;
    uint64_t fits = 0, unfit = batch_of(&session->scenario.workload), next = room->most;
    if (source->setting_count >= SESSION_SETTINGS_MAX || unfit == 0) return STATUS_OK;
    for (uint64_t step = 1; fits + 1 < unfit; step *= 2) {
        uint64_t peak_bytes = 0;
        if (next <= fits || next >= unfit) next = fits + (unfit - fits) / 2;
        enum status const status = batch_peak(&search, next, &peak_bytes, reterr);
        if (status == STATUS_NO_MEMORY || (status == STATUS_INTERRUPTED && !search.too_long))
            return status;
        if (status != STATUS_OK) return STATUS_OK;
        if (peak_bytes <= capacity) {
            fits = next;
            next = fits + step;
        } else {
            unfit = next;
            next = unfit > step ? unfit - step : 0;
        }
    }
    *room = (struct inference_room){.least = fits, .most = fits};
    return STATUS_OK;
}
