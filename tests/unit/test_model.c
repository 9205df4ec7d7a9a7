/* Models: the parameters that are counted of them. */
#include <string.h>

#include "sim/graph/parameters.h"
#include "sim/graph/write.h"
#include "tests/formulas/parameters.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"

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
        struct model const model = catalogue_model(rows[i].name);
        struct model_counts const counts = model_count(&model);
        double const said = (double)(counts.active - rows[i].without);
        assert_int_equal(counts.active, rows[i].active);
        assert_true(said > 0.98 * (double)rows[i].published);
        assert_true(said < 1.02 * (double)rows[i].published);
    }
    struct model const dense = catalogue_model("llama-3-8b");
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
    struct model const model = catalogue_model("deepseek-v3");
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
    direct.mla.query_rank = 0;
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
    struct model_counts formulas = formula_parameters(model);
    if (counted.mlp_layers == 0) formulas.mlp_layer = 0;
    if (memcmp(&counted, &formulas, sizeof counted) != 0)
        fail_msg("%s: %llu parameters, %llu of them active; by closed formulas %llu and %llu",
                 model->name, (unsigned long long)counted.total, (unsigned long long)counted.active,
                 (unsigned long long)formulas.total, (unsigned long long)formulas.active);
}

/* Each sum over graphs, part by part; with modules that predict and with biases where the model has
 * none, which no model has together. */
static void graphs_have_the_parameters_of_the_closed_formulas(void **state)
{
    uint32_t count = 0;
    (void)state;
    for (const char *name = NULL; (name = model_name_at(count)) != NULL; count++) {
        struct model model = catalogue_model(name);
        if (model.experts.shared_gated) continue; /* The formulas do not know it. */
        counts_hold(&model);
        if (model.parallel) continue;
        model.norms.biases = 1 - model.norms.biases;
        model.biases = (struct model_biases){!model.biases.qkv, !model.biases.o, !model.biases.mlp,
                                             !model.biases.head};
        model.attends.sinks = !model.attends.sinks;
        model.mtp_modules = 2;
        model.tied = false;
        model.experts.biased = model_has_experts(&model);
        counts_hold(&model);
        model.mla.query_rank = 0;
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
    struct model const model = catalogue_model("llama-3-70b");
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
        struct model const model = catalogue_model(rows[i].name);
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
    struct model const model = catalogue_model("gemma-7b");
    assert_true(model.tied);
    assert_int_equal(model_count(&model).head, 0);
    assert_int_equal(model.head_width * model.heads, 4096); /* Not the width, 3,072. */
}

/* BLOOM (arXiv 2211.05100, 3.2.2) has a norm behind the lookup; and a third table, which no model
 * of ours has, is like that of positions. */
static void normed_lookup_write(struct graph *g, const struct model *model)
{
    block_embedding.write(g, model);
    tensor const rows = g->stream;
    graph_lookup(g, "W_type[P, D_WX]", NULL, "Types");
    graph_norm(g, "Norm");
    g->stream = graph_normed(g, rows, "Normed");
    graph_block_output(g, g->stream);
}

static void an_embedding_with_a_norm_is_counted_whole(void **state)
{
    static const struct block normed_lookup = {
        .name = "embedding", .prefix = "embedding.", .write = normed_lookup_write};
    struct graph_terms terms = {
        .ranks = 1, .ranks_y = 1, .ranks_w = 1, .ranks_exchange = 1, .sequence = {.parts = 1}};
    struct model model = catalogue_model("megatron-1.7b");
    struct model_counts const plain = model_count(&model);
    struct model_counts counts = {.total = 7};
    static struct graph embedding, head;
    (void)state;
    graph_dimensions_begin(&model, &terms);
    embedding = (struct graph){.terms = &terms};
    block_write(&normed_lookup, &model, &embedding);
    block_write_part(&terms, &model, BLOCK_HEAD, &head);
    graph_ends_count(&embedding, &head, &model, &counts);
    uint64_t const norm = 2 * model.width; /* Scales and biases. */
    assert_int_equal(counts.norm_embedding, norm);
    assert_int_equal(counts.norm_final, norm);
    assert_int_equal(counts.embedding, plain.embedding);
    assert_int_equal(counts.positions, 2 * plain.positions);
    assert_int_equal(counts.total, 7 + plain.embedding + 2 * plain.positions + 2 * norm);
    assert_int_equal(plain.norm_embedding, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_parameters_are_what_one_token_meets),
        cmocka_unit_test(the_parts_of_deepseek_v3_add_up),
        cmocka_unit_test(graphs_have_the_parameters_of_the_closed_formulas),
        cmocka_unit_test(the_parts_of_llama_3_70b_are_the_books),
        cmocka_unit_test(the_gpts_of_megatron_lm_have_the_papers_parameters),
        cmocka_unit_test(tied_embeddings_are_counted_once),
        cmocka_unit_test(an_embedding_with_a_norm_is_counted_whole),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
