/* Layers that attend to the cache of a layer before them: how a config.json says so, what they
 * lack, what the formulas count, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "sim/roofline/inference.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/refusals.h"

enum { TEXT_BYTES = 1400 };

/* As Hunyuan-Large's technical report has it (arXiv 2411.02265, table 1, 2.2). */
#define LARGE                                                                                      \
    "\"model_type\": \"hunyuan\", \"hidden_size\": 6400, \"intermediate_size\": 18304, "           \
    "\"num_hidden_layers\": 64, \"num_attention_heads\": 80, \"num_key_value_heads\": 8, "         \
    "\"num_experts\": 16, \"moe_topk\": 1, \"num_shared_expert\": 1, "                             \
    "\"use_mixed_mlp_moe\": true, \"use_qk_norm\": true, \"vocab_size\": 129024, "                 \
    "\"tie_word_embeddings\": true"
#define SMALL(type, layers)                                                                        \
    "\"model_type\": \"" type "\", \"hidden_size\": 512, \"intermediate_size\": 1024, "            \
    "\"num_hidden_layers\": " layers ", \"num_attention_heads\": 8, "                              \
    "\"num_key_value_heads\": 4, \"vocab_size\": 1024"

static enum status read_model(const char *members, struct model *model, struct error *error)
{
    struct json *document = NULL;
    const char *text = arena_format(case_arena, "{%s}", members);
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
    return model_read_config(case_arena, document, "shared", model, error);
}

static struct model model_of(const char *members)
{
    struct model model = {0};
    case_ok(read_model(members, &model, &case_error));
    return model;
}

