/* The screen of a roofline made by hand: each line and each rule in full. */
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/report_roofline.h"
#include "tests/unit/notes_case.h"

static struct strbuf text;

static int up(void **state)
{
    (void)notes_case_up(state);
    made.input.title = "a step";
    made.input.question = "";
    made.roofline.counts.held_anyway.held_ppm = PPM_ONE;
    return 0;
}

static int down(void **state)
{
    strbuf_free(&text);
    return case_arena_down(state);
}

/* Writes the screen; sentences that it wraps become one line again. */
static void show(void)
{
    strbuf_free(&text);
    report_roofline_write(&made.input, false, &text);
    assert_non_null(text.bytes);
    for (char *wrap = text.bytes; (wrap = strstr(wrap, "\n  ")) != NULL;) {
        *wrap = ' ';
        memmove(wrap + 1, wrap + 3, strlen(wrap + 3) + 1);
    }
}

static void has_at(const char *lines, int line)
{
    if (strstr(text.bytes, lines) != NULL) return;
    print_error("not said: %s\nbut:\n%s\n", lines, text.bytes);
    _fail(__FILE__, line);
}

#define has(lines) has_at("\n" lines "\n", __LINE__)

static void resources_are_set_against_the_bound(void **state)
{
    (void)state;
    struct roofline *roofline = &made.roofline;
    made.machine = case_machine("tpu-v5p:4x4x8,slices=2");
    made.machine.wrap[0] = true;
    made.machine.wrap[1] = false;
    made.machine.host.cable_name = "a cable";
    roofline->vector_s = 0.1875;
    roofline->hbm_s = 0.375;
    roofline->ici_s[0] = 0.5;
    roofline->ici_s[1] = 0.25;
    roofline->ici_s[3] = 0.75;
    roofline->critical_s = 0.875;
    roofline->latency_s = 0.125;
    roofline->upper_s = 2;
    roofline->ideal_s = 0.5;
    roofline->memory_bytes = 24e9;
    show();
    has("resource                              busy  of lower\n"
        "MXU (padded FLOP)                   750 ms    100.0%  ██████████████████████████████████\n"
        "VPU                                 188 ms     25.0%  ████████▌\n"
        "HBM (compute, collectives)          375 ms     50.0%  █████████████████\n"
        "ICI along x (ring of 4)             500 ms     66.7%  ██████████████████████▋\n"
        "ICI along y (line of 4)             250 ms     33.3%  ███████████▍\n"
        "ICI along z (ring of 8)                0 s      0.0%\n"
        "DCN along slice (2)                 750 ms    100.0%  ██████████████████████████████████\n"
        "\n"
        "lower bound                         750 ms  everything overlaps; bound by MXU\n"
        "estimate                            875 ms  math, what tp leaves exposed, hops\n"
        "hops on the critical path           125 ms  in addition to the bound\n"
        "upper bound                         2.00 s  nothing overlaps\n"
        "useful FLOP at peak                 500 ms  MFU at most 66.7%\n"
        "\n"
        "the book's rules (C/W = 0 FLOP a byte, 0 tokens a chip)\n"
        "- no rule applies: neither dp, fsdp, tp nor a ring of cp communicates\n"
        "\n"
        "memory by formulas 24.0 GB of 96.0 GB HBM (25.0%)");
    assert_null(strstr(text.bytes, "microbatches"));
    assert_null(strstr(text.bytes, "host over"));
    roofline->host_s = 0.375;
    roofline->counts.held_anyway.held_ppm = PPM_ONE / 2 * 5;
    (void)notes_case_group(MESH_EP, "ep", 3, 2);
    show();
    has("host over a cable, each way         375 ms     50.0%  █████████████████");
    has("estimate                            875 ms  math, what experts leave exposed, hops");
    (void)notes_case_group(MESH_TP, "tp", 3, 2);
    show();
    has("estimate                            875 ms  math, what tp and experts leave exposed, "
        "hops");
    has("- including activations of 2.5 microbatches, as many as a rank of "
        "pp holds");
}

