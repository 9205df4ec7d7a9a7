/* Notes of a step made by hand: each sentence in full, on both sides of what it depends on. */
#include "sim/base/units.h"
#include "sim/roofline/rules.h"
#include "tests/unit/notes_case.h"

#define BOUND "the step takes 1.00 s, 250 ms (33.3%) more than the lower bound of 750 ms (MXU)"
#define BEYOND                                                                                     \
    "; mostly compute beyond the bound: fill and drain of tiles, overheads, HBM shared 250 ms"
#define MEMORY "memory peaks at 24.0 GB of 96.0 GB (25%) after 250 ms, in layer 2 forward"

static void build(void)
{
    case_ok(notes_build(case_arena, &made.input, &made.analysis, &made.notes, &case_error));
}

/* The notes between the first, which says by how much the step is above its bound, and the last,
 * which says where memory peaks. */
#define said(...) said_at((const char *const[]){__VA_ARGS__, NULL}, __LINE__)

static void said_at(const char *const *wanted, int line)
{
    struct notes *notes = &made.notes;
    build();
    for (uint32_t i = 0; wanted[i] != NULL || i + 2 < notes->count; i++) {
        if (wanted[i] != NULL && i + 2 < notes->count && strcmp(wanted[i], notes->text[i + 1]) == 0)
            continue;
        notes_case_print();
        print_error("wanted: %s\n", wanted[i] == NULL ? "no more" : wanted[i]);
        _fail(__FILE__, line);
    }
}

static void a_step_is_set_against_its_bound(void **state)
{
    (void)state;
    build();
    notes_case_are(BOUND BEYOND, MEMORY);
    made.analysis.compute_s = 0.75;
    made.analysis.idle_s = 0.25;
    made.roofline.bound =
        (struct roofline_bound){.resource = ROOFLINE_HBM, .by = "hbm", .axis = -1};
    build();
    notes_case_are("the step takes 1.00 s, 250 ms (33.3%) more than the lower bound of 750 ms "
                   "(HBM); mostly neither compute nor collectives 250 ms",
                   MEMORY);
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 1, .axis_bits = 1u << 1, .axes = "y"};
    made.analysis.compute_s = 1;
    made.trace.links_ps[0] = made.trace.links_ps[1] = TIME_PS_PER_S / 8; /* Of x; 3/4 of y. */
    made.analysis.idle_s = 0;
    build();
    notes_case_are("the step takes 1.00 s, 250 ms (33.3%) more than the lower bound of 750 ms "
                   "(links along y); mostly compute during which the y links are idle 250 ms",
                   MEMORY);
    made.trace.links_ps[0] = made.trace.links_ps[1] = 0;
    made.analysis.compute_s = made.analysis.step_s = 0.75;
    build();
    notes_case_are("the step takes 750 ms, 0 s (0.0%) more than the lower bound of 750 ms (links "
                   "along y)",
                   MEMORY);
}

/* Three of the parts are named; where some are less, with the sum of those that are more. */
static void the_largest_parts_are_named(void **state)
{
    (void)state;
    made.analysis.compute_s = 0.625;
    made.analysis.idle_s = 0.125;
    (void)notes_case_collective("AllGather W", STREAM_OF_FSDP, 1, 0.1875);
    (void)notes_case_collective("AllReduce dW", STREAM_OF_DP, 1, 0.0625);
    (void)notes_case_collective("exchange", STREAM_OF_EP, 1, 0.03125);
    build();
    assert_string_equal(made.notes.text[0],
                        BOUND "; 406 ms beyond it, mostly AllGather W exposed 188 ms, neither "
                              "compute nor collectives 125 ms, AllReduce dW exposed 62.5 ms, less "
                              "125 ms: the bound's work during what is listed here");
    made.analysis.compute_s = 1;
    build();
    assert_string_equal(made.notes.text[0], BOUND "; mostly compute beyond the bound: fill and "
                                                  "drain of tiles, overheads, HBM shared 250 ms, "
                                                  "AllGather W exposed 188 ms, neither compute nor "
                                                  "collectives 125 ms");
    made.analysis.idle_s = 0;
    made.analysis.class_count = 0;
    made.analysis.compute_s = 0.5;
    build();
    assert_string_equal(made.notes.text[0], BOUND "; less 250 ms: the bound's work during "
                                                  "what is listed here");
}

