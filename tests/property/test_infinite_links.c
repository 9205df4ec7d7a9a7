/*
 * Decode steps of dense models on chips whose links, vector units and VMEM take next to no time,
 * whose tiles are of four bytes, and whose products need no padding: what computes take of a step
 * are its ops, one after the other, each as long as the larger of its bytes and its products. The
 * sum is counted from the sizes of config.json, and knows neither graphs nor programs. Where all
 * products with weights are on one side, it is the book's formula (7.1.5) with the parameters that
 * are read, but for activations, of which the formula knows nothing.
 *
 * What may differ, in picoseconds, derived and not fitted:
 * - of each op 4: its time is a sum of at most three times that are rounded up, and is rounded up.
 * - of each op its ends: the first of its n tiles is loaded before the others and the last one
 *   stored behind them, which is 2/n of the op at most.
 * Collectives are exposed, as a decode is a chain. Infinite links leave what HBM takes of them: in
 * each of two dimensions every byte is read once and written once, one after the other at worst,
 * by the sender and by the receiver. Over t ranks there are at most 2·t messages in a row, each
 * with a hop of 1 ps and a time that is rounded up to 1 ps, and the bytes at 1 PB/s.
 */
#include <math.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum {
    CASES = 200,
    TEXT_BYTES = 6144,
    ROWS = 8,
    TILE_BYTES = 4,
    LINK_BYTES_PER_PS = 1000,
    BATCH_MOST = 4096
};

