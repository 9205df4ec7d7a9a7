/*
 * Attention of decodes of different lengths on GPUs, whose cores share the keys of a batch evenly.
 * It takes at least as long as HBM needs for the cache, and at most longer by
 * - one block of keys on each core, through its part of L2: what shares are rounded up by;
 * - queries and results, through HBM;
 * - the merge of what parts have found, through L2: each of the cores' shares ends in a unit at
 *   most, which has two parts then, or one more, so that parts are no more than twice the cores;
 * - the ends of the pipeline of tiles: two of n tiles are not hidden.
 * All are counted from the sizes of config.json, without graphs and programs.
 */
#include <math.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { CASES = 200, TEXT_BYTES = 2048, BATCH_MOST = 96, BLOCK_KEYS = 128, TILES = 256 };

static const struct {
    const char *name;
    double layers, heads, kv_heads, width;
    uint32_t tp;
} models[] = {{"llama-3-8b", 32, 32, 8, 128, 1},
              {"llama-3-8b", 32, 32, 8, 128, 4},
              {"llama-3-405b", 126, 128, 8, 128, 4},
              {"llama-3-70b", 80, 64, 8, 128, 8}};
static const char *const chips[] = {"a100-sxm", "h100-sxm", "h200-sxm", "b200"};
enum { MODELS = sizeof models / sizeof *models, CHIPS = sizeof chips / sizeof *chips };

struct drawn {
    uint32_t model, chip, batch;
    uint64_t keys; /* Of all sequences. */
};

/* Most are short, and a few many times as long: what is drawn is an octave, then a length in it. */
static uint64_t length_draw(uint64_t *state)
{
    uint32_t const octave = UINT32_C(64) << case_draw(state, 8);
    return octave + case_draw(state, octave);
}

static struct drawn draw(uint64_t *state, char *text)
{
    struct drawn drawn = {.model = case_draw(state, MODELS)};
    char lengths[BATCH_MOST * 8] = "";
    size_t used = 0;
    drawn.chip = case_draw(state, CHIPS);
    drawn.batch = 2 + case_draw(state, BATCH_MOST - 2);
    for (uint32_t i = 0; i < drawn.batch; i++) {
        uint64_t const keys = length_draw(state);
        drawn.keys += keys;
        used += (size_t)snprintf(lengths + used, sizeof lengths - used, "%s%llu", i == 0 ? "" : ",",
                                 (unsigned long long)keys);
    }
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"gpus\": %u}, \"mesh\": {\"tp\": "
              "[\"gpu\"]}, \"workload\": {\"kind\": \"decode\", \"model\": \"%s\", \"batch\": %u, "
              "\"context\": [%s], \"allow_oversubscription\": true}}",
              chips[drawn.chip], models[drawn.model].tp, models[drawn.model].name, drawn.batch,
              lengths);
    return drawn;
}

static double attention_s(const struct play *play)
{
    bool counted[PROGRAM_CLASSES_MAX] = {false};
    int64_t sum_ps = 0;
    for (uint32_t t = 0; t < play->program.template_count; t++)
        for (uint32_t i = 0; i < play->program.templates[t].op_count; i++) {
            const struct program_op *op = &play->program.templates[t].op[i];
            if (op->purpose != PROGRAM_PURPOSE_ATTENTION || counted[op->class_index]) continue;
            counted[op->class_index] = true;
            sum_ps += play->trace.classes[op->class_index].busy_ps;
        }
    return units_seconds(sum_ps);
}

static void attention_check(const struct play *play, const struct drawn *drawn, const char *text)
{
    const struct chip *chip = &play->machine.chip;
    double const layers = models[drawn->model].layers, width = models[drawn->model].width;
    double const kv_heads = models[drawn->model].kv_heads / models[drawn->model].tp;
    double const heads = models[drawn->model].heads / models[drawn->model].tp;
    double const hbm = (double)chip->hbm_bytes_per_s, l2 = (double)chip->vmem_bytes_per_s;
    double const cores = chip->core.count, unit_keys = (double)drawn->keys * kv_heads;
    double const key_bytes = 2 * 2 * width; /* Of a key and its value, in bf16. */
    double const kv_bytes = unit_keys * key_bytes, qo_bytes = 2 * 2 * drawn->batch * heads * width;
    double const merged_bytes = 2 * cores * heads / kv_heads * 2 * 4 * (width + 2);
    double const shares = 1 + BLOCK_KEYS * cores / unit_keys; /* Of the mean, the busiest core's. */
    double const block_s = BLOCK_KEYS * cores * key_bytes / l2;
    double const merge_s = (qo_bytes + merged_bytes) * shares / l2;
    double const tiles = kv_bytes / ((double)chip->vmem_capacity_bytes / TILES);
    double const kv_s = kv_bytes / hbm;
    double const most_s =
        (kv_s + block_s + qo_bytes / hbm + merge_s) * (1 + 2 / fmax(tiles, 1)) + 4e-12;
    double const time_s = attention_s(play);
    case_that(time_s >= layers * kv_s, text);
    case_that(time_s <= layers * most_s, text);
}

static void a_ragged_batch_takes_its_cache_and_a_block_on_each_core(void **state)
{
    static char text[TEXT_BYTES];
    uint32_t walked = 0;
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        uint64_t random = n + 1;
        struct play play;
        struct drawn const drawn = draw(&random, text);
        if (sampling_skips(&walked)) continue;
        play_run(&play, text, NULL);
        attention_check(&play, &drawn, text);
        play_close(&play);
    }
}

/* Lengths of a batch, most of them short. */
struct batch {
    uint32_t model, chip, count;
    uint64_t tokens[BATCH_MOST];
    uint32_t prompt; /* 0: no prompt is in the pass. */
    bool splits;
};

