/*
 * Chips that are alike go through handlers together (sim/replay/batch.h): whatever is drawn, with
 * overridden chips and links among them, digest and the bytes of the result are those of the
 * reference queue, which hands one chip at a time to the handlers. So are they if events of several
 * instants are handed over together (sim/replay/window.c).
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/result.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, KEYS_BYTES = TEXT_BYTES / 2, DRAWN = 160, AXES_MAX = 3 };

static const struct {
    const char *chip;
    unsigned axes;
    unsigned sizes[AXES_MAX];
    const char *mesh;
} places[] = {
    {"tpu-v5p", 3, {4, 4, 4}, "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}"},
    {"tpu-v5p", 3, {4, 4, 8}, "{\"dp\": [\"x\"], \"fsdp\": [\"z\"], \"tp\": [\"y\"]}"},
    {"tpu-v5p", 3, {4, 4, 4}, "{\"tp\": [\"y\", \"z\"], \"dp\": [\"x\"]}"},
    {"tpu-v5p", 3, {4, 4, 4}, "{\"fsdp\": [\"x\", \"y\", \"z\"]}"},
    {"tpu-v4p", 3, {4, 4, 8}, "{\"fsdp\": [\"z\"], \"tp\": [\"x\", \"y\"]}"},
    {"tpu-v5e", 2, {16, 16}, "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}"},
    {"tpu-v5e", 2, {8, 16}, "{\"fsdp\": [\"x\", \"y\"]}"},
};
enum { PLACES = sizeof places / sizeof *places };

/* Appends to a list of overrides. */
static void add(char keys[KEYS_BYTES], const char *text)
{
    size_t const used = strlen(keys);
    case_text(keys + used, KEYS_BYTES - used, "%s%s", used == 0 ? "" : ", ", text);
}

/* A chip, with one axis moved by `step`. */
static void chip_draw(uint64_t *state, unsigned place, unsigned moved, unsigned at[AXES_MAX])
{
    for (unsigned axis = 0; axis < places[place].axes; axis++)
        at[axis] = case_draw(state, places[place].sizes[axis] - (axis == moved));
}

static void at_write(char *text, size_t bytes, unsigned place, const unsigned at[AXES_MAX])
{
    char third[16] = "";
    if (places[place].axes == AXES_MAX) case_text(third, sizeof third, ", %u", at[2]);
    case_text(text, bytes, "[%u, %u%s]", at[0], at[1], third);
}

/* Slow chips; half of the slices have none. */
static void chips_draw(uint64_t *state, unsigned place, char keys[KEYS_BYTES])
{
    unsigned at[AXES_MAX];
    unsigned const count = case_draw(state, 2) == 0 ? 0 : 1 + case_draw(state, 4);
    for (unsigned i = 0; i < count; i++) {
        char where[32], text[96];
        chip_draw(state, place, AXES_MAX, at);
        at_write(where, sizeof where, place, at);
        const char *what = CASE_PICK(state, "math", "math", "hbm");
        case_text(text, sizeof text, "{\"at\": %s, \"%s\": 0.%u}", where, what,
                  30 + case_draw(state, 70));
        add(keys, text);
    }
}

/* Slow links; two thirds of the slices have none. */
static void links_draw(uint64_t *state, unsigned place, char keys[KEYS_BYTES])
{
    unsigned from[AXES_MAX], to[AXES_MAX];
    unsigned const count = case_draw(state, 3) > 0 ? 0 : 1 + case_draw(state, 2);
    for (unsigned i = 0; i < count; i++) {
        char ends[2][32], text[128];
        unsigned const axis = case_draw(state, places[place].axes);
        chip_draw(state, place, axis, from);
        memcpy(to, from, sizeof to);
        to[axis]++;
        at_write(ends[0], sizeof ends[0], place, from);
        at_write(ends[1], sizeof ends[1], place, to);
        case_text(text, sizeof text, "{\"from\": %s, \"to\": %s, \"rate\": \"%uGB/s\"}", ends[0],
                  ends[1], 10 + case_draw(state, 20));
        add(keys, text);
    }
}

static void workload_draw(uint64_t *state, char keys[KEYS_BYTES])
{
    static const char *const models[] = {"\"tests/property/padding.json\"",
                                         "\"tests/property/small.json\""};
    const char *remat = CASE_PICK(state, "none", "block", "layer");
    const char *gather = CASE_PICK(state, "block", "tensor", "layer");
    unsigned const tokens = 16384u << case_draw(state, 5), layers = 1 + case_draw(state, 3);
    unsigned const width = 512u << case_draw(state, 4);
    char model[160];
    if (case_draw(state, 4) == 0)
        case_text(model, sizeof model, "%s, \"sequence_length\": 1024",
                  case_pick(state, models, 2));
    else
        case_text(model, sizeof model,
                  "{\"kind\": \"mlp\", \"D\": %u, \"F\": %u, \"layers\": %u, \"matrices\": 3}",
                  width, 4 * width, layers);
    case_text(keys, KEYS_BYTES,
              "\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": %u, \"remat\": \"%s\", "
              "\"gather\": \"%s\", \"accumulate\": %u, \"allow_oversubscription\": true",
              model, tokens, remat, gather, 1 + case_draw(state, 2));
}

