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

static uint32_t below(uint64_t *state, uint32_t count)
{
    return (uint32_t)(case_random(state) % count);
}

/* Most are short, and a few many times as long: what is drawn is an octave, then a length in it. */
static uint64_t length_draw(uint64_t *state)
{
    uint32_t const octave = UINT32_C(64) << below(state, 8);
    return octave + below(state, octave);
}

static struct drawn draw(uint64_t *state, char *text)
{
    struct drawn drawn = {.model = below(state, MODELS)};
    char lengths[BATCH_MOST * 8] = "";
    size_t used = 0;
    drawn.chip = below(state, CHIPS);
    drawn.batch = 2 + below(state, BATCH_MOST - 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ragged_batch_takes_its_cache_and_a_block_on_each_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
