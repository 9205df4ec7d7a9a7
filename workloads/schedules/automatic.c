/*
 * The automatic list scheduler: at each instant a free rank begins an input gradient that is ready,
 * else a forward pass if its memory allows, else a weight gradient; a few ways to decide when a
 * weight gradient may delay what is about to come are tried. Beside these stand the orders between
 * ZB-H1 and ZB-H2 that memory allows, which look further ahead; the shortest schedule is taken.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/schedule/ramp.h"

/* What is tried. */
struct policy {
    bool forward_first; /* A forward pass that is ready goes before an input gradient. */
    bool fits_only;     /* A weight gradient begins only if it ends before the next arrival. */
    bool saves_memory;  /* Weight gradients come before forward passes. */
};

enum { HALVES = 2, NEVER_SHIFT = 62 };
static const int64_t never = INT64_C(1) << NEVER_SHIFT;

struct rank_state {
    uint32_t forward, input, weight; /* Done, or begun. */
    uint32_t held_halves;            /* Of a microbatch's activations. */
    int64_t at;                      /* When it decides next; `never`: it waits for others. */
    int64_t begin, end;
};

struct greedy {
    const struct schedule_request *request;
    struct policy policy;
    struct rank_state *rank;
    int64_t *forward_end; /* [rank][microbatch]; `never`: not begun. */
    int64_t *input_end;
    struct schedule_list *lists;
};

static int64_t *end_of(const struct greedy *greedy, int64_t *ends, uint32_t rank, uint32_t b)
{
    return &ends[(uint64_t)rank * greedy->request->microbatch_count + b];
}

/* When the next forward pass, or input gradient, of a rank could begin for what it needs. */
static int64_t forward_ready(const struct greedy *greedy, uint32_t rank)
{
    const struct rank_state *state = &greedy->rank[rank];
    uint32_t const most = greedy->request->held_max;
    if (state->forward == greedy->request->microbatch_count ||
        state->held_halves + HALVES > HALVES * most)
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
    bool const fits = *ret_next - state->at >= greedy->request->times.weight;
    if (owes && (fits || !policy->fits_only)) return SCHEDULE_WEIGHT;
    return SCHEDULE_KIND_COUNT;
}

static void wake(struct greedy *greedy, uint32_t rank, int64_t at)
{
    struct rank_state *state = &greedy->rank[rank];
    if (state->at < never) return;
    state->at = state->end > at ? state->end : at;
}

static void begin(struct greedy *greedy, uint32_t rank, enum schedule_kind kind)
{
    struct rank_state *state = &greedy->rank[rank];
    const struct schedule_times *times = &greedy->request->times;
    if (state->forward == 0) state->begin = state->at;
    switch (kind) {
    case SCHEDULE_FORWARD:
        state->end = state->at + times->forward;
        state->held_halves += HALVES;
        *end_of(greedy, greedy->forward_end, rank, state->forward) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->forward++);
        if (rank + 1 < greedy->request->rank_count) wake(greedy, rank + 1, state->end + times->hop);
        break;
    case SCHEDULE_INPUT:
        state->end = state->at + times->input;
        state->held_halves--;
        *end_of(greedy, greedy->input_end, rank, state->input) = state->end;
        schedule_add(&greedy->lists[rank], kind, rank, state->input++);
        if (rank > 0) wake(greedy, rank - 1, state->end + times->hop);
        break;
    case SCHEDULE_WEIGHT:
        state->end = state->at + times->weight;
        state->held_halves--;
        schedule_add(&greedy->lists[rank], kind, rank, state->weight++);
        break;
    case SCHEDULE_BACKWARD:
    case SCHEDULE_KIND_COUNT:
        SIM_ASSERT(false);
    }
    state->at = state->end;
}

