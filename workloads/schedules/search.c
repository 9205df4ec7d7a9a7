/*
 * The automatic list scheduler: a rank that decides begins an input gradient that is ready, else a
 * forward pass if its memory allows, else a weight gradient, else waits for what is known to come
 * first; a few ways to decide when a weight gradient may delay what is about to come are tried.
 * Orders from 1F1B over ZB-H1 to ZB-H2 and GPipe are tried too, each as far as memory allows, since
 * they look further ahead. The shortest schedule is taken.
 *
 * An input gradient may leave more than it gives back. Where there is no room for that, and no
 * weight gradient to make it, a backward pass is not split.
 */
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_play.h"
#include "sim/schedule/warmup.h"

/* What is tried. */
struct policy {
    bool forward_first; /* A forward pass that is ready goes before an input gradient. */
    bool fits_only;     /* A weight gradient begins only if it ends before the next arrival. */
    bool saves_memory;  /* Weight gradients come before forward passes. */
    bool reserves;      /* Forward passes leave room for what an input gradient adds. */
};

enum { NEVER_SHIFT = 62, DECISIONS_A_LOOK = 1024, BETWEEN_TRIALS = 8 };
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

static int64_t most_ppm(const struct schedule_request *request)
{
    return (int64_t)request->held_max * PPM_ONE;
}

/* By how much a rank holds more while an input gradient runs, or behind it. */
static int64_t added_ppm(const struct schedule_request *request, uint32_t rank)
{
    int64_t const rise_ppm =
        request->kept_of_rank == NULL ? 0 : (int64_t)request->kept_of_rank[rank].rise_ppm;
    int64_t const change_ppm =
        schedule_pass_change_ppm(SCHEDULE_INPUT, schedule_kept_ppm(request, rank));
    return change_ppm > rise_ppm ? change_ppm : rise_ppm;
}

/* What is left of memory for forward passes; for one at least. */
static int64_t room_ppm(const struct schedule_request *request, uint32_t rank, bool reserves)
{
    int64_t const room = most_ppm(request) - (reserves ? added_ppm(request, rank) : 0);
    return room < (int64_t)PPM_ONE ? (int64_t)PPM_ONE : room;
}

/* When the next forward pass, or input gradient, of a rank could begin for what it needs. */
static int64_t forward_ready(const struct greedy *greedy, uint32_t rank)
{
    const struct rank_state *state = &greedy->rank[rank];
    if (state->forward == greedy->request->microbatch_count ||
        state->held_ppm + (int64_t)PPM_ONE >
            room_ppm(greedy->request, rank, greedy->policy.reserves))
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
    if (input <= state->at) {
        int64_t const most_held_ppm = state->held_ppm + added_ppm(greedy->request, rank);
        bool const has_room = most_held_ppm <= most_ppm(greedy->request);
        return has_room ? SCHEDULE_INPUT : owes ? SCHEDULE_WEIGHT : SCHEDULE_BACKWARD;
    }
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
    state->held_ppm += schedule_pass_change_ppm(kind, schedule_kept_ppm(greedy->request, rank));
    switch (kind) {
    case SCHEDULE_FORWARD:
        state->end = state->at + times->forward;
        *end_of(greedy, greedy->forward_end, rank, state->forward) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->forward++);
        if (rank + 1 < greedy->request->rank_count) wake(greedy, rank + 1, state->end + hop);
        break;
    case SCHEDULE_BACKWARD:
    case SCHEDULE_INPUT:
        state->end = state->at + schedule_pass_ticks(times, kind);
        *end_of(greedy, greedy->input_end, rank, state->input) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->input++);
        if (rank > 0) wake(greedy, rank - 1, state->end + hop);
        if (kind == SCHEDULE_BACKWARD) state->weight++;
        break;
    case SCHEDULE_WEIGHT:
        state->end = state->at + times->weight;
        schedule_add(&greedy->lists[rank], kind, rank, state->weight++);
        break;
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
        if (i % DECISIONS_A_LOOK == 0) STATUS_TRY(cancel_check(greedy->request->cancel, reterr));
    }
    *ret_length = (struct length){0, 0};
    for (uint32_t r = 0; r < p; r++) {
        SIM_ASSERT(greedy->rank[r].weight == m);
        length_take(ret_length, greedy->rank[r].begin, greedy->rank[r].end);
    }
    return STATUS_OK;
}

/* An order in which ranks begin one after the other, as far as memory allows. From ZB-H1 (more: 0)
 * to ZB-H2 (one less than the ranks): so many microbatches more under way on rank 0, and weight
 * gradients so much later on the last. */
