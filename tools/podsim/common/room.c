#include "tools/podsim/common/room.h"

#include <math.h>

#include "sim/base/arena.h"
#include "sim/program/least_memory.h"
#include "tools/podsim/common/worker.h"

enum {
    PLAYED_EVENTS_MAX = 1000000,
    SAMPLED_PART = 128, /* Of a batch that is an estimate: fewer sequences are none. */
    DRAWN_APART = 8, /* Among 8·tp batches with drawn tokens, all are refused once in e^8 times. */
};

struct room_search {
    struct session session; /* Whose batches are looked at; it borrows all. */
    struct arena *arena;    /* Of lengths. */
    struct lengths_drawn contexts, prompts;
    struct worker *worker;
    uint64_t events_most; /* Of a step that is simulated. */
    double hbm_bytes;     /* Of the search that goes on. */
    double peak_bytes;    /* Of the step that is simulated, up to now. */
    bool exceeds, is_long;
    bool is_estimate;           /* Some step was too long, so that its peak is not known. */
    uint64_t refused;           /* The smallest batch that was refused; 0: none. */
    struct error refused_error; /* Why the smallest batch was refused. */
    uint64_t apart; /* Of as many successive batches some are not refused, if any batch is not. */
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct room_search *search = owner;
    search->peak_bytes = (double)progress->peak_bytes;
    search->exceeds = search->peak_bytes > search->hbm_bytes;
    search->is_long = !search->exceeds && progress->events > search->events_most;
    return !search->exceeds && !search->is_long && !worker_stops(search->worker);
}

/* A step ends as soon as it holds too much. One step is simulated: memory of further steps does not
 * count in a run either. Engines look at a step after different events, and what it held when it
 * was stopped depends on that, so all steps are simulated by one engine. For the same reason a step
 * that ends between two looks counts by all its events. */
static enum status peak_find(struct room_search *search, struct session *part,
                             struct batch_held *held, struct error *reterr)
{
    struct replay_options const options = {
        .watch_memory = true, .watch = watch, .watch_owner = search};
    struct session_source const folded = {.full = false};
    search->exceeds = search->is_long = false;
    part->scenario.run.steps = 1;
    part->scenario.run.engine = "fast";
    enum status const status = session_replay(part, &folded, &options, reterr);
    held->is_peak = !search->exceeds;
    if (status == STATUS_OK) {
        held->bytes = (double)part->trace.memory.peak_bytes;
        search->is_long = part->trace.work.events > search->events_most;
    }
    search->is_estimate = search->is_estimate || search->is_long;
    if (!search->exceeds && !search->is_long) return status;
    held->bytes = fmax(held->bytes, search->peak_bytes);
    return STATUS_OK;
}

/* What it holds at least, and if `plays` and that is not all, its peak. */
static enum status built_take(struct room_search *search, bool plays, struct session *part,
                              struct batch_held *held, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(least_memory_of(part->arena, &part->program, &least, reterr));
    held->bytes = (double)least.total_bytes;
    held->is_peak = least.is_peak;
    if (!plays || held->is_peak || held->bytes > search->hbm_bytes) return STATUS_OK;
    return peak_find(search, part, held, reterr);
}

enum status room_holds(struct session *built, double hbm_bytes, uint64_t events_most,
                       struct worker *worker, struct room_held *ret_held, struct error *reterr)
{
    struct room_search search = {
        .worker = worker, .events_most = events_most, .hbm_bytes = hbm_bytes};
    struct batch_held held;
    STATUS_TRY(built_take(&search, true, built, &held, reterr));
    STATUS_TRY(worker_check(worker, reterr));
    *ret_held = (struct room_held){
        .bytes = held.bytes, .fits = held.bytes <= hbm_bytes, .is_estimate = search.is_estimate};
    return STATUS_OK;
}

static bool ends_search(enum status status)
{
    return status == STATUS_NO_MEMORY || status == STATUS_INTERRUPTED;
}

/* Builds the largest batch up to `batch` that is not refused, and returns it by `ret_batch`. `part`
 * has to be closed, also after an error. */
