/* Models: config.json files of users, what is filled in, and refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"

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
        refusals_hold(&error, __FILE__);
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
    /* Squared ReLU, with a gate or alone. */
    case_ok(read_config("\"model_type\": \"llama\", \"num_attention_heads\": 8, "
                        "\"hidden_act\": \"relu2\",",
                        &model, &case_error));
    assert_int_equal(model.matrices, 3);
    case_ok(read_config("\"model_type\": \"starcoder2\", \"num_attention_heads\": 8, "
                        "\"hidden_act\": \"relu2\",",
                        &model, &case_error));
    assert_int_equal(model.matrices, 2);
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
        {qwen, "\"decoder_sparse_step\": 2,", NULL, NULL},
        {qwen, "\"decoder_sparse_step\": 3,", "", "none of the 2 layers"},
        {qwen, "\"mlp_only_layers\": [1],", "/mlp_only_layers/0", "after"},
        {qwen, "\"decoder_sparse_step\": 2, \"mlp_only_layers\": [3],", "/mlp_only_layers/0",
         "after"},
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
        {deepseek, "\"num_experts_per_tok\": 2, \"num_key_value_heads\": 2,", NULL, NULL},
        {deepseek, "\"num_experts_per_tok\": 2, \"moe_layer_freq\": 2,", "/moe_layer_freq",
         "models of qwen2_moe and qwen3_moe"},
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
            assert_int_equal(model.kv_heads, 8); /* MLA's whatever its config says. */
            continue;
        }
        assert_int_not_equal(status, STATUS_OK);
        if (strcmp(error.where, rows[i].where) != 0 || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s: %s", more, error.where, error.message);
        refusals_hold(&error, __FILE__);
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
         "of gemma2, gemma3_text, qwen3, qwen2_moe, gpt_oss, qwen2 and olmo3"},
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
        {"\"hidden_act\": \"relu\",", "/hidden_act", "gated by silu, gelu or relu2"},
        {"\"hidden_activation\": \"xielu\",", "/hidden_activation", "gated"},
    };
    struct model model;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error error = {0};
        const char *more = arena_format(
            case_arena, "\"model_type\": \"llama\", \"num_attention_heads\": 8, %s", bad[i].more);
        assert_int_not_equal(read_config(more, &model, &error), STATUS_OK);
        if (strcmp(error.where, bad[i].where) != 0 || strstr(error.message, bad[i].words) == NULL)
            fail_msg("%s: %s: %s", bad[i].more, error.where, error.message);
        refusals_hold(&error, __FILE__);
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
    refusals_hold(&error, __FILE__);
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
        refusals_hold(&error, __FILE__);
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
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_mlp_has_its_matrices_and_nothing_else),
        cmocka_unit_test(a_config_may_leave_out_what_transformers_fills_in),
        cmocka_unit_test(what_experts_cannot_be_is_refused),
        cmocka_unit_test(what_is_not_modelled_is_refused_by_its_name),
        cmocka_unit_test(a_gpt_2_must_say_what_it_is),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(a_users_file_is_found_beside_the_scenario_or_from_here),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
