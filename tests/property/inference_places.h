/*
 * inference_places.h: machines with their meshes, and models, of which steps of inference are
 * drawn.
 */
#ifndef TESTS_PROPERTY_INFERENCE_PLACES_H
#define TESTS_PROPERTY_INFERENCE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes of the mesh's axes; `data` are ranks of dp and fsdp. */
static const struct {
    const char *machine;
    const char *mesh;
    uint32_t tp, data, tp_d, pp, cp;
} inference_places[] = {
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\", \"y\"]}", 16, 1, 1, 1, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"dp\": [\"x\"], \"tp\": [\"y\"]}", 4, 2, 1, 1,
     1},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"dp\": [\"z\"], \"tp\": [\"x\", \"y\"]}", 16,
     4, 1, 1, 1},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}", 8, 1, 1, 1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}", 8, 2, 1, 1,
     1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"node\", \"gpu\"]}", 16, 1, 1, 1, 1},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x2\"", "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}", 2, 2, 1,
     1, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\"], \"tp_d\": [\"y\"]}", 4, 1, 4,
     1, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"tp_d\": [\"x\", \"y\"]}", 1, 1, 8, 1, 1},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"dp\": [\"z:2\"], \"tp\": [\"x\", \"y\"], \"tp_d\": [\"z:2\"]}", 16, 2, 2, 1, 1},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x2\"", "{\"fsdp\": [\"x\"], \"tp_d\": [\"y\"]}", 1, 2, 2,
     1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"tp_d\": [\"node\"]}", 8, 1, 2,
     1, 1},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"pp\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]}", 2, 1, 1,
     4, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"pp\": [\"node\"], \"dp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", 4, 2, 1, 2, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"pp\": [\"x\"], \"tp\": [\"y\"]}", 4, 1, 1, 4,
     1},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"z:2\"], \"fsdp\": [\"z:2\"], \"tp\": [\"x\", \"y\"]}", 16, 2, 1, 2, 1},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"cp\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]}", 2, 1, 1,
     1, 4},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"cp\": [\"node\"], \"dp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", 4, 2, 1, 1, 2},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"cp\": [\"x\"], \"tp\": [\"y\"]}", 4, 1, 1, 1,
     4},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"z:2\"], \"cp\": [\"z:2\", \"x\"], \"tp\": [\"y\"]}", 4, 1, 1, 2, 8},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\"", "{\"cp\": [\"x:2\"], \"tp\": [\"x:2\", \"y\"]}",
     16, 1, 1, 1, 2},
};

/* Sizes as their config.json says them. */
static const struct {
    const char *name;
    uint64_t layers, width, mlp_width, heads, kv_heads, head_width, vocabulary;
    uint32_t context_most;
} inference_models[] = {
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, 8192},
    {"llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 8192},
    {"llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000, 4096},
};

enum {
    PLACES = sizeof inference_places / sizeof *inference_places,
    MODELS = sizeof inference_models / sizeof *inference_models
};

/* Bytes of a number with its part of the scale of a block, which has a scale of one byte or two. */
static const struct {
    const char *name;
    double bytes;
} inference_formats[] = {{"bf16", 2},
                         {"int8", 1},
                         {"fp8", 1},
                         {"int4", 0.5 + 2. / 128},
                         {"mxfp4", 0.5 + 1. / 32},
                         {"nvfp4", 0.5 + 1. / 16}};
enum { FORMATS = sizeof inference_formats / sizeof *inference_formats };

/* How a rank's heads and sequences lie, counted by hand. */
struct lying {
    uint64_t heads, kv_heads; /* Of a rank of tp. */
    uint64_t holders;         /* Ranks of tp with the same. */
    uint64_t keepers, parts;  /* Ranks that keep other sequences; other parts of each. */
    uint64_t filled;          /* Ranks of tp_d with equally many sequences, or 1. */
    bool by_heads, by_rows;   /* Ranks of tp_d. */
    bool turns, shares;       /* Ranks of tp with the same heads: other sequences; other parts. */
};

/* Heads over tp: those of keys as far as they go, and their queries beyond. */
static inline void inference_heads_lie(uint32_t place, uint32_t model, struct lying *of)
{
    uint64_t const tp = inference_places[place].tp,
                   group = inference_models[model].heads / inference_models[model].kv_heads;
    uint64_t kv_heads = inference_models[model].kv_heads;
    while (kv_heads % tp != 0 && tp % kv_heads != 0) kv_heads++;
    of->holders = tp > kv_heads ? tp / kv_heads : 1;
    of->kv_heads = tp > kv_heads ? 1 : kv_heads / tp;
    of->heads = of->kv_heads * ((group + of->holders - 1) / of->holders);
}

/* Whether ranks of cp can have some of a rank's heads each, or share one of its heads of keys. */
static inline bool inference_heads_divide(uint32_t place, uint32_t model)
{
    uint64_t const ways = inference_places[place].cp;
    struct lying of;
    inference_heads_lie(place, model, &of);
    return of.heads % ways == 0 && (of.kv_heads % ways == 0 || ways % of.kv_heads == 0);
}

#endif
