/* No step is faster than its roofline, and no axis or unit less busy: over meshes, shapes, models
 * and policies drawn from a printed seed. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "sim/report/notes.h"
#include "tests/support/above.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { STEPS = 100, EXCHANGES = 40, FABRICS = 140, PAIRS = 160, SEED = 20240607, OVERRIDES = 6 };

#define LENGTH(array) (uint32_t)(sizeof(array) / sizeof *(array))

static uint64_t state_of_draws = SEED;

static uint32_t draw_of(uint64_t *state, uint32_t choices)
{
    *state ^= *state << 13; /* xorshift64 (Marsaglia 2003) */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 33) % choices;
}

static uint32_t draw(uint32_t choices)
{
    return draw_of(&state_of_draws, choices);
}

static const char *pick(const char *const *texts, uint32_t count)
{
    return texts[draw(count)];
}
#define PICK(...)                                                                                  \
    pick((const char *const[]){__VA_ARGS__},                                                       \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void write_scenario(char *text, size_t room)
{
    const char *shape = PICK("4x4x4", "4x4", "8x4", "16", "2x2x4", "4x8x4", "5x3", "8");
    const char *mesh = NULL;
    uint32_t axes = 1;
    for (const char *c = shape; *c != '\0'; c++) axes += *c == 'x';
    if (axes == 3)
        mesh = PICK("\"fsdp\":[\"x\",\"y\"],\"tp\":[\"z\"]", "\"fsdp\":[\"x\",\"y\",\"z\"]",
                    "\"dp\":[\"x\"],\"fsdp\":[\"y\"],\"tp\":[\"z\"]",
                    "\"tp\":[\"x\",\"y\"],\"fsdp\":[\"z\"]",
                    "\"fsdp\":[\"x\",\"y:2\"],\"tp\":[\"y:2\",\"z\"]"
                    ", \"order\": [\"fsdp\", \"tp\"]");
    else if (axes == 2)
        mesh = PICK("\"fsdp\":[\"x\"],\"tp\":[\"y\"]", "\"fsdp\":[\"x\",\"y\"]",
                    "\"dp\":[\"x\"],\"fsdp\":[\"y\"]", "\"tp\":[\"x\"],\"fsdp\":[\"y\"]");
    else
        mesh = PICK("\"fsdp\":[\"x\"]", "\"tp\":[\"x\"]",
                    "\"fsdp\":[\"x:4\"],\"tp\":[\"x:2\"]"
                    ", \"order\": [\"fsdp\", \"tp\"]",
                    "\"dp\":[\"x\"]", "\"tp\":[\"x:4\"],\"fsdp\":[\"x:4\"]");
    static const char *const overrides[][OVERRIDES] = {
        {"", ",\"chips\":[{\"at\":[1],\"math\":0.5}]",
         ",\"links\":[{\"from\":[0],\"to\":[1],\"rate\":\"9GB/s\"}]",
         ",\"links\":[{\"from\":[1],\"to\":[2],\"rate\":\"900GB/s\"}]",
         ",\"links\":[{\"from\":[3],\"to\":[4],\"rate\":\"9GB/s\"}]",
         ",\"chips\":[{\"at\":[\"*\"],\"math\":2,\"hbm\":3},{\"at\":[1],\"math\":4}]"},
        {"", ",\"chips\":[{\"at\":[1,\"*\"],\"hbm\":0.25}]",
         ",\"links\":[{\"from\":[0,0],\"to\":[1,0],\"rate\":\"9GB/s\"}]",
         ",\"links\":[{\"from\":[1,1],\"to\":[1,2],\"rate\":\"900GB/s\"}]",
         ",\"links\":[{\"from\":[2,1],\"to\":[1,1],\"rate\":\"9GB/s\"}]",
         ",\"chips\":[{\"at\":[\"*\",\"*\"],\"math\":2}]"},
        {"", ",\"chips\":[{\"at\":[\"*\",1,\"*\"],\"math\":0.3,\"hbm\":0.9}]",
         ",\"links\":[{\"from\":[0,0,0],\"to\":[0,0,1],\"rate\":\"9GB/s\"}]",
         ",\"links\":[{\"from\":[1,1,1],\"to\":[1,1,2],\"rate\":\"900GB/s\"}]",
         ",\"links\":[{\"from\":[0,1,0],\"to\":[0,2,0],\"rate\":\"9GB/s\"}]",
         ",\"chips\":[{\"at\":[\"*\",\"*\",\"*\"],\"hbm\":2},"
         "{\"at\":[1,0,0],\"math\":0.9,\"hbm\":2}]"},
    };
    const char *model = PICK("{\"kind\":\"mlp\",\"D\":960,\"F\":3840,\"layers\":2,\"matrices\":2}",
                             "{\"kind\":\"mlp\",\"D\":1920,\"F\":1920,\"layers\":3,\"matrices\":3}",
                             "\"llama-3-8b\"", "\"llama-2-13b\"");
    bool const mlp = model[0] == '{';
    static const uint32_t tokens[] = {15360, 61440, 245760, 983040};
    const char *chip = axes == 3 ? PICK("tpu-v5p", "tpu-v4p") : PICK("tpu-v5e", "tpu-v6e");
    const char *profile = PICK("ideal", "measured"), *wrap = PICK("true", "false");
    const char *override = overrides[axes - 1][draw(OVERRIDES)];
    uint32_t const batch = tokens[draw(4)];
    const char *remat = PICK("\"none\"", "\"norms\"", "\"block\"", "\"big_matmuls\"", "\"layer\"",
                             "{\"save\":[\"Out\"]}", "{\"repeat\":[\"Out\",\"Up\"]}",
                             "{\"policy\":\"norms\",\"repeat\":[\"Out\"]}");
    const char *accumulate = PICK("1", "2"), *gather = PICK("block", "tensor", "layer");
    const char *offload = PICK("none", "none", "optimizer", "activations", "both");
    const char *prefetch = PICK("0", "1", "2"), *chunks = PICK("true", "false");
    const char *algorithm =
        PICK("auto", "auto", "auto", "line", "ring-one-way", "direct", "bruck", "flat-direct");
    (void)snprintf(
        text, room,
        "{\"podsim\":1,\"title\":\"drawn\",\"machine\":{\"chip\":\"%s\",\"shape\":\"%s\","
        "\"profile\":\"%s\",\"unrealisable\":true,\"wrap\":{\"x\":%s}%s},\"mesh\":{%s},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":%s,\"batch_tokens\":%u%s,"
        "\"remat\":%s,\"accumulate\":%s,\"gather\":\"%s\",\"offload\":\"%s\",\"allow_"
        "oversubscription\":true},"
        "\"run\":{\"prefetch_layers\":%s,\"collective_matmul\":%s,\"algorithm\":\"%s\"}}",
        chip, shape, profile, wrap, override, mesh, model, batch,
        mlp ? "" : ",\"sequence_length\":1920", remat, accumulate, gather, offload, prefetch,
        chunks, algorithm);
}

/* Tokens to experts, and the heads of shared sequences, over several axes: every copy goes its own
 * way, yet none is shorter than along each axis. */
static void write_exchange(char *text, size_t room)
{
    bool const experts = draw(3) > 0;
    bool const box = draw(2) == 0;
    const char *const shape = box ? "4x4x4" : "8x4";
    const char *ep = box ? PICK("\"ep\":[\"x\",\"z\"],\"fsdp\":[\"y\"]",
                                "\"ep\":[\"x:2\",\"y\"],\"dp\":[\"x:2\",\"z\"]",
                                "\"ep\":[\"y\",\"z:2\"],\"tp\":[\"x\"],\"fsdp\":[\"z:2\"]")
                         : PICK("\"dp\":[\"x:2\"],\"ep\":[\"x:4\",\"y\"]"
                                ", \"order\": [\"dp\", \"ep\"]",
                                "\"ep\":[\"x:4\",\"y\"],\"dp\":[\"x:2\"]",
                                "\"ep\":[\"x:4\",\"y:2\"],\"fsdp\":[\"x:2\",\"y:2\"]");
    const char *cp = box ? "\"cp\":[\"x:2\",\"y\"],\"fsdp\":[\"x:2\",\"z\"]"
                         : "\"cp\":[\"x:2\",\"y\"],\"fsdp\":[\"x:4\"]";
    const char *slow = "";
    if (draw(4) == 0)
        slow = box ? ",\"links\":[{\"from\":[0,1,0],\"to\":[0,2,0],\"rate\":\"9GB/s\"}]"
                   : ",\"links\":[{\"from\":[1,0],\"to\":[2,0],\"rate\":\"9GB/s\"}]";
    const char *wrap_x = PICK("true", "false"), *wrap_y = PICK("true", "false");
    unsigned const batch = 65536u << draw(4);
    const char *more = experts ? PICK("", ",\"routing_skew\":0.5", ",\"routing_skew\":1")
                               : ",\"context\":\"ulysses\"";
    (void)snprintf(
        text, room,
        "{\"podsim\":1,\"title\":\"drawn\",\"machine\":{\"chip\":\"%s\",\"shape\":\"%s\","
        "\"unrealisable\":true,\"wrap\":{\"x\":%s,\"y\":%s}%s},\"mesh\":{%s},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":\"%s\",\"batch_tokens\":%u%s,"
        "\"sequence_length\":1024,\"accumulate\":%s,\"allow_oversubscription\":true}}",
        box ? "tpu-v5p" : "tpu-v5e", shape, wrap_x, wrap_y, slow, experts ? ep : cp,
        experts ? "tests/property/experts.json" : "llama-3-8b", batch, more, PICK("1", "2"));
}

/* Groups that share an axis of switches, of one level or of several: under a leaf and strided over
 * leaves, and cables above leaves that are fewer than those below. */
static void write_fabric(char *text, size_t room)
{
    bool const experts = draw(2) == 0, slices = !experts && draw(4) == 0;
    bool const adds = draw(3) == 0;
    const char *chip = PICK("h100-sxm", "gb200-nvl72"), *ports = PICK("12", "16", "24");
    char machine[300];
    (void)snprintf(machine, sizeof machine,
                   "\"chip\":\"%s\",\"nodes\":16,\"gpus\":4,\"network\":{\"switch_ports\":%s,"
                   "\"sharp\":\"%s\",\"leaf\":{\"oversubscription\":%s}}",
                   chip, ports, adds ? "on" : "auto", PICK("1", "2", "4"));
    const char *mesh =
        PICK("\"dp\":[\"gpu\",\"node:8\"],\"fsdp\":[\"node:2\"], \"order\": [\"dp\", \"fsdp\"]",
             "\"dp\":[\"node:2\"],\"fsdp\":[\"gpu\",\"node:8\"], \"order\": [\"dp\", \"fsdp\"]",
             "\"fsdp\":[\"gpu\",\"node:4\"],\"tp\":[\"node:4\"], \"order\": [\"fsdp\", \"tp\"]",
             "\"dp\":[\"gpu:2\",\"node:4\"],\"tp\":[\"gpu:2\"],\"fsdp\":[\"node:4\"]"
             ", \"order\": [\"dp\", \"tp\", \"fsdp\"]",
             "\"dp\":[\"node:4\"],\"fsdp\":[\"node:4\"],\"tp\":[\"gpu\"]"
             ", \"order\": [\"dp\", \"fsdp\", \"tp\"]",
             "\"dp\":[\"gpu\",\"node\"]");
    if (experts)
        mesh = PICK("\"ep\":[\"gpu\"],\"dp\":[\"node:8\"],\"fsdp\":[\"node:2\"]"
                    ", \"order\": [\"ep\", \"dp\", \"fsdp\"]",
                    "\"ep\":[\"gpu\"],\"dp\":[\"node:2\"],\"fsdp\":[\"node:8\"]"
                    ", \"order\": [\"ep\", \"dp\", \"fsdp\"]",
                    "\"ep\":[\"gpu:2\",\"node:2\"],\"fsdp\":[\"gpu:2\"],\"dp\":[\"node:8\"]",
                    "\"fsdp\":[\"gpu\",\"node:4\"],\"ep\":[\"node:4\"]"
                    ", \"order\": [\"fsdp\", \"ep\"]",
                    "\"cp\":[\"node:2\"],\"ep\":[\"node:4\"],\"fsdp\":[\"gpu\",\"node:2\"]");
    if (slices)
        mesh = PICK("\"fsdp\":[\"x\",\"y\",\"slice\"]",
                    "\"fsdp\":[\"x\",\"slice:2\"],\"tp\":[\"y\"],\"dp\":[\"slice:2\"]",
                    "\"dp\":[\"slice:2\"],\"fsdp\":[\"x\",\"y\"],\"tp\":[\"slice:2\"]"
                    ", \"order\": [\"dp\", \"fsdp\", \"tp\"]");
    const char *algorithm = "auto";
    if (!experts && !slices && adds) algorithm = PICK("auto", "sharp");
    if (strstr(mesh, "\"node\"") != NULL && !adds) algorithm = PICK("auto", "tree", "flat-direct");
    unsigned const batch = 32768u << draw(3);
    const char *length = "", *context = "";
    if (experts)
        length = PICK(",\"sequence_length\":256", ",\"sequence_length\":256,\"routing_skew\":1");
    if (strstr(mesh, "cp") != NULL)
        context = PICK(",\"context\":\"ulysses\"", ",\"context\":\"all_gather\"",
                       ",\"context\":\"ring\"");
    const char *gather = PICK("block", "tensor", "layer"), *accumulate = PICK("1", "2");
    (void)snprintf(text, room,
                   "{\"podsim\":1,\"title\":\"drawn\",\"machine\":{%s},\"mesh\":{%s},"
                   "\"workload\":{\"kind\":\"train_step\",\"model\":%s,\"batch_tokens\":%u%s%s,"
                   "\"gather\":\"%s\",\"accumulate\":%s,\"allow_oversubscription\":true},"
                   "\"run\":{\"collective_matmul\":%s,\"algorithm\":\"%s\"}}",
                   slices ? "\"chip\":\"tpu-v5e\",\"shape\":\"4x4\",\"slices\":4" : machine, mesh,
                   experts
                       ? "\"tests/property/experts.json\""
                       : "{\"kind\":\"mlp\",\"D\":1024,\"F\":16384,\"layers\":3,\"matrices\":2}",
                   batch, length, context, gather, accumulate, PICK("true", "false"), algorithm);
}

/* Parts of a node without a switch: a group has the links of its pairs. */
static void write_pairs(char *text, size_t room)
{
    const char *algorithm = "auto", *context = "", *more = "";
    const char *const model = PICK("llama-3-8b", "llama-3-8b", "tests/property/experts.json");
    const char *mesh =
        PICK("\"fsdp\":[\"gpu\"]", "\"tp\":[\"gpu\"]", "\"dp\":[\"gpu\"]",
             "\"fsdp\":[\"gpu:2\"],\"dp\":[\"gpu:4\"]", "\"fsdp\":[\"gpu:4\"],\"tp\":[\"gpu:2\"]",
             "\"dp\":[\"gpu:2\"],\"tp\":[\"gpu:2\"],\"fsdp\":[\"gpu:2\"]",
             "\"cp\":[\"gpu:4\"],\"fsdp\":[\"gpu:2\"]", "\"cp\":[\"gpu\"]",
             "\"cp\":[\"gpu:2\"],\"tp\":[\"gpu:4\"]", "\"pp\":[\"gpu:4\"],\"tp\":[\"gpu:2\"]",
             "\"pp\":[\"gpu:2\"],\"fsdp\":[\"gpu:4\"]");
    bool const experts = strstr(model, "experts") != NULL, stages = strstr(mesh, "pp") != NULL;
    if (experts)
        mesh = PICK("\"ep\":[\"gpu\"]", "\"ep\":[\"gpu:2\"],\"fsdp\":[\"gpu:4\"]",
                    "\"ep\":[\"gpu:4\"],\"dp\":[\"gpu:2\"]",
                    "\"dp\":[\"gpu:2\"],\"ep\":[\"gpu:2\"],\"fsdp\":[\"gpu:2\"]");
    if (strstr(mesh, "cp") != NULL)
        context = PICK(",\"context\":\"ulysses\"", ",\"context\":\"all_gather\"",
                       ",\"context\":\"ring\"", ",\"context\":\"ring\"");
    if (!experts && !stages && strstr(context, "ulysses") == NULL)
        algorithm = PICK("auto", "auto", "ring", "direct");
    if (stages) more = PICK("", ",\"schedule\":\"zb-h1\"", ",\"schedule\":\"interleaved:2\"");
    const char *outer = strstr(mesh, "\"dp\"") == NULL     ? ",\"dp\":[\"node\"]"
                        : strstr(mesh, "\"fsdp\"") == NULL ? ",\"fsdp\":[\"node\"]"
                                                           : "";
    bool const several = draw(3) == 0 && outer[0] != '\0';
    const char *profile = PICK("ideal", "ideal", "measured");
    const char *gather = PICK("block", "tensor", "layer"), *chunks = PICK("true", "false");
    unsigned const batch = 16384u << draw(4);
    (void)snprintf(
        text, room,
        "{\"podsim\":1,\"title\":\"drawn\",\"machine\":{\"chip\":\"mi300x\",\"profile\":"
        "\"%s\"%s},\"mesh\":{%s%s},\"workload\":{\"kind\":\"train_step\",\"model\":\"%s\","
        "\"batch_tokens\":%u,\"sequence_length\":2048%s%s,\"gather\":\"%s\","
        "\"accumulate\":%s,\"allow_oversubscription\":true},"
        "\"run\":{\"collective_matmul\":%s,\"algorithm\":\"%s\"}}",
        profile, several ? ",\"nodes\":2" : "", mesh, several ? outer : "", model, batch, context,
        more, gather, stages ? "8" : PICK("1", "2"), chunks, algorithm);
}

/* Closed forms know nothing of collectives that keep each other waiting at switches. By urgency
 * they do so for longer: on leaves with fewer cables up than down, 4 of 138 such steps are above,
 * by up to 8 %. */
static double most_waits(const char *text, const char *arbitration)
{
    if (strstr(text, "\"network\"") == NULL) return 1;
    return strcmp(arbitration, "priority") == 0 ? 1.1 : 1.01;
}

/* Plays it; false if it is refused, which a drawn combination may be. */
static bool check_step(const char *text, const char *arbitration, struct error *error)
{
    struct play play;
    char turns[40];
    (void)snprintf(turns, sizeof turns, "/run/arbitration=%s", arbitration);
    struct scenario_setting const setting = {.text = turns};
    struct play_options const options = {.settings = &setting, .setting_count = 1};
    bool const played = play_try(&play, text, &options, error) == STATUS_OK;
    if (played) {
        const struct machine *machine = &play.machine;
        const struct roofline *roofline = &play.roofline;
        const struct trace *trace = &play.trace;
        double const step_s = units_seconds(trace->step_ps), rounding = 1 + 1e-9;
        if (step_s * rounding < roofline->lower_s)
            fail_msg("%.9g s is below the roofline's %.9g s (%s), %s: %s", step_s,
                     roofline->lower_s, roofline->bound.by, arbitration, text);
        /* A sum of parts bounds no step whose strided lines share links or halve their shares, nor
         * one of other algorithms or routes than its closed forms are of. */
        bool const automatic = strstr(text, "\"algorithm\":\"auto\"") != NULL;
        bool const line = machine->axis_count == 1 && strstr(text, "x:") == NULL;
        bool const fabric = strstr(text, "\"prefetch_layers\"") == NULL;
        bool const simple = (line && (automatic || fabric)) ||
                            (strstr(text, "\"routing_skew\"") == NULL &&
                             ((automatic && fabric) || strstr(text, "experts.json") != NULL ||
                              strstr(text, "ulysses") != NULL));
        double const waits = most_waits(text, arbitration);
        if (simple && roofline->upper_s * waits * rounding < step_s)
            fail_msg("%.9g s is above the roofline's %.9g s, %s: %s", step_s, roofline->upper_s,
                     arbitration, text);
        double const mxu_s = units_seconds(trace->queue_busy_ps[TRACE_QUEUE_MXU]);
        /* Else the reported chip decides, or its stage. */
        bool const alike = machine->chip_override_count == 0 && strstr(text, "\"pp\"") == NULL;
        if (alike && (mxu_s * rounding < roofline->math_s || mxu_s > roofline->math_s * (1 + 1e-6)))
            fail_msg("the mxu works %.9g s, not %.9g s: %s", mxu_s, roofline->math_s, text);
        /* Arrays that may go over several axes leave one to others, so the bound is of the busiest.
         * Shares of several axes are rounded to small whole numbers. */
        double busiest_s = 0, least_s = 0;
        for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
            for (uint32_t way = 0; way < 2; way++)
                busiest_s = fmax(busiest_s, units_seconds(trace->link[2 * axis + way].busy_ps));
            least_s = fmax(least_s, roofline->ici_s[axis]);
        }
        if (busiest_s * (1 + 1e-3) < least_s)
            fail_msg("the busiest axis is so for %.9g s, not %.9g s: %s", busiest_s, least_s, text);
        struct report_input const input = play_report(&play);
        struct analysis analysis;
        struct notes notes;
        assert_int_equal(analysis_build(play.arena, &input, &analysis, error), STATUS_OK);
        assert_int_equal(notes_build(play.arena, &input, &analysis, &notes, error), STATUS_OK);
        above_check(&input, &analysis, &notes, text);
    }
    play_close(&play);
    return played;
}

