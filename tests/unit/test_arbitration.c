/*
 * Streams that want one link at one instant: by turns of a segment, by urgency, or first come,
 * first served. A chip of round numbers: 100 GB/s, 1 us a hop, and segments of 1 MiB.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/fold/fold.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/scene.h"

enum { SEGMENT_BYTES = 1 << 20 };

static const int64_t segment_ps = INT64_C(10485760), hop_ps = TIME_PS_PER_US;
static const int64_t bulk_segments = 64, small_segments = 3;

/* Who sends how much how far along x; `delay_ps` after the start. */
static uint32_t permute(struct scene *scene, uint32_t stream, int32_t hops, int64_t bytes)
{
    struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                         .group = scene_group(scene, true, false, false),
                                         .size_bytes = (uint64_t)bytes,
                                         .offset = {hops}};
    return scene_plan(scene, stream, &request);
}

/* When the op of a class of its own has ended everywhere. */
static void name(struct scene *scene, uint32_t op, const char *text)
{
    scene->op[op].name = scene->op[op].class_name = text;
}

static int64_t end_ps(const struct scene *scene, const struct trace *trace, uint32_t op)
{
    return trace->classes[scene->op[op].class_index].end_ps;
}

/* A bulk message from the start, and a small one of another stream once some math is done. */
struct meeting {
    struct scene scene;
    uint32_t math, bulk, small;
    int64_t math_ps;
};

static void meeting_fill(struct meeting *meeting, uint32_t bulk, uint32_t small)
{
    struct scene *scene = &meeting->scene;
    meeting->bulk = bulk;
    meeting->small = small;
    meeting->math = scene_compute(scene, UINT64_C(105000000000), 1);
    scene_need(scene, meeting->small, meeting->math, 0);
    name(scene, meeting->bulk, "bulk");
    name(scene, meeting->small, "small");
    scene->program.stream[scene->op[bulk].stream].urgency = 2;
}

static void meeting_open(struct meeting *meeting, int32_t bulk_hops, int32_t small_hops)
{
    struct scene *scene = &meeting->scene;
    scene_open(scene, 8, 1, 1, true);
    scene->segment_bytes = SEGMENT_BYTES;
    uint32_t const bulk = scene_stream(scene, "bulk"), small = scene_stream(scene, "small");
    uint32_t const op = permute(scene, bulk, bulk_hops, bulk_segments * SEGMENT_BYTES);
    meeting_fill(meeting, op, permute(scene, small, small_hops, small_segments * SEGMENT_BYTES));
}

/* Folded and not, by both queues. */
static struct trace meeting_run(struct meeting *meeting, enum arbitration arbitration)
{
    struct scene *scene = &meeting->scene;
    scene->arbitration = arbitration;
    struct trace const full = scene_run_alike(scene, 1), folded = scene_run(scene, 1, false, false);
    assert_int_equal(end_ps(scene, &full, meeting->small), end_ps(scene, &folded, meeting->small));
    meeting->math_ps = end_ps(scene, &full, meeting->math);
    return full;
}

/* The first boundary of a segment of the bulk message from an instant on. */
static int64_t boundary_ps(int64_t at_ps)
{
    return (at_ps + segment_ps - 1) / segment_ps * segment_ps;
}

