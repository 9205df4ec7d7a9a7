/* Models: what is counted of them, config.json files of users, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "tests/oracle/oracle.h"
#include "tests/support/case.h"

static struct model model_of(const char *name)
{
    struct model model = {0};
    case_ok(
        model_read_name_or_path(case_arena, name, NULL, "/workload/model", &model, &case_error));
    return model;
}

/* What is published beside the totals is rounded: 12.9B of Mixtral, 3.3B and 22B of Qwen3, 37B of
 * DeepSeek-V3. OpenAI's 3.6B and 5.1B leave out the embedding, which is looked up and not
 * multiplied; here it is counted, as it is in all the others. */
static void active_parameters_are_what_one_token_meets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t active, published, without;
    } rows[] = {
        {"mixtral-8x7b", 12879925248, 12900000000, 0},
        {"qwen3-30b-a3b", 3353032704, 3300000000, 0},
        {"qwen3-235b-a22b", 22190763520, 22000000000, 0},
        {"deepseek-v3", 37552297472, 37000000000, 0},
        {"deepseek-v2", 21375800320, 21000000000, 0},
        {"kimi-k2", 32861500928, 32000000000, 1174405120}, /* 32B, with the head alone. */
        {"gpt-oss-20b", 4187440704, 3600000000, 579133440},
        {"gpt-oss-120b", 5711982912, 5100000000, 579133440},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model const model = model_of(rows[i].name);
        struct model_counts const counts = model_count(&model);
        double const said = (double)(counts.active - rows[i].without);
        assert_int_equal(counts.active, rows[i].active);
        assert_true(said > 0.98 * (double)rows[i].published);
        assert_true(said < 1.02 * (double)rows[i].published);
    }
    struct model const dense = model_of("llama-3-8b");
    assert_int_equal(model_count(&dense).active, model_count(&dense).total);
}

/* Of the arXiv report 2412.19437: 61 layers of which 3 have an MLP; 256 experts and a shared one.
 * The checkpoint's 685B are these 671B and the prediction layer with an embedding and a head of
 * its own: 14B. The index of the published weights (Hugging Face, deepseek-ai/DeepSeek-V3,
 * safetensors) counts them by format: 680,571,043,840 in fp8 with scales beside them, 3,918,786,560
 * in bf16, and a bias of each router in fp32. README_WEIGHTS.md there has 1.5B active for the
 * prediction of a further token, the head among them. */
static void the_parts_of_deepseek_v3_add_up(void **state)
{
    (void)state;
    struct model const model = model_of("deepseek-v3");
    struct model_counts const counts = model_count(&model);
    assert_int_equal(counts.mlp_layers, 3);
    assert_int_equal(counts.expert_layers, 58);
    assert_int_equal(counts.mlp_layer, 3ull * 7168 * 18432);
    assert_int_equal(counts.experts_layer, 256ull * 3 * 7168 * 2048);
    assert_int_equal(counts.shared_layer, 3ull * 7168 * 2048);
    assert_int_equal(counts.router_layer, 256ull * 7168 + 256);
    uint64_t const query = 7168ull * 1536 + 1536 + 1536ull * 128 * 192;
    uint64_t const latent = 7168ull * (512 + 64) + 512 + 512ull * 128 * (128 + 128);
    assert_int_equal(counts.attention_layer, query + latent + 128ull * 128 * 7168);
    struct model direct = model; /* As DeepSeek-V2-Lite is: Q without a latent. */
    direct.latent.query_rank = 0;
    assert_int_equal(model_count(&direct).attention_layer,
                     7168ull * 128 * 192 + latent + 128ull * 128 * 7168);
    assert_int_equal(model.mtp_modules, 1);
    assert_int_equal(counts.mtp_modules, 2ull * 7168 * 7168 + 3 * 7168 + counts.attention_layer +
                                             counts.router_layer + counts.experts_layer +
                                             counts.shared_layer + counts.norm_layer);
    double const with = (double)(counts.mtp_modules + counts.embedding + counts.head);
    assert_true(with > 13e9 && with < 14.5e9);
    assert_int_equal(counts.mtp_modules, UINT64_C(11610068224));
    assert_int_equal(counts.total + counts.mtp_modules + counts.embedding + counts.head,
                     UINT64_C(680571043840) + UINT64_C(3918786560) + 59 * 256);
    /* Embeddings and heads, routers, norms and the projection are what is not in fp8. */
    uint64_t const norms = 62ull * (2 * 7168 + 1536 + 512) + 4 * 7168;
    assert_int_equal(2 * (counts.embedding + counts.head) + 59ull * 256 * 7168 + norms +
                         2ull * 7168 * 7168,
                     UINT64_C(3918786560));
    assert_true(counts.mtp_active > 1450000000 && counts.mtp_active < 1650000000);
    assert_int_equal(counts.mtp_active,
                     counts.mtp_modules + counts.head - 248ull * 3 * 7168 * 2048);
}

