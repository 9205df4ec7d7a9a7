/*
 * The automatic list scheduler: a rank that decides begins an input gradient that is ready, else a
 * forward pass if its memory allows, else a weight gradient, else waits for what is known to come
 * first; a few ways to decide when a weight gradient may delay what is about to come are tried.
 * Beside these stand the orders between ZB-H1 and ZB-H2 that memory allows, which look further
 * ahead; the shortest schedule is taken.
 */
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/ramp.h"
#include "sim/schedule/schedule_play.h"

/* What is tried. */
struct policy {
    bool forward_first; /* A forward pass that is ready goes before an input gradient. */
    bool fits_only;     /* A weight gradient begins only if it ends before the next arrival. */
    bool saves_memory;  /* Weight gradients come before forward passes. */
};

enum { NEVER_SHIFT = 62, DECISIONS_A_LOOK = 1024 };
static const int64_t never = INT64_C(1) << NEVER_SHIFT;

struct rank_state {
    uint32_t forward, input, weight; /* Done, or begun. */
    int64_t held_ppm;                /* Of microbatches' activations. */
    int64_t at;                      /* When it decides next; `never`: it waits for others. */
    int64_t begin, end;
};

/* How long a schedule is: first from a rank's first pass to its last, of the rank where that is
 * longest, for optimizers of other ranks may begin before; then to the last pass of all. */
struct length {
    int64_t span, makespan;
};

static const struct length endless = {INT64_MAX, INT64_MAX};

static bool is_shorter(struct length one, struct length other)
{
    return one.span < other.span || (one.span == other.span && one.makespan < other.makespan);
}

static void length_take(struct length *length, int64_t begin, int64_t end)
{
    length->span = end - begin > length->span ? end - begin : length->span;
    length->makespan = end > length->makespan ? end : length->makespan;
}

struct greedy {
    const struct schedule_request *request;
    struct policy policy;
    struct rank_state *rank;
    int64_t *forward_end; /* [rank][microbatch]; `never`: not begun. */
    int64_t *input_end;
    uint32_t *queue; /* A heap of the ranks that decide at an instant, the next at its top. */
    uint32_t queue_count;
    struct schedule_list *lists;
};

/* Ranks that decide at the same instant do so in their order. */
static bool is_before(const struct greedy *greedy, uint32_t rank, uint32_t other)
{
    int64_t const at = greedy->rank[rank].at, other_at = greedy->rank[other].at;
    return at < other_at || (at == other_at && rank < other);
}

static void queue_add(struct greedy *greedy, uint32_t rank)
{
    uint32_t *queue = greedy->queue, place = greedy->queue_count++;
    for (; place > 0 && is_before(greedy, rank, queue[(place - 1) / 2]); place = (place - 1) / 2)
        queue[place] = queue[(place - 1) / 2];
    queue[place] = rank;
}

static uint32_t queue_take(struct greedy *greedy)
{
    uint32_t *queue = greedy->queue, place = 0;
    uint32_t const first = queue[0], last = queue[--greedy->queue_count];
    for (uint32_t below = 1; below < greedy->queue_count; below = 2 * place + 1) {
        if (below + 1 < greedy->queue_count && is_before(greedy, queue[below + 1], queue[below]))
            below++;
        if (!is_before(greedy, queue[below], last)) break;
        queue[place] = queue[below];
        place = below;
    }
    queue[place] = last;
    return first;
}

static const struct schedule_times *times_of(const struct greedy *greedy, uint32_t rank)
{
    return schedule_times_of(&greedy->request->times, rank);
}

static int64_t *end_of(const struct greedy *greedy, int64_t *ends, uint32_t rank, uint32_t b)
{
    return &ends[(uint64_t)rank * greedy->request->microbatch_count + b];
}

/* When the next forward pass, or input gradient, of a rank could begin for what it needs. */
static int64_t forward_ready(const struct greedy *greedy, uint32_t rank)
{
    const struct rank_state *state = &greedy->rank[rank];
    int64_t const most_ppm = (int64_t)greedy->request->held_max * PPM_ONE;
    if (state->forward == greedy->request->microbatch_count ||
        state->held_ppm + (int64_t)PPM_ONE > most_ppm)
        return never;
    if (rank == 0) return 0;
    int64_t const end = *end_of(greedy, greedy->forward_end, rank - 1, state->forward);
    return end == never ? never : end + greedy->request->times.hop;
}

static int64_t input_ready(const struct greedy *greedy, uint32_t rank)
{
    const struct rank_state *state = &greedy->rank[rank];
    if (state->input == state->forward) return never;
    if (rank + 1 == greedy->request->rank_count) return 0;
    int64_t const end = *end_of(greedy, greedy->input_end, rank + 1, state->input);
    return end == never ? never : end + greedy->request->times.hop;
}

