/* Instants of all messages of a collective, link by link. */
#include <string.h>

#include "sim/replay/flight_group.h"
#include "sim/replay/state.h"

/* Of ranges that are found, and no collective's instants move within them. */
enum { VAIN_MAX = 4 };

#define INLINED static inline __attribute__((always_inline))

/* The order of the event in which a head comes to a link. */
static inline uint64_t hop_key(const struct flight_group *group, const struct group_hop *hop)
{
    return group->messages[hop->message].key - hop->links * group->hop_key;
}

static inline bool hop_is_before(const struct flight_group *group, const struct group_hop *one,
                                 const struct group_hop *other)
{
    if (one->at_ps != other->at_ps) return one->at_ps < other->at_ps;
    return hop_key(group, one) < hop_key(group, other);
}

/* A comparison stays as it is while its gap is not negative. The gap has become `closes_by` less
 * for each picosecond that late chips are later. */
INLINED void gap_hold(struct flight_group *group, int64_t gap_ps, int32_t closes_by)
{
    struct group_range *range = &group->moves.range;
    if (closes_by > 0 && gap_ps / closes_by < range->most_ps) range->most_ps = gap_ps / closes_by;
    if (closes_by < 0 && gap_ps / closes_by > range->least_ps) range->least_ps = gap_ps / closes_by;
}

/* One of two comes first, by its instant or at one instant by its key. */
INLINED void order_hold(struct flight_group *group, struct flight_instant first, int32_t first_by,
                        struct flight_instant then, int32_t then_by)
{
    gap_hold(group, then.at_ps - first.at_ps - (first.key > then.key), first_by - then_by);
}

/* Puts the heads at a link in order. */
static void hops_sort(const struct flight_group *group, struct group_hop *hops, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct group_hop const moved = hops[i];
        uint32_t to = i;
        for (; to > 0 && hop_is_before(group, &moved, &hops[to - 1]); to--) hops[to] = hops[to - 1];
        hops[to] = moved;
    }
}

static void heads_hold(struct flight_group *group, const struct group_link *link)
{
    for (uint32_t i = 1; i < link->hop_count; i++) {
        const struct group_hop *before = &link->hops[i - 1], *hop = &link->hops[i];
        order_hold(group, (struct flight_instant){before->at_ps, hop_key(group, before)},
                   group->moves.head_by[before->message],
                   (struct flight_instant){hop->at_ps, hop_key(group, hop)},
                   group->moves.head_by[hop->message]);
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
        moves = moves || hop_is_before(group, &hops[i], &hops[i - 1]);
    }
    if (moves) hops_sort(group, hops, link->hop_count);
}

static bool arrival_is_before(const struct flight_instant *one, const struct flight_instant *other)
{
    return one->at_ps < other->at_ps || (one->at_ps == other->at_ps && one->key < other->key);
}

/* A message arrives. Those of a chip are kept in the order of their events; instants count from the
 * chip's begin. */
INLINED void arrive(struct flight_group *group, const struct group_message *message, uint32_t cost,
                    int64_t at_ps, int32_t by, bool tracks)
{
    uint32_t const chip = message->receiver;
    struct flight_instant *at = group->arrived_at[chip];
    struct flight_instant const now = {at_ps - group->later_ps[chip], message->key};
    uint32_t to = group->logs[chip].arrived_count++;
    for (; to > 0 && arrival_is_before(&now, &at[to - 1]); to--) {
        at[to] = at[to - 1];
        group->senders[chip][to] = group->senders[chip][to - 1];
        group->cost_of[chip][to] = group->cost_of[chip][to - 1];
        if (tracks) group->moves.arrived_by[chip][to] = group->moves.arrived_by[chip][to - 1];
    }
    at[to] = now;
    group->senders[chip][to] = message->sender;
    group->cost_of[chip][to] = (uint8_t)cost;
    if (tracks) group->moves.arrived_by[chip][to] = (int8_t)(by - group->moves.is_late[chip]);
}

/* The later of two instants, and how far it moves. */
INLINED int64_t later_of(struct flight_group *group, int64_t one_ps, int32_t one_by,
                         int64_t other_ps, int32_t other_by, bool tracks, int32_t *ret_by)
{
    bool const is_other = other_ps >= one_ps;
    *ret_by = is_other ? other_by : one_by;
    if (tracks && is_other) gap_hold(group, other_ps - one_ps, one_by - other_by);
    if (tracks && !is_other) gap_hold(group, one_ps - other_ps, other_by - one_by);
    return is_other ? other_ps : one_ps;
}