static void counts_hold(const struct model *model)
{
    struct model_counts const counted = model_count(model);
    struct model_counts oracle = oracle_model_count(model);
    if (counted.mlp_layers == 0) oracle.mlp_layer = 0;
    if (memcmp(&counted, &oracle, sizeof counted) != 0)
        fail_msg("%s: %llu parameters, %llu of them active; by closed formulas %llu and %llu",
                 model->name, (unsigned long long)counted.total, (unsigned long long)counted.active,
                 (unsigned long long)oracle.total, (unsigned long long)oracle.active);
}

/* Each sum over graphs, part by part; with experts that have biases, modules that predict, and a
 * norm with biases, which no model has together. */
static void graphs_have_the_parameters_of_the_closed_formulas(void **state)
{
    uint32_t count = 0;
    (void)state;
    for (const char *name = NULL; (name = model_name_at(count)) != NULL; count++) {
        struct model model = model_of(name);
        if (model.experts.shared_gated) continue; /* The formulas do not know it. */
        counts_hold(&model);
        if (model.blocks != NULL) continue;
        model.norm_biases = 1 - model.norm_biases;
        model.mtp_modules = 2;
        model.tied = false;
        model.experts.biased = model_has_experts(&model);
        counts_hold(&model);
        model.latent.query_rank = 0;
        model.positions.learned = 1024;
        model.matrices = 5 - model.matrices;
        counts_hold(&model);
    }
    assert_true(count > 40);
}

/* Book, chapter 4, 4.2 and the table of chapter 6, 6.1. */
static void the_parts_of_llama_3_70b_are_the_books(void **state)
{
    (void)state;
    struct model const model = model_of("llama-3-70b");
    struct model_counts const counts = model_count(&model);
    assert_int_equal(model.layers, 80);
    assert_int_equal(model.head_width, 128);
    assert_int_equal(counts.mlp_layer * 80, 3ull * 8192 * 28672 * 80);
    assert_int_equal(counts.attention_layer, 2ull * 8192 * (64 + 8) * 128);
    assert_int_equal(counts.embedding, 8192ull * 128256);
    assert_int_equal(counts.head, counts.embedding);
}

/* Narayanan et al. 2021 (arXiv 2104.04473), equation 2: P = 12lh²·(1 + 13/12h + (V + s)/12lh), to
 * which the last layernorm adds its scale and bias; and the billions of table 1. */
static void the_gpts_of_megatron_lm_have_the_papers_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t layers, width, heads;
        double billions;
    } rows[] = {
        {"megatron-1.7b", 24, 2304, 24, 1.7},        {"megatron-3.6b", 30, 3072, 32, 3.6},
        {"megatron-7.5b", 36, 4096, 32, 7.5},        {"megatron-18.4b", 40, 6144, 48, 18.4},
        {"megatron-39.1b", 48, 8192, 64, 39.1},      {"megatron-76.1b", 60, 10240, 80, 76.1},
        {"megatron-145.6b", 80, 12288, 96, 145.6},   {"megatron-310.1b", 96, 16384, 128, 310.1},
        {"megatron-529.6b", 105, 20480, 128, 529.6}, {"megatron-1008b", 128, 25600, 160, 1008.0},
        {"megatron-174.6b", 96, 12288, 96, 174.6},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model const model = model_of(rows[i].name);
        uint64_t const l = rows[i].layers, h = rows[i].width;
        uint64_t const total = model_count(&model).total;
        assert_int_equal(total, 12 * l * h * h + 13 * l * h + (51200 + 2048) * h + 2 * h);
        assert_int_equal(model.heads, rows[i].heads);
        assert_int_equal(model.kv_heads, rows[i].heads);
        double const off = (double)total * 1e-9 - rows[i].billions;
        assert_true(off < 0.0505 && off > -0.0505); /* 76.05 is printed as 76.1. */
    }
}

