/* What reports say of a step, from a program and a trace that are made by hand. */
#include "tests/unit/analysis_case.h"

/* Hops are those in series, each as long as its way with what a message takes; the bandwidth is
 * that of nccl-tests, over the five slots in which the op runs. */
static void collectives_have_hops_and_bandwidth(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *axes;
        enum collective_kind kind;
        const char *algorithm;
        double hop_us, factor;
        uint32_t ranks, bits;
    } rows[] = {
        {"tpu-v5p:4x4x4", "x", COLLECTIVE_ALL_GATHER, "ring-one-way", 4.5, 3.0 / 4, 4, 1},
        {"tpu-v5p:4x4x4", "x", COLLECTIVE_REDUCE_SCATTER, "ring", 3, 3.0 / 4, 4, 1},
        {"tpu-v5p:4x4x4", "y", COLLECTIVE_ALL_REDUCE, "ring-one-way", 9, 6.0 / 4, 4, 2},
        {"tpu-v5p:4x4x8", "z", COLLECTIVE_ALL_TO_ALL, "ring", 6, 7.0 / 64, 8, 4},
        {"tpu-v5p:4x4x4", "x,y", COLLECTIVE_ALL_GATHER, "ring-one-way", 9, 15.0 / 16, 16, 3},
        {"h100-sxm:nodes=4", "gpu", COLLECTIVE_ALL_GATHER, "direct", 1.1, 7.0 / 8, 8, 1},
        {"h100-sxm:nodes=4", "gpu", COLLECTIVE_ALL_REDUCE, "direct", 2.2, 14.0 / 8, 8, 1},
        {"h100-sxm:nodes=4", NULL, COLLECTIVE_ALL_GATHER, "direct", 3.05, 31.0 / 32, 32, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        on(rows[i].machine);
        (void)plan_on(rows[i].axes, rows[i].kind, rows[i].algorithm);
        (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
        made.classes[0].count = 5;
        made.classes[0].busy_ps = PER_SECOND / 1000;
        build();
        const struct analysis_class *row = &made.analysis.classes[0];
        case_near(row->hop_s * 1e6, rows[i].hop_us, 1e-9);
        case_near(row->bytes, 5e6, 1e-9);
        case_near(row->busbw_bytes_per_s, rows[i].factor * 5e9, 1e-9);
        assert_int_equal(row->rank_count, rows[i].ranks);
        assert_int_equal(row->axis_bits, rows[i].bits);
        assert_string_equal(row->kind, collective_kind_name(rows[i].kind));
        assert_string_equal(row->axis, "fsdp");
        assert_string_equal(row->algorithm, made.plan[0].algorithm_name);
        assert_int_equal(row->runs, rows[i].kind);
        assert_int_equal(row->of, STREAM_OF_FSDP);
        assert_int_equal(row->verb, STREAM_GATHER);
    }
    assert_string_equal(made.analysis.classes[0].machine_axes, "node gpu");
}

/* Members two chips apart hop twice as far; a stream that says nothing keeps its name. */
static void a_stride_is_part_of_each_hop(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x8");
    plan_on("z", COLLECTIVE_ALL_GATHER, "ring-one-way")->group.dimension[0].stride = 2;
    (void)op_add(PROGRAM_OP_COLLECTIVE, 4, 0);
    build();
    case_near(made.analysis.classes[0].hop_s * 1e6, 7 * 2.5, 1e-9);
    assert_string_equal(made.analysis.classes[0].axis, "");
}

/* Two ops of a class are one row: the first says what it is, both count. */
static void ops_of_a_class_share_a_row(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    (void)plan_on("x", COLLECTIVE_ALL_GATHER, "ring-one-way");
    made.plan[1] = *plan_on("y", COLLECTIVE_ALL_REDUCE, "ring");
    (void)plan_on("x", COLLECTIVE_ALL_GATHER, "ring-one-way");
    made.plan[1].size_bytes = 3 * MEGABYTE;
    (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
    op_add(PROGRAM_OP_COLLECTIVE, 1, 1)->class_index = 0;
    (void)op_add(PROGRAM_OP_RECEIVE, 5, 0);
    build();
    case_near(made.analysis.classes[0].bytes, 20e6, 1e-9);
    assert_string_equal(made.analysis.classes[0].kind, "AllGather");
    assert_true(made.analysis.classes[0].busbw_bytes_per_s == 0.75); /* No time: the factor. */
    assert_true(made.analysis.classes[2].receives && !made.analysis.classes[2].collective);
    assert_false(made.analysis.classes[0].receives);
}

static double sent_us(const struct plan_request *request)
{
    made.templates[0].op_count = 0;
    made.plan[0] = case_plan(request);
    (void)op_add(PROGRAM_OP_SEND, 1, 0);
    made.classes[0].busy_ps = PER_SECOND / 1000;
    build();
    const struct analysis_class *row = &made.analysis.classes[0];
    assert_string_equal(row->kind, "send");
    assert_int_equal(row->rank_count, 2);
    case_near(row->busbw_bytes_per_s, 5e9, 1e-9);
    return row->hop_s * 1e6;
}

/* A message goes as far as its permute says: an offset, a mirror image, or ranks over levels. */
static void messages_hop_as_far_as_they_go(void **state)
{
    (void)state;
    on("tpu-v5p:8x4x4");
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = case_group(&made.machine, "x"),
                                   .size_bytes = MEGABYTE,
                                   .offset = {1}};
    plan_request_links(&made.machine, &request);
    case_near(sent_us(&request), 1.5, 1e-9);
    request.offset[0] = -2;
    case_near(sent_us(&request), 2.5, 1e-9);
    request.offset[0] = 0;
    request.mirrors = true;
    made.program.role_count = 4;
    made.program.role_stride = 2;
    static const double ring_us[] = {1.5, 3.5, 3.5, 1.5}, line_us[] = {7.5, 5.5, 3.5, 1.5};
    for (uint32_t closed = 0; closed < 2; closed++)
        for (uint32_t role = 0; role < 4; role++) {
            request.group.dimension[0].ring = closed != 0;
            made.trace.reported_chip = machine_chip_at(
                &made.machine, (const uint32_t[MACHINE_AXES_MAX]){2 * role, 0, 0, 0});
            case_near(sent_us(&request), closed != 0 ? ring_us[role] : line_us[role], 1e-9);
        }
    on("h100-sxm:nodes=4");
    request = (struct plan_request){.kind = COLLECTIVE_PERMUTE,
                                    .group = case_group(&made.machine, NULL),
                                    .size_bytes = MEGABYTE,
                                    .shift = 1};
    plan_request_links(&made.machine, &request);
    case_near(sent_us(&request), 1.1, 1e-9);
}

static void copies_are_of_the_link_to_the_host(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    made.machine.host.cable_name = "a cable";
    made.machine.host.latency_ps = 2000000;
    made.machine.host.bytes_per_s = 10 * MEGABYTE;
    made.copy[0] = (struct program_copy){.to_host = true, .size_bytes = MEGABYTE};
    made.copy[1] = (struct program_copy){.to_host = false, .size_bytes = MEGABYTE / 10 * 11};
    (void)op_add(PROGRAM_OP_COPY, 5, 0);
    (void)op_add(PROGRAM_OP_COPY, 6, 1);
    made.classes[0].busy_ps = made.classes[1].busy_ps = PER_SECOND / 1000;
    build();
    for (uint32_t i = 0; i < 2; i++) {
        const struct analysis_class *row = &made.analysis.classes[i];
        assert_true(row->collective);
        assert_string_equal(row->kind, i == 0 ? "store" : "load");
        assert_string_equal(row->algorithm, "copy");
        assert_string_equal(row->machine_axes, "a cable");
        assert_int_equal(row->axis_bits, ANALYSIS_HOST_BIT);
        assert_int_equal(row->rank_count, 1);
        case_near(row->hop_s * 1e6, 2, 1e-9);
        case_near(row->bytes, i == 0 ? 5e6 : 5.5e6, 1e-9);
        case_near(row->busbw_bytes_per_s, i == 0 ? 5e9 : 5.5e9, 1e-9);
    }
    /* The busier way, and nothing else is busy. */
    assert_string_equal(made.analysis.bound_by, "host");
    case_near(made.analysis.bound_share, 0.55, 1e-9);
    assert_null(made.analysis.bound_axis);
}

static void latency_is_idle_time_and_hops_that_are_awaited(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    (void)plan_on("x", COLLECTIVE_ALL_GATHER, "ring-one-way");
    (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
    (void)op_add(PROGRAM_OP_COLLECTIVE, 2, 0);
    (void)op_add(PROGRAM_OP_COLLECTIVE, 3, 0);
    made.trace.compute_ps = PER_SECOND / 2;
    made.trace.exposed_ps = PER_SECOND / 4;
    made.trace.idle_ps = PER_SECOND / 4;
    build();
    assert_string_equal(made.analysis.bound_by, "latency");
    case_near(made.analysis.bound_share, 0.25 + 2 * 5 * 4.5e-6, 1e-9);
    made.trace.exposed_ps = PER_SECOND / 2 - 1000000;
    made.trace.idle_ps = 1000000;
    made.machine.chip.hop_latency_ps = PER_SECOND;
    build();
    case_near(made.analysis.bound_share, 0.5, 1e-9);
}

/* What tokens' experts wait for counts, and what ends with the step does not. */
static void exchanges_are_awaited_and_late_sums_are_not(void **state)
{
    (void)state;
    static const struct {
        struct stream_use use;
        uint8_t urgency;
        double hops;
    } rows[] = {{{STREAM_DISPATCH, STREAM_OF_EP}, 0, 1}, {{STREAM_SUM, STREAM_OF_TP}, 2, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        on("tpu-v5p:4x4x4");
        (void)plan_on("x", COLLECTIVE_ALL_GATHER, "ring-one-way");
        made.program.stream[1].use = rows[i].use;
        made.program.stream[1].urgency = rows[i].urgency;
        (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
        made.trace.compute_ps = PER_SECOND / 2;
        made.trace.exposed_ps = PER_SECOND / 4;
        made.trace.idle_ps = PER_SECOND / 4;
        build();
        case_near(made.analysis.bound_share, 0.25 + rows[i].hops * 5 * 4.5e-6, 1e-9);
    }
}

/* A pipeline's idle time is for messages that are on their way, or a bubble. */
static void a_bubble_is_no_latency(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    made.trace.compute_ps = PER_SECOND / 2;
    made.trace.idle_ps = PER_SECOND / 2;
    made.trace.waiting_ps = PER_SECOND / 8;
    build();
    assert_true(made.analysis.bubble_s == 0 && !made.analysis.bound_is_idle);
    assert_string_equal(made.analysis.bound_by, "latency");
    case_near(made.analysis.bound_share, 0.5, 1e-9);
    made.program.role_count = 2;
    build();
    case_near(made.analysis.bubble_s, 0.375, 1e-9);
    case_near(made.analysis.waiting_s, 0.125, 1e-9);
    assert_true(made.analysis.bound_is_idle);
    assert_string_equal(made.analysis.bound_by, "bubble");
    case_near(made.analysis.bound_share, 0.375, 1e-9);
    assert_null(made.analysis.runner_up);
    made.trace.waiting_ps = PER_SECOND / 32 * 9;
    build();
    assert_true(made.analysis.bound_is_idle);
    assert_string_equal(made.analysis.bound_by, "waiting");
    case_near(made.analysis.bound_share, 9.0 / 32, 1e-9);
}

/* An axis counts by its busier direction; a level by the busiest of all its tiers. */
static void the_busiest_port_of_an_axis_counts(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    made.trace.link[3].busy_ps = PER_SECOND / 2;
    made.trace.queue_busy_ps[TRACE_QUEUE_VMEM] = PER_SECOND / 1000 * 475;
    build();
    assert_string_equal(made.analysis.bound_by, "ici");
    assert_string_equal(made.analysis.bound_axis, "y");
    case_near(made.analysis.bound_share, 0.5, 1e-9);
    assert_string_equal(made.analysis.runner_up, "vmem");
    assert_null(made.analysis.runner_up_axis);
    case_near(made.analysis.runner_up_share, 0.475, 1e-9);
    made.trace.queue_busy_ps[TRACE_QUEUE_VMEM]--;
    build();
    assert_null(made.analysis.runner_up);
    made.trace.link[4].busy_ps = PER_SECOND / 1000 * 480; /* The same name, along another axis. */
    build();
    assert_string_equal(made.analysis.runner_up, "ici");
    assert_string_equal(made.analysis.runner_up_axis, "z");
    on("h100-sxm:nodes=64");
    uint32_t const top = made.machine.level[1].tier_count - 1;
    assert_true(top > 0);
    for (uint32_t down = 0; down < 2; down++) {
        struct trace_link *link = &made.trace.link[machine_level_port(1, top, down != 0)];
        link->busy_ps = PER_SECOND / 2;
        made.trace.link[machine_level_port(0, 0, false)].busy_ps = PER_SECOND / 4;
        build();
        assert_string_equal(made.analysis.bound_by, made.machine.level[1].name);
        assert_string_equal(made.analysis.bound_axis, "node");
        case_near(made.analysis.bound_share, 0.5, 1e-9);
        link->busy_ps = 0;
    }
    build();
    assert_string_equal(made.analysis.bound_axis, "gpu");
    case_near(made.analysis.bound_share, 0.25, 1e-9);
}

/* Phases that have no time are left out. What a stream's collectives take falls into the phases in
 * which they ran, on each axis of their group, and no axis is busy for longer than the phase. */
/* Three quarters of a reduction over x and y run in the forward pass, and its links' time is there
 * as far as it was busy: x for 40 ms, y for 80. */
static void phases_share_what_streams_did(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    (void)plan_on("x,y", COLLECTIVE_ALL_REDUCE, "ring-one-way");
    (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
    made.workload.algorithm = algorithm_read("ring-one-way");
    struct trace_phase *forward = &made.trace.phase[PROGRAM_PHASE_FORWARD];
    struct trace_phase *update = &made.trace.phase[PROGRAM_PHASE_UPDATE];
    made.trace.phase[PROGRAM_PHASE_BACKWARD].begin_ps = 7;
    made.trace.phase[PROGRAM_PHASE_BACKWARD].end_ps = 7;
    *forward = (struct trace_phase){.end_ps = PER_SECOND / 4,
                                    .compute_ps = PER_SECOND / 8,
                                    .exposed_ps = PER_SECOND / 16,
                                    .idle_ps = PER_SECOND / 16,
                                    .hbm_ps = PER_SECOND / 10};
    *update = (struct trace_phase){
        .begin_ps = PER_SECOND / 4, .end_ps = PER_SECOND / 2, .compute_ps = 1000000};
    forward->stream_ps[1] = 300;
    update->stream_ps[1] = 100;
    made.trace.link[1].busy_ps = PER_SECOND / 25;
    made.trace.link[2].busy_ps = 2 * PER_SECOND / 25;
    made.trace.link[4].busy_ps = PER_SECOND; /* Of what no collective is along. */
    build();
    assert_int_equal(made.analysis.phase_count, 2);
    const struct analysis_phase *phase = made.analysis.phase;
    assert_string_equal(phase[0].name, "forward");
    assert_string_equal(phase[1].name, "update");
    assert_true(!phase[0].is_update && phase[1].is_update);
    case_near(phase[0].end_s, 0.25, 1e-9);
    case_near(phase[1].begin_s, 0.25, 1e-9);
    case_near(phase[0].compute_s, 0.125, 1e-9);
    case_near(phase[0].exposed_s, 0.0625, 1e-9);
    case_near(phase[0].idle_s, 0.0625, 1e-9);
    case_near(phase[0].ici_s[0], 0.75 * 0.04, 1e-9);
    case_near(phase[0].ici_s[1], 0.75 * 0.08, 1e-9);
    assert_true(phase[0].ici_s[2] == 0);
    assert_string_equal(phase[0].bound_by, "hbm");
    case_near(phase[1].ici_s[0], 1e-6, 1e-9);
    assert_string_equal(phase[1].bound_by, "ici");
    /* A gather over x in the update has its part of the time of x, and none of y's. */
    made.plan[1] = *plan_on("x", COLLECTIVE_ALL_GATHER, "ring-one-way");
    (void)plan_on("x,y", COLLECTIVE_ALL_REDUCE, "ring-one-way");
    (void)op_add(PROGRAM_OP_COLLECTIVE, 2, 1);
    made.program.stream[2].use = (struct stream_use){STREAM_GATHER, STREAM_OF_FSDP};
    update->stream_ps[2] = 5;
    build();
    double const once_s = 5.0 * (double)MEGABYTE * 3 / 4 / 90e9;
    double const both_s = 5.0 * 2 * (double)MEGABYTE * 15 / 16 / 2 / 90e9;
    case_near(made.analysis.phase[0].ici_s[0], 0.04 * 0.75 * both_s / (both_s + once_s), 1e-9);
    case_near(made.analysis.phase[0].ici_s[1], 0.75 * 0.08, 1e-9);
    /* Half of an exchange crosses the middle of x, half of that each way, on eight links. */
    (void)plan_on("x,y", COLLECTIVE_ALL_TO_ALL, "ring");
    build();
    double const crossing_s = 5.0 * (double)MEGABYTE / 4 / 8 / 90e9;
    case_near(made.analysis.phase[0].ici_s[0], 0.04 * 0.75 * crossing_s / (crossing_s + once_s),
              1e-9);
}

/* Through a switch a member of n sends (n-1)/n of its own n-th of an exchange, and of a gather
 * it gets (n-1)/n of all. */
static void an_exchange_through_a_switch_takes_an_nth_of_a_gather(void **state)
{
    (void)state;
    on("h100-sxm:nodes=4");
    made.workload.algorithm = algorithm_read("direct");
    made.plan[1] = *plan_on("gpu", COLLECTIVE_ALL_GATHER, "direct");
    (void)plan_on("gpu", COLLECTIVE_ALL_TO_ALL, "direct");
    (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
    (void)op_add(PROGRAM_OP_COLLECTIVE, 2, 1);
    struct trace_phase *forward = &made.trace.phase[PROGRAM_PHASE_FORWARD];
    struct trace_phase *update = &made.trace.phase[PROGRAM_PHASE_UPDATE];
    *forward = (struct trace_phase){.end_ps = PER_SECOND, .compute_ps = PER_SECOND};
    *update = (struct trace_phase){
        .begin_ps = PER_SECOND, .end_ps = 2 * PER_SECOND, .compute_ps = PER_SECOND};
    forward->stream_ps[1] = update->stream_ps[2] = 100;
    made.trace.link[machine_level_port(0, 0, false)].busy_ps = PER_SECOND / 25;
    build();
    case_near(made.analysis.phase[0].ici_s[0], 0.04 / 9, 1e-9);
    case_near(made.analysis.phase[1].ici_s[0], 0.04 * 8 / 9, 1e-9);
}

static void a_phase_is_bound_by_what_is_busiest_in_it(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    made.machine.host.bytes_per_s = 10 * MEGABYTE;
    made.copy[0] = (struct program_copy){.to_host = true, .size_bytes = MEGABYTE};
    (void)op_add(PROGRAM_OP_COPY, 5, 0);
    struct trace_phase *phase = &made.trace.phase[PROGRAM_PHASE_BACKWARD];
    *phase = (struct trace_phase){.end_ps = PER_SECOND, .idle_ps = PER_SECOND / 16};
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "latency"); /* Copies took no time. */
    made.trace.phase[PROGRAM_PHASE_FORWARD].stream_ps[5] = 3;
    phase->stream_ps[5] = 1; /* A quarter of half a second. */
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "host");
    phase->idle_ps = PER_SECOND / 8 + 1;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "latency");
    made.program.role_count = 2;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "bubble");
    phase->waiting_ps = phase->idle_ps;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "waiting");
    phase->waiting_ps = 0;
    phase->mxu_ps = PER_SECOND / 8 + 2;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "mxu");
    phase->vpu_ps = PER_SECOND / 8 + 3;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "vpu");
    phase->vmem_ps = PER_SECOND / 8 + 4;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "vmem");
}

