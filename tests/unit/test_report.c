/* Result, notes and screens: every key, sums that add up, lines that fit. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/program/least_memory.h"
#include "sim/report/notes.h"
#include "sim/report/report_roofline.h"
#include "sim/report/result.h"
#include "sim/report/run_memory.h"
#include "sim/report/summary.h"
#include "sim/report/table.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/report_case.h"

static struct report_case report;
static struct strbuf text;

static void prepare(const struct model *model, const char *shape, const char *fsdp, const char *tp)
{
    memset(&report, 0, sizeof report);
    strbuf_free(&text);
    if (case_build(&report.made, model, shape, NULL, fsdp, tp) != STATUS_OK)
        fail_msg("%s", report.made.error.message);
    report.made.plan.model.layers = 2; /* Records of a few layers say as much as of eighty. */
    report.made.plan.collective_matmul = true;
    report.made.plan.remat = GRAPH_REMAT_BLOCK;
    if (case_lower(&report.made) != STATUS_OK) fail_msg("%s", report.made.error.message);
    counts_roofline(&report.made.plan, &report.made.machine, &report.made.mesh, &report.roofline);
    report_case_play(&report);
    /* The hand-made trace is far faster than the roofline; a bound below it makes sense of it. */
    report.roofline.lower_s = units_seconds(report.trace.step_ps) / 2;
}

static void finish(void)
{
    strbuf_free(&text);
    case_free(&report.made);
}

static struct json *result(void)
{
    struct json *json = NULL;
    case_ok(result_write(report.made.arena, &report.input, &text, &case_error));
    case_ok(json_read_text(report.made.arena, "result", text.bytes, text.size_bytes, &json,
                           &case_error));
    return json;
}

static double real_of(struct json *object, const char *key)
{
    double value = 0;
    struct json *member = json_take(object, key);
    if (member == NULL) fail_msg("no key %s at %s", key, json_where(object));
    case_ok(json_as_real(member, -1e300, 1e300, &value, &case_error));
    return value;
}

static void has_keys(struct json *object, const char *keys)
{
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", keys);
    for (char *rest = NULL, *key = strtok_r(copy, " ", &rest); key != NULL;
         key = strtok_r(NULL, " ", &rest))
        if (json_take(object, key) == NULL) fail_msg("no key %s at %s", key, json_where(object));
}

/* What is too large, and too long to play, has the least that it holds, and every part of it. */
static void the_parts_of_what_does_not_fit_are_all_of_it(void **state)
{
    (void)state;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    struct least_memory least = {.role = 0};
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) least.bytes[i] = 10 + i;
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) least.total_bytes += least.bytes[i];
    result_write_unfit(&report.input, &least, &text);
    struct json *json = NULL;
    case_ok(json_read_text(report.made.arena, "result", text.bytes, text.size_bytes, &json,
                           &case_error));
    struct json *memory = json_take(json, "memory");
    struct json *parts = json_take(memory, "parts");
    assert_true(real_of(memory, "least_bytes") == (double)least.total_bytes);
    assert_int_equal(json_count(parts), PROGRAM_MEMORY_COUNT);
    assert_true(real_of(parts, "parameters") == (double)least.bytes[PROGRAM_MEMORY_PARAMETERS]);
    assert_true(real_of(parts, "buffers") == (double)least.bytes[PROGRAM_MEMORY_BUFFERS]);
    finish();
}