static void tied_embeddings_are_counted_once(void **state)
{
    (void)state;
    struct model const model = model_of("gemma-7b");
    assert_true(model.tied);
    assert_int_equal(model_count(&model).head, 0);
    assert_int_equal(model.head_width * model.heads, 4096); /* Not the width, 3,072. */
}

static enum status read_object(const char *text, struct model *model, struct error *error)
{
    struct json *document = NULL;
    assert_int_equal(json_read_text(case_arena, "text", text, strlen(text), &document, error),
                     STATUS_OK);
    enum status const status = model_read_object(case_arena, document, model, error);
    json_free(document);
    return status;
}

static void a_bare_mlp_has_its_matrices_and_nothing_else(void **state)
{
    (void)state;
    struct model model = {0};
    struct error error = {0};
    case_ok(read_object("{\"kind\": \"mlp\", \"D\": 8192, \"F\": 32768, \"layers\": 8, "
                        "\"matrices\": 2}",
                        &model, &case_error));
    assert_int_equal(model_count(&model).total, 8ull * 2 * 8192 * 32768);
    static const struct {
        const char *text, *where, *words;
    } bad[] = {
        {"{\"kind\": \"mpl\", \"D\": 8, \"F\": 8, \"layers\": 8}", "/kind", "mlp"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"layers\": 8}", "", "F"},
        {"{\"kind\": \"mlp\", \"D\": 0, \"F\": 8, \"layers\": 8}", "/D", "0"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8.5, \"layers\": 8}", "/F", "8.5"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 8, \"matrices\": 4}", "/matrices",
         ""},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layer\": 8}", "/layer", "layers"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 8, \"matrixes\": 2}", "/matrixes",
         "matrices"},
        {"{\"D\": 8, \"F\": 8, \"layers\": 8}", "", "nor the \"model_type\" of a config.json"},
        {"[]", "", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_not_equal(read_object(bad[i].text, &model, &error), STATUS_OK);
        if (strcmp(error.where, bad[i].where) != 0 || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].text, error.where, error.message);
    }
}

/* A small llama config with more members put in front. */
static enum status read_config(const char *more, struct model *model, struct error *error)
{
    struct json *document = NULL;
    const char *text = arena_format(
        case_arena,
        "{%s \"hidden_size\": 512, \"intermediate_size\": 1024, \"num_hidden_layers\": 2, "
        "\"vocab_size\": 1000, \"rms_norm_eps\": 1e-05, \"id2label\": {\"0\": [1, {\"a\": null}]}}",
        more);
    if (json_read_text(case_arena, "text", text, strlen(text), &document, error) != STATUS_OK)
        fail_msg("%s: %s", error->where, error->message);
    enum status const status = model_read_config(case_arena, document, "small", model, error);
    json_free(document);
    return status;
}

static void a_config_may_leave_out_what_transformers_fills_in(void **state)
{
    (void)state;
    struct model model = {0};
    case_ok(read_config("\"model_type\": \"llama\", \"num_attention_heads\": 8, "
                        "\"head_dim\": null, \"sliding_window\": null, "
                        "\"attention_bias\": false, \"num_local_experts\": 0, "
                        "\"architectures\": [\"LlamaForCausalLM\"], "
                        "\"hidden_act\": \"swish\",",
                        &model, &case_error));
    assert_int_equal(model.kv_heads, 8);
    assert_int_equal(model.head_width, 64);
    assert_false(model.tied);
    case_ok(read_config("\"model_type\": \"gemma\", \"num_attention_heads\": 3, "
                        "\"num_key_value_heads\": 1, \"head_dim\": 256,",
                        &model, &case_error));
    assert_true(model.tied);
    assert_int_equal(model.kv_heads, 1);
    /* Not 512 / 8: transformers' default of the type. */
    case_ok(
        read_config("\"model_type\": \"qwen3\", \"num_attention_heads\": 8,", &model, &case_error));
    assert_int_equal(model.head_width, 128);
    struct json *gpt = NULL;
    static const char text[] = "{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, "
                               "\"n_head\": 12, \"n_positions\": 1024, \"vocab_size\": 50257}";
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &gpt, &case_error));
    case_ok(model_read_config(case_arena, gpt, "gpt2", &model, &case_error));
    json_free(gpt);
    assert_int_equal(model_count(&model).total, 124439808); /* Of the published checkpoint. */
    case_ok(read_config("\"model_type\": \"mistral\", \"num_attention_heads\": 8, "
                        "\"sliding_window\": 4096, \"use_sliding_window\": false,",
                        &model, &case_error));
}