static void a_small_message_takes_twice_its_time_and_a_segment(void **state)
{
    (void)state;
    struct meeting meeting;
    meeting_open(&meeting, 1, 1);
    struct trace const fair = meeting_run(&meeting, ARBITRATION_FAIR);
    int64_t const small_ps = end_ps(&meeting.scene, &fair, meeting.small);
    /* Its three segments and two of the other's, behind the one that is on the link. */
    int64_t const turns = 2 * small_segments - 1;
    assert_int_equal(small_ps, boundary_ps(meeting.math_ps) + turns * segment_ps + hop_ps);
    assert_true(small_ps - meeting.math_ps <= (2 * small_segments + 1) * segment_ps);
    /* The link rests for nobody: the bulk message pays what the other took, and no more. */
    assert_int_equal(end_ps(&meeting.scene, &fair, meeting.bulk),
                     (bulk_segments + small_segments) * segment_ps + hop_ps);
    struct trace const fifo = meeting_run(&meeting, ARBITRATION_FIFO);
    assert_int_equal(end_ps(&meeting.scene, &fifo, meeting.bulk),
                     bulk_segments * segment_ps + hop_ps);
    assert_int_equal(end_ps(&meeting.scene, &fifo, meeting.small),
                     (bulk_segments + small_segments) * segment_ps + hop_ps);
    struct trace const priority = meeting_run(&meeting, ARBITRATION_PRIORITY);
    assert_int_equal(end_ps(&meeting.scene, &priority, meeting.small),
                     boundary_ps(meeting.math_ps) + small_segments * segment_ps + hop_ps);
    assert_int_equal(end_ps(&meeting.scene, &priority, meeting.bulk),
                     (bulk_segments + small_segments) * segment_ps + hop_ps);
    for (uint32_t port = 0; port < 2; port++) {
        assert_int_equal(fair.link[port].sum_bytes, fifo.link[port].sum_bytes);
        assert_int_equal(fair.link[port].sum_busy_ps, fifo.link[port].sum_busy_ps);
        assert_int_equal(priority.link[port].sum_bytes, fifo.link[port].sum_bytes);
    }
    assert_int_equal(fair.work.transfers, fifo.work.transfers);
    scene_close(&meeting.scene);
}

/* Over several links each is shared for itself; the message arrives when all of it has. */
static void messages_that_pass_by_share_too(void **state)
{
    (void)state;
    struct meeting meeting;
    meeting_open(&meeting, 3, 1); /* The port of a chip has three bulk messages, one of them own. */
    struct trace const fair = meeting_run(&meeting, ARBITRATION_FAIR);
    struct trace const fifo = meeting_run(&meeting, ARBITRATION_FIFO);
    int64_t const small_ps = end_ps(&meeting.scene, &fair, meeting.small);
    assert_true(small_ps - meeting.math_ps <= (2 * small_segments + 1) * segment_ps + hop_ps);
    assert_true(end_ps(&meeting.scene, &fifo, meeting.small) > 2 * bulk_segments * segment_ps);
    int64_t const bulk_ps = end_ps(&meeting.scene, &fair, meeting.bulk);
    assert_true(bulk_ps >= end_ps(&meeting.scene, &fifo, meeting.bulk));
    assert_true(bulk_ps <= (3 * bulk_segments + small_segments) * segment_ps + 3 * hop_ps);
    assert_int_equal(fair.link[0].sum_bytes, fifo.link[0].sum_bytes);
    scene_close(&meeting.scene);

    meeting_open(&meeting, 1, 3);
    struct trace const far = meeting_run(&meeting, ARBITRATION_FAIR);
    /* On each of its links it waits for a segment at first, and for one between its own. */
    int64_t const far_ps = end_ps(&meeting.scene, &far, meeting.small);
    int64_t const link_ps = (2 * 3 * small_segments + 1) * segment_ps + hop_ps;
    assert_true(far_ps - meeting.math_ps <= 3 * link_ps);
    assert_true(far_ps < end_ps(&meeting.scene, &far, meeting.bulk));
    scene_close(&meeting.scene);
}

/* A small message goes to the neighbour along all three axes, and shares its first link with a bulk
 * message along x. */
static struct trace corners_run(struct meeting *meeting)
{
    struct scene *scene = &meeting->scene;
    uint32_t const bulk = scene_stream(scene, "bulk"), small = scene_stream(scene, "small");
    struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                         .group = scene_group(scene, true, true, true),
                                         .size_bytes = (uint64_t)small_segments * SEGMENT_BYTES,
                                         .offset = {1, 1, 1}};
    uint32_t const op = permute(scene, bulk, 1, bulk_segments * SEGMENT_BYTES);
    meeting_fill(meeting, op, scene_plan(scene, small, &request));
    return meeting_run(meeting, ARBITRATION_FAIR);
}