static void draw(uint64_t *state, char text[2 * TEXT_BYTES])
{
    char chips[KEYS_BYTES] = "", links[KEYS_BYTES] = "", keys[KEYS_BYTES], third[16] = "";
    unsigned const place = case_draw(state, PLACES);
    const unsigned *sizes = places[place].sizes;
    chips_draw(state, place, chips);
    links_draw(state, place, links);
    workload_draw(state, keys);
    const char *profile = CASE_PICK(state, "ideal", "ideal", "measured");
    const char *arbitration = CASE_PICK(state, "fair", "priority", "fifo");
    const char *pieces = CASE_PICK(state, "true", "false");
    if (places[place].axes == AXES_MAX) case_text(third, sizeof third, "x%u", sizes[2]);
    case_text(
        text, 2 * TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"shape\": \"%ux%u%s\", \"profile\": "
        "\"%s\", \"chips\": [%s], \"links\": [%s]}, \"mesh\": %s, \"workload\": {%s}, "
        "\"run\": {\"arbitration\": \"%s\", \"collective_matmul\": %s}}",
        places[place].chip, sizes[0], sizes[1], third, profile, chips, links, places[place].mesh,
        keys, arbitration, pieces);
}

/* The result as the engine `name` has it. */
static bool tell_as(const char *text, const char *name, bool windows, struct strbuf *ret_result,
                    struct trace *ret_trace)
{
    struct play_options const options = {
        .full = true, .every_layer = true, .engine = name, .windows = windows};
    return play_result(text, &options, ret_result, ret_trace);
}

static bool tell(const char *text, const char *name, struct strbuf *ret_result,
                 struct trace *ret_trace)
{
    return tell_as(text, name, false, ret_result, ret_trace);
}

static void alike_chips_do_together_what_each_does_alone(void **state)
{
    uint32_t walked = 0, taken = 0, simulated = 0;
    (void)state;
    for (uint32_t n = 0; n < DRAWN; n++) {
        uint64_t random = walk_draw(n);
        char text[2 * TEXT_BYTES];
        draw(&random, text);
        if (sampling_skips(&walked)) continue;
        struct strbuf together = {0}, alone = {0}, windows = {0};
        struct trace traces[3];
        taken++;
        if (!tell(text, "fast", &together, &traces[0])) continue;
        assert_true(tell(text, "reference", &alone, &traces[1]));
        assert_true(tell_as(text, "fast", true, &windows, &traces[2]));
        case_that(traces[0].digest == traces[1].digest, text);
        case_that(strcmp(together.bytes, alone.bytes) == 0, text);
        case_that(traces[2].digest == traces[1].digest, text);
        case_that(strcmp(windows.bytes, alone.bytes) == 0, text);
        strbuf_free(&together);
        strbuf_free(&alone);
        strbuf_free(&windows);
        simulated++;
    }
    print_message("%u simulated\n", (unsigned)simulated);
    assert_true(simulated > taken / 2);
}

/* Messages of a lane double from step to step: more sizes than a lane remembers costs of, and what
 * lands on one chip of an entry makes it send the next size before the next chip is looked at. The
 * last two sizes over 79 ranks, 32 and 15 chunks, have one place among these costs, and so have 128
 * and 39 chunks over 295 ranks: there are too many of these for their ways to be remembered. */
static void messages_of_many_sizes_cost_what_they_cost_alone(void **state)
{
    static const struct {
        const char *algorithm;
        unsigned nodes;
    } cases[] = {{"bruck", 64}, {"recursive", 64}, {"bruck", 79}, {"bruck", 295}};
    (void)state;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TEXT_BYTES];
        case_text(text, sizeof text,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": %u, "
                  "\"gpus\": 1}, \"mesh\": {\"fsdp\": [\"node\"]}, \"workload\": {\"kind\": "
                  "\"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 4096, \"F\": 8192, "
                  "\"layers\": 2}, \"batch_tokens\": %u}, \"run\": {\"algorithm\": \"%s\"}}",
                  cases[i].nodes, 1024 * cases[i].nodes, cases[i].algorithm);
        struct strbuf together = {0}, alone = {0};
        struct trace traces[2];
        assert_true(tell(text, "fast", &together, &traces[0]));
        assert_true(tell(text, "reference", &alone, &traces[1]));
        case_that(strcmp(together.bytes, alone.bytes) == 0, text);
        strbuf_free(&together);
        strbuf_free(&alone);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_chips_do_together_what_each_does_alone),
        cmocka_unit_test(messages_of_many_sizes_cost_what_they_cost_alone)};
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