static void what_experts_cannot_be_is_refused(void **state)
{
    (void)state;
    static const char mixtral[] = "\"model_type\": \"mixtral\", \"num_local_experts\": 8, ";
    static const char qwen[] = "\"model_type\": \"qwen3_moe\", \"num_experts\": 8, "
                               "\"moe_intermediate_size\": 64, \"num_experts_per_tok\": 2, ";
    static const char deepseek[] =
        "\"model_type\": \"deepseek_v3\", \"n_routed_experts\": 8, \"kv_lora_rank\": 64, "
        "\"qk_nope_head_dim\": 64, \"qk_rope_head_dim\": 32, \"v_head_dim\": 64, "
        "\"moe_intermediate_size\": 64, ";
    static const struct {
        const char *type, *more, *where, *words;
    } rows[] = {
        {mixtral, "", "", "num_experts_per_tok"},
        {mixtral, "\"num_experts_per_tok\": 9,", "/num_experts_per_tok", "9 of 8"},
        {mixtral, "\"num_experts_per_tok\": 2, \"n_routed_experts\": 8,", "/n_routed_experts",
         "mixture"},
        {qwen, "\"decoder_sparse_step\": 2,", "/decoder_sparse_step", "by turns"},
        {qwen, "\"mlp_only_layers\": [1],", "/mlp_only_layers/0", "after"},
        {qwen, "\"mlp_only_layers\": [0, 1],", "", "none of the 2 layers"},
        {qwen, "\"mlp_only_layers\": [0],", NULL, NULL},
        {qwen, "\"n_group\": 4, \"topk_group\": 2,", "/n_group",
         "routing to few groups of experts is not modelled in models of type qwen3_moe; it is in "
         "those of deepseek_v3"},
        {qwen, "\"topk_group\": 2,", "/topk_group", "those of deepseek_v3"},
        {qwen, "\"n_group\": 1, \"topk_group\": 1,", NULL, NULL},
        {qwen, "\"num_nextn_predict_layers\": 1,", "/num_nextn_predict_layers",
         "multi-token prediction is not modelled in models of type qwen3_moe; it is in those of "
         "deepseek_v3"},
        {qwen, "\"num_nextn_predict_layers\": -1,", "/num_nextn_predict_layers",
         "-1 is below the minimum 0"},
        {qwen, "\"num_nextn_predict_layers\": 0,", NULL, NULL},
        {deepseek, "\"num_experts_per_tok\": 2,", NULL, NULL},
        {deepseek, "\"num_experts_per_tok\": 2, \"moe_layer_freq\": 2,", "/moe_layer_freq",
         "by turns"},
        {deepseek, "\"num_experts_per_tok\": 2, \"first_k_dense_replace\": 2,", "", "none"},
        {deepseek, "\"num_experts_per_tok\": 2, \"n_group\": 3,", "/n_group", "equal groups"},
        {deepseek, "\"num_experts_per_tok\": 2, \"n_group\": 4, \"topk_group\": 5,", "/topk_group",
         "5 of 4"},
        {deepseek, "\"num_experts_per_tok\": 2, \"topk_group\": 4,", "/topk_group",
         "n_group does not say of how many"},
        {deepseek, "\"num_experts_per_tok\": 3, \"n_group\": 4, \"topk_group\": 1,", "/topk_group",
         "fewer than the 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model model = {0};
        struct error error = {0};
        const char *more = arena_format(case_arena, "\"num_attention_heads\": 8, %s%s",
                                        rows[i].type, rows[i].more);
        enum status const status = read_config(more, &model, &error);
        if (rows[i].where == NULL) {
            assert_int_equal(status, STATUS_OK);
            continue;
        }
        assert_int_not_equal(status, STATUS_OK);
        if (strcmp(error.where, rows[i].where) != 0 || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s: %s", more, error.where, error.message);
    }
}

static void what_is_not_modelled_is_refused_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *more, *where, *words;
    } bad[] = {
        {"\"num_local_experts\": 8,", "/num_local_experts",
         "a mixture of experts is not modelled in models of type llama; it is in those of mixtral "
         "and gpt_oss"},
        {"\"n_routed_experts\": 256,", "/n_routed_experts", "mixture of experts"},
        {"\"kv_lora_rank\": 512,", "/kv_lora_rank", "MLA"},
        {"\"sliding_window\": 4096,", "/sliding_window", "sliding-window"},
        {"\"sliding_window\": 4096, \"use_sliding_window\": true,", "/sliding_window", "sliding"},
        {"\"layer_types\": [\"full_attention\", \"sliding_attention\"],", "/layer_types/1",
         "attention that differs by layer is not modelled in models of type llama; it is in those "
         "of qwen2, qwen3 and gpt_oss"},
        {"\"quantization_config\": {\"quant_method\": \"fp8\"},", "/quantization_config",
         "quantised"},
        {"\"text_config\": {},", "/text_config", "multimodal"},
        {"\"attention_bias\": true,", "/attention_bias", "bias"},
        {"\"mlp_bias\": true,", "/mlp_bias", "bias"},
        {"\"num_key_value_heads\": 3,", "/num_key_value_heads", "do not divide"},
        {"\"num_key_value_heads\": 16,", "/num_key_value_heads", "do not divide"},
        {"\"num_key_value_heads\": 0,", "/num_key_value_heads", ""},
        {"\"head_dim\": -1,", "/head_dim", ""},
        {"\"head_dim\": \"64\",", "/head_dim", ""},
        {"\"tie_word_embeddings\": \"yes\",", "/tie_word_embeddings", ""},
        {"\"architectures\": [\"MixtralForCausalLM\"],", "/architectures/0", "Mixtral"},
        {"\"architectures\": \"LlamaForCausalLM\",", "/architectures", "list"},
        {"\"hidden_act\": \"relu\",", "/hidden_act", "gated by silu or gelu"},
        {"\"hidden_activation\": \"relu2\",", "/hidden_activation", "gated"},
    };
    struct model model;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error error = {0};
        const char *more = arena_format(
            case_arena, "\"model_type\": \"llama\", \"num_attention_heads\": 8, %s", bad[i].more);
        assert_int_not_equal(read_config(more, &model, &error), STATUS_OK);
        if (strcmp(error.where, bad[i].where) != 0 || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].more, error.where, error.message);
    }
    struct error error = {0};
    case_refused(
        read_config("\"model_type\": \"qwen5\", \"num_attention_heads\": 8,", &model, &case_error),
        STATUS_UNSUPPORTED, "/model_type", "the nearest is \"qwen");
    assert_int_not_equal(read_config("\"num_attention_heads\": 8,", &model, &error), STATUS_OK);
    assert_int_not_equal(read_config("\"model_type\": \"llama\",", &model, &error), STATUS_OK);
    assert_int_not_equal(
        read_config("\"model_type\": \"llama\", \"num_attention_heads\": 7,", &model, &error),
        STATUS_OK);
    assert_non_null(strstr(error.message, "head_dim is needed"));
}