/* What bounds the step is red, the rest green. */
static void colours_tell_what_bounds(void **state)
{
    (void)state;
    made.roofline.vector_s = 0.375;
    report_roofline_write(&made.input, true, &text);
    assert_non_null(strstr(text.bytes, "100.0%\x1b[31m  █"));
    assert_non_null(strstr(text.bytes, "50.0%\x1b[32m  █████████████████\x1b[0m\n"));
}

static void groups_are_a_table(void **state)
{
    (void)state;
    struct roofline_group *fsdp = notes_case_group(MESH_FSDP, "fsdp", 0, 16);
    show();
    fsdp->count = 1234;
    fsdp->sent_bytes = 43.2e9;
    fsdp->time_s = 0.125;
    fsdp->hops_total_s = 0.001;
    fsdp->axes = 1.5;
    notes_case_group(MESH_TP, "tp", 1, 4)->axes = 0.4375;
    show();
    has("collectives        ranks   count   sent a chip bytes' time  hops' time   axes' worth\n"
        "fsdp                  16   1,234       43.2 GB      125 ms     1.00 ms           1.5\n"
        "tp                     4       0           0 B         0 s         0 s         0.438");
}

static void rules_of_the_batch(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    rules->alpha = 2550;
    rules->tokens_per_chip = 1000;
    rules->fsdp_gathers = 1;
    rules->fsdp_critical_tokens = 1275;
    rules->fsdp_exact_tokens = 1195;
    rules->fsdp_crossing_tokens = 1000;
    rules->dp_critical_tokens = 1100;
    made.roofline.counts.weights.holders = "dp";
    rules->dp_exact_tokens = 1000;
    rules->experts_critical_tokens = 1200;
    rules->experts_exact_tokens = 1000;
    show();
    has("the book's rules (C/W = 2550 FLOP a byte, 1000 tokens a chip)\n"
        "- fsdp: (C/W)/M_X = 1275 tokens a chip; with (N-1)/N 1195; with hops and this workload's "
        "FLOP 1000: compute bound\n"
        "- dp: (C/W)/M_dp over the ranks that hold a replica = 1100 tokens a chip; with (N-1)/N "
        "1000: compute bound\n"
        "- experts: E/k·(C/W)/M over the ranks that hold all experts = 1200 tokens a chip; with "
        "(N-1)/N 1000: compute bound\n");
    rules->tokens_per_chip = 999;
    rules->fsdp_gathers = 32;
    rules->reductions = 16;
    rules->tp_critical_width = 1;
    made.mesh.axis[MESH_PP].size = 4;
    show();
    has("- fsdp: 32·(C/W)/M_X/Y/4 = 1275 tokens a chip; with (N-1)/N 1195; with hops and this "
        "workload's FLOP 1000: communication bound\n"
        "- dp: (C/W)/M_dp over the ranks that hold a replica, for 16 reductions a step = 1100 "
        "tokens a chip; with (N-1)/N 1000: communication bound\n"
        "- experts: E/k·(C/W)/M over the ranks that hold all experts, for 16 reductions a step = "
        "1200 tokens a chip; with (N-1)/N 1000: communication bound\n");
    assert_null(strstr(text.bytes, "no rule applies"));
}