/* Lists all ranks; returns the longest time from a rank's first pass to its last. */
static int64_t greedy_run(struct greedy *greedy)
{
    uint32_t const p = greedy->request->rank_count, m = greedy->request->microbatch_count;
    for (uint32_t r = 0; r < p; r++) {
        greedy->rank[r] = (struct rank_state){.at = r == 0 ? 0 : never};
        greedy->lists[r].count = 0;
    }
    for (uint64_t i = 0; i < (uint64_t)p * m; i++)
        greedy->forward_end[i] = greedy->input_end[i] = never;
    for (;;) {
        uint32_t rank = 0;
        for (uint32_t r = 1; r < p; r++)
            if (greedy->rank[r].at < greedy->rank[rank].at) rank = r;
        struct rank_state *state = &greedy->rank[rank];
        if (state->at == never) break;
        int64_t next = never;
        enum schedule_kind const kind = decide(greedy, rank, &next);
        if (kind == SCHEDULE_KIND_COUNT)
            state->at = next; /* `never`: until another wakes it. */
        else
            begin(greedy, rank, kind);
    }
    int64_t longest = 0;
    for (uint32_t r = 0; r < p; r++) {
        const struct rank_state *state = &greedy->rank[r];
        SIM_ASSERT(state->weight == m);
        if (state->end - state->begin > longest) longest = state->end - state->begin;
    }
    return longest;
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

/* Begins the next pass of a rank's list if what it needs has begun. */
static bool listed_begin(struct greedy *greedy, uint32_t rank)
{
    struct rank_state *state = &greedy->rank[rank];
    const struct schedule_request *request = greedy->request;
    uint32_t const next = state->forward + state->input + state->weight;
    if (next == greedy->lists[rank].count) return false;
    const struct schedule_pass *pass = &greedy->lists[rank].pass[next];
    int64_t ready = 0, work = request->times.weight;
    if (pass->kind == SCHEDULE_FORWARD) {
        if (rank > 0) ready = *end_of(greedy, greedy->forward_end, rank - 1, pass->microbatch);
        work = request->times.forward;
    } else if (pass->kind == SCHEDULE_INPUT) {
        if (rank + 1 < request->rank_count)
            ready = *end_of(greedy, greedy->input_end, rank + 1, pass->microbatch);
        work = request->times.input;
    }
    if (ready == never) return false;
    if (ready > 0) ready += request->times.hop;
    int64_t const at = state->end > ready ? state->end : ready;
    if (next == 0) state->begin = at;
    state->end = at + work;
    state->forward += pass->kind == SCHEDULE_FORWARD;
    state->input += pass->kind == SCHEDULE_INPUT;
    state->weight += pass->kind == SCHEDULE_WEIGHT;
    if (pass->kind == SCHEDULE_FORWARD)
        *end_of(greedy, greedy->forward_end, rank, pass->microbatch) = state->end;
    if (pass->kind == SCHEDULE_INPUT)
        *end_of(greedy, greedy->input_end, rank, pass->microbatch) = state->end;
    return true;
}

/* Plays lists that stand; returns the same as greedy_run(). */
static int64_t listed_run(struct greedy *greedy)
{
    uint32_t const p = greedy->request->rank_count, m = greedy->request->microbatch_count;
    memset(greedy->rank, 0, p * sizeof *greedy->rank);
    for (uint64_t i = 0; i < (uint64_t)p * m; i++)
        greedy->forward_end[i] = greedy->input_end[i] = never;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < p; r++)
            while (listed_begin(greedy, r)) moved = true;
    }
    int64_t longest = 0;
    for (uint32_t r = 0; r < p; r++) {
        int64_t const span = greedy->rank[r].end - greedy->rank[r].begin;
        SIM_ASSERT(greedy->rank[r].weight == m);
        longest = span > longest ? span : longest;
    }
    return longest;
}

/* The best of the orders that memory allows; returns whether one is shorter than `shortest`. */
static bool between_find(struct greedy *greedy, int64_t shortest, uint32_t *ret_more)
{
    const struct schedule_request *request = greedy->request;
    bool found = false;
    for (uint32_t more = 0;
         more < request->rank_count && request->rank_count + more <= request->held_max; more++) {
        between_list(greedy, more);
        int64_t const longest = listed_run(greedy);
        if (longest >= shortest) continue;
        shortest = longest;
        *ret_more = more;
        found = true;
    }
    return found;
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
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy.forward_end, &memory, reterr));
    greedy.forward_end = memory;
    STATUS_TRY(arena_try(arena, cells, sizeof *greedy.input_end, &memory, reterr));
    greedy.input_end = memory;
    int64_t shortest = never;
    struct policy best = {false, false, false};
    for (uint32_t i = 0; i < 8; i++) {
        greedy.policy = (struct policy){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
        int64_t const longest = greedy_run(&greedy);
        if (longest >= shortest) continue;
        shortest = longest;
        best = greedy.policy;
    }
    uint32_t more = 0;
    if (between_find(&greedy, shortest, &more)) {
        between_list(&greedy, more);
        return STATUS_OK;
    }
    greedy.policy = best;
    (void)greedy_run(&greedy);
    return STATUS_OK;
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
    .list_all = list_all,
    .formula = formula,
    .peak = peak,
};