/* What is exposed the longest, unless the first note has it or nobody would notice. */
static void the_longest_is_named_where_it_is_within_the_bound(void **state)
{
    (void)state;
    made.roofline.bound = (struct roofline_bound){
        .resource = ROOFLINE_LINKS, .by = "ici", .axis = 0, .axis_bits = 1u << 0, .axes = "x"};
    notes_case_class("matmul")->exposed_s = 1;
    notes_case_collective("AllGather A", STREAM_OF_FSDP, 1, 0.0625)->axis_bits = 1;
    notes_case_collective("AllGather B", STREAM_OF_FSDP, 0.5, 0.25)->axis_bits = 1;
    notes_case_collective("AllGather C", STREAM_OF_FSDP, 1, 0.25)->axis_bits = 1;
    said("the longest exposed collective is AllGather B: 250 ms of its 500 ms "
         "(25.0% of the step)");
    made.class[2].axis_bits = 2; /* The first note names it. */
    said(NULL);
    made.class[2].exposed_s = made.class[3].exposed_s = 0;
    made.class[1].exposed_s = 0.005;
    said("the longest exposed collective is AllGather A: 5.00 ms of its 1.00 "
         "s (0.5% of the step)");
    made.class[1].exposed_s = 0.0049;
    said(NULL);
}

#define TP_RULE(bound)                                                                             \
    "tp over 8 is " bound " bound in the forward pass at any batch: a block must be wider than "   \
    "Y·(C/W)/M_Y = 8·2550/1.5 = 13600 (11900 with (N-1)/N), and "

static struct roofline_group *tp_group(void)
{
    struct roofline_group *tp = notes_case_group(MESH_TP, "tp", 2, 8);
    made.mesh.axis[MESH_TP].size = 8;
    tp->axes = 1.5;
    made.roofline.rules.alpha = 2550;
    made.roofline.rules.tp_critical_width = 13600;
    made.roofline.rules.tp_exact_width = 11900;
    made.plan.model.matrices = 3;
    return tp;
}

static void a_block_is_as_wide_as_its_mean(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    (void)tp_group();
    rules->tp_mlp_width = 13800;
    rules->tp_attention_width = 10000;
    said(TP_RULE("compute") "the MLP offers F·1.5 = 13800, attention 10000, a layer 11900 on "
                            "average");
    rules->tp_attention_width = 9998;
    said(TP_RULE("communication") "the MLP offers F·1.5 = 13800, attention 9998, a layer 11899 on "
                                  "average");
    rules->tp_attention_width = 0;
    rules->tp_mlp_width = 11900;
    said(TP_RULE("compute") "the MLP offers F·1.5 = 11900");
    rules->tp_mlp_width = 11800;
    said(TP_RULE("communication") "the MLP offers F·1.5 = 11800");
    rules->tp_mlp_width = 20000; /* Of an expert. */
    rules->tp_attention_width = 11000;
    made.plan.model.experts.count = 8;
    said(TP_RULE("communication") "attention offers 11000");
    rules->tp_layer_width = 12000;
    said(TP_RULE("compute") "attention and MLP side by side offer 12000");
}

static void tp_without_collective_matmul_is_on_the_critical_path(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    (void)tp_group();
    rules->tp_layer_width = 12000;
    (void)notes_case_collective("AllGather In", STREAM_OF_TP, 0.25, 0.004);
    (void)notes_case_collective("ReduceScatter Out", STREAM_OF_TP, 0.25, 0.001);
    (void)notes_case_collective("AllGather W", STREAM_OF_FSDP, 8, 8);
    notes_case_class("matmul")->of = STREAM_OF_TP;
    made.class[3].exposed_s = 4;
    build();
    assert_string_equal(made.notes.text[2],
                        "the tp collectives are on the critical path: the next matmul needs "
                        "all of each, so 5.00 ms of their 500 ms is exposed (0.5% of the "
                        "step); collective_matmul hides them chunk by chunk where their "
                        "matmuls are wide enough");
    made.class[1].exposed_s = 0.0009;
    build();
    assert_int_equal(made.notes.count, 3);
}

