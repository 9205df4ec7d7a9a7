#include "tests/catalogue/clocks.h"

#include <stdbool.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/machine/machine.h"

/* What happens: a lane's message has left its link, or has arrived. */
struct event {
    int64_t at_ps;
    uint32_t lane;
    uint32_t rank;
    bool arrives;
};

struct lane_state {
    uint32_t piece, step, arrived;
    bool sending;
};

struct clocks {
    const struct plan *plan;
    uint64_t bytes_per_s;
    int64_t hop_ps;
    uint32_t size[GROUP_DIMENSIONS_MAX]; /* 1 for a ring. */
    uint32_t rank_count;
    struct lane_state *lane; /* [rank][lane] */
    int64_t *free_ps;        /* [rank][port] */
    struct event *heap;
    uint32_t heap_count, heap_size;
};

static bool is_earlier(struct event a, struct event b)
{
    if (a.at_ps != b.at_ps) return a.at_ps < b.at_ps;
    if (a.lane != b.lane) return a.lane < b.lane;
    if (a.arrives != b.arrives) return !a.arrives;
    return a.rank < b.rank;
}

static void heap_push(struct clocks *clocks, struct event event)
{
    uint32_t at = clocks->heap_count++;
    SIM_ASSERT(at < clocks->heap_size);
    for (; at > 0 && is_earlier(event, clocks->heap[(at - 1) / 2]); at = (at - 1) / 2)
        clocks->heap[at] = clocks->heap[(at - 1) / 2];
    clocks->heap[at] = event;
}

static struct event heap_pop(struct clocks *clocks)
{
    struct event const first = clocks->heap[0], last = clocks->heap[--clocks->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= clocks->heap_count) break;
        if (child + 1 < clocks->heap_count &&
            is_earlier(clocks->heap[child + 1], clocks->heap[child]))
            child++;
        if (!is_earlier(clocks->heap[child], last)) break;
        clocks->heap[at] = clocks->heap[child];
        at = child;
    }
    clocks->heap[at] = last;
    return first;
}

static uint32_t position_of(const struct clocks *clocks, uint32_t rank, uint32_t dimension)
{
    for (uint32_t d = 0; d < dimension; d++) rank /= clocks->size[d];
    return rank % clocks->size[dimension];
}

/* On a folded ring the neighbour is the rank itself. */
static uint32_t neighbour(const struct clocks *clocks, uint32_t rank, uint32_t dimension, bool back)
{
    uint32_t stride = 1, position = position_of(clocks, rank, dimension);
    if (clocks->size[dimension] == 1) return rank;
    for (uint32_t d = 0; d < dimension; d++) stride *= clocks->size[d];
    SIM_ASSERT(back ? position > 0 : position + 1 < clocks->size[dimension]);
    return back ? rank - stride : rank + stride;
}

static bool is_complete(const struct clocks *clocks, uint32_t rank, uint32_t item, uint32_t piece)
{
    const struct plan *plan = clocks->plan;
    uint32_t const position = position_of(clocks, rank, plan->item[item].dimension);
    for (uint32_t l = 0; l < plan->item[item].primitive->lane_count; l++) {
        uint32_t const index = plan->item[item].lane_first + l;
        if (clocks->lane[rank * plan->lane_count + index].arrived <
            (piece + 1) * plan->lane[index].arrival_count[position])
            return false;
    }
    return true;
}

