/* Turns of a stream's lanes at a link, against turns that are taken one after the other. */
#include <stdio.h>
#include <string.h>

#include "sim/replay/port.h"
#include "tests/support/case.h"

/* The last of the lanes asks in thought only. */
enum { CASES = 400, ASKS = 60, LANES = 5, CAPACITY = ASKS + 1 };

/* A message as the turns have it: where it lies in the work of its lane, and, as work of the
 * stream, when its first and its last picosecond are done. */
struct message {
    uint32_t lane;
    int64_t first, last;
    int64_t begun, done;
    bool cut; /* It had begun before turns were taken. */
};

struct turns {
    uint32_t queue[LANES], count; /* Lanes with work left, in the order of their turns. */
    int64_t asked[LANES], served[LANES];
    int64_t at, segment;  /* Work of the stream that is done when the next turn begins. */
    uint32_t current;     /* Whose turn ends then; LANES: nobody's. */
    const uint8_t *phase; /* [lane]: the earliest goes first. */
    struct message message[ASKS + 1];
    uint32_t message_first, message_count;
};

/* Behind all lanes that are as early; `before_current`: but before the one whose turn it is. */
static void turns_insert(struct turns *turns, uint32_t lane, bool before_current)
{
    uint32_t at = 0;
    while (at < turns->count && turns->phase[turns->queue[at]] <= turns->phase[lane]) at++;
    if (before_current && at > 0 && turns->queue[at - 1] == turns->current &&
        turns->phase[turns->current] == turns->phase[lane])
        at--;
    memmove(turns->queue + at + 1, turns->queue + at, (turns->count++ - at) * sizeof *turns->queue);
    turns->queue[at] = lane;
}

static void turn_take(struct turns *turns)
{
    uint32_t const lane = turns->queue[0];
    int64_t const left = turns->asked[lane] - turns->served[lane];
    int64_t const work = left < turns->segment ? left : turns->segment;
    int64_t const from = turns->served[lane];
    for (uint32_t i = turns->message_first; i < turns->message_count; i++) {
        struct message *message = &turns->message[i];
        if (message->lane != lane) continue;
        if (message->first > from && message->first <= from + work)
            message->begun = turns->at + message->first - from;
        if (message->last > from && message->last <= from + work)
            message->done = turns->at + message->last - from;
    }
    turns->served[lane] += work;
    turns->at += work;
    turns->current = lane;
    memmove(turns->queue, turns->queue + 1, --turns->count * sizeof *turns->queue);
    if (work < left) turns_insert(turns, lane, false);
}

/* Turns that begin before so much of the stream's work is done. */
static void turns_take(struct turns *turns, int64_t done)
{
    while (turns->at < done && turns->count > 0) turn_take(turns);
    if (turns->count == 0) turns->current = LANES;
}

/* No work has no turn: it is done with what its lane has asked for, or at once. */
static struct message *turns_ask(struct turns *turns, uint32_t lane, int64_t work)
{
    bool waits = false;
    for (uint32_t i = 0; i < turns->count; i++) waits = waits || turns->queue[i] == lane;
    if (work == 0 && !waits) {
        struct message *message = &turns->message[turns->message_count++];
        *message = (struct message){lane, -1, -1, turns->at, turns->at, false};
        return message;
    }
    if (!waits) {
        turns_insert(turns, lane, true);
        turns->asked[lane] = turns->served[lane];
    }
    struct message *message = &turns->message[turns->message_count++];
    *message = (struct message){.lane = lane, .first = turns->asked[lane] + (work > 0)};
    message->last = turns->asked[lane] += work;
    return message;
}

/* A link's stream, and a second one for a copy of it. */
struct link {
    struct ports ports;
    struct port_flow flow;
    struct port_entry entries[CAPACITY];
    struct port_lane lanes[CAPACITY];
};

static void link_open(struct link *link, uint32_t capacity)
{
    memset(link, 0, sizeof *link);
    link->ports.entries = link->entries;
    link->ports.lanes = link->lanes;
    link->ports.entry_capacity = capacity;
    link->flow.lane_current = PORT_NO_LANE;
}

static void link_copy(const struct link *from, struct link *to)
{
    link_open(to, LANES - 1);
    to->flow = from->flow;
    memcpy(to->entries, from->entries, sizeof to->entries);
    port_lanes_copy(&from->ports, &to->ports, &to->flow);
    assert_false(to->ports.lanes_lacked);
}

/* All that the stream was asked for is done. */
static void all_done(struct turns *turns, struct link *link)
{
    turns_take(turns, INT64_MAX);
    turns->message_first = turns->message_count;
    link->flow.served_ps = link->flow.asked_ps;
    link->flow.list = (struct port_list){0, 0};
    port_lanes_end(&link->ports, &link->flow);
    assert_int_equal(link->flow.turn_ps, turns->at);
}

/* Whether the first picosecond of the last message, and its last one, are done as early if one more
 * lane comes now. */