/* The messages of a link take it one after another. */
INLINED void link_pass(struct flight_group *group, struct group_link *link, bool tracks)
{
    int64_t free_ps = 0, queued_ps = 0, waited_ps = 0;
    int32_t free_by = 0, queued_by = 0, waited_by = 0, by;
    heads_take(group, link);
    if (tracks) heads_hold(group, link);
    for (uint32_t i = 0; i < link->hop_count; i++) {
        const struct group_hop *hop = &link->hops[i];
        const struct group_cost *cost = &group->costs[hop->cost];
        struct group_message *message = &group->messages[hop->message];
        int32_t const at_by = tracks ? group->moves.head_by[hop->message] : 0;
        int64_t const start_ps =
            later_of(group, free_ps, free_by, hop->at_ps, at_by, tracks, &free_by);
        int64_t const waits_ps = start_ps - hop->at_ps;
        free_ps = start_ps + cost->link_ps;
        waited_ps += waits_ps;
        waited_by += free_by - at_by;
        queued_ps = later_of(group, queued_ps, queued_by, waits_ps, free_by - at_by, tracks, &by);
        queued_by = by;
        if (!cost->last) {
            message->head_ps = start_ps + cost->latency_ps;
            if (tracks) group->moves.head_by[hop->message] = (int8_t)free_by;
            continue;
        }
        int64_t const end_ps =
            later_of(group, free_ps, free_by, hop->at_ps + cost->slowest_ps, at_by, tracks, &by);
        arrive(group, message, hop->cost, end_ps + cost->latency_ps, by, tracks);
    }
    link->free_ps = free_ps;
    link->waited_ps = (uint64_t)waited_ps;
    link->queued_ps = queued_ps;
    if (!tracks) return;
    link->free_by = free_by;
    link->waited_by = waited_by;
    link->queued_by = queued_by;
}

static void arrivals_hold(struct flight_group *group, uint32_t chip, uint32_t count)
{
    const struct flight_instant *at = group->arrived_at[chip];
    const int8_t *by = group->moves.arrived_by[chip];
    for (uint32_t i = 1; i < count; i++) order_hold(group, at[i - 1], by[i - 1], at[i], by[i]);
}

/* What arrives at a chip asks of its servers, and the shard that is written when the last message
 * has left and arrived. Returns when the collective ends, and how far that moves. */
INLINED int64_t arrivals_finish(struct flight_group *group, uint32_t chip, bool tracks,
                                int32_t *ret_by)
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
    struct flight_instant const left = log->left_at[log->left_count - 1], last = at[count - 1];
    bool const is_last = arrival_is_before(&left, &last);
    struct flight_instant const done = is_last ? last : left;
    int32_t const last_by = tracks ? group->moves.arrived_by[chip][count - 1] : 0;
    int32_t const done_by = is_last ? last_by : 0;
    if (tracks) arrivals_hold(group, chip, count);
    if (tracks && is_last) order_hold(group, left, 0, last, last_by);
    if (tracks && !is_last) order_hold(group, last, last_by, left, 0);
    if (group->shard_ps[chip] > 0) {
        hbm_ps += group->shard_ps[chip];
        at[count] = done;
        arrived[count].from_ps = 0;
        arrived[count].sum_ps[SERVER_HBM] = hbm_ps;
        arrived[count].sum_ps[SERVER_VPU] = vpu_ps;
        if (tracks) group->moves.arrived_by[chip][count] = (int8_t)done_by;
        log->arrived_count++;
    }
    return later_of(group, done.at_ps, done_by, log->lanes[0].free_ps, 0, tracks, ret_by);
}

/* How the begins of the chips are, held against those of the collective before. */
enum begins {
    BEGINS_AGAIN, /* All are as they were. */
    BEGINS_MOVED, /* Some chips are late, by one time, and were by another one. */
    BEGINS_NEW,
};

/* How far the chips are behind the first one that has begun. */
static enum begins begins_find(const struct replay *replay, struct flight_group *group,
                               uint32_t stream, int64_t *ret_late_ps)
{
    const struct flight *flights =
        &replay->lanes.flights->aloft[(uint64_t)stream * replay->chip_count];
    int64_t first_ps = flights[0].begin_ps, late_ps = 0;
    bool again = group->timed, moved = group->timed && group->moves.late_ps != 0, one = true;
    for (uint32_t chip = 1; chip < replay->chip_count; chip++)
        if (flights[chip].begin_ps < first_ps) first_ps = flights[chip].begin_ps;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        int64_t const later_ps = flights[chip].begin_ps - first_ps;
        again = again && group->later_ps[chip] == later_ps;
        moved = moved && group->moves.is_late[chip] == (later_ps != 0);
        one = one && (later_ps == 0 || late_ps == 0 || later_ps == late_ps);
        if (later_ps != 0) late_ps = later_ps;
        group->later_ps[chip] = later_ps;
        group->moves.is_late[chip] = later_ps != 0;
    }
    *ret_late_ps = one ? late_ps : 0;
    return again ? BEGINS_AGAIN : (moved && one ? BEGINS_MOVED : BEGINS_NEW);
}