struct order {
    uint32_t more;
    bool soon;     /* Weight gradients come with their input gradients: from 1F1B to Eager 1F1B. */
    bool all;      /* All microbatches are under way, as in GPipe. */
    bool reserves; /* As a policy. */
};

/* Whether memory allows a list. */
static bool fits(const struct schedule_request *request, uint32_t rank,
                 const struct schedule_list *list)
{
    uint32_t const kept_ppm = schedule_kept_ppm(request, rank);
    int64_t const added = added_ppm(request, rank);
    int64_t held = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        enum schedule_kind const kind = (enum schedule_kind)list->pass[i].kind;
        if (held + (kind == SCHEDULE_INPUT ? added : 0) > most_ppm(request)) return false;
        held += schedule_pass_change_ppm(kind, kept_ppm);
        if (held > most_ppm(request)) return false;
    }
    return true;
}

/* Of one rank; no more than `most` microbatches are under way on it. */
static void rank_order(const struct schedule_request *request, uint32_t rank,
                       const struct order *order, uint32_t most, struct schedule_list *list)
{
    uint32_t const behind = request->rank_count - 1 - rank, kept = schedule_kept_ppm(request, rank);
    uint32_t const asked = order->all ? request->microbatch_count
                                      : 1 + behind + (order->more < behind ? order->more : behind);
    uint32_t const ahead = warmup_in_flight(request, asked < most ? asked : most);
    uint32_t late = order->soon  ? 0
                    : order->all ? request->microbatch_count
                                 : rank + (order->more < rank ? order->more : rank);
    int64_t const left_ppm =
        most_ppm(request) - (int64_t)ahead * PPM_ONE - added_ppm(request, rank);
    list->count = 0;
    if (left_ppm < 0) {
        warmup_list(request, rank, ahead, list);
        return;
    }
    warmup_split_list(request, rank, ahead, late, list);
    if (fits(request, rank, list)) return;
    late = (uint32_t)(left_ppm / kept); /* Less than before, or it had fitted. */
    list->count = 0;
    warmup_split_list(request, rank, ahead, late, list);
}

/* No rank has more under way than the one before it hands on before it waits. */
static void order_list(struct greedy *greedy, const struct order *order)
{
    int64_t least_ppm = INT64_MAX;
    for (uint32_t r = 0; r < greedy->request->rank_count; r++) {
        int64_t const room = room_ppm(greedy->request, r, order->reserves);
        least_ppm = room < least_ppm ? room : least_ppm;
        rank_order(greedy->request, r, order, (uint32_t)(least_ppm / (int64_t)PPM_ONE),
                   &greedy->lists[r]);
    }
}

/* The orders that are tried, and the best of them. */
struct search {
    struct greedy *greedy;
    struct schedule schedule;
    struct order best;
    struct length shortest;
    bool found; /* One is shorter than what was there before. */
};

static enum status order_try(struct search *search, const struct order *order,
                             struct length *ret_length, struct error *reterr)
{
    const struct schedule_request *request = search->greedy->request;
    const struct schedule_list *lists = search->greedy->lists;
    struct schedule_played played;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a trial");
    order_list(search->greedy, order);
    for (uint32_t r = 0; r < request->rank_count; r++)
        search->schedule.rank[r] =
            (struct schedule_rank){.pass = lists[r].pass, .count = lists[r].count};
    enum status const status = schedule_play(arena, &search->schedule, &request->times,
                                             request->cancel, "auto", &played, reterr);
    *ret_length = (struct length){0, 0};
    for (uint32_t r = 0; status == STATUS_OK && r < request->rank_count; r++)
        length_take(ret_length, played.lane[r].first, played.lane[r].last);
    arena_destroy(arena);
    if (status != STATUS_OK || !is_shorter(*ret_length, search->shortest)) return status;
    search->shortest = *ret_length;
    search->best = *order;
    search->found = true;
    return STATUS_OK;
}

/* Those from ZB-H1 to ZB-H2: a few, both ends among them, and then those beside the best, nearer
 * and nearer to it. Beyond half of the microbatches they are no longer different. */
static enum status between_try(struct search *search, bool reserves, struct error *reterr)
{
    const struct schedule_request *request = search->greedy->request;
    uint32_t const last = request->rank_count - 1, half = (request->microbatch_count - 1) / 2;
    uint32_t const most = last < half ? last : half;
    uint32_t step = most / BETWEEN_TRIALS + 1;
    struct order order = {.reserves = reserves};
    struct length shortest = endless, length;
    uint32_t best = 0;
    for (uint32_t place = 0; place < most + step; place += step) {
        order.more = place < most ? place : most;
        STATUS_TRY(order_try(search, &order, &length, reterr));
        if (!is_shorter(length, shortest)) continue;
        shortest = length;
        best = order.more;
    }
    while (step > 1) {
        uint32_t const middle = best;
        step = (step + 1) / 2;
        for (uint32_t side = 0; side < 2; side++) {
            order.more = side == 0 ? middle - step : middle + step; /* Below 0: beyond `most`. */
            if (order.more > most) continue;
            STATUS_TRY(order_try(search, &order, &length, reterr));
            if (!is_shorter(length, shortest)) continue;
            shortest = length;
            best = order.more;
        }
    }
    return STATUS_OK;
}