static enum schedule_kind decide(const struct greedy *greedy, uint32_t rank, int64_t *ret_next)
{
    const struct rank_state *state = &greedy->rank[rank];
    const struct policy *policy = &greedy->policy;
    int64_t const forward = forward_ready(greedy, rank), input = input_ready(greedy, rank);
    bool const owes = state->weight < state->input;
    *ret_next = forward < input ? forward : input;
    if (policy->forward_first && forward <= state->at) return SCHEDULE_FORWARD;
    if (input <= state->at) return SCHEDULE_INPUT;
    if (policy->saves_memory && owes && state->forward > state->input + 1) return SCHEDULE_WEIGHT;
    if (forward <= state->at) return SCHEDULE_FORWARD;
    bool const fits = *ret_next - state->at >= times_of(greedy, rank)->weight;
    if (owes && (fits || !policy->fits_only)) return SCHEDULE_WEIGHT;
    return SCHEDULE_KIND_COUNT;
}

static void wake(struct greedy *greedy, uint32_t rank, int64_t at)
{
    struct rank_state *state = &greedy->rank[rank];
    if (state->at < never) return;
    state->at = state->end > at ? state->end : at;
    queue_add(greedy, rank);
}

static void begin(struct greedy *greedy, uint32_t rank, enum schedule_kind kind)
{
    struct rank_state *state = &greedy->rank[rank];
    const struct schedule_times *times = times_of(greedy, rank);
    int64_t const hop = greedy->request->times.hop;
    if (state->forward == 0) state->begin = state->at;
    state->held_ppm += schedule_pass_change_ppm(kind, greedy->request->kept_ppm);
    switch (kind) {
    case SCHEDULE_FORWARD:
        state->end = state->at + times->forward;
        *end_of(greedy, greedy->forward_end, rank, state->forward) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->forward++);
        if (rank + 1 < greedy->request->rank_count) wake(greedy, rank + 1, state->end + hop);
        break;
    case SCHEDULE_INPUT:
        state->end = state->at + times->input;
        *end_of(greedy, greedy->input_end, rank, state->input) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->input++);
        if (rank > 0) wake(greedy, rank - 1, state->end + hop);
        break;
    case SCHEDULE_WEIGHT:
        state->end = state->at + times->weight;
        schedule_add(&greedy->lists[rank], kind, rank, state->weight++);
        break;
    case SCHEDULE_BACKWARD:
    case SCHEDULE_KIND_COUNT:
        SIM_ASSERT(false);
    }
    state->at = state->end;
}

/* Lists all ranks. */
static enum status greedy_run(struct greedy *greedy, struct length *ret_length,
                              struct error *reterr)
{
    uint32_t const p = greedy->request->rank_count, m = greedy->request->microbatch_count;
    for (uint32_t r = 0; r < p; r++) {
        greedy->rank[r] = (struct rank_state){.at = r == 0 ? 0 : never};
        greedy->lists[r].count = 0;
    }
    for (uint64_t i = 0; i < (uint64_t)p * m; i++)
        greedy->forward_end[i] = greedy->input_end[i] = never;
    queue_add(greedy, 0);
    for (uint64_t i = 1; greedy->queue_count > 0; i++) {
        uint32_t const rank = queue_take(greedy);
        struct rank_state *state = &greedy->rank[rank];
        int64_t next = never;
        enum schedule_kind const kind = decide(greedy, rank, &next);
        if (kind == SCHEDULE_KIND_COUNT)
            state->at = next; /* `never`: until another wakes it. */
        else
            begin(greedy, rank, kind);
        if (state->at < never) queue_add(greedy, rank);
        if (i % DECISIONS_A_LOOK == 0) STATUS_TRY(watch_check(greedy->request->watch, reterr));
    }
    *ret_length = (struct length){0, 0};
    for (uint32_t r = 0; r < p; r++) {
        SIM_ASSERT(greedy->rank[r].weight == m);
        length_take(ret_length, greedy->rank[r].begin, greedy->rank[r].end);
    }
    return STATUS_OK;
}

/* Orders between ZB-H1 (0) and ZB-H2 (one less than the ranks): so many microbatches more under way
 * on rank 0, and weight gradients so much later on the last. */
static void between_list(struct greedy *greedy, uint32_t more)
{
    const struct schedule_request *request = greedy->request;
    for (uint32_t r = 0; r < request->rank_count; r++) {
        uint32_t const behind = request->rank_count - 1 - r;
        uint32_t const most = 1 + behind + (more < behind ? more : behind);
        greedy->lists[r].count = 0;
        ramp_split_list(request, r, ramp_in_flight(request, most), r + (more < r ? more : r),
                        &greedy->lists[r]);
    }
}

