/* The schedule of a step's pipeline. */
#include "sim/schedule/schedule.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_play.h"
#include "sim/schedule/schedule_traffic.h"
#include "sim/step/pass_times.h"
#include "sim/step/workload.h"

static const char where[] = "/workload/schedule";

static enum status given_check(const struct workload_plan *plan, uint32_t ranks,
                               struct error *reterr)
{
    const struct schedule *given = plan->stages.given;
    if (given->rank_count != ranks)
        return error_set(reterr, STATUS_INVALID, where,
                         "%s has %u ranks, where the mesh has %u of pp", given->name,
                         given->rank_count, ranks);
    if (given->microbatch_count != plan->accumulate)
        return error_set(reterr, STATUS_INVALID, where,
                         "%s has %u microbatches, where \"accumulate\" is %u", given->name,
                         given->microbatch_count, plan->accumulate);
    return STATUS_OK;
}

/* When weights are gathered, unless each pass does or the file says. */
static enum status gathers_add(struct arena *arena, const struct workload_plan *plan,
                               struct schedule *schedule, struct error *reterr)
{
    if (schedule->has_gathers || plan->stages.regather == WORKLOAD_REGATHER_MICROBATCH)
        return STATUS_OK;
    if (plan->stages.regather == WORKLOAD_REGATHER_STEP)
        return schedule_gather_once(arena, schedule, reterr);
    return schedule_gather_ahead(arena, schedule, SCHEDULE_STAGES_KEPT, reterr);
}

const char *workload_schedule_name(const struct workload_plan *plan)
{
    return plan->stages.schedule == NULL ? WORKLOAD_SCHEDULE_DEFAULT : plan->stages.schedule;
}

/* The plan's, by its name in the catalogue. */
static enum status form_of(const struct workload_plan *plan, const struct schedule_form **ret_form,
                           uint32_t *ret_chunks, struct error *reterr)
{
    return schedule_form_parse(workload_schedule_name(plan), where, ret_form, ret_chunks, reterr);
}

enum status workload_places(struct arena *arena, const struct workload_plan *plan, uint32_t ranks,
                            struct schedule *ret_schedule, struct error *reterr)
{
    const struct schedule_form *form = NULL;
    struct schedule_request request = {.rank_count = ranks,
                                       .microbatch_count = plan->accumulate,
                                       .held_max = plan->stages.held_max};
    if (plan->stages.given != NULL) {
        STATUS_TRY(given_check(plan, ranks, reterr));
        *ret_schedule = *plan->stages.given;
        return STATUS_OK;
    }
    STATUS_TRY(form_of(plan, &form, &request.chunk_count, reterr));
    return schedule_places(arena, form, &request, where, ret_schedule, reterr);
}

/* The n-th microbatch of a list: from one on, round; of a generation's ends the prefill of all
 * batches, and behind it the step of each. */
static uint32_t microbatch_at(const struct schedule *schedule, uint32_t first, uint32_t n)
{
    uint32_t const passes = schedule->answer_passes;
    if (passes == 0) return (first + n) % schedule->microbatch_count;
    uint32_t const asking = passes - 1, steps = schedule->microbatch_count / passes * asking;
    return n < steps ? n / asking * passes + n % asking : (n - steps) * passes + asking;
}

/* A stage on each rank: each microbatch goes forward, and in training, where there is one stage,
 * back at once. Decodes have a microbatch for each rank, which begins with its own: the one that is
 * behind the first by as many as its stage is before. */
