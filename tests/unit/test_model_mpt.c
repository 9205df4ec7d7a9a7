/* Models of type mpt: what each key of a config.json changes, published counts of parameters, and
 * what is refused, and where. */
#include <string.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"

#define FOUNDRY "\"architectures\": [\"MPTForCausalLM\"], "

static enum status read_text(const char *members, struct model *model, struct error *error)
{
    struct json *document = NULL;
    const char *text = arena_format(case_arena, "{\"model_type\": \"mpt\", %s}", members);
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
    return model_read_config(case_arena, document, "mpt", model, error);
}

/* A small model with more members. */
static struct model model_with(const char *more)
{
    struct model model = {0};
    const char *members = arena_format(case_arena,
                                       "%s \"d_model\": 512, \"n_heads\": 8, \"n_layers\": 2, "
                                       "\"vocab_size\": 1000",
                                       more);
    case_ok(read_text(members, &model, &case_error));
    return model;
}

/* Published: NumParams of scripts/train/benchmarking/README.md in mosaicml/llm-foundry at 49521837,
 * whose yamls have these keys; the sum of the tensors of mpt-7b's checkpoint on Hugging Face. */
static void parameters_equal_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t width, heads, layers, positions, parameters;
    } rows[] = {
        {768, 12, 12, 2048, 125311488},     {2048, 16, 24, 65536, 1445974016},
        {2560, 20, 32, 512, 2647905280},    {4096, 32, 32, 2048, 6658859008},
        {5120, 40, 40, 32768, 13011240960}, {7168, 56, 48, 8192, 30019254272},
        {8192, 64, 80, 2048, 64862437376},
    };
    struct model model;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *members = arena_format(
            case_arena,
            FOUNDRY "\"d_model\": %llu, \"n_heads\": %llu, \"n_layers\": %llu, "
                    "\"expansion_ratio\": 4, \"max_seq_len\": %llu, \"vocab_size\": 50368, "
                    "\"attn_config\": {\"attn_impl\": \"flash\"}",
            (unsigned long long)rows[i].width, (unsigned long long)rows[i].heads,
            (unsigned long long)rows[i].layers, (unsigned long long)rows[i].positions);
        case_ok(read_text(members, &model, &case_error));
        assert_int_equal(model_count(&model).total, rows[i].parameters);
        assert_int_equal(model.positions.learned, rows[i].positions);
    }
    case_ok(read_text(
        FOUNDRY "\"attn_config\": {\"alibi\": true, \"alibi_bias_max\": 8, "
                "\"attn_impl\": \"torch\", \"attn_pdrop\": 0, "
                "\"attn_type\": \"multihead_attention\", \"attn_uses_sequence_id\": false, "
                "\"clip_qkv\": null, \"prefix_lm\": false, \"qk_ln\": false, "
                "\"softmax_scale\": null}, \"auto_map\": {\"AutoConfig\": \"c.MPTConfig\"}, "
                "\"d_model\": 4096, \"emb_pdrop\": 0, \"embedding_fraction\": 1.0, "
                "\"expansion_ratio\": 4, \"init_config\": {\"name\": \"kaiming_normal_\"}, "
                "\"init_device\": \"cpu\", \"learned_pos_emb\": true, \"logit_scale\": null, "
                "\"max_seq_len\": 2048, \"n_heads\": 32, \"n_layers\": 32, \"no_bias\": true, "
                "\"norm_type\": \"low_precision_layernorm\", \"resid_pdrop\": 0, "
                "\"tokenizer_name\": \"EleutherAI/gpt-neox-20b\", \"torch_dtype\": \"bfloat16\", "
                "\"transformers_version\": \"4.28.1\", \"use_cache\": false, \"verbose\": 0, "
                "\"vocab_size\": 50432",
        &model, &case_error));
    assert_int_equal(model_count(&model).total, 6649286656);
    assert_true(model.attends.biases_scores);
    assert_int_equal(model.positions.learned, 0);
    assert_int_equal(model.positions.most, 2048);
}

/* What a file does not say is the class's own. */
static void the_two_classes_have_their_own_defaults(void **state)
{
    (void)state;
    struct model const plain = model_with(""), foundry = model_with(FOUNDRY);
    struct model const named = model_with("\"architectures\": [\"MptForCausalLM\"],");
    assert_true(plain.attends.biases_scores && named.attends.biases_scores);
    assert_int_equal(plain.positions.learned, 0);
    assert_false(plain.biases.qkv || plain.biases.o || plain.biases.mlp);
    assert_int_equal(plain.norms.biases, 0);
    assert_false(foundry.attends.biases_scores);
    assert_int_equal(foundry.positions.learned, 2048);
    assert_true(foundry.biases.qkv && foundry.biases.o && foundry.biases.mlp);
    assert_int_equal(foundry.norms.biases, 1);
    assert_int_equal(plain.matrices, 2);
    assert_int_equal(plain.mlp_width, 2048);
    assert_int_equal(plain.kv_heads, 8);
    assert_true(plain.tied && foundry.tied);
}