/* Round two corners, behind a link that it shares: the rest of the way is not shared, and takes the
 * latency of its links; where they have none, 1 ps to each chip on the way. */
static void what_is_held_up_arrives_so_much_later(void **state)
{
    (void)state;
    static const int64_t latency_ps[] = {TIME_PS_PER_US, 0}, way_ps[] = {3 * TIME_PS_PER_US, 2};
    for (uint32_t i = 0; i < 2; i++) {
        struct meeting meeting;
        struct scene *scene = &meeting.scene;
        scene_open(scene, 3, 3, 3, true);
        scene->machine.chip.hop_latency_ps = latency_ps[i];
        scene->segment_bytes = SEGMENT_BYTES;
        struct trace const fair = corners_run(&meeting);
        int64_t const turns = 2 * small_segments - 1;
        assert_int_equal(end_ps(scene, &fair, meeting.small),
                         boundary_ps(meeting.math_ps) + turns * segment_ps + way_ps[i]);
        struct fold fold;
        case_ok(
            fold_build(scene->arena, &scene->machine, &scene->program, false, &fold, &case_error));
        bool const is_told = strcmp(fold.reason[0], "not folded: a link without latency") == 0;
        assert_int_equal(is_told, latency_ps[i] == 0);
        scene_close(scene);
    }
}

/* Round two corners, where the link that it shares is slow, or the next, or both: it arrives when
 * its tail has left the one that has it the longest, which on the shared one is with its turns. */