static enum status straight(struct arena *arena, const struct workload_plan *plan, uint32_t ranks,
                            struct schedule *ret_schedule, struct error *reterr)
{
    uint32_t const microbatches = workload_microbatches(plan);
    bool const trains = !workload_serves(plan);
    void *memory = NULL;
    *ret_schedule =
        (struct schedule){.name = WORKLOAD_SCHEDULE_DEFAULT,
                          .rank_count = ranks,
                          .stage_count = ranks,
                          .microbatch_count = microbatches,
                          .chunk_count = 1,
                          .copy_count = 1,
                          .goes_round = !trains && inference_goes_round(&plan->inference)};
    if (!trains && inference_follows(&plan->inference))
        ret_schedule->answer_passes = inference_batch_passes(&plan->inference);
    STATUS_TRY(arena_try(arena, ranks, sizeof *ret_schedule->rank_of, &memory, reterr));
    ret_schedule->rank_of = memory;
    STATUS_TRY(arena_try(arena, ranks, sizeof *ret_schedule->rank, &memory, reterr));
    ret_schedule->rank = memory;
    for (uint32_t r = 0; r < ranks; r++) {
        struct schedule_list list = {.capacity = 2 * microbatches,
                                     .microbatch_count = microbatches};
        uint32_t const first = ret_schedule->goes_round ? (microbatches - r % microbatches) : 0;
        STATUS_TRY(arena_try(arena, list.capacity, sizeof *list.pass, &memory, reterr));
        list.pass = memory;
        for (uint32_t m = 0; m < microbatches; m++) {
            uint32_t const at = microbatch_at(ret_schedule, first, m);
            if (!trains && inference_pass_is_empty(plan, at)) continue;
            schedule_add(&list, SCHEDULE_FORWARD, r, at);
            if (trains) schedule_add(&list, SCHEDULE_BACKWARD, r, m);
        }
        ret_schedule->rank_of[r] = (uint16_t)r;
        ret_schedule->rank[r] = (struct schedule_rank){.pass = list.pass, .count = list.count};
    }
    return STATUS_OK;
}

enum status workload_schedule(struct arena *arena, const struct workload_plan *plan,
                              const struct machine *machine, const struct mesh *mesh,
                              struct schedule *ret_schedule, struct error *reterr)
{
    const struct schedule_form *form = NULL;
    struct schedule_request request = {.rank_count = mesh->axis[MESH_PP].size,
                                       .microbatch_count = plan->accumulate,
                                       .held_max = plan->stages.held_max,
                                       .cancel = plan->cancel};
    if (request.rank_count == 1 || workload_serves(plan))
        return straight(arena, plan, request.rank_count, ret_schedule, reterr);
    if (plan->stages.given != NULL) {
        STATUS_TRY(given_check(plan, request.rank_count, reterr));
        *ret_schedule = *plan->stages.given;
    } else {
        STATUS_TRY(form_of(plan, &form, &request.chunk_count, reterr));
        if (form->heeds_times) {
            void *memory = NULL;
            uint32_t const ranks = request.rank_count;
            STATUS_TRY(arena_try(arena, ranks, sizeof(struct schedule_kept), &memory, reterr));
            STATUS_TRY(pass_times_estimate(arena, plan, machine, mesh, &request.times, reterr));
            STATUS_TRY(pass_memory_estimate(plan, machine, mesh, ranks, memory, &request.kept_ppm,
                                            reterr));
            request.kept_of_rank = memory;
        }
        STATUS_TRY(schedule_build(arena, form, &request, where, ret_schedule, reterr));
    }
    return gathers_add(arena, plan, ret_schedule, reterr);
}

/* Of a file, which may lay stages anywhere. */
static struct workload_borders given_borders(const struct schedule *given)
{
    uint32_t pair[SCHEDULE_RANKS_MAX] = {0}, rank[SCHEDULE_RANKS_MAX] = {0};
    struct workload_borders most = {0};
    for (uint32_t i = 0; i + 1 < given->copy_count * given->stage_count; i++) {
        uint32_t const one = given->rank_of[i], other = given->rank_of[i + 1];
        uint32_t const low = one < other ? one : other;
        uint32_t const apart = one + other - 2 * low;
        if (apart == 0 || (i + 1) % given->stage_count == 0) continue; /* None; the copy's last. */
        pair[low] += apart == 1;
        rank[one]++;
        rank[other]++;
        most.way += apart;
    }
    for (uint32_t r = 0; r < given->rank_count; r++) {
        most.pair = pair[r] > most.pair ? pair[r] : most.pair;
        most.rank = rank[r] > most.rank ? rank[r] : most.rank;
    }
    return most;
}

/* Of the catalogue: round the ranks, or down and up again, as many to either side as a rank has
 * stages; from the last rank of a line to the first it is farthest. */