static void each_key_changes_its_part(void **state)
{
    (void)state;
    struct model const turned = model_with(FOUNDRY "\"attn_config\": {\"rope\": true},");
    assert_true(model_rotates(&turned));
    assert_int_equal(turned.positions.learned, 0);
    assert_int_equal(
        model_with(FOUNDRY "\"attn_config\": {\"attn_type\": \"multiquery_attention\"},").kv_heads,
        1);
    assert_int_equal(model_with(FOUNDRY
                                "\"attn_config\": {\"attn_type\": \"grouped_query_attention\", "
                                "\"kv_n_heads\": 2},")
                         .kv_heads,
                     2);
    assert_int_equal(model_with(FOUNDRY "\"attn_config\": {\"kv_n_heads\": 8},").kv_heads, 8);
    assert_int_equal(model_with(FOUNDRY "\"attn_config\": {\"qk_ln\": true},").norms.qk,
                     MODEL_QK_NORMS_WHOLE);
    assert_int_equal(model_with(FOUNDRY "\"attn_config\": {\"sliding_window_size\": -1},").kv_heads,
                     8);
    struct model const learned = model_with(FOUNDRY "\"attn_config\": {\"alibi\": false}, "
                                                    "\"max_seq_len\": 4096,");
    assert_int_equal(learned.positions.learned, 4096);
    assert_int_equal(learned.positions.most, 4096);
    struct model const apart = model_with(FOUNDRY "\"no_bias\": true, \"attention_bias\": true,");
    assert_true(apart.biases.qkv);
    assert_false(apart.biases.o || apart.biases.mlp);
    assert_true(model_with(FOUNDRY "\"no_bias\": false,").biases.o);
    assert_int_equal(model_with(FOUNDRY "\"norm_type\": \"rmsnorm\",").norms.biases, 0);
    assert_int_equal(model_with(FOUNDRY "\"norm_type\": \"layernorm\",").norms.biases, 1);
    assert_int_equal(model_with(FOUNDRY "\"expansion_ratio\": 2.5,").mlp_width, 1280);
    assert_int_equal(model_with(FOUNDRY "\"ffn_config\": {\"ffn_type\": \"mptglu\", "
                                        "\"fc_type\": {\"name\": \"torch\"}},")
                         .matrices,
                     3);
}

/* The class of transformers passes over what it does not have. */
static void what_the_class_has_not_is_refused(void **state)
{
    static const char *const more[] = {
        "\"no_bias\": false,",
        "\"attention_bias\": true,",
        "\"expansion_ratio\": 2,",
        "\"attn_config\": {\"attn_type\": \"multiquery_attention\"},",
        "\"attn_config\": {\"qk_ln\": true},",
        "\"attn_config\": {\"alibi\": false},",
        "\"ffn_config\": {\"ffn_type\": \"mptglu\"},"};
    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct model model = {0};
        const char *members = arena_format(
            case_arena, "%s \"d_model\": 512, \"n_heads\": 8, \"n_layers\": 2, \"vocab_size\": 9",
            more[i]);
        case_refused(read_text(members, &model, &case_error), STATUS_UNSUPPORTED, "/model_type",
                     "a file of MosaicML's class has");
    }
}

static void what_is_not_modelled_is_refused_at_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *more, *where, *words;
    } rows[] = {
        {"\"attn_config\": {\"clip_qkv\": 6},", "/attn_config/clip_qkv", "of models of type mpt"},
        {"\"attn_config\": {\"prefix_lm\": true},", "/attn_config/prefix_lm", "not known"},
        {"\"attn_config\": {\"qk_gn\": true},", "/attn_config/qk_gn", "not known"},
        {"\"attn_config\": {\"attn_uses_sequence_id\": true},",
         "/attn_config/attn_uses_sequence_id", "not known"},
        {"\"attn_config\": {\"sliding_window_size\": 4096},", "/attn_config/sliding_window_size",
         "attention within windows"},
        {"\"attn_config\": {\"attn_type\": \"linear\"},", "/attn_config/attn_type",
         "grouped_query_attention"},
        {"\"attn_config\": {\"attn_type\": \"grouped_query_attention\"},", "/attn_config",
         "kv_n_heads"},
        {"\"attn_config\": {\"attn_type\": \"grouped_query_attention\", \"kv_n_heads\": 3},",
         "/attn_config/kv_n_heads", "do not divide"},
        {"\"attn_config\": {\"rope\": true},", "/attn_config/rope", "biases by position"},
        {"\"attn_config\": 1,", "/attn_config", "object"},
        {"\"attn_config\": {\"alibi\": false}, \"learned_pos_emb\": false,", "/learned_pos_emb",
         "without positions"},
        {"\"ffn_config\": {\"ffn_type\": \"te_ln_mlp\"},", "/ffn_config/ffn_type", "mptglu"},
        {"\"ffn_config\": {\"ffn_hidden_size\": 64},", "/ffn_config/ffn_hidden_size", "not known"},
        {"\"expansion_ratio\": 1.001,", "/expansion_ratio", "a whole number"},
        {"\"expansion_ratio\": 0,", "/expansion_ratio", "a whole number"},
        {"\"norm_type\": \"batchnorm\",", "/norm_type", "layernorm"},
        {"\"block_overrides\": {\"order\": []},", "/block_overrides", "not known"},
        {"\"architectures\": [\"DbrxForCausalLM\"],", "/architectures/0", "MptForCausalLM is"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model;
        const char *members = arena_format(case_arena,
                                           "%s \"d_model\": 512, \"n_heads\": 8, "
                                           "\"n_layers\": 2, \"vocab_size\": 1000",
                                           rows[i].more);
        case_refused(read_text(members, &model, &case_error), STATUS_OK, rows[i].where,
                     rows[i].words);
    }
    struct model model;
    case_refused(read_text("\"d_model\": 1048576, \"n_heads\": 8, \"n_layers\": 2, "
                           "\"vocab_size\": 1000",
                           &model, &case_error),
                 STATUS_OK, "/d_model", "a whole number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_equal_the_published_counts),
        cmocka_unit_test(the_two_classes_have_their_own_defaults),
        cmocka_unit_test(each_key_changes_its_part),
        cmocka_unit_test(what_the_class_has_not_is_refused),
        cmocka_unit_test(what_is_not_modelled_is_refused_at_its_key),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