/* A reduction of 1 MB over 16 chips, three quarters of it in the backward pass, took HBM for 0.4 s
 * and the VPU for 0.2 s, beside ops that took HBM for 0.1 s there and 0.3 s in the update. */
static void a_phase_has_what_messages_took_in_it(void **state)
{
    (void)state;
    on("tpu-v5p:4x4x4");
    (void)plan_on("x,y", COLLECTIVE_ALL_REDUCE, "ring-one-way");
    (void)op_add(PROGRAM_OP_COLLECTIVE, 1, 0);
    struct trace_phase *backward = &made.trace.phase[PROGRAM_PHASE_BACKWARD];
    struct trace_phase *update = &made.trace.phase[PROGRAM_PHASE_UPDATE];
    int64_t const tenth_ps = PER_SECOND / 10;
    *backward = (struct trace_phase){
        .end_ps = PER_SECOND / 2, .compute_ps = PER_SECOND / 2, .mxu_ps = 3 * tenth_ps};
    *update = (struct trace_phase){.begin_ps = PER_SECOND / 2,
                                   .end_ps = PER_SECOND,
                                   .compute_ps = PER_SECOND / 2,
                                   .hbm_ps = 3 * tenth_ps};
    backward->hbm_ps = tenth_ps;
    backward->stream_ps[1] = 300;
    update->stream_ps[1] = 100;
    made.trace.queue_busy_ps[TRACE_QUEUE_MXU] = 3 * tenth_ps;
    made.trace.queue_busy_ps[TRACE_QUEUE_HBM] = (1 + 3) * tenth_ps;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "mxu");
    made.trace.queue_busy_ps[TRACE_QUEUE_HBM] += 4 * tenth_ps;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "hbm"); /* 0.1 s + 3/4 of 0.4 s. */
    backward->vpu_ps = 27 * tenth_ps / 10;
    made.trace.queue_busy_ps[TRACE_QUEUE_VPU] = backward->vpu_ps + 2 * tenth_ps;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "vpu"); /* 0.27 s + 3/4 of 0.2 s. */
    assert_string_equal(made.analysis.phase[1].bound_by, "hbm");
    (void)plan_on("x,y", COLLECTIVE_ALL_GATHER, "ring-one-way"); /* It adds nothing. */
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "hbm");
    /* Messages fill no more than the phase. */
    made.trace.queue_busy_ps[TRACE_QUEUE_HBM] += 4 * tenth_ps;
    backward->mxu_ps = PER_SECOND / 2 + 1;
    build();
    assert_string_equal(made.analysis.phase[0].bound_by, "mxu");
}