/* A slow chip anywhere, or a slow link of the group's axis, is why it waits. */
static void what_waits_for_a_slow_chip_says_so(void **state)
{
    (void)state;
    made.plan.prefetch_layers = 0;
    made.mesh.axis[MESH_FSDP].size = 16;
    struct machine_chip_override const chip = {{0, 0, 0}, 500000, PPM_ONE};
    struct roofline_group *fsdp = notes_case_group(MESH_FSDP, "fsdp", 0, 16);
    (void)tp_group();
    fsdp->time_s = 0.375;
    made.plan.collective_matmul = true;
    made.roofline.rules.tp_layer_width = 12000;
    case_override_chips(case_arena, &made.machine, &chip, 1);
    (void)notes_case_collective("AllGather In", STREAM_OF_TP, 0.25, 0.125);
    (void)notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.5, 0.01);
    build();
    assert_int_equal(made.notes.count, 7);
    assert_string_equal(made.notes.text[3],
                        "tp collectives stay exposed for 125 ms (12.5% of the step), though "
                        "collective matmul overlaps each with its matmuls: all are wide enough for "
                        "their bytes to hide behind that math by formulas; what is exposed waits "
                        "for the slow chip or link");
    assert_non_null(
        strstr(made.notes.text[4], "step compute bound, but for the slow chip or link"));
    assert_string_equal(made.notes.text[5],
                        "10.0 ms of the fsdp gathers and reductions is exposed (1.0% of the step); "
                        "their links need 375 ms of the step's 1.00 s by formulas, without the "
                        "slow chip or link that they wait for; with prefetch_layers 0 each gather "
                        "waits for the layer before it");
    /* Of two links the one on z is tp's alone. */
    struct machine_link_override const link = {{0, 0, 0}, {0, 0, 1}, UINT64_C(45000000000), 0};
    case_override_chips(case_arena, &made.machine, NULL, 0);
    made.machine.links = &link;
    made.machine.link_override_count = 1;
    made.trace.link[4] = (struct trace_link){.link_count = 2, .busy_ps = 10, .sum_busy_ps = 10};
    build();
    assert_int_equal(made.notes.count, 7);
    assert_non_null(strstr(made.notes.text[3], "waits for the slow chip or link"));
    assert_null(strstr(made.notes.text[4], "slow chip or link"));
    assert_null(strstr(made.notes.text[5], "slow chip or link"));
}

static void fsdp_is_hidden_from_a_batch_on(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    struct roofline_group *fsdp = notes_case_group(MESH_FSDP, "fsdp", 0, 16);
    fsdp->time_s = 0.375;
    rules->tokens_per_chip = 900;
    rules->fsdp_gathers = 1;
    rules->fsdp_critical_tokens = 960;
    rules->fsdp_exact_tokens = rules->fsdp_crossing_tokens = 900;
    made.plan.prefetch_layers = 2;
    made.mesh.axis[MESH_FSDP].size = 16;
    (void)notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.5, 0.0099);
    said("fsdp over 16 needs (C/W)/M_X = 960 tokens a chip (900 with (N-1)/N) to hide its gathers "
         "behind the forward pass, and 900 over the step with this model's FLOP and hops; there "
         "are 900: forward compute bound, the step compute bound",
         "the fsdp gathers and reductions are hidden: of their 500 ms only "
         "9.90 ms is exposed (0.99% of the step), including the first gather "
         "and the last reduction, which nothing overlaps; prefetching further "
         "ahead than 2 layers changes almost nothing");
    rules->fsdp_exact_tokens = rules->fsdp_crossing_tokens = 901;
    rules->fsdp_gathers = 4;
    made.mesh.axis[MESH_TP].size = 2;
    made.mesh.axis[MESH_PP].size = 4;
    made.class[0].exposed_s = 0.01;
    said("fsdp over 16 needs 4·(C/W)/M_X/Y/4 = 960 tokens a chip (901 with (N-1)/N) to hide its "
         "gathers behind the forward pass, and 901 over the step with this model's FLOP and hops; "
         "there are 900: forward communication bound, the step communication bound",
         "10.0 ms of the fsdp gathers and reductions is exposed (1.0% of the step); their links "
         "need 375 ms of the step's 1.00 s by formulas");
}

static void split_sequences_wait_for_keys(void **state)
{
    (void)state;
    struct roofline_group *sequence = notes_case_group(ROOFLINE_SEQUENCE, "sequence", 0, 4);
    sequence->group.dimension[0].ring = false; /* Neighbours miss no ring. */
    sequence->time_s = 0.125;
    sequence->hops_total_s = 0.0625;
    said("each sequence is split over 4 chips; the keys and values of the others come before "
         "attention needs them; alone on their links these collectives would take 188 ms");
    (void)notes_case_collective("AllGather K V", STREAM_OF_SEQUENCE, 0.25, 0.004);
    said("each sequence is split over 4 chips, whose attention waits for the others' keys and "
         "values: 4.00 ms of these collectives is exposed (0.4% of the step); alone on their links "
         "they would take 188 ms");
}

