/* Reports on a step whose chips have different roles: each is named by its own. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/notes.h"
#include "sim/report/result.h"
#include "sim/report/summary.h"
#include "sim/report/timeline.h"
#include "tests/support/case.h"
#include "tests/support/stages.h"
#include "tests/unit/report_case.h"

enum { RANKS = 4, MICROBATCHES = 3 };

static struct report_case report;
static struct stages stages;
static struct strbuf text;

/* Four ranks along x of a 4x4x4 machine; rank 2 holds most. */
static int prepare(void **state)
{
    (void)state;
    static const uint32_t shown[] = {0, 32}; /* (0,0,0) and (2,0,0) */
    memset(&report, 0, sizeof report);
    if (case_arena_up(state) != 0) return 1;
    case_ok(case_build(&report.made, &case_mlp, "4x4x4", NULL, "x y", "z"));
    struct group const x = case_group(&report.made.machine, "x");
    struct group const y = case_group(&report.made.machine, "y");
    stages_open(&stages, case_arena, &report.made.machine, &x.dimension[0], 1000000, 64);
    stages.shown = shown;
    stages.shown_count = 2;
    stages.role[2].resident_bytes[PROGRAM_MEMORY_PARAMETERS] = 5000000;
    uint32_t const work = stages_work(&stages, UINT64_C(100000000000));
    uint32_t const gather = stages_gather(&stages, &y, 1000000);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        stages_play(&stages, rank, gather);
        for (uint32_t i = 0; i < MICROBATCHES; i++) {
            if (rank > 0) stages_receive(&stages, rank, STAGES_UP, i + 1);
            stages_compute(&stages, rank, work);
            if (rank + 1 < RANKS) stages_send(&stages, rank, STAGES_UP);
        }
    }
    report.trace = stages_run(&stages, false);
    report.roofline = (struct roofline){
        .lower_s = 1e-9, .bound.by = "mxu", .bound.axis = -1, .rates.peak_flop_per_s = 1e15};
    report.input = (struct report_input){.title = "a step",
                                         .question = "",
                                         .machine = &report.made.machine,
                                         .mesh = &report.made.mesh,
                                         .workload = &report.made.plan,
                                         .program = &stages.program,
                                         .trace = &report.trace,
                                         .roofline = &report.roofline};
    for (uint32_t i = 0; i < report.made.machine.axis_count; i++)
        report.input.fold[i] = (struct report_fold){1, "because"};
    return 0;
}

static int finish(void **state)
{
    strbuf_free(&text);
    case_free(&report.made);
    return case_arena_down(state);
}

static void has(const char *words)
{
    if (strstr(text.bytes, words) == NULL) fail_msg("no \"%s\" in:\n%s", words, text.bytes);
}

static void a_screen_names_ranks(void **state)
{
    (void)state;
    case_ok(summary_write(report.made.arena, &report.input, false, &text, &case_error));
    has("bound by bubble (50.0% of the step of rank 3, which ends last; MXU 48.6%)");
    has("pipeline rank 3, which ends last");
    has("bubble");
    has("waiting");
    has("memory of a chip of pipeline rank 2 at its peak");
    assert_null(strstr(text.bytes, "\nidle"));
}

static double real_of(struct json *object, const char *key)
{
    double value = -1;
    struct json *member = json_take(object, key);
    if (member == NULL) fail_msg("no key %s", key);
    case_ok(json_as_real(member, 0, 1e300, &value, &case_error));
    return value;
}

static void the_result_has_a_row_for_each_rank(void **state)
{
    (void)state;
    struct json *json = NULL;
    case_ok(result_write(report.made.arena, &report.input, &text, &case_error));
    case_ok(json_read_text(report.made.arena, "result", text.bytes, text.size_bytes, &json,
                           &case_error));
    struct json *ranks = json_take(json, "pipeline_ranks");
    double const step = real_of(json, "step_time_s");
    assert_int_equal(json_count(ranks), RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct json *rank = json_at(ranks, i);
        assert_true(real_of(rank, "rank") == i);
        case_near(real_of(rank, "compute_s") + real_of(rank, "exposed_communication_s") +
                      real_of(rank, "waiting_s") + real_of(rank, "bubble_s"),
                  step, 1e-9);
        assert_true(real_of(rank, "finish_s") >= real_of(rank, "end_s"));
        assert_true((i + 1 < RANKS) == (real_of(rank, "finish_s") < step));
        assert_true(real_of(rank, "sent_bytes") == (i + 1 < RANKS ? 3e6 : 0));
        assert_true(real_of(rank, "memory_peak_bytes") == (i == 2 ? 5e6 : 0));
    }
    struct json *breakdown = json_take(json, "breakdown");
    case_near(real_of(breakdown, "waiting_s") + real_of(breakdown, "bubble_s"),
              real_of(breakdown, "idle_s"), 1e-9);
    assert_true(real_of(json, "reported_rank") == 3);
    assert_true(real_of(json_at(json_take(json, "phases"), 0), "idle_s") ==
                real_of(breakdown, "idle_s"));
    /* Of the reported rank: it gathers, and sends nothing. */
    struct json *collectives = json_take(json, "collectives");
    assert_int_equal(json_count(collectives), 1);
    /* A RECEIVE is a wait, no compute. */
    assert_int_equal(json_count(json_take(json, "compute")), 1);
}

static void a_timeline_names_ranks_sends_and_receives(void **state)
{
    (void)state;
    static const char *const words[] = {"chip 0 (0,0,0), pipeline rank 0",
                                        "chip 32 (2,0,0), pipeline rank 2", "send up", "receive up",
                                        "messages in all"};
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t const length = strlen(words[i]);
        bool found = false;
        for (uint64_t at = 0; !found && at + length <= text.size_bytes; at++)
            found = memcmp(text.bytes + at, words[i], length) == 0;
        if (!found) fail_msg("no \"%s\"", words[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_screen_names_ranks, prepare, finish),
        cmocka_unit_test_setup_teardown(the_result_has_a_row_for_each_rank, prepare, finish),
        cmocka_unit_test_setup_teardown(a_timeline_names_ranks_sends_and_receives, prepare, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
