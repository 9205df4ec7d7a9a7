/*
 * Layers that are alike and are not simulated one by one (sim/replay/recur.h): whatever is drawn,
 * digest, counts and the bytes of the result are those of a run that simulates each layer.
 */
#include <stdio.h>
#include <string.h>

#include "tests/property/recurring.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 240, TRAINING_DRAWN = 240, SWITCHES_DRAWN = 160 };

static const struct {
    const char *machine, *mesh;
} places[] = {
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"tp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\"", "{\"tp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\", \"chips\": [{\"at\": [0, 1], \"hbm\": 0.7}]",
     "{\"dp\": [\"x\"], \"tp\": [\"y\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x4\"", "{\"tp\": [\"x\", \"y\", \"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"tp\": [\"x\", \"y\"], \"dp\": [\"z\"]}"},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"node\", \"gpu\"]}"},
};
enum { PLACES = sizeof places / sizeof *places };

static void inference_draw(uint64_t *state, char *text, uint32_t bytes)
{
    const char *model = CASE_PICK(state, "llama-3-8b", "llama-2-13b", "llama-3-70b");
    const char *kind = CASE_PICK(state, "decode", "decode", "prefill");
    const char *activations = CASE_PICK(state, "model", "replicated");
    uint32_t const batch = 1u << case_draw(state, 7), tokens = 1 + case_draw(state, 2000);
    case_text(text, bytes,
              "\"kind\": \"%s\", \"model\": \"%s\", \"batch\": %u, \"%s\": %u, \"activations\": "
              "\"%s\", \"formats\": {\"weights\": \"int8\"}",
              kind, model, (unsigned)batch, strcmp(kind, "decode") == 0 ? "context" : "prompt",
              (unsigned)tokens, activations);
}

static void training_draw(uint64_t *state, char *text, uint32_t bytes)
{
    uint32_t const layers = 12 + case_draw(state, 30), width = 512u << case_draw(state, 3);
    const char *remat = CASE_PICK(state, "none", "block", "layer");
    uint32_t const rows = 4096u << case_draw(state, 4);
    case_text(text, bytes,
              "\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": %u, \"F\": %u, "
              "\"layers\": %u, \"matrices\": 3}, \"batch_tokens\": %u, \"remat\": \"%s\"",
              (unsigned)width, (unsigned)(4 * width), (unsigned)layers, (unsigned)rows, remat);
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    char keys[TEXT_BYTES / 2];
    uint32_t const place = case_draw(state, PLACES);
    if (case_draw(state, 4) == 0)
        training_draw(state, keys, sizeof keys);
    else
        inference_draw(state, keys, sizeof keys);
    const char *arbitration = CASE_PICK(state, "fair", "priority", "fifo");
    bool const gpu = strstr(places[place].machine, "h100") != NULL;
    const char *profile = CASE_PICK(state, "ideal", "measured");
    if (gpu && case_draw(state, 2) == 0) profile = "measured\", \"stack\": \"te";
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\"}, \"mesh\": %s, \"workload\": "
              "{%s, \"allow_oversubscription\": true}, \"run\": {\"arbitration\": \"%s\"}}",
              places[place].machine, profile, places[place].mesh, keys, arbitration);
}

/* Steps of training, whose gathers and reductions run at the same time as compute, on slices of
 * which some have a slow chip or link, or an axis that is no ring. */
static const struct {
    const char *machine, *mesh;
} slices[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"fsdp\": [\"x\"], \"dp\": [\"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\", \"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"fsdp\": [\"x\"], \"cp\": [\"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x4\"", "{\"dp\": [\"x\", \"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"fsdp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"chips\": [{\"at\": [1, 2, 3], \"math\": 0.9}]",
     "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"links\": [{\"from\": [1, 2, 3], \"to\": "
     "[2, 2, 3], \"rate\": \"45GB/s\"}]",
     "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\", \"slices\": 2",
     "{\"dp\": [\"slice\"], \"fsdp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x8\", \"links\": [{\"from\": [1, 1, 3], \"to\": "
     "[1, 1, 4], \"rate\": \"60GB/s\"}]",
     "{\"fsdp\": [\"x\", \"y\", \"z:2\"], \"tp\": [\"z:4\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"fsdp\": [\"node\", \"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"fsdp\": [\"node\", \"gpu:2\"], \"tp\": [\"gpu:4\"]}"},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"fsdp\": [\"gpu\"]}"},
};

