/* Notes of a step made by hand: its parts above the bound, replicas, the host. */
#include "sim/base/units.h"
#include "sim/report/notes_host.h"
#include "sim/report/notes_parts.h"
#include "sim/report/notes_replicas.h"
#include "sim/report/notes_upper.h"
#include "tests/unit/notes_case.h"

struct part {
    const char *name;
    double seconds;
};

static void parts_are(const struct part *wanted, uint32_t count)
{
    notes_case_again();
    notes_parts_build(case_arena, &made.input, &made.analysis, &made.notes);
    for (uint32_t i = 0; i < count && i < made.notes.part_count; i++) {
        if (strcmp(made.notes.part[i].name, wanted[i].name) != 0) notes_case_print();
        assert_string_equal(made.notes.part[i].name, wanted[i].name);
        case_near(made.notes.part[i].seconds, wanted[i].seconds, 1e-9);
    }
    if (made.notes.part_count != count) notes_case_print();
    assert_int_equal(made.notes.part_count, count);
}

/* Bound by math: what is exposed, idle, waits for HBM, is more than a mean rank's, and the rest. */
static void parts_above_math_are_named_longest_first(void **state)
{
    (void)state;
    (void)notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.3, 0.0625);
    (void)notes_case_collective("AllReduce dW", STREAM_OF_DP, 0.3, 0);
    (void)notes_case_collective("AllGather In", STREAM_OF_TP, 0.3, 0.0625);
    struct analysis_class *row = notes_case_class("matmul");
    row->beyond_s[ANALYSIS_MXU][ANALYSIS_HBM] = 0.03125;
    row->beyond_s[ANALYSIS_HBM][ANALYSIS_MXU] = 0.0234375;
    row->beyond_s[ANALYSIS_HBM][ANALYSIS_VPU] = 0.0078125;
    row->hbm_excess_s = 5;
    notes_case_collective("ReduceScatter Out", STREAM_OF_TP, 0.5, 0)
        ->beyond_s[ANALYSIS_MXU][ANALYSIS_HBM] = 5;
    made.analysis.compute_s = 0.8125;
    made.analysis.idle_s = 0.125;
    struct part const alike[] = {{"neither compute nor collectives", 0.125},
                                 {"AllGather W exposed", 0.0625},
                                 {"AllGather In exposed", 0.0625},
                                 {"compute ops that wait for HBM rather than the MXU", 0.03125},
                                 {"compute beyond the bound: fill and drain of tiles, overheads, "
                                  "HBM shared",
                                  0.03125}};
    parts_are(alike, 5);
    assert_ptr_equal(made.notes.part[2].of, &made.class[2]);
    assert_null(made.notes.part[0].of);
    /* Where HBM is the bound, waiting for it is none of the parts, but for the MXU and the VPU. */
    made.roofline.bound.resource = ROOFLINE_HBM;
    struct part const hbm[] = {{"neither compute nor collectives", 0.125},
                               {"AllGather W exposed", 0.0625},
                               {"AllGather In exposed", 0.0625},
                               {"compute beyond the bound: fill and drain of tiles, overheads, "
                                "HBM shared",
                                0.03125},
                               {"compute ops that wait for the MXU rather than HBM", 0.0234375},
                               {"compute ops that wait for the VPU rather than HBM", 0.0078125}};
    parts_are(hbm, 6);
}

