/*
 * Copies between chips and their hosts: bytes over a link that is a queue, shared with other chips
 * where these share it, and with messages over a DCN; hidden beside compute, or exposed.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/measure/measure.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

enum { NEW_STREAM = PROGRAM_STREAMS_MAX };

static const uint64_t host_bytes_per_s = UINT64_C(16000000000);
static const int64_t latency_ps = TIME_PS_PER_US / 2;

/* Sizes around a piece, and ones that cannot be cut evenly. */
static const uint64_t sizes[] = {1, 999999937, UINT64_C(1) << 22, (UINT64_C(1) << 22) + 1,
                                 UINT64_C(10000000000)};

static int64_t link_ps(uint64_t bytes)
{
    return units_duration_ps(bytes, host_bytes_per_s);
}

static void assert_near_ps(int64_t got_ps, int64_t wanted_ps, int64_t slack_ps)
{
    if (got_ps < wanted_ps - slack_ps || got_ps > wanted_ps + slack_ps)
        fail_msg("wanted %lld ps, got %lld ps", (long long)wanted_ps, (long long)got_ps);
}

static void a_copy_takes_its_latency_and_its_bytes_over_the_rate(void **state)
{
    (void)state;
    static const char *const engines[] = {"fast", "reference"};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t store = 0; store < 2; store++)
            for (uint32_t e = 0; e < 2; e++) {
                struct scene scene;
                scene_open(&scene, 4, 1, 1, true);
                scene.engine = engines[e];
                scene_host(&scene, host_bytes_per_s, latency_ps, 1);
                (void)scene_copy(&scene, NEW_STREAM, store == 1, sizes[i]);
                struct trace const folded = scene_run(&scene, 1, false, false);
                struct trace const full = scene_run(&scene, 1, true, false);
                assert_int_equal(folded.step_ps, latency_ps + link_ps(sizes[i]));
                assert_int_equal(full.step_ps, folded.step_ps);
                assert_int_equal(folded.fold.replayed, 1);
                assert_int_equal(folded.exposed_ps, folded.step_ps);
                const struct trace_link *used =
                    &full.link[machine_host_port(&scene.machine, store == 0)];
                const struct trace_link *other =
                    &full.link[machine_host_port(&scene.machine, store == 1)];
                assert_int_equal(used->sum_bytes, 4 * sizes[i]);
                assert_int_equal(used->busy_ps, link_ps(sizes[i]));
                assert_int_equal(other->sum_bytes, 0);
                scene_close(&scene);
            }
}

/* Two copies of several pieces each, in turns: what is recorded fills their link from the first
 * byte to the last, and a piece waits from the end of its copy's one before it. */
static void records_of_pieces_fill_the_link(void **state)
{
    (void)state;
    enum { COPIES = 2 };
    static const uint64_t copied_bytes[COPIES] = {(UINT64_C(3) << 22) + 1, UINT64_C(5) << 22};
    for (uint32_t store = 0; store < 2; store++) {
        struct scene scene;
        uint8_t stream[COPIES];
        uint64_t bytes[COPIES] = {0};
        uint32_t pieces[COPIES] = {0};
        int64_t came_ps[COPIES] = {latency_ps, latency_ps}, free_ps = latency_ps;
        scene_open(&scene, 1, 1, 1, false);
        scene_host(&scene, host_bytes_per_s, latency_ps, 1);
        for (uint32_t c = 0; c < COPIES; c++)
            stream[c] =
                scene.op[scene_copy(&scene, NEW_STREAM, store == 1, copied_bytes[c])].stream;
        struct trace const trace = scene_run(&scene, 1, true, true);
        for (uint64_t i = 0; i < trace.records.count; i++) {
            const struct trace_record *record = &trace.records.record[i];
            if (record->kind != TRACE_TRANSFER) continue;
            uint32_t const copy = record->stream == stream[1];
            assert_int_equal(record->stream, stream[copy]);
            assert_int_equal(record->port, machine_host_port(&scene.machine, store == 0));
            assert_int_equal(record->from, store == 1 ? 0 : trace_no_chip);
            assert_int_equal(record->to, store == 1 ? trace_no_chip : 0);
            assert_int_equal(record->number, pieces[copy]++);
            assert_int_equal(record->begin_ps, free_ps);
            assert_int_equal(record->wait_ps, record->begin_ps - came_ps[copy]);
            assert_near_ps(record->end_ps - record->begin_ps, link_ps(record->bytes), 100);
            bytes[copy] += record->bytes;
            free_ps = came_ps[copy] = record->end_ps;
        }
        assert_int_equal(free_ps, trace.step_ps);
        for (uint32_t c = 0; c < COPIES; c++) {
            assert_int_equal(bytes[c], copied_bytes[c]);
            assert_true(pieces[c] > 1);
        }
        scene_close(&scene);
    }
}