static void what_is_held_up_follows_its_slowest_link(void **state)
{
    (void)state;
    static const struct {
        int64_t shared, next; /* How many times as long as others these links take. */
    } rows[] = {{2, 1}, {1, 4}, {2, 4}, {4, 2}, {4, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t const rate = UINT64_C(100000000000);
        struct machine_link_override const links[] = {
            {.to = {1, 0, 0}, .bytes_per_s = rate / (uint64_t)rows[i].shared},
            {.from = {1, 0, 0}, .to = {1, 1, 0}, .bytes_per_s = rate / (uint64_t)rows[i].next}};
        struct meeting meeting;
        struct scene *scene = &meeting.scene;
        scene_open(scene, 3, 3, 3, true);
        scene->machine.links = links;
        scene->machine.link_override_count = 2;
        scene->segment_bytes = SEGMENT_BYTES;
        struct trace const fair = corners_run(&meeting);
        int64_t const turn_ps = rows[i].shared * segment_ps;
        int64_t const begin_ps = (meeting.math_ps + turn_ps - 1) / turn_ps * turn_ps;
        int64_t const shared_ps = (2 * small_segments - 1) * turn_ps;
        int64_t const next_ps = rows[i].next * small_segments * segment_ps;
        assert_int_equal(end_ps(scene, &fair, meeting.small),
                         begin_ps + (shared_ps > next_ps ? shared_ps : next_ps) + 3 * hop_ps);
        scene_close(scene);
    }
}

/* A timeline's slice says what its message waited at its link, before its turns and between them:
 * all the time but its own. Slices of one stream do not overlap. */
static void records_say_what_a_message_waited(void **state)
{
    (void)state;
    struct meeting meeting;
    meeting_open(&meeting, 1, 1);
    struct scene *scene = &meeting.scene;
    static const enum arbitration arbitrations[] = {ARBITRATION_FAIR, ARBITRATION_PRIORITY,
                                                    ARBITRATION_FIFO};
    for (uint32_t a = 0; a < 3; a++) {
        struct trace const plain = meeting_run(&meeting, arbitrations[a]);
        int64_t const math_ps = meeting.math_ps, small_ps = end_ps(scene, &plain, meeting.small);
        struct trace const trace = scene_run(scene, 1, true, true);
        uint32_t seen = 0;
        int64_t waited_ps = 0;
        assert_int_equal(trace.digest, plain.digest);
        for (uint64_t i = 0; i < trace.records.count; i++) {
            const struct trace_record *record = &trace.records.record[i];
            if (record->kind != TRACE_TRANSFER) continue;
            bool const bulk = record->stream == scene->op[meeting.bulk].stream;
            int64_t const came_ps = bulk ? 0 : math_ps;
            int64_t const work_ps = segment_ps * (bulk ? bulk_segments : small_segments);
            int64_t const left_ps =
                (bulk ? end_ps(scene, &plain, meeting.bulk) : small_ps) - hop_ps;
            assert_int_equal(record->end_ps, left_ps);
            assert_int_equal(record->wait_ps, left_ps - came_ps - work_ps);
            assert_in_range(record->begin_ps, came_ps, left_ps - work_ps);
            waited_ps += record->wait_ps;
            seen++;
        }
        assert_int_equal(seen, 2);
        assert_int_equal(trace.link[0].waited_ps, waited_ps);
    }
    scene_close(scene);
}

/* Equals that begin at once have half each, whichever comes first. */
static void equals_have_half_each(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 8, 1, 1, true);
    scene.segment_bytes = SEGMENT_BYTES;
    uint32_t const a = permute(&scene, scene_stream(&scene, "a"), 1, 8 * SEGMENT_BYTES);
    uint32_t const b = permute(&scene, scene_stream(&scene, "b"), 1, 8 * SEGMENT_BYTES);
    uint32_t const apart = permute(&scene, scene_stream(&scene, "apart"), -1, 8 * SEGMENT_BYTES);
    name(&scene, a, "a");
    name(&scene, b, "b");
    name(&scene, apart, "apart");
    scene.arbitration = ARBITRATION_FAIR;
    struct trace const trace = scene_run(&scene, 1, true, false);
    assert_int_equal(end_ps(&scene, &trace, a), 15 * segment_ps + hop_ps);
    assert_int_equal(end_ps(&scene, &trace, b), 16 * segment_ps + hop_ps);
    assert_int_equal(end_ps(&scene, &trace, apart), 8 * segment_ps + hop_ps);
    scene.arbitration = ARBITRATION_FIFO;
    struct trace const fifo = scene_run(&scene, 1, true, false);
    assert_int_equal(end_ps(&scene, &fifo, a), 8 * segment_ps + hop_ps);
    assert_int_equal(end_ps(&scene, &fifo, b), 16 * segment_ps + hop_ps);
    scene_close(&scene);
}

/* Lanes of a collective that is alone meet where axes are of unlike length, and take turns: small
 * messages of an early phase do not wait for whole ones of a late phase. */
static void lanes_of_one_stream_take_turns(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 4, 4, 16, true);
    struct group const all = scene_group(&scene, true, true, true);
    uint32_t const sum = scene_collective(&scene, scene_stream(&scene, "a"), COLLECTIVE_ALL_REDUCE,
                                          all, 4 << 20, NULL, 0);
    name(&scene, sum, "sum");
    scene.arbitration = ARBITRATION_FIFO;
    struct trace const fifo = scene_run(&scene, 1, true, false);
    scene.arbitration = ARBITRATION_FAIR;
    struct trace const fair = scene_run(&scene, 1, true, false);
    assert_true(end_ps(&scene, &fair, sum) < end_ps(&scene, &fifo, sum) * 99 / 100);
    scene_close(&scene);
}