/* A pipeline's bound is a mean rank's. */
static void parts_of_a_pipeline_are_against_its_mean_rank(void **state)
{
    (void)state;
    struct trace_role roles[2] = {{.compute_ps = TIME_PS_PER_S / 4},
                                  {.compute_ps = TIME_PS_PER_S / 4 * 3}};
    made.program.role_count = made.trace.role_count = 2;
    made.trace.roles = roles;
    made.trace.compute_ps = TIME_PS_PER_S / 4 * 3;
    made.analysis.compute_s = 0.75;
    made.analysis.bubble_s = 0.1875;
    made.analysis.waiting_s = 0.0625;
    made.analysis.idle_s = 0.25;
    struct part const more[] = {
        {"compute of this rank beyond a mean one of the pipeline", 0.25},
        {"bubbles: waiting for what other ranks of the pipeline do", 0.1875},
        {"waiting for messages of other ranks that are on their way", 0.0625},
        {"less the bound's work during what is listed here", -0.25}};
    parts_are(more, 4);
    made.roofline.lower_s = made.roofline.math_s = 0.5;
    made.trace.compute_ps = TIME_PS_PER_S / 4;
    made.analysis.compute_s = 0.25;
    struct part const less[] = {
        {"bubbles: waiting for what other ranks of the pipeline do", 0.1875},
        {"waiting for messages of other ranks that are on their way", 0.0625},
        {"less what a mean rank of the pipeline computes more than this one", -0.25}};
    parts_are(less, 3);
    /* Some of a mean rank's 0.5 s are beyond the bound: more than this rank's 0.25 s in all. */
    made.roofline.lower_s = made.roofline.math_s = 0.1875;
    struct part const mean[] = {
        {"a mean rank beyond the bound: fill and drain of tiles, overheads, HBM shared", 0.3125},
        {"bubbles: waiting for what other ranks of the pipeline do", 0.1875},
        {"waiting for messages of other ranks that are on their way", 0.0625},
        {"less what a mean rank of the pipeline computes more than this one", -0.25}};
    parts_are(mean, 4);
}

/* Bound by the links of an axis: what is exposed on them is within the bound. */
static void parts_above_links_are_what_leaves_them_idle(void **state)
{
    (void)state;
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 2, .axis_bits = 1u << 2, .axes = "z"};
    notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.3, 0.125)->axis_bits = 5;
    notes_case_collective("AllGather In", STREAM_OF_TP, 0.3, 0.0625)->axis_bits = 3;
    made.analysis.compute_s = 0.8125;
    made.trace.links_ps[0] = TIME_PS_PER_S / 16;
    made.trace.links_ps[3] = TIME_PS_PER_S / 8; /* Of x and y. */
    made.trace.links_ps[4] = TIME_PS_PER_S / 8;
    made.trace.links_ps[7] = TIME_PS_PER_S / 2;
    struct part const idle[] = {{"compute during which the z links are idle", 0.1875},
                                {"AllGather In exposed", 0.0625}};
    parts_are(idle, 2);
    /* The host's are links too. */
    made.roofline.bound =
        (struct roofline_bound){.resource = ROOFLINE_HOST, .by = "host", .axis = -1};
    made.class[0].axis_bits = ANALYSIS_HOST_BIT;
    made.machine.host.cable_name = "PCIe";
    made.analysis.compute_s = 0.8125;
    made.trace.links_ps[7 | ANALYSIS_HOST_BIT] = made.trace.links_ps[7];
    made.trace.links_ps[4 | ANALYSIS_HOST_BIT] = made.trace.links_ps[4];
    made.trace.links_ps[7] = made.trace.links_ps[4] = 0;
    struct part const host[] = {{"compute during which the PCIe links are idle", 0.1875},
                                {"AllGather In exposed", 0.0625}};
    parts_are(host, 2);
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 2, .axis_bits = 1u << 2, .axes = "z"};
    made.class[0].axis_bits = 5;
    made.trace.links_ps[0] = made.trace.links_ps[3] = 0;
    made.analysis.compute_s = 0.5;
    struct part const busy[] = {{"AllGather In exposed", 0.0625},
                                {"less what the z links do during what is listed here", -0.125}};
    parts_are(busy, 2);
}

/* Of three axes that share the bound a collective leaves two idle: these two thirds are above. */
static void parts_above_axes_that_share_the_bound(void **state)
{
    (void)state;
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 0, .axis_bits = 7, .axes = "x, y, z"};
    notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.3, 0.125)->axis_bits = 7;
    notes_case_collective("AllGather K V", STREAM_OF_TP, 0.3, 0.1875)->axis_bits = 4;
    made.analysis.compute_s = 0.6875;
    made.trace.links_ps[0] = TIME_PS_PER_S / 8;
    made.trace.links_ps[4] = TIME_PS_PER_S / 16 * 9;
    struct part const parts[] = {{"AllGather K V exposed, on 1 of 3 axes", 0.125},
                                 {"compute during which the x, y, z links are idle", 0.125}};
    parts_are(parts, 2);
}

/* Links are not idle during compute with a collective under way. The busiest link is busy for
 * longer than the bound says, and collectives are under way for longer than it is busy. */