static void the_two_directions_are_links_apart(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 1, 1, 1, false);
    scene_host(&scene, host_bytes_per_s, latency_ps, 1);
    (void)scene_copy(&scene, NEW_STREAM, true, 1u << 26);
    (void)scene_copy(&scene, NEW_STREAM, false, 1u << 26);
    struct trace const both = scene_run(&scene, 1, false, false);
    assert_int_equal(both.step_ps, latency_ps + link_ps(1u << 26));
    (void)scene_copy(&scene, NEW_STREAM, false, 1u << 26);
    struct trace const three = scene_run(&scene, 1, false, false);
    assert_int_equal(three.step_ps, latency_ps + 2 * link_ps(1u << 26));
    scene_close(&scene);
}

/* Two chips of a CPU have half of its link each, in turns; the last box may hold fewer. */
static void chips_that_share_a_link_have_it_in_turns(void **state)
{
    (void)state;
    static const uint32_t chips[] = {1, 2, 3, 8};
    for (uint32_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        struct scene scene;
        uint64_t const bytes = 1u << 26;
        if (chips[i] == 1)
            scene_open(&scene, 1, 1, 1, false);
        else
            scene_open_node(&scene, chips[i]);
        scene_host(&scene, host_bytes_per_s, latency_ps, 2);
        (void)scene_copy(&scene, NEW_STREAM, false, bytes);
        struct trace const folded = scene_run(&scene, 3, false, false);
        struct trace const full = scene_run(&scene, 3, true, false);
        uint32_t const sharers = host_sharers(&scene.machine);
        assert_int_equal(sharers, chips[i] == 1 ? 1 : 2);
        assert_int_equal(folded.step_ps, full.step_ps);
        assert_int_equal(folded.fold.replayed, chips[i] == 3 ? 3 : sharers);
        /* Each op's latency is passed while the other chip copies, but for the first of all. */
        int64_t const wire_ps = 3 * sharers * link_ps(bytes);
        assert_in_range(full.step_ps, wire_ps + latency_ps, wire_ps + 3 * latency_ps);
        assert_int_equal(full.link[MACHINE_HOST_PORT + 1].link_count, (chips[i] + 1) / 2);
        scene_close(&scene);
    }
}

/* A copy beside a matmul of a given length, layer after layer: the next begins when both are done.
 * Which is longer shows where the crossing is: at flop/rate = latency + bytes/rate. */
static void a_copy_is_hidden_as_long_as_the_matmul_beside_it_is_longer(void **state)
{
    (void)state;
    uint64_t const bytes = UINT64_C(16) * 1000 * 1000;
    int64_t const copy_ps = latency_ps + link_ps(bytes), slack_ps = 2 * TIME_PS_PER_US;
    for (uint32_t percent = 50; percent <= 150; percent += 10) {
        struct scene scene;
        scene_open(&scene, 4, 4, 4, true);
        scene_host(&scene, host_bytes_per_s, latency_ps, 1);
        uint64_t const flop = (uint64_t)copy_ps * percent / 100 * 1000; /* At 1 PFLOP/s. */
        uint32_t const matmul = scene_compute(&scene, flop, 1);
        uint32_t const store = scene_copy(&scene, NEW_STREAM, true, bytes);
        scene_need(&scene, matmul, store, -1);
        scene_need(&scene, store, matmul, -1);
        struct trace const trace = scene_run(&scene, 10, false, false);
        int64_t const matmul_ps = copy_ps * percent / 100;
        int64_t const longer_ps = matmul_ps > copy_ps ? matmul_ps : copy_ps;
        assert_near_ps(trace.step_ps, 10 * longer_ps, slack_ps);
        assert_near_ps(trace.exposed_ps, 10 * (longer_ps - matmul_ps), slack_ps);
        assert_near_ps(trace.links_ps[1 << MACHINE_AXES_MAX],
                       10 * (matmul_ps < copy_ps ? matmul_ps : copy_ps), slack_ps);
        scene_close(&scene);
    }
}

