/*
 * Instants of collectives whose chips fly together (sim/replay/flight_group.h): those that move
 * with the begins of late chips are those that a look at all messages finds.
 */
#include <string.h>

#include "sim/replay/flight_group.h"
#include "sim/replay/state.h"
#include "tests/support/case.h"

enum {
    CHIPS = 5,
    MESSAGES = 12, /* And a late one to each chip. */
    ALL = CHIPS + MESSAGES,
    LINKS = 3,
    DRAWN = 300,
    BEGINS = 40,
    COSTS = 4,
};

/* Few instants, so that many are equal and many orders turn. */
static void *taken(uint64_t count, uint64_t bytes)
{
    void *memory = NULL;
    case_ok(arena_try(case_arena, count, bytes, &memory, &case_error));
    return memory;
}

static void hop_add(struct group_link *link, uint32_t message, uint32_t links, uint32_t cost)
{
    if (link->hops == NULL) link->hops = taken(ALL, sizeof *link->hops);
    link->hops[link->hop_count++] = (struct group_hop){
        .message = (uint16_t)message, .cost = (uint8_t)cost, .links = (uint8_t)links};
}

/* The late messages come from the first chip, and each chip sends. */
static uint32_t sender_of(uint32_t message)
{
    return message < CHIPS ? 0 : (message - CHIPS) * CHIPS / MESSAGES;
}

static void chip_reserve(struct flight_group *group, uint32_t chip)
{
    struct flight_log *log = &group->logs[chip];
    struct flight_instant *left = taken(ALL, sizeof *left);
    log->left_at = left;
    for (uint32_t i = 0; i < ALL; i++)
        if (sender_of(i) == chip) left[log->left_count++] = (struct flight_instant){3, 5};
    log->lanes = taken(1, sizeof *log->lanes);
    log->arrived_at = group->arrived_at[chip] = taken(ALL + 1, sizeof **group->arrived_at);
    log->arrived = group->arrived[chip] = taken(ALL + 1, sizeof **group->arrived);
    log->senders = group->senders[chip] = taken(ALL + 1, sizeof **group->senders);
    group->cost_of[chip] = taken(ALL + 1, sizeof **group->cost_of);
    group->moves.arrived_by[chip] = taken(ALL + 1, sizeof **group->moves.arrived_by);
    group->shard_ps[chip] = chip % 2;
}

/* Each message may take a link that others take, and then one of its receiver. The late one of each
 * chip comes from the first chip long after all others, and over a link of its own. */
static struct flight_group *group_drawn(uint64_t chance)
{
    struct flight_group *group = taken(1, sizeof *group);
    uint32_t arrivals[CHIPS] = {0};
    group->messages = taken(ALL, sizeof *group->messages);
    group->moves.head_by = taken(ALL, sizeof *group->moves.head_by);
    group->hop_key = 1 << 16;
    group->links = taken(LINKS + 2 * CHIPS, sizeof *group->links);
    group->message_count = ALL;
    group->link_count = LINKS + 2 * CHIPS;
    group->logs = taken(CHIPS, sizeof *group->logs);
    group->arrived_at = taken(CHIPS, sizeof *group->arrived_at);
    group->arrived = taken(CHIPS, sizeof *group->arrived);
    group->senders = taken(CHIPS, sizeof *group->senders);
    group->cost_of = taken(CHIPS, sizeof *group->cost_of);
    group->moves.arrived_by = taken(CHIPS, sizeof *group->moves.arrived_by);
    group->shard_ps = taken(CHIPS, sizeof *group->shard_ps);
    group->later_ps = taken(CHIPS, sizeof *group->later_ps);
    group->moves.is_late = taken(CHIPS, sizeof *group->moves.is_late);
    for (uint32_t chip = 0; chip < CHIPS; chip++) chip_reserve(group, chip);
    for (uint32_t i = 0; i < COSTS; i++) {
        struct group_cost *cost = &group->costs[i];
        *cost = (struct group_cost){.own_ps = 4, .work_ps = {3, 1}, .last = i >= COSTS / 2};
        cost->link_ps = (int64_t)(1 + case_random(&chance) % 9);
        cost->slowest_ps = (int64_t)(case_random(&chance) % 9);
        cost->latency_ps = (int64_t)(1 + case_random(&chance) % 5);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        struct group_message *message = &group->messages[i];
        bool const is_late = i < CHIPS;
        *message = (struct group_message){
            .first_ps = 1000, .sender = (uint16_t)sender_of(i), .receiver = (uint16_t)i};
        message->key = (case_random(&chance) % 64 << 8 | i) + 2 * group->hop_key;
        if (!is_late) {
            message->first_ps = (uint32_t)(case_random(&chance) % 30);
            message->receiver = (uint16_t)(case_random(&chance) % CHIPS);
        }
        uint64_t const link = case_random(&chance) % (LINKS + 1);
        uint32_t const cost = (uint32_t)(case_random(&chance) % (COSTS / 2));
        uint32_t const last_cost = (uint32_t)(COSTS / 2 + case_random(&chance) % (COSTS / 2));
        if (!is_late && link < LINKS) hop_add(&group->links[link], i, 2, cost);
        hop_add(&group->links[LINKS + message->receiver + (is_late ? CHIPS : 0)], i, 1,
                is_late ? COSTS - 1 : last_cost);
        arrivals[message->receiver]++;
    }
    for (uint32_t chip = 0; chip < CHIPS; chip++)
        ((struct lane_state *)group->logs[chip].lanes)->arrivals = arrivals[chip];
    return group;
}