static void parts_above_links_are_what_keeps_them_busy(void **state)
{
    (void)state;
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 0, .axis_bits = 3, .axes = "x, y"};
    made.roofline.lower_s = 0.5;
    struct analysis_class *row = notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.3, 0.25);
    row->axis_bits = 3;
    row->algorithm = "line";
    made.analysis.compute_s = 0.75;
    made.trace.links_ps[0] = TIME_PS_PER_S / 8;
    made.trace.links_ps[2] = TIME_PS_PER_S / 8 * 5;
    made.trace.link[1].busy_ps = TIME_PS_PER_S / 4;
    made.trace.link[2].busy_ps = TIME_PS_PER_S / 16 * 11;
    made.trace.link[4].busy_ps = TIME_PS_PER_S; /* Of z. */
    struct part const hops[] = {{"y links busy beyond the bound (line sends more)", 0.1875},
                                {"hops and waits of collectives on the x, y links", 0.1875},
                                {"compute during which the x, y links are idle", 0.125}};
    parts_are(hops, 3);
    /* Rounding has no part. */
    made.trace.link[2].busy_ps = TIME_PS_PER_S / 2 + 1000000;
    struct part const rounds[] = {{"hops and waits of collectives on the x, y links", 0.375},
                                  {"compute during which the x, y links are idle", 0.125}};
    parts_are(rounds, 2);
    /* The busiest link is another chip's, and is idle for less time than the reported chip computes
     * without collectives. */
    made.trace.link[1].busy_ps = TIME_PS_PER_S / 16 * 15;
    made.trace.link[1].busiest_chip = 0;
    struct machine_link_override slow = {.bytes_per_s = 1, .to = {3}};
    made.machine.links = &slow;
    made.machine.link_override_count = 1;
    struct part const others[] = {{"x links busy beyond the bound (one is slow)", 0.4375},
                                  {"compute during which the x, y links are idle", 0.0625}};
    parts_are(others, 2);
}

/* The bound lets switches copy and add, if they can. */
static void parts_above_switches_that_could_add(void **state)
{
    (void)state;
    made.machine = case_machine("h100-sxm:gpus=8");
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "NVLink", .axis = 0, .axis_bits = 1, .axes = "gpu"};
    made.roofline.lower_s = 0.5;
    made.roofline.group[0].group = case_group(&made.machine, "gpu");
    made.roofline.group_count = 1;
    struct analysis_class *row = notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.3, 0.25);
    row->axis_bits = 1;
    row->algorithm = "direct";
    made.analysis.compute_s = 0.75;
    made.trace.links_ps[1] = TIME_PS_PER_S / 4 * 3;
    made.trace.link[machine_level_port(made.machine.axis_level[0], 0, true)].busy_ps =
        TIME_PS_PER_S;
    struct part const direct[] = {{"gpu links busy beyond the bound (direct, not sharp)", 0.5}};
    parts_are(direct, 1);
    row->algorithm = "sharp";
    row->in_switches = true;
    struct part const sharp[] = {{"gpu links busy beyond the bound (sharp sends more)", 0.5}};
    parts_are(sharp, 1);
    row->axis_bits = 0;
    row->exposed_s = 0;
    made.analysis.compute_s = 1;
    made.trace.links_ps[1] = TIME_PS_PER_S;
    struct part const other[] = {{"gpu links busy beyond the bound (other messages)", 0.5}};
    parts_are(other, 1);
}

/* Two dozen collectives have a part each, those behind them one together. */
static void further_collectives_share_a_part(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 27; i++)
        (void)notes_case_collective("AllGather", STREAM_OF_FSDP, 1, i == 5 ? 0 : 1.0 / 128);
    made.analysis.compute_s = 0.75;
    notes_parts_build(case_arena, &made.input, &made.analysis, &made.notes);
    assert_int_equal(made.notes.part_count, 25);
    assert_string_equal(made.notes.part[0].name, "other collectives exposed");
    case_near(made.notes.part[0].seconds, 2.0 / 128, 1e-9);
    case_near(made.notes.part[24].seconds, 1.0 / 128, 1e-9);
}

static void upper(void)
{
    notes_case_again();
    notes_upper_build(case_arena, &made.input, &made.analysis, &made.notes);
}

#define UPPER                                                                                      \
    "it is 200 ms (25.0%) longer than the upper bound of 800 ms, where nothing overlaps: a "       \
    "sum of closed forms, which take no account "