/* The same of lists that stand. */
static enum status listed_play(struct schedule *schedule, const struct greedy *greedy,
                               struct length *ret_length, struct error *reterr)
{
    const struct schedule_request *request = greedy->request;
    struct schedule_played played;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a trial");
    for (uint32_t r = 0; r < request->rank_count; r++)
        schedule->rank[r] =
            (struct schedule_rank){.pass = greedy->lists[r].pass, .count = greedy->lists[r].count};
    enum status const status = schedule_play(arena, schedule, &request->times, request->watch,
                                             schedule->name, &played, reterr);
    *ret_length = (struct length){0, 0};
    for (uint32_t r = 0; status == STATUS_OK && r < request->rank_count; r++) {
        length_take(ret_length, played.lane[r].first, played.lane[r].last);
        if (schedule_peak_ppm(schedule, r, request->kept_ppm) >
            (uint64_t)request->held_max * PPM_ONE)
            *ret_length = endless; /* Memory does not allow it. */
    }
    arena_destroy(arena);
    return status;
}

/* The best of the orders that memory allows; `ret_found`: one is shorter than `shortest`. */
static enum status between_find(struct arena *arena, struct greedy *greedy, struct length shortest,
                                uint32_t *ret_more, bool *ret_found, struct error *reterr)
{
    const struct schedule_request *request = greedy->request;
    uint32_t const p = request->rank_count;
    struct schedule schedule = {.name = "auto",
                                .rank_count = p,
                                .stage_count = p,
                                .microbatch_count = request->microbatch_count,
                                .chunk_count = 1,
                                .copy_count = 1};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, p, sizeof *schedule.rank_of, &memory, reterr));
    schedule.rank_of = memory;
    for (uint32_t r = 0; r < p; r++) schedule.rank_of[r] = (uint16_t)r;
    STATUS_TRY(arena_try(arena, p, sizeof *schedule.rank, &memory, reterr));
    schedule.rank = memory;
    *ret_found = false;
    for (uint32_t more = 0; more < p && p + more <= request->held_max; more++) {
        struct length length = {0, 0};
        between_list(greedy, more);
        STATUS_TRY(listed_play(&schedule, greedy, &length, reterr));
        if (!is_shorter(length, shortest)) continue;
        shortest = length;
        *ret_more = more;
        *ret_found = true;
    }
    return STATUS_OK;
}

static enum status list_all(struct arena *arena, const struct schedule_request *asked,
                            struct schedule_list *lists, struct error *reterr)
{
    struct schedule_request request = *asked;
    if (request.held_max == 0) request.held_max = request.rank_count;
    struct greedy greedy = {.request = &request, .lists = lists};
    uint64_t const cells = (uint64_t)request.rank_count * request.microbatch_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, request.rank_count, sizeof *greedy.rank, &memory, reterr));
    greedy.rank = memory;
    STATUS_TRY(arena_try(arena, request.rank_count, sizeof *greedy.queue, &memory, reterr));
    greedy.queue = memory;
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy.forward_end, &memory, reterr));
    greedy.forward_end = memory;
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy.input_end, &memory, reterr));
    greedy.input_end = memory;
    struct length shortest = endless, length = {0, 0};
    struct policy best = {false, false, false};
    for (uint32_t i = 0; i < 8; i++) {
        greedy.policy = (struct policy){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
        STATUS_TRY(greedy_run(&greedy, &length, reterr));
        if (!is_shorter(length, shortest)) continue;
        shortest = length;
        best = greedy.policy;
    }
    uint32_t more = 0;
    bool found = false;
    STATUS_TRY(between_find(arena, &greedy, shortest, &more, &found, reterr));
    if (found) {
        between_list(&greedy, more);
        return STATUS_OK;
    }
    greedy.policy = best;
    return greedy_run(&greedy, &length, reterr);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    (void)request;
    return (struct schedule_formula){
        .measure = SCHEDULE_NO_FORMULA,
        .text = "none: it is searched for",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    uint32_t const most = request->held_max == 0 ? request->rank_count : request->held_max;
    return (struct schedule_peak){
        most < request->microbatch_count ? most : request->microbatch_count, 0};
}

const struct schedule_form schedule_form_automatic = {
    .name = "auto",
    .help = "a list scheduler that fills bubbles for the times, hops and memory it is given",
    .source =
        "after the heuristic of Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241)",
    .chunks = 1,
    .copies = 1,
    .heeds_times = true,
    .list_all = list_all,
    .formula = formula,
    .peak = peak,
};