static void slice_draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const place = case_draw(state, sizeof slices / sizeof *slices);
    uint32_t const layers = 10 + case_draw(state, 30), width = 1024u << case_draw(state, 2);
    uint32_t const length = 512u << case_draw(state, 3), tokens = 131072u << case_draw(state, 3);
    uint32_t const prefetch = 1 + case_draw(state, 2);
    const char *remat = CASE_PICK(state, "none", "block", "layer", "big_matmuls");
    const char *gather = CASE_PICK(state, "block", "tensor", "layer");
    const char *arbitration = CASE_PICK(state, "fair", "fair", "priority", "fifo");
    const char *chunks = CASE_PICK(state, "true", "false");
    const char *profile = CASE_PICK(state, "ideal", "measured");
    bool const context = strstr(slices[place].mesh, "cp") != NULL;
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\"}, \"mesh\": %s, \"workload\": "
        "{\"kind\": \"train_step\", \"model\": {\"model_type\": \"llama\", \"hidden_size\": %u, "
        "\"intermediate_size\": %u, \"num_hidden_layers\": %u, \"num_attention_heads\": 16, "
        "\"num_key_value_heads\": 8, \"vocab_size\": 32000, \"tie_word_embeddings\": false}, "
        "\"batch_tokens\": %u, \"sequence_length\": %u, \"remat\": \"%s\", \"gather\": \"%s\"%s, "
        "\"allow_oversubscription\": true}, \"run\": {\"arbitration\": \"%s\", "
        "\"collective_matmul\": %s, \"prefetch_layers\": %u}}",
        slices[place].machine, profile, slices[place].mesh, (unsigned)width, (unsigned)(3 * width),
        (unsigned)layers, (unsigned)tokens, (unsigned)length, remat, gather,
        context ? ", \"context\": \"all_gather\"" : "", arbitration, chunks, (unsigned)prefetch);
}

/* Machines whose switches add and copy. */
static const struct {
    const char *machine, *mesh;
} fabrics[] = {
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8, \"chips\": [{\"at\": [3], \"hbm\": 0.8}]",
     "{\"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"node:2\"], \"dp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"fsdp\": [\"node\", \"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4, \"chips\": [{\"at\": [2, 5], \"math\": 0.9}]",
     "{\"fsdp\": [\"node\", \"gpu\"]}"},
    {"\"chip\": \"gb200-nvl72\", \"gpus\": 8, \"nodes\": 2",
     "{\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]}"},
};

static void fabric_draw(uint64_t *state, char text[TEXT_BYTES])
{
    char keys[TEXT_BYTES / 2];
    uint32_t const place = case_draw(state, sizeof fabrics / sizeof *fabrics);
    bool const trains = strstr(fabrics[place].mesh, "dp") != NULL || case_draw(state, 2) == 0;
    if (trains)
        training_draw(state, keys, sizeof keys);
    else
        inference_draw(state, keys, sizeof keys);
    const char *network = CASE_PICK(state, "auto", "on");
    const char *algorithm = CASE_PICK(state, "sharp", "sharp", "auto");
    const char *arbitration = CASE_PICK(state, "fair", "priority", "fifo");
    const char *profile = CASE_PICK(state, "ideal", "measured", "measured\", \"stack\": \"te");
    if (strcmp(network, "auto") == 0 && strstr(fabrics[place].mesh, "node") != NULL)
        algorithm = "auto";
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\", \"network\": {\"sharp\": "
              "\"%s\"}}, \"mesh\": %s, \"workload\": {%s, \"allow_oversubscription\": true}, "
              "\"run\": {\"arbitration\": \"%s\", \"algorithm\": \"%s\", \"collective_matmul\": "
              "false}}",
              fabrics[place].machine, profile, network, fabrics[place].mesh, keys, arbitration,
              algorithm);
}

static void each_is_that_of_every_layer(uint32_t count,
                                        void (*draw_one)(uint64_t *state, char text[TEXT_BYTES]),
                                        uint32_t one_in)
{
    uint32_t walked = 0;
    struct recurring counts = {0};
    for (uint32_t n = 0; n < count; n++) {
        uint64_t random = walk_draw(n);
        char text[TEXT_BYTES];
        draw_one(&random, text);
        bool const full = case_draw(&random, 3) == 0;
        if (sampling_skips(&walked)) continue;
        recurring_check(text, (struct play_options){.full = full}, &counts);
    }
    recurring_end(&counts, one_in);
}

static void each_result_is_that_of_every_layer(void **state)
{
    (void)state;
    each_is_that_of_every_layer(DRAWN, draw, 8);
}

static void each_training_step_is_that_of_every_layer(void **state)
{
    (void)state;
    each_is_that_of_every_layer(TRAINING_DRAWN, slice_draw, 3);
}

static void each_step_by_switches_is_that_of_every_layer(void **state)
{
    (void)state;
    each_is_that_of_every_layer(SWITCHES_DRAWN, fabric_draw, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_result_is_that_of_every_layer),
        cmocka_unit_test(each_training_step_is_that_of_every_layer),
        cmocka_unit_test(each_step_by_switches_is_that_of_every_layer),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