static void lane_try(struct clocks *clocks, uint32_t rank, uint32_t index, int64_t now_ps)
{
    const struct plan *plan = clocks->plan;
    const struct plan_lane *lane = &plan->lane[index];
    const struct plan_item *item = &plan->item[lane->item];
    struct lane_state *state = &clocks->lane[rank * plan->lane_count + index];
    uint32_t const position = position_of(clocks, rank, item->dimension);
    uint32_t const sends = lane->send_count[position];
    if (state->sending || sends == 0 || state->piece == item->piece_count) return;
    if (item->after != PLAN_NO_ITEM && !is_complete(clocks, rank, item->after, state->piece))
        return;
    if (item->turn != PLAN_NO_ITEM && state->piece >= item->turn_lead &&
        !is_complete(clocks, rank, item->turn, state->piece - item->turn_lead))
        return;
    struct primitive_step const step = item->primitive->step(
        plan->group.dimension[item->dimension].size, lane->lane, position, state->step);
    if (state->arrived < state->piece * lane->arrival_count[position] + step.arrivals) return;

    int64_t *free_ps = &clocks->free_ps[rank * MACHINE_PORTS_MAX + lane->leg[0].port];
    int64_t const begin_ps = *free_ps > now_ps ? *free_ps : now_ps;
    *free_ps = begin_ps + units_duration_ps(step.units * item->unit_bytes, clocks->bytes_per_s);
    state->sending = true;
    heap_push(clocks, (struct event){*free_ps, index, rank, false});
    uint32_t const to = neighbour(clocks, rank, item->dimension, lane->leg[0].port % 2 != 0);
    heap_push(clocks,
              (struct event){*free_ps + lane->leg[0].hops * clocks->hop_ps, index, to, true});
    if (++state->step == sends) {
        state->step = 0;
        state->piece++;
    }
}

int64_t clocks_play_ps(const struct plan *plan, uint64_t bytes_per_s, int64_t hop_ps)
{
    struct clocks clocks = {.plan = plan, .bytes_per_s = bytes_per_s, .hop_ps = hop_ps};
    clocks.rank_count = 1;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) clocks.size[d] = 1;
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (!plan->item[i].primitive->ring)
            clocks.size[plan->item[i].dimension] =
                plan->group.dimension[plan->item[i].dimension].size;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) clocks.rank_count *= clocks.size[d];
    uint32_t const lanes = clocks.rank_count * plan->lane_count;
    clocks.lane = calloc(lanes, sizeof *clocks.lane);
    clocks.free_ps = calloc(clocks.rank_count, MACHINE_PORTS_MAX * sizeof *clocks.free_ps);
    /* A lane has one message on its link, and few on the way to the next rank. */
    clocks.heap_size = 128 * lanes;
    clocks.heap = calloc(clocks.heap_size, sizeof *clocks.heap);
    SIM_ASSERT(clocks.lane != NULL && clocks.free_ps != NULL && clocks.heap != NULL);

    int64_t last_ps = 0;
    for (uint32_t l = 0; l < plan->lane_count; l++)
        for (uint32_t r = 0; r < clocks.rank_count; r++) lane_try(&clocks, r, l, 0);
    while (clocks.heap_count > 0) {
        struct event const event = heap_pop(&clocks);
        struct lane_state *state = &clocks.lane[event.rank * plan->lane_count + event.lane];
        last_ps = event.at_ps;
        if (event.arrives)
            state->arrived++;
        else
            state->sending = false;
        lane_try(&clocks, event.rank, event.lane, event.at_ps);
        for (uint32_t l = 0; event.arrives && l < plan->lane_count; l++) {
            const struct plan_item *follower = &plan->item[plan->lane[l].item];
            uint32_t const item = plan->lane[event.lane].item;
            if (follower->after == item || follower->turn == item)
                lane_try(&clocks, event.rank, l, event.at_ps);
        }
    }
    for (uint32_t i = 0; i < lanes; i++) {
        const struct plan_item *item = &plan->item[plan->lane[i % plan->lane_count].item];
        uint32_t const position = position_of(&clocks, i / plan->lane_count, item->dimension);
        SIM_ASSERT(plan->lane[i % plan->lane_count].send_count[position] == 0 ||
                   clocks.lane[i].piece == item->piece_count);
    }
    free(clocks.lane);
    free(clocks.free_ps);
    free(clocks.heap);
    return last_ps;
}