/* Sizes as their config.json says them. */
static const struct {
    const char *name;
    uint64_t layers, width, mlp_width, heads, kv_heads, head_width, vocabulary;
} models[] = {
    {"llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000},
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256},
    {"llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256},
    {"llama-3-405b", 126, 16384, 53248, 128, 8, 128, 128256},
};
static const struct {
    const char *shape, *mesh;
    uint64_t tp, data;
} places[] = {{"1x1", "", 1, 1},
              {"2x2", "\"tp\": [\"x\", \"y\"]", 4, 1},
              {"2x4", "\"tp\": [\"y\"], \"dp\": [\"x\"]", 4, 2},
              {"2x4", "\"tp\": [\"x\", \"y\"]", 8, 1}};
static const uint64_t hbm_gbytes_per_s[] = {100, 810, 3350, 8000};
static const uint64_t math_tflop_per_s[] = {20, 197, 989, 4000};
enum {
    MODELS = sizeof models / sizeof *models,
    PLACES = sizeof places / sizeof *places,
    RATES = 4
};

struct drawn {
    uint32_t model, place;
    uint64_t batch, fresh, context; /* Of a data rank; new tokens and keys of each sequence. */
    double bytes_per_ps, flop_per_ps;
};

/* Sums of a step, in picoseconds. */
struct sums {
    double ops_ps, slack_ps;
    double collectives_ps;   /* At most. */
    double bytes_ps;         /* Of all ops. */
    double activation_bytes; /* Of products with weights and of attention, without their weights
                                and the cache. */
    double cache_ps, weights_ps, products_ps; /* Of the formula. */
    bool by_weights, by_products;             /* Of some product with weights. */
    bool attends_by_bytes;
};

static void op_add(const struct drawn *drawn, double times, double bytes, double flop,
                   struct sums *sums)
{
    double const read_ps = bytes / drawn->bytes_per_ps, math_ps = flop / drawn->flop_per_ps;
    double const op_ps = fmax(read_ps, math_ps);
    sums->ops_ps += times * op_ps;
    sums->bytes_ps += times * read_ps;
    sums->slack_ps += times * (4 + 2 * op_ps * TILE_BYTES / bytes);
}

/* A product of a data rank's tokens with weights that a chip has `inner` by `columns` of. */
static void linear_add(const struct drawn *drawn, double times, double weights, double inner,
                       double columns, struct sums *sums)
{
    double const tokens = (double)(drawn->batch * drawn->fresh);
    double const activations = 2 * tokens * (inner + columns);
    double const flop = 2 * tokens * weights, bytes = 2 * weights + activations;
    op_add(drawn, times, bytes, flop, sums);
    sums->activation_bytes += times * activations;
    sums->weights_ps += times * 2 * weights / drawn->bytes_per_ps;
    sums->products_ps += times * flop / drawn->flop_per_ps;
    if (bytes / drawn->bytes_per_ps >= flop / drawn->flop_per_ps)
        sums->by_weights = true;
    else
        sums->by_products = true;
}

static void attention_add(const struct drawn *drawn, double layers, double heads, double kv_heads,
                          struct sums *sums)
{
    double const H = (double)models[drawn->model].head_width, q = (double)drawn->fresh;
    double const tokens = (double)drawn->batch * q, keys = (double)drawn->context;
    double const seen = ceil((q * (keys - q) + q * (q + 1) / 2) / q); /* Of a query, in the mean. */
    double const cache = 2 * 2 * (double)drawn->batch * keys * kv_heads * H;
    double const activations = 2 * 2 * tokens * heads * H, bytes = cache + activations;
    double const flop = 2 * 2 * tokens * heads * seen * H;
    op_add(drawn, layers, bytes, flop, sums);
    sums->activation_bytes += layers * activations;
    sums->attends_by_bytes = bytes / drawn->bytes_per_ps >= flop / drawn->flop_per_ps;
    op_add(drawn, layers, 2 * 2 * tokens * 2 * kv_heads * H, 0, sums); /* Rows appended. */
    sums->cache_ps += layers * cache / drawn->bytes_per_ps;
}

/* `whole` elements before they are scattered, or when they are gathered. */
static void collective_add(const struct drawn *drawn, double times, double whole, struct sums *sums)
{
    double const tp = (double)places[drawn->place].tp;
    if (tp == 1) return;
    sums->collectives_ps += times * (2 * tp * 2 + 2 * 2 * 2 * whole / LINK_BYTES_PER_PS);
    sums->collectives_ps += times * 2 * 2 * 2 * whole / drawn->bytes_per_ps;
}

static struct sums sums_of(const struct drawn *drawn)
{
    struct sums sums = {0};
    uint32_t const m = drawn->model;
    double const tp = (double)places[drawn->place].tp, D = (double)models[m].width;
    double const H = (double)models[m].head_width, F = (double)models[m].mlp_width / tp;
    double const heads = (double)models[m].heads / tp, kv_heads = (double)models[m].kv_heads / tp;
    double const V = (double)models[m].vocabulary / tp, layers = (double)models[m].layers;
    double const tokens = (double)(drawn->batch * drawn->fresh);
    double const in = (heads + 2 * kv_heads) * H;
    op_add(drawn, 1, 2 * tokens * (D / tp + D), 0, &sums);            /* Look-up. */
    op_add(drawn, 2 * layers + 1, 2 * 4 * tokens * D / tp, 0, &sums); /* Norms, with the sum. */
    linear_add(drawn, layers, D * in, D, in, &sums);                  /* Q, K, V. */
    attention_add(drawn, layers, heads, kv_heads, &sums);
    linear_add(drawn, layers, heads * H * D, heads * H, D, &sums); /* O. */
    linear_add(drawn, layers, 2 * D * F, D, 2 * F, &sums);         /* Gate and Up. */
    linear_add(drawn, layers, F * D, 2 * F, D, &sums);             /* Out, of both. */
    linear_add(drawn, 1, D * V, D, V, &sums);                      /* The head. */
    op_add(drawn, 1, 2 * tokens * V + 8 * tokens, 0, &sums); /* Sampling: a value and a token. */
    collective_add(drawn, 4 * layers + 3, tokens * D, &sums);
    return sums;
}

static void text_write(const struct drawn *drawn, uint64_t hbm, uint64_t math, char *text)
{
    enum { CHIP_BYTES = 4096 };
    static char chip[CHIP_BYTES];
    static const char ideal[] = "\"math_ppm\": {\"value\": 1000000, \"source\": \"-\"}, "
                                "\"vector_ppm\": {\"value\": 1000000, \"source\": \"-\"}, "
                                "\"hbm_ppm\": {\"value\": 1000000, \"source\": \"-\"}, "
                                "\"ici_ppm\": {\"value\": 1000000, \"source\": \"-\"}, "
                                "\"nic_ppm\": {\"value\": 1000000, \"source\": \"-\"}, "
                                "\"op_overhead\": {\"value\": \"0us\", \"source\": \"-\"}, "
                                "\"message_overhead\": {\"value\": \"0us\", \"source\": \"-\"}";
    static const struct {
        const char *key, *value;
    } rest[] = {
        {"hbm_capacity", "\"1000TB\""},
        {"vmem_capacity", "\"1KiB\""},
        {"vmem_rate", "\"1PB/s\""},
        {"vector_rate", "\"1000PFLOP/s\""},
        {"mxu_rows", "1"},
        {"mxu_columns", "1"},
        {"mxu_count", "1"},
        {"core_count", "1"},
        {"ici_rate", "\"1PB/s\""},
        {"hop_latency", "\"1ps\""},
        {"pcie_rate", "\"16GB/s\""},
        {"dcn_rate", "\"3GB/s\""},
        {"pcie_latency", "\"1us\""},
        {"nic_latency", "\"1us\""},
        {"cable_latency", "\"1us\""},
        {"switch_ports", "64"},
        {"switch_latency", "\"1us\""},
        {"pod_shape", "\"16x16\""},
        {"host_shape", "\"4x2\""},
        {"wrap_rule", "\"full-axis\""},
        {"wrap_length", "16"},
        {"slices", "[\"1x1\", \"2x2\", \"2x4\"]"},
        {"name_units", "1"},
    };
    int length = 0;
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        length +=
            snprintf(chip + length, CHIP_BYTES - (size_t)length,
                     "\"%s\": {\"value\": %s, \"source\": \"-\"}, ", rest[i].key, rest[i].value);
    assert_true(length < CHIP_BYTES);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"shape\": \"%s\", \"chip\": {\"name\": \"links\", "
              "\"kind\": \"tpu\", \"title\": \"links\", \"aliases\": [\"links\"], %s"
              "\"hbm_rate\": {\"value\": \"%lluGB/s\", \"source\": \"-\"}, \"math\": {\"bf16\": "
              "{\"value\": \"%lluTFLOP/s\", \"source\": \"-\"}}, \"profiles\": {\"ideal\": {%s}}}},"
              " \"mesh\": {%s}, \"workload\": {\"kind\": \"decode\", \"model\": \"%s\", "
              "\"batch\": %llu, \"new_tokens\": %llu, \"context\": %llu}}",
              places[drawn->place].shape, chip, (unsigned long long)hbm, (unsigned long long)math,
              ideal, places[drawn->place].mesh, models[drawn->model].name,
              (unsigned long long)(drawn->batch * places[drawn->place].data),
              (unsigned long long)drawn->fresh, (unsigned long long)drawn->context);
}