/* Beyond its upper bound a step has what closed forms do not know, and the note says which. */
static void a_step_above_its_upper_bound_says_what_the_forms_leave_out(void **state)
{
    (void)state;
    static const char *const known[] = {"auto", "ring", "ring-one-way", "line", "direct"};
    made.roofline.group[made.roofline.group_count++].group = case_group(&made.machine, "x");
    made.roofline.upper_s = 1;
    upper();
    notes_case_are(NULL);
    made.roofline.upper_s = 0.8;
    upper();
    notes_case_are(UPPER "of something that is no algorithm, no cable, no kernel and no queue");
    made.trace.link[3].queued_ps = 1; /* A message waited. */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        made.plan.algorithm = algorithm_read(known[i]);
        upper();
        notes_case_are(UPPER "of collectives that wait for each other on shared links");
    }
    made.plan.algorithm = algorithm_read("tree");
    made.plan.routing.skew_ppm = 1;
    made.plan.model.tied = true;
    made.mesh.axis[MESH_EP].size = made.mesh.axis[MESH_PP].size = 2;
    made.machine = case_machine("h100-sxm:nodes=4,policy=hash");
    made.roofline.group[0].group = case_group(&made.machine, "gpu");
    upper();
    notes_case_are(UPPER "of \"tree\", of flows that use one of several cables, of ranks that "
                         "get more tokens than others, of exchanges of stages with copies of "
                         "a matrix, or with modules after the layers");
    made.plan.algorithm = algorithm_read("auto");
    made.plan.model.tied = false;
    made.plan.model.mtp_modules = 1;
    made.plan.routing.skew_ppm = 0;
    upper();
    notes_case_are(UPPER "of flows that use one of several cables, of exchanges of stages "
                         "with copies of a matrix, or with modules after the layers");
    made.mesh.axis[MESH_PP].size = 1;
    made.mesh.axis[MESH_EP].size = 1;
    made.plan.routing.skew_ppm = 1;
    for (uint32_t l = 0; l < made.machine.level_count; l++)
        for (uint32_t t = 0; t < made.machine.level[l].tier_count; t++)
            made.machine.level[l].tier[t].cable_count = 1;
    upper();
    notes_case_are(UPPER "of collectives that wait for each other on shared links");
    /* Beyond the last tier there is nothing. */
    made.machine.level[0].tier[made.machine.level[0].tier_count] =
        (struct level_tier){.policy = LEVEL_HASH, .cable_count = 2};
    upper();
    notes_case_are(UPPER "of collectives that wait for each other on shared links");
    made.machine.level[1].tier[0].cable_count = 2;
    made.machine.level[1].tier[0].policy = LEVEL_RAIL;
    upper();
    notes_case_are(UPPER "of flows that use one of several cables");
    made.machine.level[1].tier[0].policy = LEVEL_SPRAY;
    upper();
    notes_case_are(UPPER "of collectives that wait for each other on shared links");
}

static void host(void)
{
    notes_case_again();
    notes_host_build(case_arena, &made.input, &made.analysis, &made.notes);
}

static void copies_to_the_host_say_how_long_and_from_which_batch_on(void **state)
{
    (void)state;
    made.machine.host.cable_name = "PCIe";
    notes_case_collective("store", STREAM_OF_COPY, 0.5, 0.125)->axis_bits = ANALYSIS_HOST_BIT;
    notes_case_collective("load", STREAM_OF_COPY, 0.5, 0.125)->axis_bits = ANALYSIS_HOST_BIT;
    notes_case_collective("AllGather", STREAM_OF_FSDP, 0.5, 0.125)->axis_bits = 1;
    notes_case_class("wait")->axis_bits = ANALYSIS_HOST_BIT;
    made.class[3].exposed_s = 1;
    host();
    notes_case_are(NULL);
    made.roofline.host_s = 0.5;
    host();
    notes_case_are("copies to and from the host keep PCIe busy for 500 ms each way; 250 ms of "
                   "the step is exposed to them (25.0%)");
    made.roofline.rules.tokens_per_chip = 2048;
    made.roofline.rules.offload_optimizer_tokens = 4096;
    made.roofline.rules.offload_activations_share = 1;
    host();
    assert_int_equal(made.notes.count, 3);
    assert_string_equal(made.notes.text[1],
                        "the backward pass hides the copies of moments from 4096 tokens a "
                        "chip on; there are 2048");
    assert_string_equal(made.notes.text[2],
                        "what a layer saves takes 1.00 times its forward pass's math to store, "
                        "and as long to load: it can be hidden, whatever the batch");
    made.roofline.rules.offload_activations_share = 1.25;
    host();
    assert_string_equal(
        made.notes.text[2],
        "what a layer saves takes 1.25 times its forward pass's math to store, "
        "and as long to load: the forward pass waits for the link, whatever the batch");
}