/* All that a chip's log has said before. */
static void arrivals_again(struct flight_group *group, uint32_t chip)
{
    struct flight_log *log = &group->logs[chip];
    log->message_count = log->lanes[0].arrivals;
    log->arrived_count = log->message_count + (group->shard_ps[chip] > 0 ? 1 : 0);
}

/* Late chips have begun so much later than before. */
static void chip_move(struct flight_group *group, uint32_t chip, int64_t later_ps)
{
    struct flight_log *log = &group->logs[chip];
    struct flight_instant *at = group->arrived_at[chip];
    struct flight_arrival *arrived = group->arrived[chip];
    const int8_t *by = group->moves.arrived_by[chip];
    arrivals_again(group, chip);
    for (uint32_t i = 0; i < log->message_count; i++) {
        at[i].at_ps += by[i] * later_ps;
        arrived[i].from_ps += by[i] * later_ps;
    }
    if (log->arrived_count > log->message_count)
        at[log->message_count].at_ps += by[log->message_count] * later_ps;
    log->length_ps += (group->moves.end_by - group->moves.is_late[chip]) * later_ps;
}

static void links_move(struct flight_group *group, int64_t later_ps)
{
    for (uint32_t i = 0; i < group->link_count; i++) {
        struct group_link *link = &group->links[i];
        if (link->hop_count == 0) continue;
        link->free_ps += link->free_by * later_ps;
        link->waited_ps += (uint64_t)(link->waited_by * later_ps);
        link->queued_ps += link->queued_by * later_ps;
    }
    group->moves.range.least_ps -= later_ps;
    group->moves.range.most_ps -= later_ps;
}

/* False: the chips do not end at one instant. */
INLINED bool all_pass(const struct replay *replay, struct flight_group *group, bool tracks)
{
    int64_t end_ps = 0;
    int32_t end_by = 0, by = 0;
    struct group_message *message = group->messages;
    bool ends_at_one = true, moves_as_one = true;
    group->moves.range = (struct group_range){INT64_MIN / 4, INT64_MAX / 4};
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t const count = group->logs[chip].left_count;
        const struct flight_instant *left_at = group->logs[chip].left_at;
        if (tracks)
            memset(&group->moves.head_by[message - group->messages], group->moves.is_late[chip],
                   count);
        for (uint32_t sent = 0; sent < count; sent++, message++)
            message->head_ps = group->later_ps[chip] + left_at[sent].at_ps + message->first_ps;
    }
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i].hop_count > 0) link_pass(group, &group->links[i], tracks);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        int64_t const later_ps = group->later_ps[chip];
        int64_t const length_ps = arrivals_finish(group, chip, tracks, &by);
        by += group->moves.is_late[chip];
        group->logs[chip].length_ps = length_ps;
        if (chip > 0 && later_ps + length_ps != end_ps) ends_at_one = false;
        if (chip > 0 && by != end_by) moves_as_one = false;
        end_ps = later_ps + length_ps;
        end_by = by;
    }
    group->moves.are_known = tracks && ends_at_one && moves_as_one;
    group->moves.end_by = end_by;
    return ends_at_one;
}

bool flight_group_time(struct replay *replay, struct flight_group *group, uint32_t stream)
{
    int64_t const was_ps = group->moves.late_ps;
    enum begins const begins = begins_find(replay, group, stream, &group->moves.late_ps);
    int64_t const later_ps = group->moves.late_ps - was_ps;
    if (begins == BEGINS_AGAIN) {
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) arrivals_again(group, chip);
        return true;
    }
    if (begins == BEGINS_MOVED && group->moves.are_known &&
        later_ps >= group->moves.range.least_ps && later_ps <= group->moves.range.most_ps) {
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) chip_move(group, chip, later_ps);
        links_move(group, later_ps);
        if (group->moves.vain > 0) group->moves.vain--;
        return true;
    }
    if (begins == BEGINS_MOVED && group->moves.vain < VAIN_MAX) {
        group->moves.vain++;
        group->timed = all_pass(replay, group, true);
    } else {
        group->timed = all_pass(replay, group, false);
    }
    return group->timed;
}
