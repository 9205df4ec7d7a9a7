/*
 * Collectives that fly (sim/replay/flight.h) and chains of compute ops (sim/replay/chain.h):
 * whatever is drawn, digest, counts, links and the bytes of the result are those of a run that
 * simulates every message and the end of every op.
 */
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/property/step_drawn.h"
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

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const place = case_draw(state, PLACES);
    const char *mesh = places[place].mesh;
    const char *gpus = strstr(mesh, "gpu:4") != NULL ? "8" : CASE_PICK(state, "2", "4", "8");
    const char *chips =
        CASE_PICK(state, "", "", "", "", "",
                  ", \"chips\": [{\"at\": [1, \"*\"], \"math\": 0.5, \"hbm\": 0.3}]",
                  ", \"chips\": [{\"at\": [\"*\", 1], \"hbm\": 0.6}]");
    uint32_t const skew = strstr(mesh, "\"ep\"") != NULL ? case_draw(state, 3) : 0;
    const char *asked = CASE_PICK(state, "auto", "auto", "direct", "bruck");
    uint32_t const microbatches = 4u << case_draw(state, 3);
    uint32_t const tokens = 1024u << case_draw(state, 3);
    char machine[64], routing[32] = "", algorithm[32];
    case_text(machine, sizeof machine, "\"chip\": \"h100-sxm\", \"nodes\": %s, \"gpus\": %s",
              places[place].nodes, gpus);
    if (skew > 0) case_text(routing, sizeof routing, ", \"routing_skew\": %u", (unsigned)skew - 1);
    case_text(algorithm, sizeof algorithm, ", \"algorithm\": \"%s\"",
              skew > 1 ? "auto" : asked); /* What is ragged goes directly. */
    struct step_drawn const step = {.machine = machine,
                                    .overrides = chips,
                                    .mesh = mesh,
                                    .workload = routing,
                                    .run = algorithm,
                                    .batch_tokens = tokens * 8 * 8,
                                    .microbatches = microbatches};
    step_draw(state, &step, text);
}

static void links_same(const struct trace *some, const struct trace *all, const char *text)
{
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++)
        case_that(memcmp(&some->link[port], &all->link[port], sizeof some->link[port]) == 0, text);
}

/* All chips are alike in what they do, and collectives lead from chip to chip. */
static void draw_together(uint64_t *state, char text[TEXT_BYTES])
{
    static const char *const meshes[] = {
        "{\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]}",
        "{\"dp\": [\"node:2\"], \"fsdp\": [\"node:4\"], \"tp\": [\"gpu\"]}",
        "{\"dp\": [\"node\"], \"fsdp\": [\"gpu\"]}",
        "{\"fsdp\": [\"node\", \"gpu\"]}",
        "{\"ep\": [\"gpu\"], \"fsdp\": [\"node\"]}",
        "{\"cp\": [\"gpu\"], \"fsdp\": [\"node\"]}",
    };
    /* Chips that are a little slower begin within the time of a first message, others do not. */
    const char *chips = CASE_PICK(
        state, "", "", ", \"chips\": [{\"at\": [1, \"*\"], \"math\": 0.99999}]",
        ", \"chips\": [{\"at\": [1, \"*\"], \"hbm\": 0.9999}, {\"at\": [3, 1], \"hbm\": 0.9}]",
        ", \"chips\": [{\"at\": [\"*\", 1], \"math\": 0.999}, {\"at\": [5, 0], \"math\": 0.99}]");
    const char *asked = CASE_PICK(state, "auto", "direct", "direct", "direct");
    /* Leaves of few nodes: ways lead over spines. */
    const char *network = CASE_PICK(
        state, NULL, NULL, ", \"network\": {\"switch_ports\": 8, \"policy\": \"rail\"}",
        ", \"network\": {\"switch_ports\": 8, \"policy\": \"hash\"}",
        ", \"network\": {\"switch_ports\": 16, \"policy\": \"rail\"}",
        ", \"network\": {\"switch_ports\": 8, \"leaf\": {\"oversubscription\": 2, \"policy\": "
        "\"rail\"}}");
    char machine[64], algorithm[32];
    case_text(machine, sizeof machine, "\"chip\": \"h100-sxm\", \"nodes\": 8, \"gpus\": %s",
              CASE_PICK(state, "2", "4"));
    case_text(algorithm, sizeof algorithm, ", \"algorithm\": \"%s\"", asked);
    struct step_drawn const step = {.machine = machine,
                                    .overrides = chips,
                                    .network = network,
                                    .mesh = meshes[case_draw(state, 6)],
                                    .workload = "",
                                    .run = algorithm,
                                    .batch_tokens = 8192u << case_draw(state, 6)};
    step_draw(state, &step, text);
}

