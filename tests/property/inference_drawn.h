/*
 * inference_drawn.h: a step of inference, drawn: kind, chips, slices, mesh, model, lengths and
 * formats. What was drawn stands in the variables below.
 */
#ifndef TESTS_PROPERTY_INFERENCE_DRAWN_H
#define TESTS_PROPERTY_INFERENCE_DRAWN_H

#include <stdio.h>
#include <string.h>

#include "tests/property/inference_places.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, KEYS_BYTES = 512, SHARDING_BYTES = 64 };

static const char *const launches[] = {"profile", "graph", "eager"};

static uint32_t place, model;
static bool replicated, gathers, prefetches, measured, generates;
static bool whole_cache;    /* Ranks with the same heads all keep the same rows. */
static bool uneven, ragged; /* Prompts, decodes of different lengths. */
static bool windows;        /* Some layers see a few keys: LLaMA-3-8B's heads, fewer layers. */
static enum { CONTEXT_GATHER, CONTEXT_RING, CONTEXT_ULYSSES } context; /* Of prompts over cp. */
static bool counts; /* By hand, of sequences that are equally long. */
static uint32_t weights_format, cache_format;

/* Sequences that are alike: how many, tokens of each behind the pass, and new ones among them. */
struct alike {
    uint64_t count, keys, new_tokens;
};

/* What each pass has of those that answer, and of those that ask. */
enum { PASSES_MAX = 8 };
static struct {
    struct alike answer, ask;
} passes[PASSES_MAX];
static uint32_t pass_count, head_count;

/* Passes of prompts that come in chunks. */
static void prompts_add(struct alike of, uint64_t chunk)
{
    uint64_t const before = of.keys - of.new_tokens;
    for (uint64_t done = 0, next; done < of.new_tokens; done = next) {
        next = chunk == 0 || of.new_tokens - done < chunk ? of.new_tokens : done + chunk;
        assert_true(pass_count < PASSES_MAX);
        passes[pass_count++].ask = (struct alike){of.count, before + next, next - done};
    }
    head_count++;
}

/* Rings need an axis that closes, heads as many as ranks or a divisor of these. */
static uint32_t context_draw(uint64_t *state)
{
    uint32_t const drawn = case_draw(state, 3);
    bool const switched = strstr(inference_places[place].machine, "h100") != NULL;
    bool const ulysses = inference_heads_divide(place, model);
    bool const holds = inference_places[place].tp > inference_models[model].kv_heads;
    if (inference_places[place].cp == 1 || holds) return CONTEXT_GATHER;
    if (drawn == CONTEXT_RING) return switched ? drawn : CONTEXT_GATHER;
    return drawn == CONTEXT_ULYSSES && ulysses ? drawn : CONTEXT_GATHER;
}

/* Keys of a decode, a prefill, both in one pass, or one behind the other. */
static void sequences_draw(uint64_t *state, char text[KEYS_BYTES])
{
    enum { DECODE, PREFILL, MIXED, GENERATE, KINDS };
    static const char *const names[] = {"decode", "prefill", "mixed", "generate"};
    uint32_t const stages = inference_places[place].pp;
    uint32_t const kind = case_draw(state, KINDS), most = inference_models[model].context_most;
    uint32_t const before = case_draw(state, 2) * case_draw(state, 1024),
                   fresh = 1 + case_draw(state, 3);
    uint32_t const length = fresh + case_draw(state, most - 3);
    uint32_t const prompt = 1 + case_draw(state, 2048), cached = before;
    uint32_t const answers = stages + case_draw(state, 96), asking = 1 + case_draw(state, 3);
    uint32_t const count = kind == GENERATE ? stages + case_draw(state, 48) : asking;
    uint32_t const chunk = case_draw(state, 2) == 0 ? 0 : 1 + prompt / (1 + case_draw(state, 4));
    uint32_t const output = 1 + case_draw(state, 1000), page = 1 + case_draw(state, 100);
    int used = snprintf(text, KEYS_BYTES, "\"%s\"", names[kind]);
    memset(passes, 0, sizeof passes);
    pass_count = head_count = 0;
    generates = kind == GENERATE;
    if (kind != DECODE) {
        prompts_add((struct alike){count, cached + prompt, prompt}, kind == MIXED ? 0 : chunk);
        used += snprintf(text + used, KEYS_BYTES - (size_t)used,
                         ", \"%s\": %u, \"cached\": %u, \"prompt\": ",
                         kind == MIXED ? "prompts" : "batch", count, cached);
        used +=
            snprintf(text + used, KEYS_BYTES - (size_t)used,
                     uneven ? "{\"distribution\": \"uniform\", \"most\": %u, \"mean\": %u}" : "%u",
                     prompt, (prompt + 1) / 2);
    }
    if (kind == DECODE || kind == MIXED) {
        passes[0].answer = (struct alike){answers, length, fresh};
        pass_count = head_count = 1;
        used += snprintf(text + used, KEYS_BYTES - (size_t)used,
                         ", \"batch\": %u, \"new_tokens\": %u, \"context\": ", answers, fresh);
        used += snprintf(text + used, KEYS_BYTES - (size_t)used,
                         ragged ? "{\"distribution\": \"exponential\", \"most\": %u, "
                                  "\"mean\": %u, \"least\": %u}"
                                : "%u",
                         length, (length + 1) / 2, fresh);
    }
    context = kind != PREFILL && kind != GENERATE ? CONTEXT_GATHER : context_draw(state);
    if (kind == PREFILL || kind == GENERATE)
        used += snprintf(text + used, KEYS_BYTES - (size_t)used, ", \"chunk\": %u", chunk);
    if (context != CONTEXT_GATHER)
        used += snprintf(text + used, KEYS_BYTES - (size_t)used, ", \"context\": \"%s\"",
                         context == CONTEXT_RING ? "ring" : "ulysses");
    if (kind == GENERATE) {
        passes[pass_count++].answer = (struct alike){count, cached + prompt + output, 1};
        head_count++;
        used += snprintf(text + used, KEYS_BYTES - (size_t)used, ", \"output\": %u, \"page\": %u",
                         output, page);
    }
    assert_true(used < KEYS_BYTES);
}