static void replicas(bool minor)
{
    notes_case_again();
    notes_replicas_build(case_arena, &made.input, &made.analysis, minor, &made.notes);
}

#define AT_THE_LATEST ", at the latest the last layer's, which no compute is left to overlap"

/* Who holds the same weights: reductions of their gradients, and gathers of what zero has sharded.
 * Alone they are never minor. */
static void replicas_say_what_of_reductions_and_gathers_is_exposed(void **state)
{
    (void)state;
    made.mesh.axis[MESH_DP].size = 2;
    notes_case_collective("ReduceScatter dW", STREAM_OF_DP, 0.5, 0.125)->verb = STREAM_REDUCE;
    notes_case_collective("AllReduce dW", STREAM_OF_EXPERTS, 0.25, 0.0625)->verb = STREAM_REDUCE;
    notes_case_collective("AllGather In", STREAM_OF_TP, 8, 8)->verb = STREAM_GATHER;
    notes_case_collective("exchange", STREAM_OF_DP, 8, 8)->verb = STREAM_NO_VERB;
    notes_case_class("matmul")->verb = STREAM_REDUCE;
    made.class[4].of = STREAM_OF_DP;
    made.class[4].time_s = 8;
    replicas(true);
    notes_case_are(NULL);
    replicas(false);
    notes_case_are("the dp reductions run behind the backward pass; 188 ms of their 750 ms is "
                   "exposed (18.8% of the step)" AT_THE_LATEST);
    struct analysis_class *gather = notes_case_collective("AllGather W", STREAM_OF_DP, 0.5, 0.0625);
    gather->verb = STREAM_GATHER;
    gather->runs = COLLECTIVE_ALL_GATHER;
    made.class[0].exposed_s = 0;
    made.plan.zero = 1;
    replicas(false);
    notes_case_are("the dp reductions run behind the backward pass; 62.5 ms of their 750 ms is "
                   "exposed (6.2% of the step)" AT_THE_LATEST,
                   "the dp gathers bring weights together once they are updated; 62.5 ms of their "
                   "500 ms is exposed (6.2% of the step)");
    made.plan.parameter_gather = WORKLOAD_PARAMETERS_NEXT_STEP;
    replicas(false);
    assert_string_equal(made.notes.text[1],
                        "the dp gathers bring weights together before their first use in the next "
                        "step; 62.5 ms of their 500 ms is exposed (6.2% of the step)");
    made.plan.zero = 3;
    made.mesh.axis[MESH_DP].size = 1;
    made.mesh.axis[MESH_CP].size = 2;
    made.class[0].of = gather->of = STREAM_OF_CP;
    replicas(false);
    assert_string_equal(made.notes.text[1],
                        "the cp gathers bring weights together before each use; 62.5 ms of their "
                        "500 ms is exposed (6.2% of the step)");
}

/* With ZeRO-2 every microbatch is reduced, and gradients of one slot wait in a window. */
static void reductions_of_each_microbatch_may_wait(void **state)
{
    (void)state;
    made.mesh.axis[MESH_DP].size = 2;
    notes_case_collective("ReduceScatter dW", STREAM_OF_DP, 0.5, 0.125)->verb = STREAM_REDUCE;
    made.plan.zero = 2;
    made.plan.accumulate = 4;
    made.roofline.counts.weights.reductions = 4;
    replicas(false);
    notes_case_are("the dp reductions of each microbatch run behind the backward pass; 125 ms of "
                   "their 500 ms is exposed (12.5% of the step)" AT_THE_LATEST);
    made.class[0].exposed_s = 0.25;
    replicas(false);
    notes_case_are("the dp reductions of each microbatch run behind the backward pass; 250 ms of "
                   "their 500 ms is exposed (25.0% of the step), as gradients of one slot may "
                   "wait: a layer's backward pass begins when the reductions of all layers but the "
                   "previous one are done");
    made.plan.zero = 1;
    replicas(false);
    notes_case_are("the dp reductions run behind the backward pass; 250 ms of their 500 ms is "
                   "exposed (25.0% of the step)" AT_THE_LATEST);
    made.plan.zero = 2;
    made.plan.accumulate = 1;
    replicas(false);
    notes_case_are("the dp reductions run behind the backward pass; 250 ms of their 500 ms is "
                   "exposed (25.0% of the step)" AT_THE_LATEST);
}