struct found {
    uint32_t simulated, flown, landed, landed_off, repeated, broken;
};

/* Compares a run with one that simulates every message of every layer. */
static void compare(const char *text, struct play_options options, struct found *found)
{
    struct strbuf short_way = {0}, long_way = {0};
    struct trace some, all;
    if (!play_result(text, &options, &short_way, &some)) return;
    options.every_message = options.every_layer = true;
    assert_true(play_result(text, &options, &long_way, &all));
    case_that(all.work.posted == 0 && all.work.landed == 0 && all.work.repeated == 0, text);
    case_that(some.work.posted + some.work.simulated == all.work.simulated ||
                  some.work.recurred > 0,
              text);
    case_that(some.digest == all.digest, text);
    case_that(some.work.events == all.work.events, text);
    case_that(some.work.transfers == all.work.transfers, text);
    case_that(memcmp(&some.period, &all.period, sizeof some.period) == 0, text);
    links_same(&some, &all, text);
    case_that(strcmp(short_way.bytes, long_way.bytes) == 0, text);
    found->simulated++;
    found->flown += some.work.posted > 0;
    found->landed += some.work.landed > 0;
    found->landed_off += some.work.landed_off > 0;
    found->repeated += some.work.repeated > some.work.stretches;
    found->broken += some.work.broken > 0;
    strbuf_free(&short_way);
    strbuf_free(&long_way);
}

static void each_result_is_that_of_every_message(void **state)
{
    uint32_t walked = 0;
    struct found found = {0};
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(n);
        char text[TEXT_BYTES];
        draw(&random, text);
        bool const full = case_draw(&random, 6) == 0;
        bool const count_waits = case_draw(&random, 2) == 0;
        bool const is_single = case_draw(&random, 2) == 0;
        /* test_recurring_stages.c has both. */
        struct play_options const options = {.full = full,
                                             .every_layer = true,
                                             .count_waits = count_waits,
                                             .steps_max = is_single ? 0 : 3};
        if (!sampling_skips(&walked)) compare(text, options, &found);
    }
    print_message("%u simulated, in %u of them collectives flew, in %u some landed\n",
                  (unsigned)found.simulated, (unsigned)found.flown, (unsigned)found.landed);
    /* Of few that are drawn, less may. */
    assert_true(found.flown > found.simulated / 5 &&
                (found.landed > found.simulated / 12 || found.simulated < 12));
}

/* In a full run only collectives of all chips can fly. */
static void chips_fly_together(void **state)
{
    uint32_t walked = 0;
    struct found found = {0};
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(DRAWN + n);
        char text[TEXT_BYTES];
        draw_together(&random, text);
        bool const count_waits = case_draw(&random, 4) == 0;
        struct play_options const options = {
            .full = true, .every_layer = case_draw(&random, 2) == 0, .count_waits = count_waits};
        if (!sampling_skips(&walked)) compare(text, options, &found);
    }
    print_message("%u simulated, in %u of them collectives flew, in %u some landed\n",
                  (unsigned)found.simulated, (unsigned)found.flown, (unsigned)found.landed);
    assert_true(found.flown > found.simulated / 5 &&
                (found.landed > found.simulated / 12 || found.simulated < 12));
}

/* Heads come to a link in another order than that of the chips. If they took it in that of the
 * chips, the chips would not end at one instant, and all would land. */