static struct batch batch_draw(uint64_t *state)
{
    struct batch batch = {.model = case_draw(state, MODELS)};
    batch.chip = case_draw(state, CHIPS);
    batch.count = 2 + case_draw(state, BATCH_MOST - 2);
    uint32_t const octaves = 1 + case_draw(state, 12);
    uint32_t const most = 1 + case_draw(state, 4);
    for (uint32_t i = 0; i < batch.count; i++) {
        bool const is_long = case_draw(state, most) == 0;
        uint32_t const octave = UINT32_C(1) << case_draw(state, is_long ? octaves : 2);
        batch.tokens[i] = octave + case_draw(state, octave);
    }
    bool const is_mixed = case_draw(state, 2) == 1;
    if (is_mixed) batch.prompt = 1 + case_draw(state, 32);
    batch.splits = case_draw(state, 4) != 0;
    return batch;
}

/* Time in all layers that a pass may take longer than an even one. */
struct spare {
    double tile_s;  /* HBM's first tile, which fewer bytes may not hide. */
    double block_s; /* A block of keys on each core, through L2. */
    double merge_s; /* Parts: no more than twice the cores. */
};

static struct spare spare_of(const struct batch *batch, const struct chip *chip)
{
    double const layers = models[batch->model].layers, width = models[batch->model].width;
    double const heads = models[batch->model].heads / models[batch->model].kv_heads;
    double const cores = chip->core.count, l2 = (double)chip->vmem_bytes_per_s;
    double const rows = heads + (batch->prompt > 0 ? 128 : 0); /* Of a unit, in the mean. */
    double const tile_bytes = (double)chip->vmem_capacity_bytes / TILES;
    return (struct spare){
        .tile_s = layers * tile_bytes / (double)chip->hbm_bytes_per_s,
        .block_s = layers * BLOCK_KEYS * cores * 2 * 2 * width / l2,
        .merge_s = layers * 2 * cores * rows * 2 * 4 * (width + 2) / l2,
    };
}

static double batch_attention_s(const struct batch *batch, char text[TEXT_BYTES],
                                struct spare *ret_spare)
{
    char lengths[BATCH_MOST * 8] = "", prompt[40] = "";
    size_t used = 0;
    struct play play;
    for (uint32_t i = 0; i < batch->count; i++)
        used += (size_t)snprintf(lengths + used, sizeof lengths - used, "%s%llu", i == 0 ? "" : ",",
                                 (unsigned long long)batch->tokens[i]);
    if (batch->prompt != 0)
        (void)snprintf(prompt, sizeof prompt, "\"prompt\": %u, ", batch->prompt);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"gpus\": %u}, \"mesh\": {\"tp\": "
              "[\"gpu\"]}, \"workload\": {\"kind\": \"%s\", \"model\": \"%s\", \"batch\": %u, "
              "%s\"context\": [%s], \"allow_oversubscription\": true}, \"run\": "
              "{\"split_attention\": %s}}",
              chips[batch->chip], models[batch->model].tp, batch->prompt != 0 ? "mixed" : "decode",
              models[batch->model].name, batch->count, prompt, lengths,
              batch->splits ? "true" : "false");
    play_run(&play, text, NULL);
    double const time_s = attention_s(&play);
    *ret_spare = spare_of(batch, &play.machine.chip);
    play_close(&play);
    return time_s;
}

/* Keys of decodes and of prompts count alike, though tiles of prompts have more rows. */
static const double MIXED_SLACK = 1.02;

/* The tolerance is for rounding: shares of cores are in millionths, and costs of parts in whole
 * keys. */
static void at_most(double time_s, double most_s, const char *what, const char *text)
{
    if (time_s > most_s * (1 + 2e-3))
        fail_msg("%g s of attention, %g s %s\nin %s", time_s, most_s, what, text);
}

static void all_are(struct batch *batch, uint64_t tokens)
{
    for (uint32_t i = 0; i < batch->count; i++) batch->tokens[i] = tokens;
}

/* A decode never gets faster when all sequences get the length of the longest, and a mixed pass
 * hardly. Compared with a pass
 * of sequences of the mean length, it takes longer by at most the rounding of shares and the merge
 * of parts. The second rule does not hold where sequences stay whole, since they wait for the
 * longest. */
static void a_ragged_pass_lies_between_its_mean_and_its_longest(void **state)
{
    static char text[TEXT_BYTES], other[TEXT_BYTES];
    uint32_t walked = 0;
    (void)state;
    for (uint32_t n = 0; n < 2 * CASES; n++) {
        uint64_t random = n + 1, longest = 0, sum = 0;
        struct batch batch = batch_draw(&random);
        struct spare spare;
        if (sampling_skips(&walked)) continue;
        for (uint32_t i = 0; i < batch.count; i++) sum += batch.tokens[i];
        batch.tokens[0] += (batch.count - sum % batch.count) % batch.count;
        uint64_t const mean = units_ceil_divide(sum, batch.count);
        for (uint32_t i = 0; i < batch.count; i++)
            longest = batch.tokens[i] > longest ? batch.tokens[i] : longest;
        double const time_s = batch_attention_s(&batch, text, &spare);
        all_are(&batch, longest);
        double const longest_s = batch_attention_s(&batch, other, &spare) + spare.tile_s;
        at_most(time_s, batch.prompt > 0 ? MIXED_SLACK * longest_s : longest_s, "of the longest",
                text);
        all_are(&batch, mean);
        double const mean_s = batch_attention_s(&batch, other, &spare) + spare.tile_s;
        if (batch.splits)
            at_most(time_s, mean_s + spare.block_s + spare.merge_s, "of the mean", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ragged_batch_takes_its_cache_and_a_block_on_each_core),
        cmocka_unit_test(a_ragged_pass_lies_between_its_mean_and_its_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