/* Along ep experts are split and all others replicated: two groups, and what is hidden of either
 * comes last. */
static void experts_have_replicas_of_their_own(void **state)
{
    (void)state;
    made.mesh.axis[MESH_DP].size = made.mesh.axis[MESH_EP].size = made.mesh.axis[MESH_CP].size = 2;
    uint32_t const all = STREAM_OF_DP | STREAM_OF_EP | STREAM_OF_CP;
    notes_case_collective("AllReduce dW", all, 0.5, 0.005)->verb = STREAM_REDUCE;
    notes_case_collective("AllReduce dE", STREAM_OF_EXPERTS, 0.25, 0.0049)->verb = STREAM_REDUCE;
    struct analysis_class *gather = notes_case_collective("AllGather W", all, 0.5, 0.001);
    gather->verb = STREAM_GATHER;
    gather->runs = COLLECTIVE_ALL_GATHER;
    replicas(false);
    notes_case_are("the dp,ep,cp reductions run behind the backward pass; 5.00 ms of their 500 ms "
                   "is exposed (0.5% of the step)" AT_THE_LATEST);
    replicas(true);
    notes_case_are("the dp,ep,cp gathers bring weights together once they are updated; 1.00 ms of "
                   "their 500 ms is exposed (0.1% of the step)",
                   "the dp,cp reductions run behind the backward pass; 4.90 ms of their 250 ms "
                   "is exposed (0.5% of the step)" AT_THE_LATEST);
}

/* By what is exposed, then by time; equals keep their order, and what never ran is left out. */
static void collectives_are_listed_by_what_is_exposed(void **state)
{
    (void)state;
    struct analysis_class classes[] = {
        {.collective = true, .count = 1, .exposed_s = 1, .time_s = 2},
        {.collective = true, .count = 1, .exposed_s = 1, .time_s = 3},
        {.collective = false, .count = 1, .exposed_s = 9, .time_s = 9},
        {.collective = true, .count = 0, .exposed_s = 9, .time_s = 9},
        {.collective = true, .count = 1, .exposed_s = 2, .time_s = 1},
        {.collective = true, .count = 1, .exposed_s = 1, .time_s = 3},
        {.collective = true, .count = 1, .exposed_s = 0, .time_s = 8},
    };
    static const uint32_t wanted[] = {4, 1, 5, 0, 6};
    struct analysis const analysis = {.classes = classes,
                                      .class_count = sizeof classes / sizeof *classes};
    uint32_t *indexes = NULL, count = 0;
    case_ok(analysis_collectives(case_arena, &analysis, &indexes, &count, &case_error));
    assert_int_equal(count, 5);
    assert_memory_equal(indexes, wanted, sizeof wanted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, notes_case_up, case_arena_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_above_math_are_named_longest_first),
        TEST(parts_of_a_pipeline_are_against_its_mean_rank),
        TEST(parts_above_links_are_what_leaves_them_idle),
        TEST(parts_above_axes_that_share_the_bound),
        TEST(parts_above_links_are_what_keeps_them_busy),
        TEST(parts_above_switches_that_could_add),
        TEST(further_collectives_share_a_part),
        TEST(a_step_above_its_upper_bound_says_what_the_forms_leave_out),
        TEST(copies_to_the_host_say_how_long_and_from_which_batch_on),
        TEST(replicas_say_what_of_reductions_and_gathers_is_exposed),
        TEST(reductions_of_each_microbatch_may_wait),
        TEST(experts_have_replicas_of_their_own),
        TEST(collectives_are_listed_by_what_is_exposed),
    };
    return cmocka_run_group_tests_name("notes of the parts of a step", tests, NULL, NULL);
}
