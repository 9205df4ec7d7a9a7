/*
 * experts_places.h: machines with their meshes, and models with experts, of which steps of
 * inference are drawn, and how.
 */
#ifndef TESTS_PROPERTY_EXPERTS_PLACES_H
#define TESTS_PROPERTY_EXPERTS_PLACES_H

#include <stdint.h>

#include "tests/support/case.h"

/* Sizes of the mesh's axes; `data` are all ranks with sequences of their own, those of ep too, and
 * those of cp not. */
static const struct {
    const char *machine, *mesh;
    uint32_t ep, data, tp, tp_d, cp;
} expert_places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"ep\": [\"node\", \"gpu\"]}", 16, 16, 1, 1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}", 8, 16, 1, 1,
     1},
    {"\"chip\": \"h800-sxm\", \"nodes\": 4", "{\"ep\": [\"node\", \"gpu\"]}", 32, 32, 1, 1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"ep\": [\"node\", \"gpu:4\"], \"tp\": [\"gpu:2\"]}",
     8, 8, 2, 1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"dp\": [\"node\"], \"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]}", 4, 8, 2, 1, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"ep\": [\"x\"], \"tp\": [\"y\"]}", 4, 4, 4, 1,
     1},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x4\"", "{\"fsdp\": [\"x\"], \"ep\": [\"y\"]}", 4, 8, 1,
     1, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\"], \"tp_d\": [\"y\"]}", 1, 1, 4,
     4, 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"ep\": [\"y\"], \"tp_d\": [\"x\"]}", 4, 4, 1,
     2, 1},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"ep\": [\"z\"], \"tp\": [\"x\"], \"tp_d\": [\"y\"]}", 4, 4, 4, 4, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"], "
     "\"tp_d\": [\"node\"]}",
     4, 4, 2, 2, 1},
    {"\"chip\": \"h800-sxm\", \"nodes\": 2", "{\"cp\": [\"node\"], \"ep\": [\"gpu\"]}", 8, 8, 1, 1,
     2},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"ep\": [\"node\"], \"cp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", 2, 2, 4, 1, 2},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\"",
     "{\"ep\": [\"x\"], \"cp\": [\"y:4\"], \"tp\": [\"y:2\"]}", 4, 4, 2, 1, 4},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}", 1, 2, 8, 1,
     1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"tp\": [\"x\", \"y\"]}", 1, 1, 8, 1, 1},
};

/* Sizes as their config.json says them; the first SMALL are played. A latent of 0: whole heads; of
 * Q alone: Q comes from the block's input. */
static const struct {
    const char *name;
    uint64_t layers, dense, width, mlp_width, heads, kv_heads, head_width, vocabulary;
    uint64_t experts, top, expert_width, shared_width, groups, top_groups;
    uint64_t query_latent, latent, turned, plain, value_width;
} expert_models[] = {
    {"tests/property/experts.json",
     4,
     0,
     1024,
     0,
     8,
     4,
     128,
     16384,
     16,
     4,
     512,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0},
    {"tests/property/mla.json",
     4,
     1,
     1024,
     2048,
     16,
     16,
     96,
     16384,
     32,
     4,
     256,
     256,
     8,
     4,
     256,
     128,
     32,
     64,
     64},
    {"qwen3-30b-a3b", 48, 0, 2048, 0, 32, 4, 128, 151936, 128, 8, 768, 0, 0, 0, 0, 0, 0, 0, 0},
    {"qwen3-235b-a22b", 94, 0, 4096, 0, 64, 4, 128, 151936, 128, 8, 1536, 0, 0, 0, 0, 0, 0, 0, 0},
    {"mixtral-8x7b", 32, 0, 4096, 0, 32, 8, 128, 32000, 8, 2, 14336, 0, 0, 0, 0, 0, 0, 0, 0},
    {"deepseek-v2", 60,   1, 5120, 12288, 128, 128, 192, 102400, 160, 6,
     1536,          3072, 8, 3,    1536,  512, 64,  128, 128},
    {"deepseek-v2-lite",
     27,
     1,
     2048,
     10944,
     16,
     16,
     192,
     102400,
     64,
     6,
     1408,
     2816,
     1,
     1,
     0,
     512,
     64,
     128,
     128},
    {"deepseek-v3", 61,   3, 7168, 18432, 128, 128, 192, 129280, 256, 8,
     2048,          2048, 8, 4,    1536,  512, 64,  128, 128},
};

enum {
    PLACES = sizeof expert_places / sizeof *expert_places,
    MODELS = sizeof expert_models / sizeof *expert_models,
    SMALL = 2
};

/* Bytes of a number; of a block's scale, of which each begun block of 128 has one. */
static const struct {
    const char *name;
    double bytes, scale_bytes;
} expert_formats[] = {{"bf16", 2, 0}, {"int8", 1, 0}, {"fp8", 1, 0}, {"int4", 0.5, 2}};
enum { FORMATS = sizeof expert_formats / sizeof *expert_formats };

#endif