/* What nobody contends with has the instants and the number of events of a plain queue. */
static void alone_nothing_changes(void **state)
{
    (void)state;
    static const enum arbitration arbitrations[] = {ARBITRATION_FAIR, ARBITRATION_PRIORITY};
    for (uint32_t i = 0; i < 2; i++) {
        struct scene scene;
        scene_open(&scene, 8, 4, 1, true);
        struct group const x = scene_group(&scene, true, false, false);
        uint32_t const first = scene_collective(&scene, scene_stream(&scene, "a"),
                                                COLLECTIVE_ALL_GATHER, x, 64000000, NULL, 0);
        uint32_t const second = scene_collective(&scene, scene_stream(&scene, "b"),
                                                 COLLECTIVE_REDUCE_SCATTER, x, 64000000, NULL, 0);
        scene_need(&scene, second, first, 0);
        scene_need(&scene, first, second, -1);
        scene.arbitration = ARBITRATION_FIFO;
        struct trace const fifo = scene_run(&scene, 3, true, false);
        scene.arbitration = arbitrations[i];
        struct trace const shared = scene_run(&scene, 3, true, false);
        assert_int_equal(shared.digest, fifo.digest);
        assert_int_equal(shared.work.events, fifo.work.events);
        scene_close(&scene);
    }
}

/* Two nodes of two GPUs on a switch, rails to the other node; what crosses is bulk and small. */
static void cables_of_switches_are_shared(void **state)
{
    (void)state;
    struct scene scene;
    uint32_t const shape[] = {4, 1, 1, 1}, box[] = {4, 1, 1, 1};
    scene_open_axes(&scene, shape, 0);
    scene.segment_bytes = SEGMENT_BYTES;
    (void)scene_tier(scene_level(&scene, "switch", 0), box, 1, UINT64_C(100000000000), hop_ps);
    static const uint32_t onwards[] = {1, 2, 3, 0};
    exchange_target = onwards;
    struct group const group = {.dimension[0] = scene_dimension(&scene, 0), .dimension_count = 1};
    uint32_t const bulk =
        scene_routed(&scene, scene_stream(&scene, "bulk"), &exchange_permutation, &group, false,
                     (uint64_t)bulk_segments * SEGMENT_BYTES / 2, 1);
    uint32_t const small =
        scene_routed(&scene, scene_stream(&scene, "small"), &exchange_permutation, &group, false,
                     (uint64_t)small_segments * SEGMENT_BYTES / 2, 1);
    uint32_t const math = scene_compute(&scene, UINT64_C(105000000000), 1);
    scene_need(&scene, small, math, 0);
    name(&scene, bulk, "bulk");
    name(&scene, small, "small");
    scene.arbitration = ARBITRATION_FAIR;
    struct trace const fair = scene_run_alike(&scene, 1);
    int64_t const begin_ps = boundary_ps(end_ps(&scene, &fair, math));
    /* Up and down again; down, the bulk message's segments lie as on the way up. */
    assert_in_range(end_ps(&scene, &fair, small),
                    begin_ps + (2 * small_segments - 1) * segment_ps + 2 * hop_ps,
                    begin_ps + (2 * small_segments + 1) * segment_ps + 2 * hop_ps);
    assert_in_range(end_ps(&scene, &fair, bulk),
                    (bulk_segments + small_segments) * segment_ps + 2 * hop_ps,
                    (bulk_segments + small_segments + 1) * segment_ps + 2 * hop_ps);
    scene_close(&scene);
}

/* What switches copy goes over a cable as a whole: behind the turn that another stream has there,
 * and that one's next turn behind it. */
