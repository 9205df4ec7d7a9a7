/* Families of models: what layers have beyond a llama's, what their published parameters say of it,
 * and which are refused, and where. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/refusals.h"

/* Weights of a layer's attention that are in no matrix. */
static uint64_t attention_biases(const struct model *model)
{
    struct model plain = *model;
    plain.biases.qkv = plain.biases.o = plain.attends.sinks = false;
    return model_count(model).attention_layer - model_count(&plain).attention_layer;
}

static uint64_t mlp_biases(const struct model *model)
{
    struct model plain = *model;
    plain.biases.mlp = false;
    return model_count(model).mlp_layer - model_count(&plain).mlp_layer;
}

/* A small config with more members put in front. */
static enum status read_config(const char *more, struct model *model, struct error *error)
{
    struct json *document = NULL;
    const char *text = arena_format(case_arena,
                                    "{%s \"hidden_size\": 512, \"intermediate_size\": 1024, "
                                    "\"num_hidden_layers\": 2, \"vocab_size\": 1000}",
                                    more);
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
    return model_read_config(case_arena, document, "small", model, error);
}

/* The place is the key that says it, or the type where no key does. */
static void what_a_block_cannot_be_is_refused_at_the_key_that_says_it(void **state)
{
    (void)state;
    static const char serial[] = "are not modelled yet;"; /* For no reason of a block. */
    static const struct {
        const char *type, *more, *where, *words;
    } rows[] = {
        {"stablelm", "", "/model_type", serial},
        {"cohere2", "", "/model_type", "without positions in some layers"},
        {"falcon", "\"alibi\": \"yes\",", "/alibi", "true or false"},
        {"llama", "\"alibi\": true,", "/alibi", "not known of models of type llama"},
        {"falcon", "\"new_decoder_architecture\": true, \"num_kv_heads\": 3,", "/num_kv_heads",
         "do not divide"},
        {"bloom", "\"apply_residual_connection_post_layernorm\": true,",
         "/apply_residual_connection_post_layernorm", "not known of models of type bloom"},
        {"bloom", "\"slow_but_exact\": true,", "/slow_but_exact", "not known"},
        {"gemma2", "\"attn_logit_softcapping\": -50.0,", "/attn_logit_softcapping",
         "is below the minimum 0"},
        {"gemma2", "\"final_logit_softcapping\": \"30\",", "/final_logit_softcapping", "number"},
        {"gemma3_text", "\"final_logit_softcapping\": [],", "/final_logit_softcapping", "number"},
        {"llama", "\"attn_logit_softcapping\": 50.0,", "/attn_logit_softcapping",
         "those of gemma2"},
        {"gemma3_text", "\"use_bidirectional_attention\": true,", "/use_bidirectional_attention",
         "whose tokens attend to later ones"},
        {"gemma3", "\"text_config\": {\"model_type\": \"gemma3_text\"},", "/model_type",
         "a tower for images"},
        {"gemma3", "\"vision_config\": {\"hidden_size\": 1152},", "/vision_config", "images"},
        {"olmo2", "\"attention_bias\": true,", "/attention_bias", "a bias"},
        {"olmo2", "\"clip_qkv\": 8.0,", "/clip_qkv", "not known"},
        {"bitnet", "\"attention_bias\": true,", "/attention_bias", "a bias"},
        {"bitnet", "\"quantization_config\": {\"quant_method\": \"bitnet\"},",
         "/quantization_config", "set formats in the workload"},
        {"bitnet", "\"num_experts\": 4,", "/num_experts", "a mixture of experts"},
        {"apertus", "\"hidden_act\": \"silu\",", "/hidden_act", "\"xielu\""},
        {"llama", "\"hidden_act\": \"xielu\",", "/hidden_act",
         "is not modelled in models of type llama"},
        {"bitnet", "\"hidden_act\": \"xielu\",", "/hidden_act",
         "is not modelled in models of type bitnet"},
        {"apertus", "\"post_norm\": true,", "/post_norm", "not known of models of type apertus"},
        {"apertus", "\"attention_bias\": true,", "/attention_bias", "a bias"},
        {"apertus", "\"mlp_bias\": true,", "/mlp_bias", "a bias"},
        {"llama4_text", "\"attention_chunk_size\": 8192,", "/attention_chunk_size", "chunks"},
        {"llama4", "\"text_config\": {\"attention_chunk_size\": 8192},",
         "/text_config/attention_chunk_size", "within chunks"},
        {"minimax_text_01", "\"attn_type_list\": [0, 1],", "/attn_type_list", "linear attention"},
        {"minimax", "\"layer_types\": [\"linear_attention\", \"full_attention\"],", "/layer_types",
         "linear attention"},
        {"qwen2_moe",
         "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 128, "
         "\"shared_expert_intermediate_size\": 200,",
         "/shared_expert_intermediate_size", "not as wide as some experts together"},
        {"internlm2", "\"bias\": true,", "/bias", "a bias"},
        {"granite", "\"attention_bias\": true,", "/attention_bias", "a bias"},
        {"starcoder2", "\"mlp_type\": \"gated\",", "/mlp_type", "\"default\""},
        {"starcoder2", "\"norm_type\": \"rms_norm\",", "/norm_type", "\"layer_norm\""},
        {"llama", "\"q_lora_rank\": 1,", "/q_lora_rank", "latent attention"},
        {"llama", "\"kv_lora_rank\": 1,", "/kv_lora_rank", "latent attention"},
        /* Experts are gated. */
        {"starcoder2", "\"num_experts\": 8,", "/num_experts", "mixture"},
        {"starcoder2", "\"num_local_experts\": 8,", "/num_local_experts", "mixture"},
        {"starcoder2", "\"n_routed_experts\": 8,", "/n_routed_experts", "mixture"},
        {"kimi_k3", "", "/model_type", "the nearest is \"kimi_k2\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model;
        const char *more =
            arena_format(case_arena, "\"model_type\": \"%s\", \"num_attention_heads\": 8, %s",
                         rows[i].type, rows[i].more);
        case_refused(read_config(more, &model, &case_error), STATUS_OK, rows[i].where,
                     rows[i].words);
    }
}

/* Weights that are in no matrix: of a layer's attention and MLP, and of norms. */
static void biases_and_norms_of_heads_are_counted(void **state)
{
    (void)state;
    struct model const qwen2 = catalogue_model("qwen2.5-7b"), qwen3 = catalogue_model("qwen3-8b");
    assert_int_equal(attention_biases(&qwen2), (28 + 2 * 4) * 128);
    assert_int_equal(attention_biases(&qwen3), 0);
    assert_int_equal(qwen3.norms.qk, MODEL_QK_NORMS_SHARED);
    assert_int_equal(model_count(&qwen3).attention_layer, 4096ull * 2 * (32 + 8) * 128 + 2 * 128);
    struct model const coder = catalogue_model("starcoder2-3b"),
                       first = catalogue_model("starcoder-15b");
    assert_int_equal(attention_biases(&coder), (24 + 2 * 2) * 128 + 3072);
    assert_int_equal(mlp_biases(&coder), 12288 + 3072);
    assert_int_equal(coder.norms.biases, 1);
    assert_int_equal(coder.attends.window, 4096);
    assert_int_equal(model_window_layers(&coder, 16384), 30);
    assert_int_equal(first.kv_heads, 1);
    assert_int_equal(first.positions.learned, 8192);
    assert_int_equal(catalogue_model("phi-3-mini").attends.window, 2047);
    assert_int_equal(catalogue_model("qwen2.5-7b").attends.window, 0);
    struct model model = {0};
    case_ok(read_config("\"model_type\": \"qwen2\", \"num_attention_heads\": 8, "
                        "\"use_sliding_window\": true, \"sliding_window\": 1024, "
                        "\"max_window_layers\": 1,",
                        &model, &case_error));
    assert_int_equal(model_window_layers(&model, 4096), 1);
    case_ok(read_config("\"model_type\": \"starcoder2\", \"num_attention_heads\": 8, "
                        "\"use_bias\": false,",
                        &model, &case_error));
    assert_int_equal(attention_biases(&model) + mlp_biases(&model), 0);
    case_ok(read_config("\"model_type\": \"starcoder2\", \"num_attention_heads\": 8,", &model,
                        &case_error));
    assert_true(attention_biases(&model) > 0 && mlp_biases(&model) > 0);
    struct model normed = {0};
    case_ok(
        read_config("\"model_type\": \"phi\", \"num_attention_heads\": 8,", &model, &case_error));
    case_ok(read_config("\"model_type\": \"phi\", \"num_attention_heads\": 8, "
                        "\"qk_layernorm\": true,",
                        &normed, &case_error));
    assert_int_equal(model_count(&normed).attention_layer - model_count(&model).attention_layer,
                     2 * 2 * normed.head_width); /* Weights and biases, of Q and of K. */
}

/* What nothing reads may change what a step computes, unless it is known to change nothing. */
static void what_is_not_known_is_refused_by_key(void **state)
{
    (void)state;
    static const struct {
        const char *more, *where, *words;
    } rows[] = {
        {"\"use_parallel_residual\": true,", "/use_parallel_residual", "of models of type llama"},
        {"\"parallel_attn\": true,", "/parallel_attn", "may change what a step computes"},
        {"\"qk_norm\": true,", "/qk_norm", "the nearest known key is \""},
        {"\"use_qk_norm\": true,", "/use_qk_norm", "\"use_qk_norm\" is not known"},
        {"\"post_norm\": \"rms\",", "/post_norm", "not known"},
        {"\"attention_chunk_size\": 8192,", "/attention_chunk_size", "not known"},
        {"\"shared_expert_intermediate_size\": 5632,", "/shared_expert_intermediate_size",
         "the nearest known key is \"moe_intermediate_size\""},
        {"\"ssm_state_size\": 0.5,", "/ssm_state_size", "not known"},
        {"\"frobnicate\": [1],", "/frobnicate", "not known"},
        {"\"num_key_value_head\": 4,", "/num_key_value_head", "\"num_key_value_heads\""},
        {"\"n_embd\": 512,", "/n_embd", "not known of models of type llama"},
        {"\"logits_scaling\": 8.0,", "/logits_scaling", "not known"},
        {"\"experts_per_token\": 2,", "/experts_per_token",
         "the nearest known key is \"num_experts_per_tok\""},
    };
    struct model model;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        const char *more = arena_format(
            case_arena, "\"model_type\": \"llama\", \"num_attention_heads\": 4, %s", rows[i].more);
        assert_int_equal(read_config(more, &model, &error), STATUS_UNSUPPORTED);
        assert_string_equal(error.where, rows[i].where);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s", rows[i].more, error.message);
        refusals_hold(&error, __FILE__);
    }
}