static void rules_of_widths(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    made.plan.model.matrices = 3;
    made.roofline.counts.tp.parallel.tp_moves = 160;
    made.roofline.counts.tp.parallel.count = 80;
    rules->tp_critical_width = 13600;
    rules->tp_exact_width = 11900;
    rules->tp_mlp_width = rules->tp_attention_width = rules->tp_layer_width = 11900;
    show();
    has("- tp, MLP: F·1.5 = 11900 against Y·(C/W)/M_Y = 13600, with (N-1)/N 11900: compute bound\n"
        "- tp, attention multiplies 11900 columns for each collective, against Y·(C/W)/M_Y = "
        "13600, with (N-1)/N 11900: compute bound\n"
        "- tp, layer: attention and MLP side by side multiply 11900 columns for each of 2 "
        "collectives, against Y·(C/W)/M_Y = 13600, with (N-1)/N 11900: compute bound\n");
    rules->tp_exact_width = 11901;
    made.roofline.tp_excess_s = 0.125;
    made.roofline.overlap[0] =
        (struct roofline_overlap){.name = "mlp.In", .width = 8000, .math_s = 1, .link_s = 1};
    made.roofline.overlap_count = 1;
    show();
    has("- tp, MLP: F·1.5 = 11900 against Y·(C/W)/M_Y = 13600, with (N-1)/N 11901: communication "
        "bound\n"
        "- tp, attention multiplies 11900 columns for each collective, against Y·(C/W)/M_Y = "
        "13600, with (N-1)/N 11901: communication bound\n"
        "- tp, layer: attention and MLP side by side multiply 11900 columns for each of 2 "
        "collectives, against Y·(C/W)/M_Y = 13600, with (N-1)/N 11901: communication bound\n"
        "- tp, one collective and its own matmuls: all are wide enough; so tp leaves 125 ms of the "
        "step exposed\n");
    made.roofline.overlap[1] =
        (struct roofline_overlap){.name = "mlp.Out", .width = 6000, .math_s = 1, .link_s = 1.5};
    made.roofline.overlap[2] = (struct roofline_overlap){.name = "head.In", .link_s = 1};
    made.roofline.overlap[3] = (struct roofline_overlap){.name = "beyond the last", .link_s = 1};
    made.roofline.overlap_count = 3;
    show();
    has("- tp, one collective and its own matmuls: too narrow are mlp.Out 6000, head.In; so tp "
        "leaves 125 ms of the step exposed\n");
}

static void rules_of_rings_meshes_and_hosts(void **state)
{
    (void)state;
    struct roofline_rules *rules = &made.roofline.rules;
    rules->tokens_per_chip = 999;
    rules->ring_tokens = 2550;
    rules->ring_rank_tokens = 2550;
    rules->fsdp_gathers = 1;
    rules->mixed_best_ranks = 45.25;
    rules->mixed_critical_tokens = 999;
    made.mesh.axis[MESH_FSDP].size = 32;
    rules->offload_optimizer_tokens = 999;
    rules->offload_activations_share = 1;
    show();
    has("- cp, ring: attention to a block hides the transfer of the next "
        "from 2550 tokens of a sequence on a rank; here 2550: hidden\n- fsdp "
        "and tp together: X_opt = sqrt(B/F·M_X/M_Y·N) = 45.2 data ranks "
        "(here 32); there, at least (C/W)^2/(M_X·M_Y·F) = 999 tokens a chip "
        "are compute bound: compute bound\n- optimizer in the host's memory: "
        "hidden behind the backward pass from 999 tokens a chip on: "
        "hidden\n- activations in the host's memory: a layer's take 1.00 of "
        "its forward pass, at any batch: hidden\n");
    rules->fsdp_gathers = 8;
    made.mesh.axis[MESH_PP].size = 4;
    rules->ring_rank_tokens = 2549;
    rules->mixed_critical_tokens = 1000;
    rules->offload_optimizer_tokens = 1000;
    rules->offload_activations_share = 1.01;
    show();
    has("- cp, ring: attention to a block hides the transfer of the next "
        "from 2550 tokens of a sequence on a rank; here 2549: exposed\n- "
        "fsdp and tp together: X_opt = sqrt(B/F·M_X/M_Y·N/4/8) = 45.2 data "
        "ranks (here 32); there, at least 8·(C/W)^2/(M_X·M_Y·F)/4 = 1000 "
        "tokens a chip are compute bound: communication bound\n- optimizer "
        "in the host's memory: hidden behind the backward pass from 1000 "
        "tokens a chip on: exposed\n- activations in the host's memory: a "
        "layer's take 1.01 of its forward pass, at any batch: exposed\n");
    assert_null(strstr(text.bytes, "no rule applies"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resources_are_set_against_the_bound),
        TEST(colours_tell_what_bounds),
        TEST(groups_are_a_table),
        TEST(rules_of_the_batch),
        TEST(rules_of_widths),
        TEST(rules_of_rings_meshes_and_hosts),
    };
    return cmocka_run_group_tests_name("screen of a roofline", tests, NULL, NULL);
}