static enum status search_open(struct arena *arena, struct greedy *greedy, struct search *search,
                               struct error *reterr)
{
    uint32_t const p = greedy->request->rank_count;
    void *memory = NULL;
    search->greedy = greedy;
    search->schedule = (struct schedule){.name = "auto",
                                         .rank_count = p,
                                         .stage_count = p,
                                         .microbatch_count = greedy->request->microbatch_count,
                                         .chunk_count = 1,
                                         .copy_count = 1};
    STATUS_TRY(arena_try(arena, p, sizeof *search->schedule.rank_of, &memory, reterr));
    search->schedule.rank_of = memory;
    for (uint32_t r = 0; r < p; r++) search->schedule.rank_of[r] = (uint16_t)r;
    STATUS_TRY(arena_try(arena, p, sizeof *search->schedule.rank, &memory, reterr));
    search->schedule.rank = memory;
    return STATUS_OK;
}

/* Orders shorter than `shortest`, the best of them if there is one. With weight gradients at once
 * they are never worse than 1F1B, Eager 1F1B and GPipe, which do not split. */
static enum status orders_search(struct search *search, bool adds, struct error *reterr)
{
    struct order const soon[] = {{.soon = true},
                                 {.soon = true, .more = search->greedy->request->rank_count},
                                 {.soon = true, .all = true},
                                 {.all = true}};
    struct length unused;
    for (uint32_t i = 0; i < sizeof soon / sizeof *soon; i++)
        STATUS_TRY(order_try(search, &soon[i], &unused, reterr));
    STATUS_TRY(between_try(search, /* reserves= */ false, reterr));
    if (adds) STATUS_TRY(between_try(search, /* reserves= */ true, reterr));
    return STATUS_OK;
}

static enum status greedy_open(struct arena *arena, struct greedy *greedy, struct error *reterr)
{
    uint64_t const p = greedy->request->rank_count, cells = p * greedy->request->microbatch_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, p, sizeof *greedy->rank, &memory, reterr));
    greedy->rank = memory;
    STATUS_TRY(arena_try(arena, p, sizeof *greedy->queue, &memory, reterr));
    greedy->queue = memory;
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy->forward_end, &memory, reterr));
    greedy->forward_end = memory;
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy->input_end, &memory, reterr));
    greedy->input_end = memory;
    return STATUS_OK;
}

static enum status list_all(struct arena *arena, const struct schedule_request *asked,
                            struct schedule_list *lists, struct error *reterr)
{
    struct schedule_request request = *asked;
    if (request.held_max == 0) request.held_max = request.rank_count;
    struct greedy greedy = {.request = &request, .lists = lists};
    struct search search = {.shortest = endless};
    struct length length = {0, 0};
    struct policy best = {false, false, false, false};
    bool adds = false;
    STATUS_TRY(greedy_open(arena, &greedy, reterr));
    STATUS_TRY(search_open(arena, &greedy, &search, reterr));
    for (uint32_t r = 0; r < request.rank_count; r++) adds = adds || added_ppm(&request, r) > 0;
    for (uint32_t i = 0; i < (adds ? 16 : 8); i++) {
        greedy.policy = (struct policy){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
        STATUS_TRY(greedy_run(&greedy, &length, reterr));
        if (!is_shorter(length, search.shortest)) continue;
        search.shortest = length;
        best = greedy.policy;
    }
    STATUS_TRY(orders_search(&search, adds, reterr));
    if (search.found) {
        order_list(&greedy, &search.best);
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
    uint32_t const most = request->held_max == 0 ? request->rank_count : request->held_max;
    uint32_t const kept = schedule_kept_ppm(request, rank);
    uint64_t const all =
        kept <= PPM_ONE ? request->microbatch_count
                        : units_ceil_divide((uint64_t)request->microbatch_count * kept, PPM_ONE);
    return (struct schedule_peak){most < all ? most : (uint32_t)all, 0};
}

const struct schedule_form schedule_form_search = {
    .name = "auto",
    .help = "a list scheduler that fills bubbles for the times, hops and memory it is given",
    .source =
        "after the heuristic of Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241)",
    .chunks = 1,
    .model_replicas = 1,
    .heeds_times = true,
    .list_all = list_all,
    .formula = formula,
    .peak = peak,
};