static void what_changes_nothing_or_is_off_passes(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"model_type\": \"llama\", \"qk_norm\": false, \"ssm_state_size\": 0, \"mamba\": {}, "
        "\"post_norm\": null, \"use_parallel_residual\": false, \"gate\": 0.0, \"extra\": [],",
        "\"model_type\": \"llama\", \"_name_or_path\": \"x\", \"torch_dtype\": \"bfloat16\", "
        "\"initializer_range\": 0.02, \"eos_token_id\": [1, 2], \"rope_theta\": 5e5, "
        "\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"llama3\"}, \"use_cache\": true, "
        "\"pretraining_tp\": 1, \"transformers_version\": \"4.40\", \"attention_dropout\": 0.1, "
        "\"auto_map\": {\"AutoModel\": \"m.M\"}, \"max_position_embeddings\": 8192,",
        "\"model_type\": \"granite\", \"logits_scaling\": 16.0, \"attention_multiplier\": 0.01,",
        "\"model_type\": \"phi3\", \"embd_pdrop\": 0.1, \"partial_rotary_factor\": 1.0,",
    };
    struct model model;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *more = arena_format(case_arena, "%s \"num_attention_heads\": 4,", rows[i]);
        case_ok(read_config(more, &model, &case_error));
        assert_int_equal(model.layers, 2);
    }
}