/* GPT-2 has keys of its own, and no default for the positions. */
static void a_gpt_2_must_say_what_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *more, *where, *words;
    } bad[] = {
        {"", "", "n_positions"},
        {"\"n_positions\": 0,", "/n_positions", "0"},
        {"\"n_positions\": 1024, \"n_inner\": -1,", "/n_inner", ""},
        {"\"n_positions\": 1024, \"activation_function\": \"relu\",", "/activation_function",
         "gelu"},
        {"\"n_positions\": 1024, \"architectures\": [\"GPT2ForTokenClassification\"],",
         "/architectures/0", "GPT2LMHeadModel"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model model;
        struct error error = {0};
        struct json *document = NULL;
        const char *text = arena_format(
            case_arena,
            "{%s \"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, "
            "\"vocab_size\": 50257}",
            bad[i].more);
        case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
        assert_int_not_equal(model_read_config(case_arena, document, "small", &model, &error),
                             STATUS_OK);
        json_free(document);
        if (strcmp(error.where, bad[i].where) != 0 || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].more, error.where, error.message);
    }
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-3-70", "", "/", "no/such.json", "."};
    struct model model;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        case_refused(model_read_name_or_path(case_arena, names[i], NULL, "/workload/model", &model,
                                             &case_error),
                     STATUS_NOT_FOUND, "/workload/model", i == 0 ? "\"llama-3-70b\"" : "models`");
    }
}

