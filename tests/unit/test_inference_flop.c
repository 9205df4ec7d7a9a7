/*
 * FLOP of inference that MFU counts: those of the sequences there are, however many the fullest
 * rank has, counted by hand from the sizes of config.json.
 */
#include <stdio.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 2048 };

/* Sizes as their config.json says them. Without experts, `experts` and `top_k` are 1. */
struct sizes {
    const char *name;
    double layers, width, mlp_width, heads, kv_heads, head_width, vocabulary, experts, top_k;
};

static const struct sizes llama_8b = {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, 1, 1};
static const struct sizes llama_70b = {"llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1};
static const struct sizes llama_13b = {"llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000, 1, 1};
static const struct sizes qwen_30b = {"qwen3-30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8};

/* Tokens of a pass, of these those whose logits are wanted, and pairs of a query and a key. */
struct pass {
    double tokens, head_rows, scores;
};

static double products_flop(const struct sizes *of, const struct pass *pass)
{
    double const attention = of->width * of->head_width * 2 * (of->heads + of->kv_heads);
    double const router = of->experts > 1 ? of->width * of->experts : 0;
    double const experts = of->top_k * 3 * of->width * of->mlp_width;
    return 2 * pass->tokens * of->layers * (attention + router + experts) +
           2 * pass->head_rows * of->width * of->vocabulary;
}

static double attention_flop(const struct sizes *of, const struct pass *pass)
{
    return 4 * pass->scores * of->heads * of->head_width * of->layers;
}

/* Whatever is executed is useful, or spare for one reason. */
static void made_check(const char *model, const char *place, const char *sequences,
                       double of_products, double of_attention)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, sizeof text,
              "{\"podsim\": 1, %s, \"workload\": {%s, \"model\": \"%s\", "
              "\"allow_oversubscription\": true}}",
              place, sequences, model);
    play_run(&play, text, &lower_only);
    const struct workload_counts *counts = &play.roofline.counts;
    const struct workload_spare *spare = &counts->spare;
    case_near(play.roofline.flop.useful, of_products, 1e-9);
    case_near(play.roofline.flop.useful_attention, of_attention, 1e-9);
    assert_true(play.roofline.flop.executed * (1 + 1e-12) >= of_products + of_attention);
    case_near(counts->matmul_useful + spare->duplicated + spare->padding + spare->waiting,
              counts->matmul_flop, 1e-9);
    play_close(&play);
}

static void flop_check(const struct sizes *of, const char *place, const char *sequences,
                       struct pass pass)
{
    made_check(of->name, place, sequences, products_flop(of, &pass), attention_flop(of, &pass));
}

#define ON_8 "\"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": "
#define ON_16 "\"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2}, \"mesh\": "
static const char dp_8[] = ON_8 "{\"dp\": [\"gpu\"]}", ep_8[] = ON_8 "{\"ep\": [\"gpu\"]}";
static const char tp_8[] = ON_8 "{\"tp\": [\"gpu\"]}";
static const char tp_16[] = ON_16 "{\"tp\": [\"node\", \"gpu\"]}";
static const char tp_8_tp_d_2[] = ON_16 "{\"tp\": [\"gpu\"], \"tp_d\": [\"node\"]}";
static const char cp_2_ep_4[] = ON_8 "{\"cp\": [\"gpu:2\"], \"ep\": [\"gpu:4\"]}";
static const char dp_2[] =
    "\"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 2}, \"mesh\": {\"dp\": [\"gpu\"]}";
static const char dp_2_tp_8[] = ON_16 "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}";

/* Eight ranks with a sequence, or with two of which most have one or none. */
static void ranks_without_a_sequence_do_nothing_useful(void **state)
{
    static const uint64_t batches[] = {1, 7, 8, 9, 16, 17};
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        double const batch = (double)batches[i];
        struct pass const pass = {batch, batch, batch * 1024};
        char sequences[128];
        case_text(sequences, sizeof sequences,
                  "\"kind\": \"decode\", \"batch\": %llu, \"context\": 1024",
                  (unsigned long long)batches[i]);
        flop_check(&llama_8b, dp_8, sequences, pass);
        flop_check(&llama_8b, tp_8, sequences, pass);
        flop_check(&llama_70b, dp_2_tp_8, sequences, pass);
        flop_check(&llama_70b, tp_16, sequences, pass);
        flop_check(&llama_13b, tp_16, sequences, pass);
        flop_check(&qwen_30b, ep_8, sequences, pass);
        flop_check(&qwen_30b, tp_8_tp_d_2, sequences, pass);
    }
}