/* The ways to stretch rotary positions, as vLLM reads them. */
static void the_longest_sequence_is_what_the_config_stretches_positions_to(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        uint64_t most;
    } rows[] = {
        {"", 0},
        {"\"max_position_embeddings\": 4096,", 4096},
        {"\"max_position_embeddings\": 4096, \"rope_scaling\": null,", 4096},
        {"\"max_position_embeddings\": 4096, \"rope_scaling\": {\"type\": \"linear\", "
         "\"factor\": 2.5},",
         10240},
        {"\"max_position_embeddings\": 4096, \"rope_scaling\": {\"type\": \"dynamic\", "
         "\"factor\": 2},",
         8192},
        {"\"max_position_embeddings\": 40960, \"rope_parameters\": {\"rope_type\": \"yarn\", "
         "\"factor\": 4.0, \"original_max_position_embeddings\": 32768},",
         131072},
        {"\"max_position_embeddings\": 163840, \"rope_scaling\": {\"type\": \"yarn\", "
         "\"factor\": 40, \"original_max_position_embeddings\": 4096},",
         163840},
        {"\"max_position_embeddings\": 4096, \"rope_scaling\": {\"type\": \"yarn\", "
         "\"factor\": 2},",
         8192},
        {"\"max_position_embeddings\": 131072, \"rope_scaling\": {\"rope_type\": \"llama3\", "
         "\"factor\": 8.0, \"original_max_position_embeddings\": 8192},",
         131072},
        {"\"max_position_embeddings\": 131072, \"rope_scaling\": {\"type\": \"longrope\", "
         "\"short_factor\": [1.0]},",
         131072},
        {"\"max_position_embeddings\": 8192, \"model_max_length\": 131072,", 131072},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model;
        const char *more = arena_format(
            case_arena, "\"model_type\": \"llama\", \"num_attention_heads\": 4, %s", rows[i].more);
        case_ok(read_config(more, &model, &case_error));
        assert_int_equal(model.positions.most, rows[i].most);
    }
    assert_int_equal(catalogue_model("qwen3-8b").positions.most, 131072);
    assert_int_equal(catalogue_model("starcoder-15b").positions.most, 8192);
}