/* Of the mesh, in quotes. */
static bool has_axis(const char *name)
{
    return strstr(inference_places[place].mesh, name) != NULL;
}

/* As ranks keep the cache: all of it, as "auto" has it, or as it is given. Ranks of tp with the
 * same heads share by sequences, unless ranks of cp have parts of prompts, or by parts of each. */
static void sharding_draw(uint64_t *state, char text[SHARDING_BYTES])
{
    uint32_t const tp = inference_places[place].tp;
    uint32_t const kv_heads = (uint32_t)inference_models[model].kv_heads;
    uint32_t const heads = tp < kv_heads ? tp : kv_heads, ways = tp / heads;
    bool const given = case_draw(state, 4) == 0 && !counts && inference_places[place].tp_d == 1 &&
                       context == CONTEXT_GATHER;
    bool const parts = case_draw(state, 2) == 0 || inference_places[place].cp > 1;
    whole_cache = case_draw(state, 4) == 0 && !given;
    if (given)
        (void)snprintf(text, SHARDING_BYTES, "{\"heads\": %u, \"batch\": %u, \"sequence\": %u}",
                       heads, parts ? 1 : ways, parts ? ways : 1);
    else
        (void)snprintf(text, SHARDING_BYTES, "\"%s\"", whole_cache ? "replicated" : "auto");
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    char keys[KEYS_BYTES], sharding[SHARDING_BYTES];
    place = case_draw(state, PLACES);
    model = case_draw(state, MODELS);
    weights_format = case_draw(state, FORMATS);
    cache_format = case_draw(state, FORMATS);
    replicated = case_draw(state, 3) == 0 && has_axis("\"tp\"");
    gathers = case_draw(state, 2) == 0 && has_axis("\"dp\"") && inference_places[place].cp == 1;
    uneven = case_draw(state, 2) == 0 && !counts;
    ragged = case_draw(state, 2) == 0 && !counts;
    windows = case_draw(state, 2) == 0 && !counts && model == 0;
    sequences_draw(state, keys);
    sharding_draw(state, sharding);
    /* No host launches the ops of a TPU. */
    bool const of_tpu = strstr(inference_places[place].machine, "tpu") != NULL;
    const char *const launch = launches[case_draw(state, of_tpu ? 2 : 3)];
    prefetches = of_tpu && case_draw(state, 2) == 0;
    measured = strstr(inference_places[place].machine, "h100") != NULL && case_draw(state, 3) == 0;
    int const length = snprintf(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s, %s}, \"mesh\": %s, \"workload\": {\"kind\": %s, "
        "\"model\": \"%s\", \"activations\": \"%s\", \"weights\": \"%s\", \"kv_sharding\": %s, "
        "\"allow_oversubscription\": true, \"formats\": {\"weights\": \"%s\", \"kv\": \"%s\"}}, "
        "\"run\": {\"launch\": \"%s\", \"split_attention\": %s, \"prefetch_weights\": \"%s\"}}",
        inference_places[place].machine,
        measured ? "\"profile\": \"measured\", \"stack\": \"trtllm\"" : "\"profile\": \"ideal\"",
        inference_places[place].mesh, keys,
        windows ? "tests/property/windows-decode.json" : inference_models[model].name,
        replicated ? "replicated" : "model", gathers ? "gathered" : "stationary", sharding,
        inference_formats[weights_format].name, inference_formats[cache_format].name, launch,
        case_draw(state, 2) == 0 || of_tpu ? "true" : "false", prefetches ? "vmem" : "none");
    assert_true(length > 0 && length < TEXT_BYTES);
}

#endif