static void what_switches_copy_waits_for_no_turns(void **state)
{
    (void)state;
    for (uint32_t fair = 0; fair < 2; fair++) {
        struct scene scene;
        uint32_t const shape[] = {4, 1, 1, 1};
        scene_open_axes(&scene, shape, 0);
        scene.segment_bytes = SEGMENT_BYTES;
        struct level *level = scene_level(&scene, "switch", 0);
        (void)scene_tier(level, shape, 1, UINT64_C(100000000000), hop_ps);
        level->tier[0].multicasts = true;
        static const uint32_t onwards[] = {1, 2, 3, 0};
        exchange_target = onwards;
        struct group const group = {.dimension[0] = scene_dimension(&scene, 0),
                                    .dimension_count = 1};
        uint32_t const bulk =
            scene_routed(&scene, scene_stream(&scene, "bulk"), &exchange_permutation, &group, false,
                         (uint64_t)bulk_segments * SEGMENT_BYTES / 2, 1);
        uint32_t const copied =
            scene_routed(&scene, scene_stream(&scene, "copied"),
                         primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_SHARP, true), &group,
                         false, (uint64_t)small_segments * SEGMENT_BYTES / 2, 1);
        uint32_t const math = scene_compute(&scene, UINT64_C(105000000000), 1);
        scene_need(&scene, copied, math, 0);
        name(&scene, bulk, "bulk");
        name(&scene, copied, "copied");
        scene.arbitration = fair == 1 ? ARBITRATION_FAIR : ARBITRATION_FIFO;
        struct trace const trace = scene_run_alike(&scene, 1);
        /* From each of three others. */
        int64_t const whole_ps = 3 * small_segments * segment_ps + 2 * hop_ps;
        int64_t const begin_ps =
            fair == 1 ? boundary_ps(end_ps(&scene, &trace, math)) : bulk_segments * segment_ps;
        assert_int_equal(end_ps(&scene, &trace, copied), begin_ps + whole_ps);
        assert_int_equal(end_ps(&scene, &trace, bulk),
                         bulk_segments * segment_ps + (fair == 1 ? whole_ps : 2 * hop_ps));
        scene_close(&scene);
    }
}

/* Three collectives that switches copy: the second comes while a cable has the first, the third
 * while it has the second. They follow each other whole, as they came. */
static void what_switches_copy_follows_as_it_came(void **state)
{
    (void)state;
    enum { STREAMS = 3 };
    static const char *const words[STREAMS] = {"first", "second", "third"};
    static const int64_t segments[STREAMS] = {12, 3, 3};
    static const uint64_t flop[STREAMS] = {0, UINT64_C(105000000000), UINT64_C(315000000000)};
    struct scene scene;
    uint32_t const shape[] = {4, 1, 1, 1};
    uint32_t ops[STREAMS];
    scene_open_axes(&scene, shape, 0);
    scene.segment_bytes = SEGMENT_BYTES;
    struct level *level = scene_level(&scene, "switch", 0);
    (void)scene_tier(level, shape, 1, UINT64_C(100000000000), hop_ps);
    level->tier[0].multicasts = true;
    struct group const group = {.dimension[0] = scene_dimension(&scene, 0), .dimension_count = 1};
    for (uint32_t s = 0; s < STREAMS; s++) {
        ops[s] = scene_routed(&scene, scene_stream(&scene, words[s]),
                              primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_SHARP, true), &group,
                              false, (uint64_t)segments[s] * SEGMENT_BYTES / 2, 1);
        name(&scene, ops[s], words[s]);
        if (s > 0) scene_need(&scene, ops[s], scene_compute(&scene, flop[s], 1), 0);
    }
    scene.arbitration = ARBITRATION_FAIR;
    struct trace const trace = scene_run_alike(&scene, 1);
    int64_t until_ps = 2 * hop_ps;
    for (uint32_t s = 0; s < STREAMS; s++) {
        until_ps += 3 * segments[s] * segment_ps;
        assert_int_equal(end_ps(&scene, &trace, ops[s]), until_ps);
    }
    scene_close(&scene);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_message_takes_twice_its_time_and_a_segment),
        cmocka_unit_test(messages_that_pass_by_share_too),
        cmocka_unit_test(what_is_held_up_arrives_so_much_later),
        cmocka_unit_test(what_is_held_up_follows_its_slowest_link),
        cmocka_unit_test(records_say_what_a_message_waited),
        cmocka_unit_test(equals_have_half_each),
        cmocka_unit_test(lanes_of_one_stream_take_turns),
        cmocka_unit_test(alone_nothing_changes),
        cmocka_unit_test(cables_of_switches_are_shared),
        cmocka_unit_test(what_switches_copy_waits_for_no_turns),
        cmocka_unit_test(what_switches_copy_follows_as_it_came),
    };
    return cmocka_run_group_tests_name("arbitration", tests, NULL, NULL);
}