static void stand(const struct turns *turns, bool ret_stands[2])
{
    struct turns alone = *turns, joined = *turns;
    const struct message *as_it_is = &alone.message[turns->message_count - 1];
    const struct message *as_it_becomes = &joined.message[turns->message_count - 1];
    (void)turns_ask(&joined, LANES - 1, 1000);
    turns_take(&alone, INT64_MAX);
    turns_take(&joined, INT64_MAX);
    ret_stands[0] = as_it_is->begun == as_it_becomes->begun;
    ret_stands[1] = as_it_is->done == as_it_becomes->done;
}

static void compare(const struct turns *turns, const struct link *link, uint32_t number)
{
    struct turns rest = *turns;
    turns_take(&rest, INT64_MAX);
    for (uint32_t i = turns->message_first; i < turns->message_count; i++) {
        const struct message *wanted = &rest.message[i];
        const struct port_entry *got = &link->entries[i + 1];
        int64_t const begun = port_ticket_begun_ps(&link->ports, &link->flow, got, turns->segment);
        int64_t const done = port_ticket_done_ps(&link->ports, &link->flow, got, turns->segment);
        if (done == wanted->done && (wanted->cut || begun == wanted->begun)) continue;
        fail_msg("case %u, message %u of %u: from %lld to %lld, not from %lld to %lld", number, i,
                 turns->message_count, (long long)begun, (long long)done, (long long)wanted->begun,
                 (long long)wanted->done);
    }
}

/* Some message that is done is fixed, before its lane's turns have come so far. */
static void done_fix(const struct turns *turns, struct link *link, uint64_t *chance)
{
    uint32_t const count = turns->message_count - turns->message_first;
    uint32_t const index = turns->message_first + (uint32_t)(case_random(chance) % count) + 1;
    int64_t const done =
        port_ticket_done_ps(&link->ports, &link->flow, &link->entries[index], turns->segment);
    if (done <= link->flow.served_ps)
        port_ticket_fix(&link->ports, &link->flow, index, turns->segment);
}

/* Whichever lanes ask when for how much; also in a copy, and with room for no more lanes than ask
 * at once. What is said to be certain is what one more lane does not move. */
static void lanes_meet(const uint8_t phase[LANES])
{
    static struct link links[2];
    static struct lane_table tables[LANES];
    uint64_t chance = 21;
    uint32_t certain = 0, cut = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        tables[l].number = (uint8_t)l;
        tables[l].phase = phase[l];
    }
    for (uint32_t number = 0; number < CASES; number++) {
        struct link *link = &links[0];
        struct turns turns = {.current = LANES, .phase = phase};
        turns.segment = 1 + (int64_t)(case_random(&chance) % 9);
        link_open(link, LANES - 1);
        for (uint32_t i = 0; i < ASKS; i++) {
            struct port_flow *flow = &link->flow;
            uint32_t const lane = (uint32_t)(case_random(&chance) % (LANES - 1));
            int64_t const drawn = 1 + (int64_t)(case_random(&chance) % (i % 3 == 0 ? 90 : 20));
            int64_t const work = case_random(&chance) % 6 == 0 ? 0 : drawn;
            int64_t const passed = (int64_t)(case_random(&chance) % 40);
            flow->served_ps += passed;
            if (flow->served_ps > flow->asked_ps) flow->served_ps = flow->asked_ps;
            if (case_random(&chance) % 16 == 0) all_done(&turns, link);
            turns_take(&turns, flow->served_ps);
            bool const begun = work > 0 && turns.count == 0 && case_random(&chance) % 2 == 0;
            struct message *message = turns_ask(&turns, lane, work);
            struct port_entry *entry = &link->entries[i + 1];
            bool is_certain[2], stands[2];
            *entry = (struct port_entry){.lane = &tables[lane], .work_ps = work + begun};
            flow->asked_ps += work;
            port_lane_ask(&link->ports, flow, i + 1, work, turns.segment, is_certain);
            port_list_append(&link->ports, &flow->list, i + 1);
            stand(&turns, stands);
            assert_true(is_certain[0] == stands[0] && is_certain[1] == stands[1]);
            certain += stands[1];
            message->cut = begun;
            if (begun) {
                flow->lane_current = (uint16_t)lane;
                turns.current = lane;
            }
            cut += begun;
            assert_false(link->ports.lanes_lacked);
            compare(&turns, link, number);
            done_fix(&turns, link, &chance);
            if (case_random(&chance) % 8 != 0) continue;
            struct link *other = &links[link == &links[0]];
            link_copy(link, other);
            link = other;
        }
        all_done(&turns, link);
    }
    print_message("    %u certain, %u cut\n", certain, cut);
    assert_true(certain > CASES && cut > CASES);
}

static void lanes_take_turns(void **state)
{
    (void)state;
    lanes_meet((const uint8_t[LANES]){0, 0, 0, 0, 0});
}