/* Published: the sums of the tensors of each checkpoint, as its index on Hugging Face gives them;
 * GPT-NeoX-20B's and Pythia's also in their model cards. Falcon's without the head that some copies
 * store once more. Keys are those of the published config.json. */
static void attention_and_mlp_side_by_side_have_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint64_t parameters;
        bool one_for_both;
    } rows[] = {
        {"\"model_type\": \"cohere\", \"architectures\": [\"CohereForCausalLM\"], "
         "\"hidden_size\": 8192, \"intermediate_size\": 22528, \"num_attention_heads\": 64, "
         "\"num_key_value_heads\": 64, \"num_hidden_layers\": 40, \"vocab_size\": 256000, "
         "\"logit_scale\": 0.0625, \"use_qk_norm\": false, \"attention_bias\": false",
         34980831232, true},
        {"\"model_type\": \"cohere\", \"architectures\": [\"CohereForCausalLM\"], "
         "\"hidden_size\": 12288, \"intermediate_size\": 33792, \"num_attention_heads\": 96, "
         "\"num_key_value_heads\": 8, \"num_hidden_layers\": 64, \"vocab_size\": 256000, "
         "\"logit_scale\": 0.8333333333333334, \"use_qk_norm\": true",
         103810674688, true},
        {"\"model_type\": \"gpt_neox\", \"architectures\": [\"GPTNeoXForCausalLM\"], "
         "\"hidden_size\": 5120, \"intermediate_size\": 20480, \"num_attention_heads\": 40, "
         "\"num_hidden_layers\": 36, \"vocab_size\": 50688, \"hidden_act\": \"gelu\", "
         "\"rotary_pct\": 0.25, \"rotary_emb_base\": 10000, \"use_parallel_residual\": true",
         11846072320, false},
        {"\"model_type\": \"gptj\", \"architectures\": [\"GPTJForCausalLM\"], \"n_embd\": 4096, "
         "\"n_head\": 16, \"n_inner\": null, \"n_layer\": 28, \"n_positions\": 2048, "
         "\"rotary\": true, \"rotary_dim\": 64, \"activation_function\": \"gelu_new\", "
         "\"tie_word_embeddings\": false, \"vocab_size\": 50400",
         6050882784, true},
        {"\"model_type\": \"codegen\", \"architectures\": [\"CodeGenForCausalLM\"], "
         "\"n_embd\": 1024, \"n_ctx\": 2048, \"n_head\": 16, \"n_inner\": null, \"n_layer\": 20, "
         "\"n_positions\": 2048, \"rotary_dim\": 32, \"vocab_size\": 51200",
         356712448, true},
        {"\"model_type\": \"phi\", \"architectures\": [\"PhiForCausalLM\"], \"hidden_size\": 2560, "
         "\"intermediate_size\": 10240, \"num_attention_heads\": 32, \"num_hidden_layers\": 32, "
         "\"partial_rotary_factor\": 0.4, \"qk_layernorm\": false, \"vocab_size\": 51200",
         2779683840, true},
        {"\"model_type\": \"falcon\", \"architectures\": [\"FalconForCausalLM\"], "
         "\"alibi\": false, \"bias\": false, \"hidden_size\": 4544, \"multi_query\": true, "
         "\"apply_residual_connection_post_layernorm\": false, \"num_attention_heads\": 71, "
         "\"new_decoder_architecture\": false, \"num_hidden_layers\": 32, "
         "\"parallel_attn\": true, \"vocab_size\": 65024",
         6921720704, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json *document = NULL;
        struct model model;
        const char *text = arena_format(case_arena, "{%s}", rows[i].config);
        case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
        case_ok(model_read_config(case_arena, document, "published", &model, &case_error));
        assert_int_equal(model_count(&model).total, rows[i].parameters);
        assert_int_equal(model.norms.one_for_both, rows[i].one_for_both);
        assert_true(model.parallel);
    }
    struct model model;
    case_ok(read_config("\"model_type\": \"gpt_neox\", \"num_attention_heads\": 8, "
                        "\"use_parallel_residual\": false,",
                        &model, &case_error));
    assert_false(model.parallel);
    assert_false(catalogue_model("gpt-neox-20b").norms.one_for_both);
    assert_true(catalogue_model("gpt-neox-20b").parallel);
}