/* Each test draws from the seed anew: how many steps others take says nothing of which it draws. */
static void check_steps(void (*write)(char *text, size_t room), uint32_t steps)
{
    static const char *const arbitrations[] = {"fair", "priority", "fifo"};
    uint64_t arbitration = SEED; /* Draws of its own: steps are the same ones under each. */
    uint32_t played = 0;
    print_message("seed %d\n", SEED);
    state_of_draws = SEED;
    for (uint32_t i = 0; i < steps || played == 0; i++) { /* Of two both may be refused. */
        char text[1200];
        struct error error = {0};
        write(text, sizeof text);
        if (check_step(text, arbitrations[draw_of(&arbitration, LENGTH(arbitrations))], &error))
            played++;
        else
            assert_true(error.status == STATUS_INVALID || error.status == STATUS_UNSUPPORTED);
    }
    print_message("%u of %u drawn steps played\n", played, steps);
    assert_true(played >= steps / 3);
}

static void no_step_is_below_its_roofline(void **state)
{
    (void)state;
    check_steps(write_scenario, STEPS / sampling_of());
}

static void nor_does_an_exchange_find_shorter_ways(void **state)
{
    (void)state;
    check_steps(write_exchange, EXCHANGES / sampling_of());
}

static void groups_on_switches_add_up_cable_by_cable(void **state)
{
    (void)state;
    check_steps(write_fabric, FABRICS / sampling_of());
}