static void the_result_has_every_promised_key(void **state)
{
    (void)state;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    struct json *json = result();
    has_keys(json, "podsim title digest step_time_ps step_time_s chips chips_replayed folded_axes "
                   "events transfers tokens_per_s mfu mfu_attention hfu bound_by roofline "
                   "breakdown phases collectives links queues memory notes");
    has_keys(json_take(json, "roofline"),
             "math_s hbm_s ici_s lower_s upper_s latency_s bound_by rules groups");
    has_keys(json_take(json_take(json, "roofline"), "ici_s"), "x y z");
    static const char *const rows[][2] = {
        {"phases", "name begin_s end_s compute_s exposed_communication_s bound_by"},
        {"collectives", "name kind axis algorithm bytes count time_s exposed_s busbw_bytes_per_s"},
        {"links", "axis direction bytes busy_fraction"},
        {"queues", "name busy_fraction"},
        {"folded_axes", "axis period reason"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json *array = json_take(json, rows[i][0]);
        assert_true(json_count(array) > 0);
        for (uint32_t n = 0; n < json_count(array); n++) has_keys(json_at(array, n), rows[i][1]);
    }
    has_keys(json_take(json, "memory"), "capacity_bytes peak_bytes peak_at_s parts");
    has_keys(json_take(json_take(json, "memory"), "parts"), "parameters saved_activations");
    assert_true(json_count(json_take(json, "notes")) >= 5);
    const char *digest = NULL;
    case_ok(json_as_string(json_take(json, "digest"), &digest, &case_error));
    assert_string_equal(digest, "0000000000abcdef");
    assert_null(json_take(json, "wall_s")); /* Only with --timing. */
    finish();
}

static void with_timing_the_time_of_the_replay_is_told(void **state)
{
    (void)state;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    report.trace.work.transfers = 3000000;
    report.trace.work.events = 5000000;
    report.input.wall_s = 0.5;
    struct json *json = result();
    assert_true(real_of(json, "wall_s") == 0.5);
    assert_true(real_of(json, "transfers_per_s") == 6e6);
    assert_true(real_of(json, "events_per_s") == 1e7);
    struct strbuf summary = {0};
    case_ok(summary_write(report.made.arena, &report.input, false, &summary, &case_error));
    assert_non_null(strstr(summary.bytes, "500 ms (6.0 million transfers/s)"));
    assert_non_null(strstr(summary.bytes, "simulated in"));
    strbuf_free(&summary);
    finish();
}

static void the_breakdown_is_three_parts_that_sum_to_the_step(void **state)
{
    (void)state;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    struct json *json = result();
    struct json *breakdown = json_take(json, "breakdown");
    assert_int_equal(json_count(breakdown), 3);
    double const sum = real_of(breakdown, "compute_s") +
                       real_of(breakdown, "exposed_communication_s") + real_of(breakdown, "idle_s");
    assert_true(llabs((int64_t)(sum * 1e12 + 0.5) - report.trace.step_ps) <= 1);
    finish();
}

static void the_parts_above_the_bound_sum_to_the_difference(void **state)
{
    (void)state;
    for (int ici = 0; ici < 2; ici++) {
        prepare(&case_llama_70b, "16x16x16", "x y", "z");
        report.roofline.bound.axis = ici == 1 ? 2 : -1;
        report.roofline.bound.by = ici == 1 ? "ici" : "mxu";
        report.roofline.bound.resource = ici == 1 ? ROOFLINE_LINKS : ROOFLINE_MXU;
        report.roofline.math_s = ici == 1 ? 0 : report.roofline.lower_s;
        struct analysis analysis;
        struct notes notes;
        case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
        case_ok(notes_build(report.made.arena, &report.input, &analysis, &notes, &case_error));
        double sum = 0;
        for (uint32_t i = 0; i < notes.part_count; i++) {
            sum += notes.part[i].seconds;
            if (i > 0) assert_true(notes.part[i].seconds <= notes.part[i - 1].seconds);
        }
        assert_true(notes.part_count >= 3);
        double const above = analysis.step_s - report.roofline.lower_s;
        assert_true(sum > above * (1 - 1e-9) && sum < above * (1 + 1e-9));
        finish();
    }
}

static void busbw_is_nccl_tests(void **state)
{
    (void)state;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    struct json *array = json_take(result(), "collectives");
    for (uint32_t i = 0; i < json_count(array); i++) {
        struct json *row = json_at(array, i);
        double const ranks = real_of(row, "ranks");
        double const expected =
            real_of(row, "bytes") * (ranks - 1) / ranks / real_of(row, "time_s");
        double const busbw = real_of(row, "busbw_bytes_per_s");
        assert_true(busbw > expected * (1 - 1e-9) && busbw < expected * (1 + 1e-9));
    }
    finish();
}

static void a_step_is_bound_by_its_busiest_resource_or_by_latency(void **state)
{
    (void)state;
    struct analysis analysis;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    struct trace *trace = &report.trace;
    memset(trace->queue_busy_ps, 0, sizeof trace->queue_busy_ps);
    trace->queue_busy_ps[TRACE_QUEUE_HBM] = trace->step_ps * 6 / 10;
    trace->link[5].busy_ps = trace->step_ps * 7 / 10;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    assert_string_equal(analysis.bound_by, "ici");
    assert_string_equal(analysis.bound_axis, "z");
    trace->link[5].busy_ps = 0;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    assert_string_equal(analysis.bound_by, "hbm");
    assert_null(analysis.bound_axis);
    trace->idle_ps += trace->compute_ps; /* Nothing is busy for as long as nothing happens. */
    trace->compute_ps = 0;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    assert_string_equal(analysis.bound_by, "latency");
    finish();
}

static void what_is_busy_nearly_as_long_stands_beside_the_bound(void **state)
{
    (void)state;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    int64_t const longest_ps = report.trace.step_ps - report.trace.step_ps / 50;
    report.trace.queue_busy_ps[TRACE_QUEUE_MXU] = longest_ps;
    report.trace.link[5].busy_ps = longest_ps - longest_ps / 50;
    struct analysis analysis;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    assert_string_equal(analysis.bound_by, "mxu");
    assert_string_equal(analysis.runner_up, "ici");
    assert_string_equal(analysis.runner_up_axis, "z");
    report.trace.link[5].busy_ps = longest_ps / 2;
    report.trace.queue_busy_ps[TRACE_QUEUE_VPU] = longest_ps / 2;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    assert_null(analysis.runner_up);
    finish();
}

static void a_step_below_its_roofline_is_an_error(void **state)
{
    (void)state;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    report.roofline.lower_s = units_seconds(report.trace.step_ps);
    case_ok(analysis_bound_check(&report.roofline, &report.trace, &case_error));
    report.roofline.lower_s *= 1.000001;
    case_refused(analysis_bound_check(&report.roofline, &report.trace, &case_error), STATUS_STUCK,
                 NULL, "below the roofline");
    finish();
}

static bool has_note(const struct notes *notes, const char *words)
{
    for (uint32_t i = 0; i < notes->count; i++)
        if (strstr(notes->text[i], words) != NULL) return true;
    return false;
}

static void build_notes(struct notes *notes)
{
    struct analysis analysis;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    case_ok(notes_build(report.made.arena, &report.input, &analysis, notes, &case_error));
}

static void notes_come_from_the_numbers(void **state)
{
    (void)state;
    struct notes notes;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    for (uint32_t i = 0; i < report.made.machine.axis_count; i++)
        assert_true(report.made.machine.wrap[i]);
    build_notes(&notes);
    assert_true(has_note(&notes, "tp over 16 is communication bound"));
    assert_true(has_note(&notes, "16·2550/1 = 40800 (38250 with (N-1)/N)"));
    assert_true(has_note(&notes, "F·1.5 = 43008"));
    assert_true(has_note(&notes, "8 KV heads on 16 tp ranks: each is held by 2"));
    assert_true(has_note(&notes, "recomputation"));
    assert_false(has_note(&notes, "no ring"));
    /* Nothing of fsdp exposed: more prefetching cannot help. All of it: no such promise. */
    for (uint32_t i = 0; i < report.trace.class_count; i++)
        if (strstr(report.made.program.class_names[i], "fsdp") != NULL)
            report.trace.classes[i].exposed_ps = 0;
    build_notes(&notes);
    assert_true(has_note(&notes, "changes almost nothing"));
    for (uint32_t i = 0; i < report.trace.class_count; i++)
        if (strstr(report.made.program.class_names[i], "fsdp") != NULL)
            report.trace.classes[i].exposed_ps = report.trace.classes[i].busy_ps;
    build_notes(&notes);
    assert_false(has_note(&notes, "changes almost nothing"));
    finish();

    prepare(&case_mlp, "8", "x", NULL); /* Not whole cubes: a line. */
    build_notes(&notes);
    assert_true(has_note(&notes, "fsdp has no ring along x (8 chips in a line)"));
    assert_false(has_note(&notes, "tp over"));
    assert_false(has_note(&notes, "KV heads"));
    finish();
}

/* Without remat nothing is said of it; flash attention's own repetition is explained as what it is.
 * A matrix that is looked up is much of two layers, and in no MFU. */
static void notes_tell_remat_from_flash(void **state)
{
    (void)state;
    struct notes notes;
    static const struct {
        enum graph_remat remat;
        bool remat_note;
    } rows[] = {{GRAPH_REMAT_NONE, false}, {GRAPH_REMAT_BLOCK, true}};
    for (uint32_t i = 0; i < 2; i++) {
        struct model small = case_llama_70b;
        struct analysis analysis;
        prepare(&small, "4x4x4", "x y", "z");
        report.made.plan.remat = rows[i].remat;
        counts_roofline(&report.made.plan, &report.made.machine, &report.made.mesh,
                        &report.roofline);
        report.roofline.lower_s = 0; /* The trace is made by hand. */
        build_notes(&notes);
        assert_int_equal(has_note(&notes, "recomputation for remat"), rows[i].remat_note);
        case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
        assert_true(analysis.mfu < analysis.mfu_attention && analysis.mfu_attention < analysis.hfu);
        assert_true(has_note(&notes, "flash attention's backward pass computes the scores again"));
        finish();
    }
}

static void notes_say_what_padding_costs_and_what_stays_out_of_fp8(void **state)
{
    (void)state;
    struct notes notes;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    double const executed = report.roofline.flop.executed;
    report.roofline.flop.padded = executed * 1.0009;
    build_notes(&notes);
    assert_false(has_note(&notes, "padding to the MXU"));
    assert_false(has_note(&notes, "linear layers multiply in"));
    report.roofline.flop.padded = executed * 1.25;
    report.made.plan.formats.matmuls = FORMAT_FP8;
    report.roofline.counts.matmul_flop = 1e15;
    report.roofline.counts.linear.flop = 6e14;
    build_notes(&notes);
    assert_true(has_note(&notes, "padding to the MXU's 128 and to 8 token rows adds 25.0% to"));
    assert_true(has_note(&notes,
                         "linear layers multiply in fp8, and MFU and HFU are relative to its "
                         "peak; 40.0% of the executed FLOP are"));
    assert_true(has_note(&notes, "routers and the head, in bf16"));
    finish();
}

static void notes_name_the_slow_link_and_the_slow_chip(void **state)
{
    (void)state;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    struct machine_link_override const link = {{0, 0, 3}, {0, 0, 4}, UINT64_C(9000000000), 0};
    struct machine_chip_override const chip = {{1, 2, 3}, 500000, 1000000};
    report.made.machine.links = &link;
    report.made.machine.link_override_count = 1;
    case_override_chips(report.made.arena, &report.made.machine, &chip, 1);
    struct trace_link *z = &report.trace.link[4];
    z->busiest_chip = 3;
    z->link_count = 11;
    z->sum_busy_ps = 2 * z->busy_ps; /* The other ten are busy for a tenth as long. */
    struct analysis analysis;
    struct notes notes;
    case_ok(analysis_build(report.made.arena, &report.input, &analysis, &case_error));
    case_ok(notes_build(report.made.arena, &report.input, &analysis, &notes, &case_error));
    assert_true(has_note(&notes, "the link from (0,0,3) to (0,0,4) has 9.00 GB/s instead of 90.0"));
    assert_true(has_note(&notes, "the other z+ links for 2.5% on average"));
    assert_true(has_note(&notes, "chip (1,2,3) computes at 50.0% of the rate"));
    assert_true(has_note(&notes, "waits for the slow chip or link"));
    assert_false(has_note(&notes, "collective matmul goes in"));
    z->sum_busy_ps = 11 * z->busy_ps; /* All are as busy as the slow one: it limits nothing. */
    case_ok(notes_build(report.made.arena, &report.input, &analysis, &notes, &case_error));
    assert_false(has_note(&notes, "the link from"));
    z->sum_busy_ps = 2 * z->busy_ps;
    z->busiest_chip = 2; /* Another link is the busiest: the slow one delays nobody. */
    case_override_chips(report.made.arena, &report.made.machine, NULL, 0);
    case_ok(notes_build(report.made.arena, &report.input, &analysis, &notes, &case_error));
    assert_false(has_note(&notes, "the link from"));
    assert_false(has_note(&notes, "slow chip or link"));
    finish();
}

static uint32_t widest_line(const struct strbuf *screen)
{
    uint32_t widest = 0, width = 0;
    for (uint64_t i = 0; i < screen->size_bytes; i++) {
        width += ((unsigned char)screen->bytes[i] & 0xc0) != 0x80;
        if (screen->bytes[i] != '\n') continue;
        if (width - 1 > widest) widest = width - 1;
        width = 0;
    }
    return widest;
}

static void screens_fit_and_are_plain_unless_asked(void **state)
{
    (void)state;
    prepare(&case_llama_70b, "16x16x16", "x y", "z");
    report.input.title = "a title that steers\x1b[2J the terminal and is longer than any line may "
                         "be, which is why it is wrapped like a sentence";
    case_ok(summary_write(report.made.arena, &report.input, false, &text, &case_error));
    assert_true(widest_line(&text) <= 100);
    assert_null(strchr(text.bytes, '\x1b'));
    assert_non_null(strstr(text.bytes, "digest"));
    assert_non_null(strstr(text.bytes, "parameters"));
    assert_null(strstr(text.bytes, " \n")); /* No blanks at the end of a line. */
    strbuf_free(&text);
    report_roofline_write(&report.input, false, &text);
    assert_true(widest_line(&text) <= 100);
    assert_null(strchr(text.bytes, '\x1b'));
    assert_non_null(strstr(text.bytes, "tp, attention"));
    strbuf_free(&text);
    case_ok(summary_write(report.made.arena, &report.input, true, &text, &case_error));
    assert_non_null(strchr(text.bytes, '\x1b'));
    finish();
}

static void what_does_not_fit_says_what_needs_how_much(void **state)
{
    (void)state;
    prepare(&case_mlp, "4x4x4", "x y", "z");
    assert_true(run_memory_fits(&report.input));
    report.trace.memory.peak_bytes = 200000000000;
    report.trace.memory.at_peak_bytes[PROGRAM_MEMORY_ACTIVATIONS] = 150000000000;
    assert_false(run_memory_fits(&report.input));
    run_memory_write(&report.input, &text);
    assert_non_null(strstr(text.bytes, "saved activations"));
    assert_non_null(strstr(text.bytes, "156.2%"));
    assert_non_null(strstr(text.bytes, "does not fit"));
    finish();
}

static void figures_are_grouped_aligned_and_wrapped(void **state)
{
    (void)state;
    assert_string_equal(table_count(0).text, "0");
    assert_string_equal(table_count(999).text, "999");
    assert_string_equal(table_count(1000).text, "1,000");
    assert_string_equal(table_count(4194304).text, "4,194,304");
    assert_string_equal(table_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(table_percent(1, 0).text, "0.0%");
    strbuf_free(&text);
    table_right(&text, 8, "42");
    assert_string_equal(text.bytes, "      42");
    strbuf_free(&text);
    table_bar(&text, 3, 2, 4); /* More than whole is whole. */
    assert_string_equal(text.bytes, "  ████");
    strbuf_free(&text);
    table_bar(&text, 1, 16, 4);
    assert_string_equal(text.bytes, "  ▎");
    strbuf_free(&text);
    char sentence[400] = "";
    for (int i = 0; i < 60; i++) (void)strncat(sentence, "word ", 6);
    table_wrap(&text, 2, sentence);
    assert_true(widest_line(&text) <= TABLE_COLUMNS);
    assert_null(strstr(text.bytes, " \n"));
    strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_has_every_promised_key),
        cmocka_unit_test(the_breakdown_is_three_parts_that_sum_to_the_step),
        cmocka_unit_test(the_parts_above_the_bound_sum_to_the_difference),
        cmocka_unit_test(busbw_is_nccl_tests),
        cmocka_unit_test(a_step_is_bound_by_its_busiest_resource_or_by_latency),
        cmocka_unit_test(what_is_busy_nearly_as_long_stands_beside_the_bound),
        cmocka_unit_test(a_step_below_its_roofline_is_an_error),
        cmocka_unit_test(notes_come_from_the_numbers),
        cmocka_unit_test(with_timing_the_time_of_the_replay_is_told),
        cmocka_unit_test(notes_say_what_padding_costs_and_what_stays_out_of_fp8),
        cmocka_unit_test(notes_name_the_slow_link_and_the_slow_chip),
        cmocka_unit_test(notes_tell_remat_from_flash),
        cmocka_unit_test(screens_fit_and_are_plain_unless_asked),
        cmocka_unit_test(what_does_not_fit_says_what_needs_how_much),
        cmocka_unit_test(the_parts_of_what_does_not_fit_are_all_of_it),
        cmocka_unit_test(figures_are_grouped_aligned_and_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