static void all_equal(const struct flight_group *one, const struct flight_group *other)
{
    for (uint32_t chip = 0; chip < CHIPS; chip++) {
        const struct flight_log *log = &one->logs[chip], *same = &other->logs[chip];
        assert_int_equal(log->length_ps, same->length_ps);
        assert_int_equal(log->message_count, same->message_count);
        assert_int_equal(log->arrived_count, same->arrived_count);
        for (uint32_t i = 0; i < log->arrived_count; i++) {
            assert_int_equal(log->arrived_at[i].at_ps, same->arrived_at[i].at_ps);
            assert_int_equal(log->arrived_at[i].key, same->arrived_at[i].key);
            assert_memory_equal(&log->arrived[i], &same->arrived[i], sizeof *log->arrived);
            if (i < log->message_count) assert_int_equal(log->senders[i], same->senders[i]);
        }
    }
    for (uint32_t i = 0; i < one->link_count; i++) {
        assert_int_equal(one->links[i].free_ps, other->links[i].free_ps);
        assert_int_equal(one->links[i].waited_ps, other->links[i].waited_ps);
        assert_int_equal(one->links[i].queued_ps, other->links[i].queued_ps);
    }
}

static bool time_at(struct replay *replay, struct flight_group *group)
{
    for (uint32_t chip = 0; chip < CHIPS; chip++)
        group->logs[chip].arrived_count = group->logs[chip].message_count = 0;
    return flight_group_time(replay, group, 0);
}

static void instants_move_with_late_chips(void **state)
{
    struct flight aloft[CHIPS];
    struct flights flights = {.aloft = aloft};
    struct replay replay = {.chip_count = CHIPS, .lanes = {.flights = &flights}};
    uint32_t moved = 0, turned = 0;
    uint64_t chance = 7;
    (void)state;
    memset(aloft, 0, sizeof aloft);
    for (uint32_t n = 0; n < DRAWN; n++) {
        struct flight_group *group = group_drawn(n);
        uint64_t const late = 1 + case_random(&chance) % ((1u << CHIPS) - 2);
        for (uint32_t k = 0; k < BEGINS; k++) {
            struct flight_group *anew = group_drawn(n);
            int64_t const late_ps = (int64_t)(case_random(&chance) % 40);
            int64_t const later_ps = late_ps - group->moves.late_ps;
            bool const is_known = group->moves.are_known && late_ps > 0 && group->moves.late_ps > 0;
            bool const is_within =
                later_ps >= group->moves.range.least_ps && later_ps <= group->moves.range.most_ps;
            for (uint32_t chip = 0; chip < CHIPS; chip++)
                aloft[chip].begin_ps = 10000 + (late >> chip & 1 ? late_ps : 0);
            assert_true(time_at(&replay, group));
            assert_true(time_at(&replay, anew));
            all_equal(group, anew);
            moved += is_known && is_within && later_ps != 0;
            turned += is_known && !is_within;
        }
    }
    print_message("%u moved, in %u a comparison turned\n", moved, turned);
    assert_true(moved > DRAWN && turned > DRAWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(instants_move_with_late_chips, case_arena_up,
                                        case_arena_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