static void heads_take_a_link_in_order(void **state)
{
    static const char text[] =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 8, \"gpus\": 1, "
        "\"network\": {\"switch_ports\": 8}}, \"mesh\": {\"tp\": [\"node\"]}, \"workload\": "
        "{\"kind\": \"train_step\", \"model\": \"tests/property/dense.json\", "
        "\"batch_tokens\": 32768, \"sequence_length\": 1024}}";
    struct play_options const options = {.full = true, .every_layer = true, .count_waits = true};
    struct found found = {0};
    (void)state;
    compare(text, options, &found);
    assert_true(found.flown == 1 && found.landed == 0);
}

/* Long pipelines of few chips a stage, whose passes are alike. */
static void draw_stretches(uint64_t *state, char text[TEXT_BYTES])
{
    const char *mesh = CASE_PICK(state, "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}",
                                 "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"tp\": [\"gpu\"]}");
    const char *chips =
        CASE_PICK(state, "", "", ", \"chips\": [{\"at\": [1, \"*\"], \"hbm\": 0.7}]");
    char machine[64];
    case_text(machine, sizeof machine, "\"chip\": \"h100-sxm\", \"nodes\": 4, \"gpus\": %s",
              CASE_PICK(state, "2", "4"));
    struct step_drawn const step = {.machine = machine,
                                    .overrides = chips,
                                    .mesh = mesh,
                                    .workload = "",
                                    .run = "",
                                    .batch_tokens = 8192u << case_draw(state, 3),
                                    .microbatches = 16u << case_draw(state, 2)};
    step_draw(state, &step, text);
}

static void stretches_are_as_their_ops(void **state)
{
    uint32_t walked = 0;
    struct found found = {0};
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(2 * DRAWN + n);
        char text[TEXT_BYTES];
        draw_stretches(&random, text);
        struct play_options const options = {.every_layer = case_draw(&random, 2) == 0,
                                             .steps_max = case_draw(&random, 2) == 0 ? 0 : 3};
        if (!sampling_skips(&walked)) compare(text, options, &found);
    }
    print_message("%u simulated, in %u of them stretches were repeated, in %u some broken\n",
                  (unsigned)found.simulated, (unsigned)found.repeated, (unsigned)found.broken);
    assert_true(found.simulated < 12 || (found.repeated > 0 && found.broken > 0));
}

/* Collectives begin while others hold their links: of stages that share a node's NIC, or of one
 * chip, whose layers have experts and whose gradients are reduced once for all passes. */
static void draw_shared(uint64_t *state, char text[TEXT_BYTES])
{
    static const char *const meshes[] = {
        "{\"pp\": [\"gpu:4\"], \"tp\": [\"node\"]}",
        "{\"pp\": [\"gpu:4\"], \"fsdp\": [\"node\"]}",
        "{\"pp\": [\"gpu:4\"], \"cp\": [\"node\"]}",
        "{\"pp\": [\"gpu:4\"], \"ep\": [\"node\"]}",
        "{\"ep\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}",
        "{\"ep\": [\"gpu\"], \"pp\": [\"node:2\"], \"dp\": [\"node:2\"]}",
    };
    const char *mesh = meshes[case_draw(state, 6)];
    bool const by_chip = strstr(mesh, "\"dp\"") != NULL;
    const char *network = CASE_PICK(
        state, "", ", \"network\": {\"node_nics\": 1}", ", \"network\": {\"node_nics\": 2}",
        ", \"network\": {\"node_nics\": 1, \"cable_latency\": \"20us\"}");
    const char *schedule =
        CASE_PICK(state, "1f1b", "looped-bfs:2", "looped-bfs:2", "dualpipev", "zb-h1");
    char machine[64];
    case_text(machine, sizeof machine, "\"chip\": \"h100-sxm\", \"nodes\": %s, \"gpus\": %s",
              by_chip ? strstr(mesh, "node:4") != NULL ? "8" : "4" : CASE_PICK(state, "2", "4"),
              by_chip ? "2" : "4");
    struct step_drawn const step = {.machine = machine,
                                    .overrides = "",
                                    .network = network,
                                    .mesh = mesh,
                                    .arbitration = "fifo",
                                    .schedule = schedule,
                                    .workload = by_chip ? ", \"zero\": 2" : "",
                                    .run = CASE_PICK(state, "", ", \"algorithm\": \"direct\""),
                                    .batch_tokens = 8192u << case_draw(state, 3),
                                    .microbatches = 8u << case_draw(state, 3)};
    step_draw(state, &step, text);
}