/* GLM-4-32B-0414's config.json has no biases; where it does not say, Q, K and V have them. */
static void norms_behind_blocks_are_counted(void **state)
{
    (void)state;
    struct model const glm = catalogue_model("glm-4-9b");
    struct model model;
    assert_true(glm.norms.behind);
    assert_int_equal(model_count(&glm).norm_layer, 4 * glm.width);
    assert_int_equal(attention_biases(&glm), (32 + 2 * 2) * 128);
    case_ok(read_config("\"model_type\": \"glm4\", \"num_attention_heads\": 8, "
                        "\"attention_bias\": false,",
                        &model, &case_error));
    assert_true(model.norms.behind);
    assert_int_equal(attention_biases(&model), 0);
    case_ok(
        read_config("\"model_type\": \"glm4\", \"num_attention_heads\": 8,", &model, &case_error));
    assert_int_equal(attention_biases(&model), 3 * 8 * 128);
    assert_false(catalogue_model("llama-3-8b").norms.behind);
}

/* Where a file does not say, transformers caps; null switches a cap off. */
static void caps_of_scores_and_logits_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        bool scores, logits;
    } rows[] = {
        {"", true, true},
        {"\"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0,", true, true},
        {"\"attn_logit_softcapping\": null,", false, true},
        {"\"final_logit_softcapping\": null,", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model;
        const char *more = arena_format(
            case_arena, "\"model_type\": \"gemma2\", \"num_attention_heads\": 2, %s", rows[i].more);
        case_ok(read_config(more, &model, &case_error));
        assert_int_equal(model.attends.caps_scores, rows[i].scores);
        assert_int_equal(model.caps_logits, rows[i].logits);
        assert_true(model.norms.behind && model.tied);
        assert_int_equal(model_window_layers(&model, 8192), 1);
    }
    assert_false(catalogue_model("gemma-7b").attends.caps_scores ||
                 catalogue_model("gemma-7b").caps_logits);
}

/* Gemma 3 has norms of Q and K in place of the caps, and counts positions that are stretched. */
static void what_gemma_3_has_for_caps_is_read(void **state)
{
    (void)state;
    struct model model = {0};
    struct model const built_in = catalogue_model("gemma-3-12b");
    assert_false(built_in.attends.caps_scores || built_in.caps_logits);
    assert_true(built_in.norms.behind && built_in.tied);
    assert_int_equal(built_in.norms.qk, MODEL_QK_NORMS_SHARED);
    assert_int_equal(built_in.positions.most, 131072);
    case_ok(read_config("\"model_type\": \"gemma3_text\", \"num_attention_heads\": 2, "
                        "\"final_logit_softcapping\": 30.0,",
                        &model, &case_error));
    assert_true(model.caps_logits);
    assert_false(model.attends.caps_scores);
}

