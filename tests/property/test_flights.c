/*
 * Collectives that fly (sim/replay/flight.h): whatever is drawn, digest, counts, links and the
 * bytes of the result are those of a run that simulates every message.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 240 };

/* Stages and groups of their ranks, in nodes, over nodes, and both. */
static const struct {
    const char *nodes, *mesh;
} places[] = {
    {"4", "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}"},
    {"4", "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"tp\": [\"gpu\"]}"},
    {"4", "{\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}"},
    {"8", "{\"pp\": [\"node:4\"], \"fsdp\": [\"node:2\", \"gpu\"]}"},
    {"8", "{\"pp\": [\"node:4\"], \"ep\": [\"node:2\", \"gpu\"]}"},
    {"8", "{\"pp\": [\"node:2\"], \"ep\": [\"node:2\", \"gpu\"], \"dp\": [\"node:2\"]}"},
    {"4", "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]}"},
    {"2", "{\"tp\": [\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}"},
    {"2", "{\"tp\": [\"gpu\"], \"fsdp\": [\"node\"]}"},
    {"2", "{\"ep\": [\"node\", \"gpu\"]}"},
    {"2", "{\"cp\": [\"node\"], \"fsdp\": [\"gpu\"]}"},
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
    bool const staged = strstr(mesh, "\"pp\"") != NULL;
    const char *model = strstr(mesh, "\"ep\"") != NULL ? "tests/property/experts.json"
                                                       : "tests/property/dense.json";
    const char *gpus = strstr(mesh, "gpu:4") != NULL ? "8" : CASE_PICK(state, "2", "4", "8");
    const char *network =
        CASE_PICK(state, "", "", ", \"network\": {\"leaf\": {\"oversubscription\": 4}}",
                  ", \"network\": {\"leaf\": {\"policy\": \"hash\"}}",
                  ", \"network\": {\"cable_latency\": \"1ps\", \"nvlink\": {\"latency\": \"1ps\"}}",
                  ", \"network\": {\"nic_rate\": \"2GB/s\"}", ", \"network\": {\"node_nics\": 1}");
    const char *chips =
        CASE_PICK(state, "", "", "", "", "",
                  ", \"chips\": [{\"at\": [1, \"*\"], \"math\": 0.5, \"hbm\": 0.3}]",
                  ", \"chips\": [{\"at\": [\"*\", 1], \"hbm\": 0.6}]");
    const char *profile = CASE_PICK(state, "ideal", "measured", "measured\", \"stack\": \"te");
    const char *arbitration = CASE_PICK(state, "fair", "fair", "priority", "fifo");
    const char *schedule = CASE_PICK(state, "1f1b", "gpipe", "interleaved:2", "zb-h1", "dualpipev");
    uint32_t const skew = strstr(mesh, "\"ep\"") != NULL ? below(state, 3) : 0;
    const char *asked = CASE_PICK(state, "auto", "auto", "direct", "bruck");
    const char *algorithm = skew > 1 ? "auto" : asked; /* What is ragged goes directly. */
    uint32_t const microbatches = 4u << below(state, 3);
    uint32_t const tokens = 1024u << below(state, 3);
    const char *remat = CASE_PICK(state, "none", "block", "layer");
    char stages[160] = "";
    if (staged)
        case_text(stages, sizeof stages, ", \"accumulate\": %u, \"schedule\": \"%s\"",
                  (unsigned)microbatches, schedule);
    size_t const used = strlen(stages);
    if (skew > 0)
        case_text(stages + used, sizeof stages - used, ", \"routing_skew\": %u",
                  (unsigned)skew - 1);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": %s, \"gpus\": %s, "
              "\"profile\": \"%s\"%s%s}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", "
              "\"model\": \"%s\", \"batch_tokens\": %u, \"sequence_length\": 1024, \"remat\": "
              "\"%s\", \"allow_oversubscription\": true%s}, \"run\": {\"arbitration\": \"%s\", "
              "\"algorithm\": \"%s\"}}",
              places[place].nodes, gpus, profile, network, chips, mesh, model,
              (unsigned)(tokens * 8 * 8 * (staged ? microbatches : 1)), remat, stages, arbitration,
              algorithm);
}

static void links_same(const struct trace *some, const struct trace *all, const char *text)
{
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++)
        case_that(memcmp(&some->link[port], &all->link[port], sizeof some->link[port]) == 0, text);
}

static void each_result_is_that_of_every_message(void **state)
{
    uint32_t walked = 0, simulated = 0, flown = 0, landed = 0;
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(n);
        char text[TEXT_BYTES];
        draw(&random, text);
        bool const full = below(&random, 6) == 0;
        bool const count_waits = below(&random, 2) == 0;
        bool const is_single = below(&random, 2) == 0;
        /* test_recurring_stages.c has both. */
        struct play_options options = {.full = full,
                                       .every_layer = true,
                                       .count_waits = count_waits,
                                       .steps_max = is_single ? 0 : 3};
        if (sampling_skips(&walked)) continue;
        struct strbuf short_way = {0}, long_way = {0};
        struct trace some, all;
        if (!play_result(text, &options, &short_way, &some)) continue;
        options.every_message = true;
        assert_true(play_result(text, &options, &long_way, &all));
        case_that(all.work.posted == 0 && all.work.landed == 0, text);
        case_that(some.work.posted + some.work.simulated == all.work.simulated, text);
        case_that(some.digest == all.digest, text);
        case_that(some.work.events == all.work.events, text);
        case_that(some.work.transfers == all.work.transfers, text);
        case_that(memcmp(&some.period, &all.period, sizeof some.period) == 0, text);
        links_same(&some, &all, text);
        case_that(strcmp(short_way.bytes, long_way.bytes) == 0, text);
        simulated++;
        flown += some.work.posted > 0;
        landed += some.work.landed > 0;
        strbuf_free(&short_way);
        strbuf_free(&long_way);
    }
    print_message("%u simulated, in %u of them collectives flew, in %u some landed\n",
                  (unsigned)simulated, (unsigned)flown, (unsigned)landed);
    assert_true(flown > simulated / 3 && landed > simulated / 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_result_is_that_of_every_message)};
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