static void links_that_others_hold(void **state)
{
    static const char *const fixed[] = {
        /* Collectives land that have left their links. */
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 32, \"gpus\": 2, "
        "\"profile\":"
        " \"ideal\"}, \"mesh\": {\"ep\": [\"gpu\"], \"pp\": [\"node:16\"], \"dp\": [\"node:2\"]}, "
        "\"worklo"
        "ad\": {\"kind\": \"train_step\", \"model\": {\"model_type\": \"qwen3_moe\", "
        "\"hidden_size\": "
        "1024, \"intermediate_size\": 4096, \"moe_intermediate_size\": 512, \"num_experts\": 16"
        ", \"num_experts_per_tok\": 4, \"num_hidden_layers\": 32, \"num_attention_heads\": 8, \""
        "num_key_value_heads\": 4, \"head_dim\": 128, \"vocab_size\": 16384, \"norm_topk_prob\":"
        " true, \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"tie_word_embeddings\": f"
        "alse}, \"sequence_length\": 1024, \"accumulate\": 32, \"schedule\": \"looped-bfs:2\", \"a"
        "llow_oversubscription\": true, \"remat\": \"layer\", \"batch_tokens\": 524288, \"zero\": "
        "2}, \"run\": {\"arbitration\": \"fifo\"}}",
        /* Collectives begin in stretches while other chips hold the NIC. */
        "{\"podsim\": 1, \"machine\": {\"chip\": \"a100-sxm\", \"nodes\": 2, \"gpus\": 4, "
        "\"profile\": "
        "\"measured\", \"network\": {\"node_nics\": 2}}, \"mesh\": {\"pp\": [\"gpu:4\"], \"tp\": "
        "[\"node"
        "\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": {\"model_type\": \"llama\", "
        "\"hidden"
        "_size\": 512, \"intermediate_size\": 1536, \"num_hidden_layers\": 32, \"num_attention_"
        "heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 64, \"vocab_size\": 1024, \"tie_wo"
        "rd_embeddings\": false}, \"sequence_length\": 1024, \"accumulate\": 8, \"schedule\": \"d"
        "ualpipev\", \"allow_oversubscription\": true, \"remat\": \"big_matmuls\", \"batch_tokens"
        "\": 8192}, \"run\": {\"arbitration\": \"fifo\", \"algorithm\": \"direct\", \"overlap\": "
        "{\"pp\""
        ": false}}}",
    };
    uint32_t walked = 0;
    struct found found = {0};
    (void)state;
    for (uint32_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        struct play_options const options = {.short_stretches = true, .steps_max = 3};
        compare(fixed[i], options, &found);
    }
    assert_true(found.simulated == 2 && found.landed_off > 0 && found.repeated > 0);
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(3 * DRAWN + n);
        char text[TEXT_BYTES];
        draw_shared(&random, text);
        struct play_options const options = {.every_layer = case_draw(&random, 2) == 0,
                                             .short_stretches = case_draw(&random, 2) == 0,
                                             .steps_max = case_draw(&random, 8) == 0 ? 0 : 3};
        if (!sampling_skips(&walked)) compare(text, options, &found);
    }
    print_message("%u simulated, in %u of them collectives landed that had left their links, in %u "
                  "stretches were repeated\n",
                  (unsigned)found.simulated, (unsigned)found.landed_off, (unsigned)found.repeated);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_result_is_that_of_every_message),
        cmocka_unit_test(chips_fly_together), cmocka_unit_test(heads_take_a_link_in_order),
        cmocka_unit_test(stretches_are_as_their_ops), cmocka_unit_test(links_that_others_hold)};
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
