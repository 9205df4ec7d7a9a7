/*
 * What the roofline says of messages between pipeline stages, by bytes and rates alone: where they
 * bind it says so to the digit, and no step is below it, whatever the schedule, the machine and how
 * pipelines lie on it.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1400, WIDTH = 8192, MICROBATCHES = 16, TOKENS = 4096 };

/* A narrow MLP, so that messages take longer than math. */
static void scenario_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                           const char *schedule)
{
    int const length =
        snprintf(text, TEXT_BYTES,
                 "{\"podsim\": 1, \"title\": \"messages\", \"machine\": {%s, \"profile\": "
                 "\"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": "
                 "{\"kind\": \"mlp\", \"D\": %d, \"F\": 256, \"layers\": 16, \"matrices\": 2}, "
                 "\"batch_tokens\": %d, \"accumulate\": %d, \"schedule\": \"%s\", "
                 "\"allow_oversubscription\": true}}",
                 machine, mesh, WIDTH, TOKENS * MICROBATCHES, MICROBATCHES, schedule);
    assert_true(length > 0 && length < TEXT_BYTES);
}

static const char line[] = "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"";
static const char torus[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"";
static const char nodes[] = "\"chip\": \"h100-sxm\", \"nodes\": 8";
static const char narrow[] = "\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": {\"leaf\": "
                             "{\"oversubscription\": 4}}";
static const char slices[] = "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\", \"slices\": 4";

/* `share`: of the ranks that split tokens, how many a rank's message is one of; `bytes_per_s` of
 * what a rank's messages one way, times `ways`, go through. */
static const struct {
    const char *machine, *mesh;
    uint64_t share, ways;
    double bytes_per_s;
} rows[] = {
    {line, "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", 4, 1, 45e9},
    {torus, "{\"pp\": [\"x\"], \"dp\": [\"y\"], \"tp\": [\"z\"]}", 16, 1, 90e9},
    {torus, "{\"dp\": [\"x:2\", \"y\"], \"pp\": [\"x:2\"], \"tp\": [\"z\"]}", 32, 2, 90e9},
    {nodes, "{\"tp\": [\"gpu\"], \"pp\": [\"node\"]}", 8, 2, 50e9},
    {nodes, "{\"tp\": [\"gpu\"], \"dp\": [\"node:4\"], \"pp\": [\"node:2\"]}", 32, 1, 50e9},
    {nodes, "{\"pp\": [\"gpu:4\"], \"tp\": [\"gpu:2\"], \"dp\": [\"node\"]}", 16, 2, 450e9},
    {narrow, "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:16\"]}", 128, 2, 50e9},
    {slices, "{\"pp\": [\"slice\"], \"dp\": [\"x\", \"y\", \"z\"]}", 8, 2, 6.25e9},
};

static const struct {
    const char *name;
    uint32_t borders;
} schedules[] = {{"1f1b", 1},  {"interleaved:2", 2}, {"zb-h1", 1},   {"zb-v", 2},
                 {"v-min", 2}, {"looped-bfs:2", 2},  {"dualpipe", 1}};

static void no_step_is_faster_than_its_messages(void **state)
{
    (void)state;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
            char text[TEXT_BYTES];
            struct play play;
            scenario_write(text, rows[i].machine, rows[i].mesh, schedules[s].name);
            play_run(&play, text, NULL);
            double const messages = (double)MICROBATCHES * schedules[s].borders;
            double const bytes = messages * TOKENS * WIDTH * 2 / (double)rows[i].share;
            double const time_s = bytes * (double)rows[i].ways / rows[i].bytes_per_s;
            case_near(time_s, play.roofline.stages_s, 1e-9);
            assert_true(play.roofline.lower_s >= play.roofline.stages_s);
            assert_true(units_seconds(play.trace.step_ps) >= play.roofline.lower_s);
            bound += play.roofline.lower_s == play.roofline.stages_s;
            if (rows[i].machine == slices) /* Nothing else takes long there. */
                assert_true(units_seconds(play.trace.step_ps) < 1.4 * play.roofline.lower_s);
            play_close(&play);
        }
    assert_true(bound > 0);
}

static void a_step_without_stages_has_no_messages(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    static const struct play_options lower_only = {.lower_only = true};
    scenario_write(text, torus, "{\"dp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", "1f1b");
    char *schedule = strstr(text, "\"schedule\"");
    memset(schedule, ' ', strlen("\"schedule\": \"1f1b\","));
    play_run(&play, text, &lower_only);
    assert_true(play.roofline.stages_s == 0);
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_is_faster_than_its_messages),
        cmocka_unit_test(a_step_without_stages_has_no_messages),
    };
    return cmocka_run_group_tests_name("stage messages", tests, NULL, NULL);
}
