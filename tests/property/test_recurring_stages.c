/*
 * Microbatches that are alike and are not simulated one by one (sim/replay/recur.h): whatever
 * pipeline is drawn, digest, counts, period and the bytes of the result are those of a run that
 * simulates each.
 */
#include <stdio.h>
#include <string.h>

#include "tests/property/recurring.h"
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

static uint32_t below(uint64_t *state, uint32_t count)
{
    return (uint32_t)(case_random(state) % count);
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const place = below(state, PLACES);
    const char *mesh = places[place].mesh;
    const char *model = strstr(mesh, "\"ep\"") != NULL ? "tests/property/experts.json"
                                                       : "tests/property/dense.json";
    bool const gpu = strstr(places[place].machine, "h100") != NULL;
    const char *network =
        CASE_PICK(state, "", "", ", \"network\": {\"leaf\": {\"oversubscription\": 4}}",
                  ", \"network\": {\"leaf\": {\"policy\": \"hash\"}}",
                  ", \"network\": {\"nic_rate\": \"2GB/s\"}", ", \"network\": {\"node_nics\": 1}");
    if (!gpu) network = "";
    const char *profile = CASE_PICK(state, "ideal", "measured");
    const char *arbitration = CASE_PICK(state, "fair", "fair", "priority", "fifo");
    const char *schedule = CASE_PICK(state, "1f1b", "gpipe", "interleaved:2", "zb-h1", "dualpipev");
    uint32_t const microbatches = 16u << below(state, 3);
    uint32_t const tokens = 1024u << below(state, 2);
    const char *remat = CASE_PICK(state, "none", "block", "layer");
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\"%s}, \"mesh\": %s, \"workload\": "
        "{\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": %u, "
        "\"sequence_length\": 1024, \"remat\": \"%s\", \"allow_oversubscription\": true, "
        "\"accumulate\": %u, \"schedule\": \"%s\"}, \"run\": {\"arbitration\": \"%s\"}}",
        places[place].machine, profile, network, mesh, model, (unsigned)(tokens * 8 * microbatches),
        remat, (unsigned)microbatches, schedule, arbitration);
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
        bool const full = below(&random, 8) == 0, is_single = below(&random, 2) == 0;
        if (sampling_skips(&walked)) continue;
        recurring_check(text, (struct play_options){.full = full, .steps_max = is_single ? 0 : 4},
                        &counts);
    }
    recurring_end(&counts, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_result_is_that_of_every_microbatch)};
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
