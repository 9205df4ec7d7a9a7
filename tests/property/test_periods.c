/*
 * Training steps of pipelines that follow one another without a barrier, with the real ops of their
 * layers: the period is the same folded, with every chip, and with the reference engine, and it is
 * never shorter than the roofline allows.
 *
 * Where layers are dense, so that each rank does the same work for each microbatch, the period is
 * not longer than the step by itself, and ZB-H2's is not longer than ZB-H1's: a rank begins its
 * next step while others end theirs, and meets their messages on no cable (`apart`) or on few
 * (`contention`). That is no law. With drawn experts a rank's messages differ from microbatch to
 * microbatch and cross cables that others use, so that those of the next step may delay the end of
 * this one.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { TEXT_BYTES = 1400, STEPS = 8 };

/* Ranks that begin a step while others end theirs share cables with them: a message may wait for a
 * reduction that would have found the cable free. */
static const double contention = 0.004;

static const struct {
    const char *machine, *mesh, *more;
    bool apart; /* Cables carry nothing but what ranks of pp send. */
} sites[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4\", \"unrealisable\": true, \"wrap\": {\"x\": true}",
     "{\"pp\": [\"x\"]}", "", true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"tp\": [\"gpu\"], \"pp\": [\"node\"]}", "", true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", ", \"zero\": 1", false},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"fsdp\": [\"gpu\"], \"pp\": [\"node\"]}",
     ", \"regather\": \"step\"", true},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\", \"unrealisable\": true, \"slices\": 4",
     "{\"dp\": [\"x\"], \"tp\": [\"y\"], \"pp\": [\"slice\"]}", "", true},
};
enum { SITES = sizeof sites / sizeof *sites };

static const char *const names[] = {"gpipe", "1f1b", "eager-1f1b", "interleaved:2", "zb-h1",
                                    "zb-h2", "zb-v", "v-half",     "dualpipev",     "dualpipe"};
enum { NAMES = sizeof names / sizeof *names };

static void scenario_write(char text[TEXT_BYTES], uint32_t site, const char *schedule,
                           uint64_t *random)
{
    uint32_t const microbatches = 8u << case_random(random) % 2;
    uint64_t const rows = UINT64_C(2048) << case_random(random) % 3;
    uint32_t const layers = 8u << case_random(random) % 2;
    uint32_t const width = case_random(random) % 2 == 0 ? 4096 : 8192;
    const char *arbitration = CASE_PICK(random, "fair", "priority", "fifo");
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"periods\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": %u, \"F\": 16384, \"layers\": %u, \"matrices\": 2}, \"batch_tokens\": %llu, "
        "\"accumulate\": %u, \"schedule\": \"%s\", \"allow_oversubscription\": true%s}, \"run\": "
        "{\"arbitration\": \"%s\"}}",
        sites[site].machine, sites[site].mesh, width, layers,
        (unsigned long long)rows * microbatches * 8, microbatches, schedule, sites[site].more,
        arbitration);
}

static struct trace trace_of(const char *text, bool full, const char *engine, double *ret_lower_s)
{
    struct play play;
    struct play_options const options = {.full = full, .engine = engine, .steps_max = STEPS};
    play_run(&play, text, &options);
    struct trace const trace = play.trace; /* Instants only: the rest lies in the arena. */
    *ret_lower_s = play.roofline.lower_s;
    play_close(&play);
    return trace;
}

static void periods_are_exact_and_no_longer_than_steps(void **state)
{
    (void)state;
    uint64_t random = 5;
    uint32_t walked = 0;
    for (uint32_t site = 0; site < SITES; site++)
        for (uint32_t n = 0; n < NAMES; n++) {
            char text[TEXT_BYTES];
            double lower_s = 0;
            scenario_write(text, site, names[n], &random);
            if (sampling_skips(&walked)) continue;
            struct trace const folded = trace_of(text, false, "fast", &lower_s);
            struct trace const full = trace_of(text, true, "fast", &lower_s);
            struct trace const other = trace_of(text, false, "reference", &lower_s);
            assert_memory_equal(&folded.period, &full.period, sizeof full.period);
            assert_memory_equal(&folded.period, &other.period, sizeof full.period);
            assert_true(folded.period.steps >= 2 && folded.period.cycle >= 1);
            double const most = (double)folded.step_ps * (sites[site].apart ? 1 : 1 + contention);
            if ((double)folded.period.time > most)
                fail_msg("site %u, %s: a period of %lld ps, a step of %lld", site, names[n],
                         (long long)folded.period.time, (long long)folded.step_ps);
            assert_true(units_seconds(folded.period.time) * (1 + 1e-9) >= lower_s);
        }
}

/* Experts on a line of both axes, whose tokens are drawn, over cables that the stages share. */
static void a_period_may_be_longer_where_cables_are_shared(void **state)
{
    (void)state;
    double lower_s = 0;
    struct trace const trace = trace_of(
        "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v6e\", \"shape\": \"8x8\"}, \"mesh\": "
        "{\"tp\": [\"x:4\"], \"ep\": [\"x:2\", \"y:4\"], \"pp\": [\"y:2\"]}, \"workload\": "
        "{\"kind\": "
        "\"train_step\", \"model\": \"tests/property/experts.json\", \"batch_tokens\": 131072, "
        "\"sequence_length\": 1024, \"accumulate\": 4, \"schedule\": \"zb-h1\", \"routing_skew\": "
        "1}, "
        "\"run\": {\"arbitration\": \"fifo\"}}",
        false, "fast", &lower_s);
    assert_true(trace.period.time > trace.step_ps);
    assert_true((double)trace.period.time < 1.03 * (double)trace.step_ps);
}

static void a_parallelogram_is_no_slower(void **state)
{
    (void)state;
    uint32_t faster = 0, walked = 0, checked = 0;
    for (uint32_t site = 0; site < SITES; site++)
        for (uint64_t run = 0; run < 4; run++) {
            char text[TEXT_BYTES];
            uint64_t random = run, same = run;
            double lower_s = 0;
            if (sampling_skips(&walked)) continue;
            scenario_write(text, site, "zb-h1", &random);
            struct trace const one = trace_of(text, false, "fast", &lower_s);
            scenario_write(text, site, "zb-h2", &same);
            struct trace const two = trace_of(text, false, "fast", &lower_s);
            if ((double)two.period.time > (double)one.period.time * (1 + contention))
                fail_msg("site %u, run %u: zb-h2 %lld ps, zb-h1 %lld", site, (unsigned)run,
                         (long long)two.period.time, (long long)one.period.time);
            faster += two.period.time < one.period.time;
            checked++;
        }
    assert_true(2 * faster > checked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_are_exact_and_no_longer_than_steps),
        cmocka_unit_test(a_period_may_be_longer_where_cables_are_shared),
        cmocka_unit_test(a_parallelogram_is_no_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