/* Bytes that a copy writes are HBM time that an op bound by HBM does not get. */
static void copies_take_time_of_hbm(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        struct scene scene;
        scene_open(&scene, 1, 1, 1, false);
        /* A fifth of HBM's 10 TB/s: less than would make HBM hold the copy up. */
        scene_host(&scene, UINT64_C(2000000000000), latency_ps, 1);
        uint32_t const op = scene_compute(&scene, 8 * 2 * 128 * 128, 1);
        scene.work[0].hbm_read_bytes = UINT64_C(10000000000);
        assert_int_equal(op, 0);
        struct trace const alone = scene_run(&scene, 1, false, false);
        (void)scene_copy(&scene, NEW_STREAM, store == 1, UINT64_C(1000000000));
        struct trace const overlap = scene_run(&scene, 1, false, false);
        assert_near_ps(overlap.step_ps - alone.step_ps, 100 * TIME_PS_PER_US, TIME_PS_PER_US);
        assert_near_ps(overlap.dma_ps, 100 * TIME_PS_PER_US, 1000);
        scene_close(&scene);
    }
}

/* Where HBM is slower than the link it sets the pace, and is not asked for more than it has. */
static void hbm_holds_up_a_link_that_is_faster(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        struct scene scene;
        scene_open(&scene, 1, 1, 1, false);
        scene_host(&scene, UINT64_C(20000000000000), latency_ps, 1);
        (void)scene_copy(&scene, NEW_STREAM, store == 1, UINT64_C(10000000000));
        struct trace const trace = scene_run(&scene, 1, false, false);
        assert_near_ps(trace.step_ps, 1000 * TIME_PS_PER_US, 2 * TIME_PS_PER_US);
        scene_close(&scene);
    }
}

static void without_a_link_a_copy_is_refused(void **state)
{
    (void)state;
    struct scene scene;
    struct trace trace;
    scene_open(&scene, 1, 1, 1, false);
    (void)scene_copy(&scene, NEW_STREAM, true, 1);
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_UNSUPPORTED,
                 "/machine", "no link to a host");
    scene_close(&scene);
}

/* 20 days are; three times that is beyond the end of time. */
static void copies_that_last_too_long_are_refused(void **state)
{
    (void)state;
    struct scene scene;
    struct trace trace;
    scene_open(&scene, 1, 1, 1, false);
    scene_host(&scene, host_bytes_per_s, latency_ps, 1);
    (void)scene_copy(&scene, NEW_STREAM, true, 20 * UINT64_C(86400) * host_bytes_per_s);
    case_ok(scene_try(&scene, 1, false, false, &trace, &case_error));
    case_refused(scene_try(&scene, 3, false, false, &trace, &case_error), STATUS_LIMIT, "/run",
                 "longer than 53 days");
    scene.copy[0].size_bytes *= 2;
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_LIMIT, "/run",
                 "longer than 26 days");
    scene_close(&scene);
}

static void party_run(const struct machine *machine, const struct measure_party *party,
                      const char *engine, bool full, struct measured *ret_measured)
{
    struct measure_options const options = {.engine = engine, .full = full};
    case_ok(measure_party_run(case_arena, machine, party, "/test", &options, ret_measured,
                              &case_error));
}

/* Messages between slices leave by the PCIe link that copies take: together they keep it busy for
 * the sum of their bytes, and a copy beside many of them is slower than alone. */
