/* Models: published parameter counts, config.json files of users, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/json.h"
#include "sim/workload/model_read.h"
#include "tests/support/case.h"

static struct model model_of(const char *name)
{
    struct model model = {0};
    case_ok(
        model_read_name_or_path(case_arena, name, NULL, "/workload/model", &model, &case_error));
    return model;
}

/* Published: the sums of the tensors of each model's checkpoint on Hugging Face. */
static void parameters_equal_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
    } rows[] = {
        {"llama-2-13b", 13015864320},   {"llama-3-8b", 8030261248}, {"llama-3-70b", 70553706496},
        {"llama-3-405b", 405853388800}, {"gemma-7b", 8537680896},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model const model = model_of(rows[i].name);
        assert_int_equal(model_count(&model).total, rows[i].parameters);
        assert_string_equal(model.name, rows[i].name);
        assert_string_equal(model_name_at(i), rows[i].name);
    }
    assert_null(model_name_at(sizeof rows / sizeof rows[0]));
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
    double const flop = model_attention_flop(&model, 1 << 22, 4096);
    assert_true(flop == 12.0 * (1 << 22) * 4096.0 * 64 * 128 * 80);
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
    assert_true(model_attention_flop(&model, 1000, 1000) == 0.0);
    static const struct {
        const char *text, *where, *words;
    } bad[] = {
        {"{\"kind\": \"mpl\", \"D\": 8, \"F\": 8, \"layers\": 8}", "/kind", "mlp"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"layers\": 8}", "", "F"},
        {"{\"kind\": \"mlp\", \"D\": 0, \"F\": 8, \"layers\": 8}", "/D", "0"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 1e6, \"layers\": 8}", "/F", ""},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 8, \"matrices\": 4}", "/matrices",
         ""},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layer\": 8}", "", "layers"},
        {"{\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 8, \"matrixes\": 2}", "/matrixes",
         "matrices"},
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
        "\"vocab_size\": 1000, \"rms_norm_eps\": 1e-05, \"unknown_key\": [1, {\"a\": null}]}",
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
    case_ok(read_config("\"model_type\": \"mistral\", \"num_attention_heads\": 8, "
                        "\"sliding_window\": 4096, \"use_sliding_window\": false,",
                        &model, &case_error));
}

static void what_is_not_modelled_is_refused_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *more, *where, *words;
    } bad[] = {
        {"\"num_local_experts\": 8,", "/num_local_experts", "mixture of experts"},
        {"\"n_routed_experts\": 256,", "/n_routed_experts", "mixture of experts"},
        {"\"kv_lora_rank\": 512,", "/kv_lora_rank", "MLA"},
        {"\"sliding_window\": 4096,", "/sliding_window", "sliding-window"},
        {"\"sliding_window\": 4096, \"use_sliding_window\": true,", "/sliding_window", "sliding"},
        {"\"layer_types\": [\"full_attention\", \"sliding_attention\"],", "/layer_types", "layer"},
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
        read_config("\"model_type\": \"qwen2\", \"num_attention_heads\": 8,", &model, &case_error),
        STATUS_UNSUPPORTED, NULL, "llama");
    assert_int_not_equal(read_config("\"num_attention_heads\": 8,", &model, &error), STATUS_OK);
    assert_int_not_equal(read_config("\"model_type\": \"llama\",", &model, &error), STATUS_OK);
    assert_int_not_equal(
        read_config("\"model_type\": \"llama\", \"num_attention_heads\": 7,", &model, &error),
        STATUS_OK);
    assert_non_null(strstr(error.message, "head_dim is needed"));
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-3-70", "", "/", "no/such.json", "."};
    struct model model;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        case_refused(model_read_name_or_path(case_arena, names[i], NULL, "/workload/model", &model,
                                             &case_error),
                     STATUS_NOT_FOUND, "/workload/model", i == 0 ? "\"llama-3-70b\"" : "nearest");
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
        cmocka_unit_test(parameters_equal_the_published_counts),
        cmocka_unit_test(the_parts_of_llama_3_70b_are_the_books),
        cmocka_unit_test(tied_embeddings_are_counted_once),
        cmocka_unit_test(a_bare_mlp_has_its_matrices_and_nothing_else),
        cmocka_unit_test(a_config_may_leave_out_what_transformers_fills_in),
        cmocka_unit_test(what_is_not_modelled_is_refused_by_its_name),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(a_users_file_is_found_beside_the_scenario_or_from_here),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