/* 'o' has a cache of its own, 'b' attends to one before. */
static void a_share_factor_says_which_layers_borrow(void **state)
{
    (void)state;
    static const struct {
        const char *members, *layers;
    } rows[] = {
        {SMALL("hunyuan", "6") ", \"use_cla\": true, \"cla_share_factor\": 2", "obobob"},
        {SMALL("hunyuan", "6") ", \"use_cla\": true, \"cla_share_factor\": 4", "obbbob"},
        {SMALL("hunyuan", "6") ", \"use_cla\": true, \"cla_share_factor\": 9", "obbbbb"},
        {SMALL("hunyuan", "6") ", \"use_cla\": true, \"cla_share_factor\": 1", "oooooo"},
        {SMALL("hunyuan", "6") ", \"use_cla\": true", "oooooo"},
        {SMALL("hunyuan", "6") ", \"use_cla\": false, \"cla_share_factor\": 2", "oooooo"},
        {SMALL("hunyuan", "1") ", \"use_cla\": true, \"cla_share_factor\": 2", "o"},
        {SMALL("llama", "6") ", \"use_cla\": false", "oooooo"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model const model = model_of(rows[i].members);
        uint64_t borrowing = 0;
        assert_int_equal(model.layers, strlen(rows[i].layers));
        for (uint64_t layer = 0; layer < model.layers; layer++) {
            bool const borrows = rows[i].layers[layer] == 'b';
            assert_int_equal(model_layer_kind(&model, layer, 0).borrows, borrows);
            borrowing += borrows;
        }
        assert_int_equal(model_borrowing_layers(&model), borrowing);
    }
}

/* 389 billion parameters; with 8 of 80 heads and each second cache 5 % of what a cache of all heads
 * in all layers takes, while reads are 10 %. Layers without K and V lack 2·D·K·H weights, and H of
 * the norm of K. */
static void hunyuan_large_has_its_parameters_and_its_cache(void **state)
{
    (void)state;
    struct model const shared = model_of(LARGE ", \"use_cla\": true, \"cla_share_factor\": 2");
    struct model const plain = model_of(LARGE);
    struct model_counts const counts = model_count(&shared), whole = model_count(&plain);
    uint64_t const lacks = 2ull * 6400 * 8 * 80 + 80;
    double const all = 64.0 * 2 * 80 * 80;
    assert_int_equal(counts.total / 1000000, 388701);
    assert_int_equal(counts.borrowers, 32);
    assert_int_equal(counts.attention_layer, 2ull * 6400 * 80 * (80 + 8) + 2 * 80);
    assert_int_equal(counts.attention_layer - counts.attention_borrower, lacks);
    assert_int_equal(whole.total - counts.total, 32 * lacks);
    assert_int_equal(whole.active - counts.active, 32 * lacks);
    assert_int_equal(whole.borrowers, 0);
    assert_int_equal(counts.cache_columns, 2 * 8 * 80);
    assert_int_equal(whole.cache_columns, counts.cache_columns);
    case_near(inference_kv_bytes_per_token(64, counts.cache_columns, 1) / all, 0.1, 1e-12);
    case_near(inference_kv_bytes_per_token(64 - counts.borrowers, counts.cache_columns, 1) / all,
              0.05, 1e-12);
}

/* The first layers that are said to be skipped have an MLP instead of experts. */
static void layers_that_experts_skip_are_dense(void **state)
{
    (void)state;
    struct model const all = model_of(LARGE);
    struct model const some = model_of(LARGE ", \"moe_layer_num_skipped\": 2");
    assert_int_equal(model_dense_layers(&all), 0);
    assert_int_equal(model_dense_layers(&some), 2);
    /* Of 16 experts and a shared one each skipped layer keeps one MLP, and has no router. */
    assert_int_equal(model_count(&all).total - model_count(&some).total,
                     2 * (16ull * 3 * 6400 * 18304 + 16 * 6400));
}

/* Where columns of Q, K and V have biases, a layer without K and V has the biases of Q alone. */
static void borrowed_keys_have_no_biases(void **state)
{
    (void)state;
    struct model shared = model_of(LARGE ", \"use_cla\": true, \"cla_share_factor\": 2");
    struct model_counts const plain = model_count(&shared);
    shared.biases.qkv = true;
    struct model_counts const biased = model_count(&shared);
    assert_int_equal(biased.attention_layer - plain.attention_layer, (80 + 2 * 8) * 80);
    assert_int_equal(biased.attention_borrower - plain.attention_borrower, 80 * 80);
    assert_int_equal(biased.total - plain.total, 32 * (80 + 80 + 2 * 8) * 80);
}

/* Room goes by what is held, time by what is read. */
static void twice_as_many_sequences_fit_and_none_is_faster(void **state)
{
    (void)state;
    struct inference_chips const chips = {.count = 8,
                                          .flop_per_s = 1e15,
                                          .hbm_bytes_per_s = 3e12,
                                          .hbm_bytes = 80e9,
                                          .attention_flop_per_s = 1e15};
    struct inference_model const plain = {
        .parameters = 70e9, .parameter_bytes = 70e9, .kv_bytes_per_token = 160e3};
    struct inference_model shared = plain;
    shared.kv_shared_bytes_per_token = 80e3;
    assert_int_equal(inference_max_batch(&plain, &chips, 8192), 434);
    assert_int_equal(inference_max_batch(&shared, &chips, 8192), 869);
    case_near(inference_pass(&plain, &chips, 32, 0, 32 * 8192).kv_s,
              inference_pass(&shared, &chips, 32, 0, 32 * 8192).kv_s, 0);
}

static void what_cannot_be_read_is_refused_where_it_stands(void **state)
{
    (void)state;
    static const struct {
        const char *members, *where, *words;
    } rows[] = {
        {SMALL("llama", "4") ", \"use_cla\": true", "/use_cla",
         "not modelled in models of type llama; it is in those of hunyuan"},
        {SMALL("llama", "4") ", \"num_kv_shared_layers\": 2", "/num_kv_shared_layers",
         "sharing of keys and values between the last layers is not modelled"},
        {SMALL("hunyuan", "4") ", \"use_cla\": 2", "/use_cla", "must be true or false"},
        {SMALL("hunyuan", "4") ", \"use_cla\": true, \"cla_share_factor\": 0", "/cla_share_factor",
         "0"},
        {SMALL("gemma3n_text", "4") ", \"altup_num_inputs\": 4", "/altup_num_inputs", "AltUp"},
        {SMALL("hunyuan",
               "4") ", \"num_experts\": 4, \"moe_topk\": 2, \"use_mixed_mlp_moe\": true, "
                    "\"moe_intermediate_size\": 768",
         "/moe_intermediate_size", "a shared expert that is not as wide as some experts together"},
        {SMALL("hunyuan", "4") ", \"use_mla\": true", "/use_mla", "not known of models of type"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model = {0};
        struct error error = {0};
        assert_int_not_equal(read_model(rows[i].members, &model, &error), STATUS_OK);
        if (strcmp(error.where, rows[i].where) != 0 || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s: %s", rows[i].members, error.where, error.message);
        refusals_hold(&error, __FILE__);
    }
}

static void what_steps_cannot_share_is_refused(void **state)
{
    (void)state;
    static const char decode[] = "\"kind\": \"decode\", \"batch\": 8, \"context\": 512",
                      train[] = "\"kind\": \"train_step\", \"batch_tokens\": 65536, "
                                "\"sequence_length\": 512",
                      gathered[] = "\"kind\": \"decode\", \"batch\": 8, \"context\": 512, "
                                   "\"weights\": \"gathered\"";
    static const struct {
        const char *mesh, *workload, *where, *words;
        int sharing; /* Layers that share a cache. */
    } rows[] = {
        {"{\"pp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", decode, "/mesh/pp",
         "all layers of small attend to the cache of the first", 6},
        {"{\"dp\": [\"gpu\"]}", train, "/workload/kind", "gradients come from several layers", 2},
        {"{\"fsdp\": [\"gpu\"]}", decode, "/mesh/fsdp", "weights of two sizes", 2},
        {"{\"dp\": [\"gpu\"]}", gathered, "/workload/weights", "weights of two sizes", 2},
        {"{\"cp\": [\"gpu\"]}", decode, "/mesh/cp", "tp, dp, ep and pp are", 2},
        {"{\"pp\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]}", decode, "/mesh/pp",
         "stage 1 of 4 would begin with layer 1 of small, which attends to the cache of layer 0 on "
         "the stage before; it could begin with layer 2",
         2},
        {"{\"pp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", decode, "/mesh/pp",
         "layer 3 of small, which attends to the cache of layer 2 on the stage before; it could "
         "begin with layer 2",
         2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        struct error error = {0};
        case_text(text, TEXT_BYTES,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": "
                  "%s, \"workload\": {%s, \"model\": {\"_name_or_path\": \"small\", " SMALL(
                      "hunyuan", "6") ", \"use_cla\": true, \"cla_share_factor\": %d}}}",
                  rows[i].mesh, rows[i].workload, rows[i].sharing);
        assert_int_not_equal(play_try(&play, text, NULL, &error), STATUS_OK);
        if (strcmp(error.where, rows[i].where) != 0 || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s: %s", rows[i].workload, error.where, error.message);
        refusals_hold(&error, __FILE__);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_factor_says_which_layers_borrow),
        cmocka_unit_test(hunyuan_large_has_its_parameters_and_its_cache),
        cmocka_unit_test(layers_that_experts_skip_are_dense),
        cmocka_unit_test(borrowed_keys_have_no_biases),
        cmocka_unit_test(twice_as_many_sequences_fit_and_none_is_faster),
        cmocka_unit_test(what_cannot_be_read_is_refused_where_it_stands),
        cmocka_unit_test(what_steps_cannot_share_is_refused),
    };
    return cmocka_run_group_tests_name("shared caches", tests, case_arena_up, case_arena_down);
}