static enum status below_build(const struct room_search *search, uint64_t batch, bool plays,
                               struct session *part, uint64_t *ret_batch, struct error *reterr)
{
    uint64_t const end = batch > search->apart ? batch - search->apart : 0;
    for (*ret_batch = batch;; --*ret_batch) {
        enum status const status =
            session_batch_build(&search->session, *ret_batch, plays, part, reterr);
        if (status == STATUS_OK || ends_search(status) || *ret_batch <= end + 1) return status;
        session_close(part);
    }
}

/* A batch that ranks do not divide counts with the memory of the next batch below that they divide.
 * So memory never shrinks as the batch grows. */
static enum status batch_take(struct room_search *search, bool plays, struct session *part,
                              struct batch_held *held, struct error *reterr)
{
    uint64_t ignored_batch = 0;
    STATUS_TRY(below_build(search, held->batch, plays, part, &ignored_batch, reterr));
    return built_take(search, plays, part, held, reterr);
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
    if (ends_search(status)) return status;
    if (status == STATUS_OK) return STATUS_OK;
    held->bytes = INFINITY; /* It cannot be. */
    if (search->refused == 0 || held->batch < search->refused) {
        search->refused = held->batch;
        search->refused_error = *reterr;
    }
    return STATUS_OK;
}

/* Whether another batch is one key more: the sequences that it counts have no lengths of their own.
 */
static bool can_change(const struct session *session)
{
    const struct workload_plan *plan = &session->scenario.workload;
    const struct inference_plan *inference = &plan->inference;
    bool const decodes = inference_batch_part(inference) == INFERENCE_DECODES;
    const struct lengths *lengths =
        decodes ? &inference->decodes.context : &inference->prompts.tokens;
    return lengths->count == 1 || lengths->of.mean != 0;
}

/* Each batch has other prompts, in hundreds of passes: what some of them hold has to do. */
static bool is_sampled(const struct workload_plan *plan)
{
    return plan->inference.prompts.tokens.of.mean != 0 && plan->inference.prompts.chunk != 0;
}

static bool splits_tokens(const struct session *session)
{
    return session->scenario.workload.activations == WORKLOAD_ACTIVATIONS_TOKENS &&
           session->mesh.axis[MESH_TP].size > 1;
}

/* Whether the tokens of prompts are drawn, so that ranks divide their sum only for some numbers of
 * sequences. */
static bool draws_tokens(const struct workload_plan *plan)
{
    return inference_batch_part(&plan->inference) == INFERENCE_PROMPTS &&
           plan->inference.prompts.tokens.of.mean != 0;
}

/* A step is refused if the ranks of tp do not divide the tokens of a data rank, or of a rank of cp.
 * With equal lengths, if a batch is not refused, the batch with tp sequences more on each of these
 * ranks and in each stage's batch is not refused either. With drawn lengths about every tp-th
 * number of sequences is not refused. */
static uint64_t apart_of(const struct session *session)
{
    const struct mesh_axis *axis = session->mesh.axis;
    uint64_t const often = draws_tokens(&session->scenario.workload) ? DRAWN_APART : 1;
    if (!splits_tokens(session)) return 1;
    return often * axis[MESH_DP].size * axis[MESH_FSDP].size * axis[MESH_EP].size *
           axis[MESH_CP].size * axis[MESH_PP].size * axis[MESH_TP].size;
}

/* Puts the next batch below that is not refused in the place of a batch that is. */
static enum status taken_of(const struct room_search *search, uint64_t *batch, struct error *reterr)
{
    struct session part;
    uint64_t taken = 0;
    if (search->apart == 1 || *batch == 0) return STATUS_OK;
    enum status const status = below_build(search, *batch, false, &part, &taken, reterr);
    session_close(&part);
    if (status == STATUS_OK) *batch = taken;
    return status;
}

/* As largest_batch_find(), for a batch that is not refused. Where ranks of tp divide the tokens of
 * only some batches, that is not told from other reasons to refuse the next one. */
