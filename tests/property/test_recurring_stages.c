/*
 * Microbatches that are alike and are not simulated one by one (sim/replay/recur.h): whatever
 * pipeline is drawn, digest, counts, period and the bytes of the result are those of a run that
 * simulates each. The same holds for further steps, of which few are simulated to their end
 * (recur_steps.h).
 */
#include "tests/property/recurring.h"
#include "tests/property/step_drawn.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 240 };

/* Stages and groups of their ranks, in nodes, over nodes, and both. */
static const struct {
    const char *machine, *mesh;
} places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4, \"gpus\": 2",
     "{\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8, \"gpus\": 4",
     "{\"pp\": [\"node:4\"], \"ep\": [\"node:2\", \"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8, \"gpus\": 2",
     "{\"pp\": [\"node:2\"], \"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"tp\": [\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"tp\": [\"y\"], \"fsdp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\", \"slices\": 2",
     "{\"pp\": [\"slice\"], \"tp\": [\"x\", \"y\"]}"},
};
enum { PLACES = sizeof places / sizeof *places };

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const place = case_draw(state, PLACES);
    uint32_t const microbatches = 16u << case_draw(state, 3);
    uint32_t const tokens = 1024u << case_draw(state, 2);
    const char *slow = CASE_PICK(state, "", "", ", \"chips\": [{\"at\": [0, \"*\"], \"hbm\": 0.3}]",
                                 ", \"chips\": [{\"at\": [1, \"*\"], \"math\": 0.5}]");
    const char *schedule = CASE_PICK(state, NULL, NULL, "zb-h2", "zb-v", "v-half", "dualpipe");
    bool const gpu = strstr(places[place].machine, "h100") != NULL;
    struct step_drawn const step = {.machine = places[place].machine,
                                    .overrides = gpu ? slow : "",
                                    .schedule = schedule,
                                    .mesh = places[place].mesh,
                                    .workload = "",
                                    .run = "",
                                    .batch_tokens = tokens * 8,
                                    .microbatches = microbatches};
    step_draw(state, &step, text);
}

static void each_result_is_that_of_every_microbatch(void **state)
{
    uint32_t walked = 0;
    struct recurring counts = {0};
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(n);
        char text[TEXT_BYTES];
        draw(&random, text);
        bool const full = case_draw(&random, 8) == 0, is_single = case_draw(&random, 2) == 0;
        uint32_t const steps = 3 + case_draw(&random, 3);
        if (sampling_skips(&walked)) continue;
        recurring_check(
            text, (struct play_options){.full = full, .steps_max = is_single ? 0 : steps}, &counts);
    }
    print_message("of %u the period is found before its steps have ended\n",
                  (unsigned)counts.foreseen);
    assert_true(counts.foreseen + RECURRING_SLACK > counts.simulated / 8);
    recurring_end(&counts, 4);
}

/* Of both directions of the pipeline messages of one stream meet at cables of a host, in each step
 * in the same order. */
static void a_period_is_foreseen_where_epochs_meet(void **state)
{
    struct recurring counts = {0};
    (void)state;
    recurring_check("{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"2x2x4\", "
                    "\"slices\": 4, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": [\"slice\"], "
                    "\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}, \"workload\": {\"kind\": "
                    "\"train_step\", \"model\": \"llama-3-8b\", \"batch_tokens\": 1048576, "
                    "\"sequence_length\": 4096, \"accumulate\": 16, \"remat\": \"block\", "
                    "\"attention\": \"causal\", \"schedule\": \"dualpipe\"}, \"run\": "
                    "{\"collective_matmul\": true}}",
                    (struct play_options){.steps_max = 6}, &counts);
    assert_int_equal(counts.foreseen, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_result_is_that_of_every_microbatch),
                                       cmocka_unit_test(a_period_is_foreseen_where_epochs_meet)};
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