static void earlier_phases_go_first(void **state)
{
    (void)state;
    lanes_meet((const uint8_t[LANES]){1, 0, 2, 0, 0});
    lanes_meet((const uint8_t[LANES]){1, 1, 0, 2, 0});
}

/* More lanes than there is room for are not forgotten: the run is refused. */
static void lanes_that_lack_room_are_noticed(void **state)
{
    (void)state;
    static struct link link;
    static struct lane_table tables[LANES];
    bool certain[2];
    link_open(&link, LANES - 1);
    for (uint32_t l = 0; l < LANES; l++) {
        link.entries[l + 1] = (struct port_entry){.lane = &tables[l], .work_ps = 5};
        tables[l].number = (uint8_t)l;
        assert_false(link.ports.lanes_lacked);
        link.flow.asked_ps += 5;
        port_lane_ask(&link.ports, &link.flow, l + 1, 5, 2, certain);
    }
    assert_true(link.ports.lanes_lacked);
}

/* A lane that has messages goes on to ask where another has none. */
static void entries_that_lack_a_lane_have_no_turns(void **state)
{
    (void)state;
    static struct link link;
    static struct lane_table tables[LANES];
    bool certain[2];
    link_open(&link, LANES - 1);
    for (uint32_t i = 0; i <= LANES; i++) {
        uint32_t const lane = i % LANES;
        tables[lane].number = (uint8_t)lane;
        link.entries[i + 1] = (struct port_entry){.lane = &tables[lane], .work_ps = 5};
        link.flow.asked_ps += 5;
        port_lane_ask(&link.ports, &link.flow, i + 1, 5, 2, certain);
        port_list_append(&link.ports, &link.flow.list, i + 1);
    }
    assert_true(link.ports.lanes_lacked);
}

enum { EVENTS = 3 };

struct stopped {
    struct replay replay;
    struct ports ports;
    uint32_t events;
};

static void lacks_room(void *owner, struct engine *engine, int64_t now_ps, uint64_t order,
                       const uint32_t *chips, uint32_t count)
{
    struct stopped *stopped = owner;
    (void)engine, (void)now_ps, (void)order, (void)chips, (void)count;
    stopped->events++;
    port_no_room(&stopped->replay);
}

/* What follows a refusal has neither entries nor lanes to hold on to. */
static void a_run_that_lacks_room_stops(void **state)
{
    (void)state;
    static struct stopped stopped;
    struct engine_options const options = {.queue = "fast",
                                           .chip_count = 1,
                                           .channel_count = 1,
                                           .pending_max = EVENTS,
                                           .handler = lacks_room,
                                           .owner = &stopped};
    stopped.replay.ports = &stopped.ports;
    (void)case_arena_up(NULL);
    case_ok(engine_create(case_arena, &options, &stopped.replay.engine, &case_error));
    for (int64_t i = 1; i <= EVENTS; i++) engine_post(stopped.replay.engine, i, 0, 0, 0);
    case_ok(engine_run(stopped.replay.engine, &case_error));
    assert_int_equal(stopped.replay.refusal.status, STATUS_LIMIT);
    assert_int_equal(stopped.events, 1);
    (void)case_arena_down(NULL);
}

static enum status taken_over(uint32_t capacity)
{
    static struct link from, to;
    static struct lane_table tables[LANES];
    static struct replay replay;
    bool certain[2];
    replay = (struct replay){.ports = &to.ports};
    (void)case_arena_up(NULL);
    struct engine_options const options = {
        .queue = "fast", .chip_count = 1, .channel_count = 1, .handler = lacks_room};
    case_ok(engine_create(case_arena, &options, &replay.engine, &case_error));
    link_open(&from, LANES);
    for (uint32_t l = 0; l < LANES; l++) {
        from.entries[l + 1] = (struct port_entry){.lane = &tables[l], .work_ps = 5};
        tables[l].number = (uint8_t)l;
        from.flow.asked_ps += 5;
        port_lane_ask(&from.ports, &from.flow, l + 1, 5, 2, certain);
    }
    link_open(&to, capacity);
    to.flow = from.flow;
    port_flow_take_over(&from.ports, &replay, &to.flow);
    (void)case_arena_down(NULL);
    return replay.refusal.status;
}

/* A run that goes on from a prefix fold's is refused where its lanes do not fit, and only there. */
static void lanes_that_are_taken_over_need_room(void **state)
{
    (void)state;
    assert_int_equal(taken_over(LANES), STATUS_OK);
    assert_int_equal(taken_over(LANES - 1), STATUS_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_take_turns),
        cmocka_unit_test(earlier_phases_go_first),
        cmocka_unit_test(lanes_that_lack_room_are_noticed),
        cmocka_unit_test(entries_that_lack_a_lane_have_no_turns),
        cmocka_unit_test(a_run_that_lacks_room_stops),
        cmocka_unit_test(lanes_that_are_taken_over_need_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