static enum status search_for(struct room_search *owner, struct largest_batch *search,
                              double hbm_bytes, uint64_t first, uint64_t *ret_batch,
                              struct report_refused *ret_refused, struct error *reterr)
{
    STATUS_TRY(largest_batch_find(search, hbm_bytes, first, ret_batch, reterr));
    if (owner->apart == 1 && search->refused != 0 && search->refused == owner->refused) {
        ret_refused->batch = search->refused;
        ret_refused->reason = arena_text(owner->session.arena, owner->refused_error.message);
        if (ret_refused->reason == NULL) return error_no_memory(reterr, "");
    }
    return taken_of(owner, ret_batch, reterr);
}

/* Whether experts are drawn, which takes long for the tokens of a large batch. */
static bool draws_experts(const struct workload_plan *plan)
{
    return plan->routing.skew_ppm != 0;
}

/* To be closed whatever is returned. */
static enum status search_begin(struct room_search *owner, const struct session *session,
                                struct largest_batch *ret_search, struct error *reterr)
{
    const struct workload_held_anyway *held = &session->roofline.counts.held_anyway;
    struct inference_plan *plan = &owner->session.scenario.workload.inference;
    bool const sampled = is_sampled(&session->scenario.workload);
    owner->session = *session;
    owner->arena = arena_create(0);
    if (owner->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for lengths");
    owner->contexts = owner->prompts = (struct lengths_drawn){.arena = owner->arena};
    plan->decodes.context.drawn = &owner->contexts;
    plan->prompts.tokens.drawn = &owner->prompts;
    plan->samples_passes = sampled;
    owner->session.scenario.workload.routing.skew_ppm = 0;
    owner->is_estimate = sampled || draws_experts(&session->scenario.workload) ||
                         (splits_tokens(session) && draws_tokens(&session->scenario.workload));
    owner->apart = apart_of(session);
    *ret_search = (struct largest_batch){.step = held->batches * held->keepers,
                                         .part = sampled ? SAMPLED_PART : 0,
                                         .held_find = held_find,
                                         .owner = owner};
    return STATUS_OK;
}

static void search_end(struct room_search *owner)
{
    arena_destroy(owner->arena);
}

/* Of prompts as long as the mean, what prompts that happen to be drawn let expect. */
static uint64_t of_the_mean(const struct workload_plan *plan, uint64_t batch)
{
    const struct lengths *prompts = &plan->inference.prompts.tokens;
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < prompts->count; i++) tokens += prompts->tokens[i];
    double const mean = (double)tokens / prompts->count;
    return (uint64_t)fmin((double)batch * mean / (double)prompts->of.mean, LARGEST_BATCH_MOST);
}

static enum status largest_search(struct room_search *owner, const struct session *session,
                                  const struct room_known *known,
                                  struct report_largest *ret_largest, struct error *reterr)
{
    const struct workload_plan *plan = &session->scenario.workload;
    struct largest_batch search;
    uint64_t const hbm_bytes = session->machine.chip.hbm_capacity_bytes;
    struct report_largest first = known->expected;
    STATUS_TRY(search_begin(owner, session, &search, reterr));
    for (uint32_t i = 0; i < known->count && !draws_experts(plan); i++)
        largest_batch_add(&search, &known->held[i]);
    if (is_sampled(plan)) first.batch = of_the_mean(plan, first.batch);
    STATUS_TRY(search_for(owner, &search, (double)hbm_bytes, first.batch, &ret_largest->batch,
                          &ret_largest->refused, reterr));
    if (known->expected.is)
        STATUS_TRY(search_for(owner, &search, (double)chip_gib_bytes(hbm_bytes), first.batch_of_gib,
                              &ret_largest->batch_of_gib, &ret_largest->refused_of_gib, reterr));
    ret_largest->is = true;
    ret_largest->is_estimate = owner->is_estimate;
    return STATUS_OK;
}

enum status room_find_largest(const struct session *session, const struct room_known *known,
                              struct worker *worker, struct report_largest *ret_largest,
                              struct error *reterr)
{
    struct room_search owner = {.worker = worker, .events_most = PLAYED_EVENTS_MAX};
    if (!can_change(session)) return STATUS_OK;
    enum status const status = largest_search(&owner, session, known, ret_largest, reterr);
    search_end(&owner);
    return status;
}