static void rates_are_of_the_step_and_of_the_period(void **state)
{
    (void)state;
    struct roofline roofline = {.lower_s = 0.5};
    on("tpu-v5p:4x4x4");
    made.program.tokens = 4000;
    made.trace.fold.chips = 64;
    made.trace.step_ps = made.trace.compute_ps = PER_SECOND / 2;
    made.trace.period.time = PER_SECOND / 4;
    roofline.rates.peak_flop_per_s = 100;
    roofline.flop.useful = 320;
    roofline.flop.useful_attention = 160;
    roofline.flop.executed = 640;
    build();
    assert_true(made.analysis.mfu == 0 && made.analysis.hfu == 0);
    made.input.roofline = &roofline;
    build();
    case_near(made.analysis.tokens_per_s, 8000, 1e-9);
    case_near(made.analysis.mfu, 0.1, 1e-9);
    case_near(made.analysis.mfu_attention, 0.15, 1e-9);
    case_near(made.analysis.hfu, 0.2, 1e-9);
    case_near(made.analysis.period.time_s, 0.25, 1e-9);
    case_near(made.analysis.period.tokens_per_s, 16000, 1e-9);
    case_near(made.analysis.period.mfu, 0.2, 1e-9);
    case_near(made.analysis.period.mfu_attention, 0.3, 1e-9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, case_arena_up, case_arena_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(collectives_have_hops_and_bandwidth),
        TEST(a_stride_is_part_of_each_hop),
        TEST(ops_of_a_class_share_a_row),
        TEST(messages_hop_as_far_as_they_go),
        TEST(copies_are_of_the_link_to_the_host),
        TEST(latency_is_idle_time_and_hops_that_are_awaited),
        TEST(exchanges_are_awaited_and_late_sums_are_not),
        TEST(a_bubble_is_no_latency),
        TEST(the_busiest_port_of_an_axis_counts),
        TEST(phases_share_what_streams_did),
        TEST(an_exchange_through_a_switch_takes_an_nth_of_a_gather),
        TEST(a_phase_is_bound_by_what_is_busiest_in_it),
        TEST(a_phase_has_what_messages_took_in_it),
        TEST(rates_are_of_the_step_and_of_the_period),
    };
    return cmocka_run_group_tests_name("analysis", tests, NULL, NULL);
}