/* Three lengths on two data ranks: 100 + 200 on the first, 4000 on the second. */
static void lengths_count_as_they_are(void **state)
{
    double const pairs = 100.0 * 101 / 2 + 200.0 * 201 / 2 + 4000.0 * 4001 / 2;
    (void)state;
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"decode\", \"batch\": 3, \"context\": [100, 200, 4000]",
               (struct pass){3, 3, 4300});
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"prefill\", \"batch\": 3, \"prompt\": [100, 200, 4000]",
               (struct pass){4300, 3, pairs});
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"prefill\", \"batch\": 3, \"prompt\": [100, 200, 4000], \"cached\": 50",
               (struct pass){4300, 3, pairs + 50 * 4300});
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"decode\", \"batch\": 3, \"context\": [100, 200, 4000], "
               "\"new_tokens\": 2",
               (struct pass){6, 6, 2 * 4300 - 3});
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"mixed\", \"batch\": 3, \"context\": [100, 200, 4000], "
               "\"prompts\": 3, \"prompt\": [100, 200, 4000], \"cached\": 50",
               (struct pass){3 + 4300, 3 + 3, 4300 + pairs + 50 * 4300});
    flop_check(&llama_8b, dp_2_tp_8,
               "\"kind\": \"prefill\", \"batch\": 3, \"prompt\": [100, 200, 4000], \"cached\": 50, "
               "\"chunk\": 150",
               (struct pass){4300, 3, pairs + 50 * 4300});
}

/* DeepSeek-V3: latents of 1536 columns for Q and of 512 for K and V, 64 that are turned, 128 heads
 * of 128 columns; 61 layers, of which 3 have one MLP. Per token, of what both forms have. */
static double latent_flop(const struct pass *pass, double up)
{
    double const attention = 7168.0 * (1536 + 512 + 64) + up + 128.0 * 128 * 7168;
    double const experts = 7168.0 * 256 + 9 * 3 * 7168.0 * 2048;
    return 2 * pass->tokens * (61 * attention + 3 * 3 * 7168.0 * 18432 + 58 * experts) +
           2 * pass->head_rows * 7168 * 129280;
}

/* Heads are made of latents where prompts see themselves alone, with decodes in the pass or
 * without: a score has 192 columns and weighs 128. Over a cache, queries of 576 columns find 512,
 * and both are turned into heads. What ranks of cp all make of gathered latents is useful once. */
static void prompts_that_begin_have_heads(void **state)
{
    static const char *const places[] = {ep_8, tp_8, tp_8_tp_d_2, cp_2_ep_4};
    static const char *const shardings[] = {"auto", "replicated"};
    double const made = 1536.0 * 128 * 192 + 512.0 * 128 * 256;
    double const absorbed = 1536.0 * 128 * 192 + 2 * 128.0 * 128 * 512;
    double const pairs = 4096.0 * 4097 / 2;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        struct pass const prompts = {8 * 4096, 8, 8 * pairs}, decodes = {8, 8, 8 * 4096};
        struct pass const behind = {8 * 4096, 8, 8 * (pairs + 4096)};
        char step[4][160];
        for (uint32_t n = 0; n < 4; n++)
            case_text(step[n], sizeof step[n], "\"kv_sharding\": \"%s\", \"batch\": 8, %s",
                      shardings[i % 2],
                      n == 0   ? "\"kind\": \"prefill\", \"prompt\": 4096"
                      : n == 1 ? "\"kind\": \"prefill\", \"prompt\": 4096, \"cached\": 1"
                      : n == 2 ? "\"kind\": \"decode\", \"context\": 4096"
                               : "\"kind\": \"mixed\", \"context\": 4096, \"prompts\": 8, "
                                 "\"prompt\": 4096");
        made_check("deepseek-v3", places[i / 2], step[0], latent_flop(&prompts, made),
                   61 * 2 * 128 * (192 + 128.0) * prompts.scores);
        made_check("deepseek-v3", places[i / 2], step[1], latent_flop(&behind, absorbed),
                   61 * 2 * 128 * (576 + 512.0) * behind.scores);
        made_check("deepseek-v3", places[i / 2], step[2], latent_flop(&decodes, absorbed),
                   61 * 2 * 128 * (576 + 512.0) * decodes.scores);
        made_check("deepseek-v3", places[i / 2], step[3],
                   latent_flop(&prompts, made) + latent_flop(&decodes, absorbed),
                   61 * 2 * 128 *
                       ((192 + 128.0) * prompts.scores + (576 + 512.0) * decodes.scores));
    }
}

/* On one of two ranks 64 decodes of 10 tokens and a prompt of 64 behind 90,000; on the other, 64 of
 * 2,000 and a prompt of one. The second reads longer and has a fiftieth of the scores. */
static void the_rank_that_attends_longest_may_have_few_scores(void **state)
{
    struct pass const pass = {128 + 65, 128 + 2,
                              64 * 10 + 64 * 2000 + 64. * 90000 + 64 * 65 / 2 + 90001};
    char sequences[1024], contexts[512] = "";
    size_t used = 0;
    (void)state;
    for (uint32_t i = 0; i < 128; i++)
        used += (size_t)snprintf(contexts + used, sizeof contexts - used, "%s%d", i == 0 ? "" : ",",
                                 i < 64 ? 10 : 2000);
    case_text(sequences, sizeof sequences,
              "\"kind\": \"mixed\", \"batch\": 128, \"context\": [%s], \"prompts\": 2, "
              "\"prompt\": [64, 1], \"cached\": 90000",
              contexts);
    flop_check(&llama_8b, dp_2, sequences, pass);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_that_attends_longest_may_have_few_scores),
        cmocka_unit_test(ranks_without_a_sequence_do_nothing_useful),
        cmocka_unit_test(lengths_count_as_they_are),
        cmocka_unit_test(prompts_that_begin_have_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
