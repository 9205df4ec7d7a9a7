/* Instants of all messages of a collective, link by link. */
#include "sim/replay/flight_group.h"
#include "sim/replay/state.h"

static inline bool hop_is_before(const struct group_hop *one, const struct group_hop *other)
{
    if (one->at_ps != other->at_ps) return one->at_ps < other->at_ps;
    return one->key < other->key;
}

/* Puts the heads at a link in order. */
static void hops_sort(struct group_hop *hops, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct group_hop const moved = hops[i];
        uint32_t to = i;
        for (; to > 0 && hop_is_before(&moved, &hops[to - 1]); to--) hops[to] = hops[to - 1];
        hops[to] = moved;
    }
}

/* The instants at which heads come to a link. Mostly their order is the one of before. */
static void heads_take(const struct flight_group *group, struct group_link *link)
{
    const struct group_message *messages = group->messages;
    struct group_hop *hops = link->hops;
    bool moves = false;
    hops[0].at_ps = messages[hops[0].message].head_ps;
    for (uint32_t i = 1; i < link->hop_count; i++) {
        hops[i].at_ps = messages[hops[i].message].head_ps;
        moves = moves || hop_is_before(&hops[i], &hops[i - 1]);
    }
    if (moves) hops_sort(hops, link->hop_count);
}

static bool arrival_is_before(const struct flight_instant *one, const struct flight_instant *other)
{
    return one->at_ps < other->at_ps || (one->at_ps == other->at_ps && one->key < other->key);
}

/* A message arrives. Those of a chip are kept in the order of their events; instants count from the
 * chip's begin. */
static void arrive(struct flight_group *group, const struct group_message *message, uint32_t cost,
                   int64_t at_ps)
{
    uint32_t const chip = message->receiver;
    struct flight_instant *at = group->arrived_at[chip];
    struct flight_instant const now = {at_ps - group->later_ps[chip], message->key};
    uint32_t to = group->logs[chip].arrived_count++;
    for (; to > 0 && arrival_is_before(&now, &at[to - 1]); to--) {
        at[to] = at[to - 1];
        group->senders[chip][to] = group->senders[chip][to - 1];
        group->cost_of[chip][to] = group->cost_of[chip][to - 1];
    }
    at[to] = now;
    group->senders[chip][to] = message->sender;
    group->cost_of[chip][to] = cost;
}

/* The messages of a link take it one after another. */
static void link_pass(struct flight_group *group, struct group_link *link)
{
    int64_t free_ps = 0, queued_ps = 0, waited_ps = 0;
    heads_take(group, link);
    for (uint32_t i = 0; i < link->hop_count; i++) {
        const struct group_hop *hop = &link->hops[i];
        const struct group_cost *cost = &group->costs[hop->cost];
        struct group_message *message = &group->messages[hop->message];
        int64_t const start_ps = free_ps > hop->at_ps ? free_ps : hop->at_ps;
        int64_t const waits_ps = start_ps - hop->at_ps;
        free_ps = start_ps + cost->link_ps;
        waited_ps += waits_ps;
        queued_ps = waits_ps > queued_ps ? waits_ps : queued_ps;
        if (!cost->last) {
            message->head_ps = start_ps + cost->latency_ps;
            continue;
        }
        int64_t const tail_ps = hop->at_ps + cost->slowest_ps;
        arrive(group, message, hop->cost,
               (tail_ps > free_ps ? tail_ps : free_ps) + cost->latency_ps);
    }
    link->free_ps = free_ps;
    link->waited_ps = (uint64_t)waited_ps;
    link->queued_ps = queued_ps;
}

/* What arrives at a chip asks of its servers, and the shard that is written when the last message
 * has left and arrived. Returns when the collective ends. */
static int64_t arrivals_finish(struct flight_group *group, uint32_t chip)
{
    struct flight_log *log = &group->logs[chip];
    struct flight_instant *at = group->arrived_at[chip];
    struct flight_arrival *arrived = group->arrived[chip];
    int64_t hbm_ps = 0, vpu_ps = 0;
    uint32_t const count = log->message_count = log->arrived_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct group_cost *cost = &group->costs[group->cost_of[chip][i]];
        arrived[i].from_ps = at[i].at_ps - cost->own_ps;
        arrived[i].sum_ps[SERVER_HBM] = hbm_ps += cost->work_ps[SERVER_HBM];
        arrived[i].sum_ps[SERVER_VPU] = vpu_ps += cost->work_ps[SERVER_VPU];
    }
    struct flight_instant done = log->left_at[log->left_count - 1];
    if (arrival_is_before(&done, &at[count - 1])) done = at[count - 1];
    if (group->shard_ps[chip] > 0) {
        hbm_ps += group->shard_ps[chip];
        at[count] = done;
        arrived[count].from_ps = 0;
        arrived[count].sum_ps[SERVER_HBM] = hbm_ps;
        arrived[count].sum_ps[SERVER_VPU] = vpu_ps;
        log->arrived_count++;
    }
    return log->lanes[0].free_ps > done.at_ps ? log->lanes[0].free_ps : done.at_ps;
}

/* How far the chips are behind the first one that has begun. Whether that is as in the collective
 * before. */
static bool begins_find(const struct replay *replay, struct flight_group *group, uint32_t stream)
{
    const struct flight *flights =
        &replay->lanes.flights->aloft[(uint64_t)stream * replay->chip_count];
    int64_t first_ps = flights[0].begin_ps;
    bool again = group->timed;
    for (uint32_t chip = 1; chip < replay->chip_count; chip++)
        if (flights[chip].begin_ps < first_ps) first_ps = flights[chip].begin_ps;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        int64_t const later_ps = flights[chip].begin_ps - first_ps;
        again = again && group->later_ps[chip] == later_ps;
        group->later_ps[chip] = later_ps;
    }
    return again;
}

/* All that a chip's log has said before. */
static void arrivals_again(struct flight_group *group, uint32_t chip)
{
    struct flight_log *log = &group->logs[chip];
    log->message_count = log->lanes[0].arrivals;
    log->arrived_count = log->message_count + (group->shard_ps[chip] > 0 ? 1 : 0);
}

bool flight_group_time(struct replay *replay, struct flight_group *group, uint32_t stream)
{
    int64_t end_ps = 0;
    if (begins_find(replay, group, stream)) {
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) arrivals_again(group, chip);
        return true;
    }
    for (uint32_t i = 0; i < group->message_count; i++) {
        struct group_message *message = &group->messages[i];
        message->head_ps = group->later_ps[message->sender] + message->second_ps;
    }
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i].hop_count > 0) link_pass(group, &group->links[i]);
    group->timed = true;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        int64_t const later_ps = group->later_ps[chip];
        int64_t const length_ps = arrivals_finish(group, chip);
        group->logs[chip].length_ps = length_ps;
        if (chip > 0 && later_ps + length_ps != end_ps) group->timed = false;
        end_ps = later_ps + length_ps;
    }
    return group->timed;
}