struct workload_borders workload_borders(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return (struct workload_borders){0};
    if (plan->stages.given != NULL) return given_borders(plan->stages.given);
    if (form_of(plan, &form, &chunks, &unused) != STATUS_OK)
        return (struct workload_borders){0}; /* Refused where built. */
    uint32_t const pair = chunks * form->model_replicas;
    return (struct workload_borders){
        .pair = pair,
        .rank = ranks > 2 ? 2 * pair : pair,
        .way = (2 * chunks - 1) * form->model_replicas * (ranks - 1),
    };
}

/* What the model's input gradients leave, a mean of its layers. */
static enum status mean_kept(struct arena *arena, const struct workload_plan *plan,
                             const struct machine *machine, const struct mesh *mesh,
                             uint32_t stage_count, uint32_t *ret_kept_ppm, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, stage_count, sizeof(struct schedule_kept), &memory, reterr));
    return pass_memory_estimate(plan, machine, mesh, stage_count, memory, ret_kept_ppm, reterr);
}

/* By its lists; of one that is built for times and memory, what it announces. */
static enum status lists_read(struct arena *arena, const struct workload_plan *plan,
                              const struct machine *machine, const struct mesh *mesh,
                              struct workload_lists *ret_lists, struct error *reterr)
{
    const struct schedule_form *form = NULL;
    struct schedule_request request = {.rank_count = mesh->axis[MESH_PP].size,
                                       .microbatch_count = plan->accumulate,
                                       .held_max = plan->stages.held_max};
    struct schedule built;
    const struct schedule *schedule = plan->stages.given;
    uint32_t kept_ppm = 0;
    if (schedule == NULL) {
        STATUS_TRY(form_of(plan, &form, &request.chunk_count, reterr));
        if (form->heeds_times) {
            STATUS_TRY(mean_kept(arena, plan, machine, mesh, request.rank_count, &request.kept_ppm,
                                 reterr));
            ret_lists->held_ppm = (uint64_t)form->peak(&request, 0).whole * PPM_ONE;
            return STATUS_OK;
        }
        STATUS_TRY(schedule_build(arena, form, &request, where, &built, reterr));
        schedule = &built;
    }
    if (schedule_is_split(schedule))
        STATUS_TRY(mean_kept(arena, plan, machine, mesh, schedule->stage_count, &kept_ppm, reterr));
    ret_lists->held_ppm = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        const struct schedule_rank *rank = &schedule->rank[r];
        uint64_t const held =
            schedule_peak_ppm(schedule, r, kept_ppm) / schedule_rank_chunks(schedule, r);
        ret_lists->held_ppm = held > ret_lists->held_ppm ? held : ret_lists->held_ppm;
        for (uint32_t i = 0; i < rank->count; i++)
            ret_lists->head_returns += rank->pass[i].kind == SCHEDULE_FORWARD &&
                                       rank->pass[i].stage + 1u == schedule->stage_count &&
                                       !schedule_turns_at_once(rank, i);
    }
    return STATUS_OK;
}

enum status workload_lists_read(const struct workload_plan *plan, const struct machine *machine,
                                const struct mesh *mesh, struct workload_lists *ret_lists,
                                struct error *reterr)
{
    *ret_lists = (struct workload_lists){.held_ppm = PPM_ONE};
    if (mesh->axis[MESH_PP].size == 1 || workload_serves(plan)) return STATUS_OK;
    struct arena *arena = arena_create(0);
    if (arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, where, "no memory to count what ranks hold");
    enum status const status = lists_read(arena, plan, machine, mesh, ret_lists, reterr);
    arena_destroy(arena);
    return status;
}

uint32_t workload_model_replicas(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return 1;
    if (plan->stages.given != NULL) return plan->stages.given->copy_count;
    if (form_of(plan, &form, &chunks, &unused) != STATUS_OK) return 1; /* Refused where built. */
    return form->model_replicas;
}

bool workload_ends_meet(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule *given = plan->stages.given;
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return true;
    if (given != NULL) {
        const uint16_t *last = &given->rank_of[given->stage_count - 1];
        if (given->copy_count == 1) return given->rank_of[0] == *last;
        return given->rank_of[0] == last[given->stage_count] &&
               given->rank_of[given->stage_count] == *last;
    }
    if (form_of(plan, &form, &chunks, &unused) != STATUS_OK) return false; /* As above. */
    return form->from_both_ends || form->model_replicas == 2;
}