static void a_group_without_a_switch_has_the_links_of_its_pairs(void **state)
{
    (void)state;
    check_steps(write_pairs, PAIRS / sampling_of());
}

/* What a stage sends forward and what it sends back have a link each, where no switch joins them:
 * schedules that keep both busy take half as long as they would on one. */
static void stages_without_a_switch_have_a_link_to_each_neighbour(void **state)
{
    static const char *const schedules[] = {"1f1b", "zb-h1", "dualpipe"};
    (void)state;
    for (uint32_t i = 0; i < LENGTH(schedules); i++) {
        char text[800];
        struct error error = {0};
        (void)snprintf(
            text, sizeof text,
            "{\"podsim\":1,\"machine\":{\"chip\":\"mi300x\"},\"mesh\":{\"pp\":[\"gpu\"]},"
            "\"workload\":{\"kind\":\"train_step\",\"model\":{\"kind\":\"mlp\",\"D\":8192,"
            "\"F\":64,\"layers\":16,\"matrices\":2},\"batch_tokens\":262144,"
            "\"accumulate\":128,\"schedule\":\"%s\",\"allow_oversubscription\":true}}",
            schedules[i]);
        if (!check_step(text, "fair", &error)) fail_msg("%s: %s", error.message, text);
    }
}

/* Leaves that do not divide the nodes hold some strided groups whole and others in parts. Steps of
 * that sort are rarely drawn, so that samples leave none of these out. */