/* Queries of a head of keys, and tokens of a pass, are a multiple of what an MXU takes at once. */
static struct drawn draw(uint64_t *state, char *text)
{
    struct drawn drawn = {.model = case_draw(state, MODELS)};
    drawn.place = case_draw(state, PLACES);
    uint64_t const hbm = hbm_gbytes_per_s[case_draw(state, RATES)];
    uint64_t const math = math_tflop_per_s[case_draw(state, RATES)];
    uint64_t const group = models[drawn.model].heads / models[drawn.model].kv_heads;
    drawn.fresh = group >= ROWS ? 1 : ROWS / group;
    drawn.batch = ROWS * (1 + case_draw(state, 128));
    /* A little above the critical batch, where activations decide which side a product is on. */
    uint64_t const critical = math * 1000 * (100 + case_draw(state, 40)) / 100 / hbm / drawn.fresh;
    if (case_draw(state, 2) == 0 && critical <= BATCH_MOST)
        drawn.batch = ROWS * (1 + critical / ROWS);
    drawn.context = drawn.fresh + case_draw(state, 4000);
    drawn.bytes_per_ps = (double)hbm * 1e-3;
    drawn.flop_per_ps = (double)math;
    text_write(&drawn, hbm, math, text);
    return drawn;
}

/* Activations are read and written in addition to the formula's bytes, if products hide them or
 * not.
 */
static void formula_check(const struct play *play, const struct sums *sums, const char *text)
{
    double const formula_ps = sums->cache_ps + fmax(sums->weights_ps, sums->products_ps);
    double const activations_ps = sums->bytes_ps - sums->weights_ps - sums->cache_ps;
    double const compute_ps = (double)play->trace.compute_ps;
    case_that(compute_ps >= formula_ps - sums->slack_ps, text);
    case_that(compute_ps <= formula_ps + activations_ps + sums->slack_ps, text);
}

static void a_step_without_links_is_the_sum_of_its_ops(void **state)
{
    static char text[TEXT_BYTES];
    uint32_t walked = 0, of_one_side = 0, of_both = 0;
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        uint64_t random = n + 1;
        struct play play;
        struct drawn const drawn = draw(&random, text);
        if (sampling_skips(&walked)) continue;
        struct sums const sums = sums_of(&drawn);
        play_run(&play, text, NULL);
        bool const one_side = !(sums.by_weights && sums.by_products);
        case_that(play.trace.idle_ps == 0, text);
        case_that(play.roofline.counts.inference.activation_bytes == sums.activation_bytes, text);
        case_that(fabs((double)play.trace.compute_ps - sums.ops_ps) <= sums.slack_ps, text);
        case_that((double)play.trace.exposed_ps <= sums.collectives_ps, text);
        if (one_side && sums.attends_by_bytes) formula_check(&play, &sums, text);
        *(one_side ? &of_one_side : &of_both) += 1;
        play_close(&play);
    }
    assert_true(of_both > 0 && of_one_side > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_links_is_the_sum_of_its_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