static void hops_are_said_where_they_matter(void **state)
{
    (void)state;
    made.roofline.latency_s = 0.001;
    said("hops of 1.00 us on the critical path add up to 1.00 ms (0.1% of the step): no bandwidth "
         "shortens them, larger or fewer collectives do");
    made.machine.chip.hop_latency_ps = 0;
    said("hops of links and switches on the critical path add up to 1.00 ms (0.1% of the step): no "
         "bandwidth shortens them, larger or fewer collectives do");
    made.roofline.latency_s = 0.0009;
    said(NULL);
}

/* Two in a line miss nothing; neither does what goes through switches. */
static void lines_have_half_the_links_of_rings(void **state)
{
    (void)state;
    struct roofline_group *group = notes_case_group(MESH_DP, "dp", 0, 8);
    struct group_dimension *dimension = group->group.dimension;
    group->group.dimension_count = 4;
    for (uint32_t i = 1; i < 4; i++) dimension[i] = dimension[0];
    dimension[0].ring = dimension[1].ring = dimension[2].ring = dimension[3].ring = false;
    dimension[1].switched = true;
    dimension[2].size = 2;
    dimension[3].size = 3;
    dimension[3].name = "z";
    said("dp has no ring along x (8 chips in a line), z (3 chips in a line): half the bandwidth of "
         "a ring for each collective, and twice the hops");
    dimension[0].ring = dimension[3].ring = true;
    said(NULL);
}

static void flop_that_are_not_the_models_are_said(void **state)
{
    (void)state;
    struct roofline *roofline = &made.roofline;
    roofline->flop.executed = 1000;
    roofline->flop.padded = 1001;
    roofline->flop.recomputed = roofline->flop.flash = 0.5;
    roofline->rates.peak_flop_per_s = 1;
    said(NULL);
    roofline->flop.padded = 1002;
    said("padding to the MXU's 128 and to 8 token rows adds 0.2% to the matmuls' time");
    roofline->flop.padded = 1250;
    roofline->flop.duplicated = 12.5;
    roofline->flop.recomputed = 250;
    roofline->flop.flash = 60;
    roofline->counts.spare.waiting = 0.625; /* Of each of 64 chips. */
    roofline->counts.heads.kv_held = 16;
    roofline->counts.heads.kv_padded = 8;
    roofline->counts.matmul_flop = 100;
    roofline->counts.linear.flop = 60;
    made.plan.model.kv_heads = 8;
    made.mesh.axis[MESH_TP].size = 16;
    made.plan.formats.matmuls = FORMAT_FP8;
    said("padding to the MXU's 128 and to 8 token rows adds 25.0% to the matmuls' time",
         "linear layers multiply in fp8, and MFU and HFU are relative to its "
         "peak; 40.0% of the executed FLOP are attention's products, routers "
         "and the head, in bf16",
         "8 KV heads on 16 tp ranks: each is held by 2 neighbours, and 1.25% of the executed FLOP "
         "compute the same keys and values again",
         "recomputation for remat is 25.0% of the executed FLOP, and MFU does not count it; "
         "without it, and if the activations fitted, the math would take 563 ms instead of 750 ms",
         "contiguous parts of causal sequences: the last rank of cp has 1.12 "
         "times the mean rank's attention. The others wait for it, so all are "
         "charged its work: 4.0% of the executed FLOP. With context_order "
         "zigzag all have the same work",
         "flash attention's backward pass computes the scores again, with any remat: 6.0% of the "
         "executed FLOP, which MFU does not count");
    roofline->flop.padded = 1001;
    roofline->flop.recomputed = roofline->flop.flash = roofline->counts.spare.waiting = 0;
    made.plan.formats.matmuls = FORMAT_BF16;
    roofline->counts.heads.kv_held = 8;
    said("each of 16 tp ranks computes products of which none has a part of "
         "its own: 1.25% of the executed FLOP repeat the work of another rank");
    made.plan.model.mla.kv_rank = 512;
    said("each of 16 tp ranks computes the latents of all tokens of a data "
         "rank: 1.25% of the executed FLOP repeat the work of another rank");
}