static void switches_add_where_leaves_hold_some_groups_whole(void **state)
{
    static const char *const ports[] = {"12", "20", "24", "28"};
    static const char *const meshes[] = {"\"dp\":[\"node:8\"],\"fsdp\":[\"node:2\"]",
                                         "\"dp\":[\"node:4\"],\"fsdp\":[\"node:4\"]",
                                         "\"dp\":[\"node:2\"],\"fsdp\":[\"node:8\"]"};
    (void)state;
    for (uint32_t i = 0; i < 2 * LENGTH(ports) * LENGTH(meshes); i++) {
        char text[800];
        struct error error = {0};
        (void)snprintf(
            text, sizeof text,
            "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":16,\"gpus\":1,"
            "\"network\":{\"switch_ports\":%s,\"sharp\":\"on\",\"leaf\":{\"oversubscription\":1}}},"
            "\"mesh\":{%s,\"order\":[%s]},\"workload\":{\"kind\":\"train_step\",\"model\":"
            "{\"kind\":\"mlp\",\"D\":1024,\"F\":16384,\"layers\":1,\"matrices\":2},"
            "\"batch_tokens\":65536,\"accumulate\":1,\"allow_oversubscription\":true},"
            "\"run\":{\"collective_matmul\":false,\"algorithm\":\"sharp\"}}",
            ports[i / 2 % LENGTH(ports)], meshes[i / 2 / LENGTH(ports)],
            i % 2 == 0 ? "\"dp\",\"fsdp\"" : "\"fsdp\",\"dp\"");
        if (!check_step(text, "fair", &error)) fail_msg("%s: %s", error.message, text);
    }
}