static void write_file(const char *path, const char *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
}

static void a_users_file_is_found_beside_the_scenario_or_from_here(void **state)
{
    (void)state;
    char folder[] = "/tmp/podsim-model-XXXXXX";
    struct model model = {0};
    uint32_t size_bytes = 0;
    const char *bytes = model_json("llama-3-8b", &size_bytes);
    assert_non_null(mkdtemp(folder));
    const char *inner = arena_format(case_arena, "%s/mine", folder);
    const char *config = arena_format(case_arena, "%s/config.json", inner);
    const char *other = arena_format(case_arena, "%s/other.json", folder);
    assert_int_equal(mkdir(inner, 0700), 0);
    write_file(config, bytes, size_bytes);
    write_file(other, bytes, size_bytes / 2);
    static const char *const found[] = {"mine", "mine/config.json", "./mine/"};
    for (size_t i = 0; i < 3; i++) {
        case_ok(model_read_name_or_path(case_arena, found[i], folder, "", &model, &case_error));
        assert_int_equal(model_count(&model).total, 8030261248);
        assert_string_equal(model.name, found[i]);
    }
    case_ok(model_read_name_or_path(case_arena, config, "/nowhere", "", &model, &case_error));
    case_refused(model_read_name_or_path(case_arena, "mine", NULL, "", &model, &case_error),
                 STATUS_NOT_FOUND, NULL, "");
    /* Half a file: the place is in that file, not in the scenario. */
    case_refused(
        model_read_name_or_path(case_arena, "other.json", folder, "/m", &model, &case_error),
        STATUS_INVALID, NULL, "");
    assert_non_null(strstr(case_error.where, "other.json:"));
    /* A whole file that asks for too much: the place names the file. */
    static const char experts[] = "{\"model_type\": \"llama\", \"num_experts\": 8}";
    write_file(other, experts, sizeof experts - 1);
    case_refused(
        model_read_name_or_path(case_arena, "other.json", folder, "/m", &model, &case_error),
        STATUS_UNSUPPORTED, NULL, "");
    assert_non_null(strstr(case_error.where, "other.json#/num_experts"));
    (void)unlink(config);
    (void)unlink(other);
    (void)rmdir(inner);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_parameters_are_what_one_token_meets),
        cmocka_unit_test(the_parts_of_deepseek_v3_add_up),
        cmocka_unit_test(what_experts_cannot_be_is_refused),
        cmocka_unit_test(graphs_have_the_parameters_of_the_closed_formulas),
        cmocka_unit_test(the_parts_of_llama_3_70b_are_the_books),
        cmocka_unit_test(the_gpts_of_megatron_lm_have_the_papers_parameters),
        cmocka_unit_test(tied_embeddings_are_counted_once),
        cmocka_unit_test(a_bare_mlp_has_its_matrices_and_nothing_else),
        cmocka_unit_test(a_config_may_leave_out_what_transformers_fills_in),
        cmocka_unit_test(what_is_not_modelled_is_refused_by_its_name),
        cmocka_unit_test(a_gpt_2_must_say_what_it_is),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(a_users_file_is_found_beside_the_scenario_or_from_here),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