/* Each falls away on its own. Biases: of 4D columns of Q, K, V and O with 8 heads of their own, or
 * of 2D and two heads with a shared one; and of F + D of the MLP. */
static void biases_of_falcons_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        bool scores;
        uint64_t attention, mlp;
    } rows[] = {
        {"", false, 0, 0},
        {"\"alibi\": true,", true, 0, 0},
        {"\"bias\": true,", false, 2 * 512 + 2 * 64, 2048 + 512},
        {"\"alibi\": true, \"bias\": true, \"multi_query\": false,", true, 4 * 512, 2048 + 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json *document = NULL;
        struct model model;
        const char *text = arena_format(
            case_arena,
            "{%s \"model_type\": \"falcon\", \"hidden_size\": 512, \"num_attention_heads\": 8, "
            "\"num_hidden_layers\": 2, \"vocab_size\": 1000}",
            rows[i].more);
        case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
        case_ok(model_read_config(case_arena, document, "falcon", &model, &case_error));
        assert_int_equal(model.attends.biases_scores, rows[i].scores);
        assert_int_equal(model_rotates(&model), !rows[i].scores);
        assert_int_equal(attention_biases(&model), rows[i].attention);
        assert_int_equal(mlp_biases(&model), rows[i].mlp);
    }
}

/* A build that has not been configured since a file came does not have it. */
static void every_file_of_the_folder_is_built_in(void **state)
{
    (void)state;
    static const char suffix[] = ".json";
    DIR *folder = opendir("workloads/models");
    uint32_t count = 0;
    assert_non_null(folder);
    for (const struct dirent *file; (file = readdir(folder)) != NULL;) {
        char name[256];
        uint32_t size_bytes = 0;
        const char *end = strstr(file->d_name, suffix);
        if (end == NULL) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - file->d_name), file->d_name);
        if (model_json(name, &size_bytes) == NULL)
            fail_msg("%s is not built in: meson setup --reconfigure", file->d_name);
        count++;
    }
    (void)closedir(folder);
    assert_non_null(model_name_at(count - 1));
    assert_null(model_name_at(count));
}

/* A model that stands in a scenario. */
static enum status read_object(const char *text, struct model *model, struct error *error)
{
    struct json *document = NULL;
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
    return model_read_object(case_arena, document, model, error);
}

static void a_config_in_the_scenario_is_called_by_its_own_name(void **state)
{
    (void)state;
    static const char sizes[] = "\"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, "
                                "\"n_positions\": 1024, \"vocab_size\": 50257}";
    struct model model = {0};
    struct error error = {0};
    case_ok(read_object(arena_format(case_arena, "{\"model_type\": \"gpt2\", %s", sizes), &model,
                        &case_error));
    assert_int_equal(model_count(&model).total, 124439808);
    assert_string_equal(model.name, "gpt2 of 12 layers of 768");
    case_ok(read_object(arena_format(case_arena,
                                     "{\"model_type\": \"gpt2\", \"_name_or_path\": \"mine\", %s",
                                     sizes),
                        &model, &case_error));
    assert_string_equal(model.name, "mine");
    assert_int_not_equal(
        read_object(arena_format(case_arena, "{\"model_type\": \"gpt2\", \"heads\": 2, %s", sizes),
                    &model, &error),
        STATUS_OK);
    assert_string_equal(error.where, "/heads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_block_cannot_be_is_refused_at_the_key_that_says_it),
        cmocka_unit_test(what_is_not_known_is_refused_by_key),
        cmocka_unit_test(what_changes_nothing_or_is_off_passes),
        cmocka_unit_test(biases_and_norms_of_heads_are_counted),
        cmocka_unit_test(the_longest_sequence_is_what_the_config_stretches_positions_to),
        cmocka_unit_test(attention_and_mlp_side_by_side_have_the_published_counts),
        cmocka_unit_test(norms_behind_blocks_are_counted),
        cmocka_unit_test(caps_of_scores_and_logits_are_read),
        cmocka_unit_test(what_gemma_3_has_for_caps_is_read),
        cmocka_unit_test(biases_of_falcons_are_read),
        cmocka_unit_test(every_file_of_the_folder_is_built_in),
        cmocka_unit_test(a_config_in_the_scenario_is_called_by_its_own_name),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