static void copies_and_messages_between_slices_share_pcie(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x4,slices=8");
    assert_int_equal(machine.host.level, 0);
    struct plan_request request = {.kind = COLLECTIVE_ALL_TO_ALL, .size_bytes = 1u << 28};
    request.group.dimension[0] =
        (struct group_dimension){.axis = 2, .size = 8, .stride = 1, .switched = true};
    request.group.dimension_count = 1;
    struct program_copy const copy = {.to_host = true, .size_bytes = 1u << 28};
    struct measure_party const exchange = {.requests = &request, .request_count = 1};
    struct measure_party const alone = {.copies = &copy, .copy_count = 1};
    struct measure_party const both = {&request, 1, &copy, 1};
    struct measured apart, stored, together;
    uint32_t const up = machine_host_port(&machine, false);
    party_run(&machine, &exchange, "fast", false, &apart);
    party_run(&machine, &alone, "fast", false, &stored);
    party_run(&machine, &both, "fast", false, &together);
    assert_int_equal(stored.time_ps[0], latency_ps + units_duration_ps(1u << 28, host_bytes_per_s));
    assert_int_equal(together.trace.link[up].bytes,
                     apart.trace.link[up].bytes + stored.trace.link[up].bytes);
    assert_int_equal(together.trace.link[up].busy_ps,
                     apart.trace.link[up].busy_ps + stored.trace.link[up].busy_ps);
    assert_true(together.time_ps[1] > stored.time_ps[0]);
    assert_true(together.time_ps[1] <= stored.time_ps[0] + apart.trace.link[up].busy_ps);
    /* On the ring of slices nothing is odd: all of it plays the same, whole and by a plain queue.
     */
    struct measured whole;
    party_run(&machine, &both, "reference", true, &whole);
    assert_int_equal(whole.time_ps[0], together.time_ps[0]);
    assert_int_equal(whole.time_ps[1], together.time_ps[1]);
}

static void the_host_of_a_machine_is_what_its_chip_says(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *cable;
        uint64_t bytes_per_s;
        uint32_t sharers;
    } rows[] = {
        {"tpu-v5e:4x4", "PCIe", UINT64_C(16000000000), 1},
        {"tpu-v6e:4x4", "PCIe", UINT64_C(32000000000), 1},
        {"h100-sxm", "PCIe", UINT64_C(64000000000), 1},
        {"a100-sxm", "PCIe", UINT64_C(32000000000), 1},
        {"gh200-nvl32", "C2C", UINT64_C(450000000000), 1},
        {"gb200-nvl72", "C2C", UINT64_C(450000000000), 2},
        {"gb200-nvl72:gpus=1", "C2C", UINT64_C(450000000000), 1},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i].machine);
        assert_string_equal(machine.host.cable_name, rows[i].cable);
        assert_int_equal(machine.host.bytes_per_s, rows[i].bytes_per_s);
        assert_int_equal(host_sharers(&machine), rows[i].sharers);
        char name[16];
        (void)snprintf(name, sizeof name, "%s down", rows[i].cable);
        assert_string_equal(machine_port_name(&machine, machine_host_port(&machine, true)), name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_takes_its_latency_and_its_bytes_over_the_rate),
        cmocka_unit_test(records_of_pieces_fill_the_link),
        cmocka_unit_test(the_two_directions_are_links_apart),
        cmocka_unit_test(chips_that_share_a_link_have_it_in_turns),
        cmocka_unit_test(a_copy_is_hidden_as_long_as_the_matmul_beside_it_is_longer),
        cmocka_unit_test(copies_take_time_of_hbm),
        cmocka_unit_test(hbm_holds_up_a_link_that_is_faster),
        cmocka_unit_test(without_a_link_a_copy_is_refused),
        cmocka_unit_test(copies_that_last_too_long_are_refused),
        cmocka_unit_test(copies_and_messages_between_slices_share_pcie),
        cmocka_unit_test(the_host_of_a_machine_is_what_its_chip_says),
    };
    return cmocka_run_group_tests_name("host", tests, case_arena_up, case_arena_down);
}