static void hbm_is_said_where_it_bounds_or_is_shared(void **state)
{
    (void)state;
    notes_case_class("norm")->hbm_excess_s = 0.0005;
    notes_case_class("update")->hbm_excess_s = 0.00075;
    notes_case_class("add")->hbm_excess_s = 0.00075;
    notes_case_collective("AllGather W", STREAM_OF_FSDP, 0.25, 0)->hbm_excess_s = 4;
    notes_case_class("wait")->hbm_excess_s = 4;
    made.class[4].receives = true;
    made.trace.dma_ps = TIME_PS_PER_S / 100;
    made.analysis.idle_s = 0;
    build();
    assert_int_equal(made.notes.count, 3);
    assert_string_equal(made.notes.text[1],
                        "compute ops that HBM bounds (most of all update) take 2.00 ms longer than "
                        "their FLOP (0.2% of the step)");
    made.trace.dma_ps += TIME_PS_PER_S / 100;
    made.class[0].hbm_excess_s = made.class[1].hbm_excess_s = 0;
    said("collectives use HBM for 2.0% of the step, at the same time as compute ops");
}

static void the_update_is_said_where_it_takes_time(void **state)
{
    (void)state;
    made.analysis.phase[0] = (struct analysis_phase){.end_s = 0.5, .bound_by = "mxu"};
    made.analysis.phase[1] = (struct analysis_phase){
        .is_update = true, .begin_s = 0.5, .end_s = 0.5009, .bound_by = "hbm"};
    made.analysis.phase_count = 2;
    said(NULL);
    made.analysis.phase[1].end_s = 0.501953125;
    said("the update at the end takes 1.95 ms (0.2% of the step; HBM bound): it waits for the last "
         "reductions and nothing overlaps with it");
}

static void memory_says_where_it_peaks(void **state)
{
    (void)state;
    struct program_role roles[2] = {made.role, made.role};
    struct program_block head = {.name = "head", .repeat = 1, .layer_first = -1};
    head.phase = PROGRAM_PHASE_UPDATE;
    roles[1] = (struct program_role){.block = &head, .block_count = 1, .slot_count = 1};
    made.program.roles = roles;
    made.program.role_count = 2;
    made.program.role_axis = 2;
    made.program.role_stride = 2;
    made.trace.memory.peak_chip = 2;
    made.trace.memory.peak_slot = 0;
    made.trace.memory.peak_bytes = UINT64_C(95000000000);
    build();
    assert_string_equal(made.notes.text[made.notes.count - 1],
                        "memory peaks at 95.0 GB of 96.0 GB (99%) after 250 ms, in head update of "
                        "pipeline rank 1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, notes_case_up, case_arena_down)

/* A note that finds no memory is missing, and changes none that is there. */
static void a_note_without_memory_is_an_error(void **state)
{
    enum { LIMIT = 64 };
    struct notes notes = {.count = 0};
    struct arena *full = arena_create(LIMIT);
    (void)state;
    assert_non_null(full);
    notes_add(case_arena, &notes, "first");
    notes_add(full, &notes, "%0*d", 2 * LIMIT, 0);
    notes_always(&notes, 1);
    assert_int_equal(notes.count, 1);
    assert_false(notes.always[0]);
    assert_true(notes.lacks_memory);
    notes_add(case_arena, &notes, "second");
    notes_always(&notes, 1);
    assert_true(notes.always[1] && !notes.always[0]);
    assert_int_equal(notes_build(full, &made.input, &made.analysis, &notes, &case_error),
                     STATUS_NO_MEMORY);
    arena_destroy(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_set_against_its_bound),
        TEST(the_largest_parts_are_named),
        TEST(the_longest_is_named_where_it_is_within_the_bound),
        TEST(a_block_is_as_wide_as_its_mean),
        TEST(tp_without_collective_matmul_is_on_the_critical_path),
        TEST(what_waits_for_a_slow_chip_says_so),
        TEST(fsdp_is_hidden_from_a_batch_on),
        TEST(split_sequences_wait_for_keys),
        TEST(hops_are_said_where_they_matter),
        TEST(lines_have_half_the_links_of_rings),
        TEST(flop_that_are_not_the_models_are_said),
        TEST(hbm_is_said_where_it_bounds_or_is_shared),
        TEST(the_update_is_said_where_it_takes_time),
        TEST(memory_says_where_it_peaks),
        TEST(a_note_without_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