/* A slow link carries as much of a ring's AllToAll as the other links. Samples leave out none of
 * these steps either. */
static void a_slow_link_decides_of_an_exchange(void **state)
{
    static const char *const meshes[] = {
        "\"dp\":[\"x:2\"],\"ep\":[\"x:4\",\"y\"],\"order\":[\"dp\",\"ep\"]",
        "\"ep\":[\"x:4\",\"y\"],\"dp\":[\"x:2\"],\"order\":[\"ep\",\"dp\"]",
        "\"ep\":[\"x\"],\"dp\":[\"y\"]", "\"ep\":[\"y\"],\"fsdp\":[\"x\"]"};
    static const char *const links[] = {"[1,0],\"to\":[2,0]", "[1,1],\"to\":[1,2]"};
    (void)state;
    for (uint32_t i = 0; i < 2 * LENGTH(links) * LENGTH(meshes); i++) {
        char text[800];
        struct error error = {0};
        (void)snprintf(text, sizeof text,
                       "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5e\",\"shape\":\"8x4\","
                       "\"unrealisable\":true,\"wrap\":{\"x\":%s,\"y\":true},"
                       "\"links\":[{\"from\":%s,\"rate\":\"9GB/s\"}]},\"mesh\":{%s},\"workload\":"
                       "{\"kind\":\"train_step\",\"model\":\"tests/property/experts.json\","
                       "\"batch_tokens\":131072,\"sequence_length\":1024,\"accumulate\":1,"
                       "\"allow_oversubscription\":true}}",
                       i % 2 == 0 ? "true" : "false", links[i / 2 % LENGTH(links)],
                       meshes[i / 2 / LENGTH(links)]);
        if (!check_step(text, "fair", &error)) fail_msg("%s: %s", error.message, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_is_below_its_roofline),
        cmocka_unit_test(nor_does_an_exchange_find_shorter_ways),
        cmocka_unit_test(groups_on_switches_add_up_cable_by_cable),
        cmocka_unit_test(a_group_without_a_switch_has_the_links_of_its_pairs),
        cmocka_unit_test(stages_without_a_switch_have_a_link_to_each_neighbour),
        cmocka_unit_test(switches_add_where_leaves_hold_some_groups_whole),
        cmocka_unit_test(a_slow_link_decides_of_an_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
