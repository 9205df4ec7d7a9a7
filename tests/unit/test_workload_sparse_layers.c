/* Experts in each n-th layer: how a config.json says so, how many parameters that is, formulas and
 * programs agree for every combination of mesh, remat, gather, ZeRO stage, accumulation, order and
 * formats, each stage of a pipeline has its own layers, and folded steps are full ones. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/unit/blocks_case.h"

enum { LAYERS = 6, TEXT_BYTES = 2400 };

#define SMALL(type, more)                                                                          \
    "\"model_type\": \"" type "\", \"hidden_size\": 512, \"intermediate_size\": 1536, "            \
    "\"moe_intermediate_size\": 256, \"num_hidden_layers\": 6, \"num_attention_heads\": 8, "       \
    "\"num_key_value_heads\": 4, \"vocab_size\": 1024, \"num_experts\": 8, "                       \
    "\"tie_word_embeddings\": false, \"num_experts_per_tok\": 2" more

static struct model model_of(const char *members)
{
    struct model model = {0};
    struct json *document = NULL;
    const char *text = arena_format(case_arena, "{%s}", members);
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &document, &case_error));
    case_ok(model_read_config(case_arena, document, "sparse", &model, &case_error));
    json_free(document);
    return model;
}

/* 'E' has experts, 'm' an MLP. As transformers has it, layer i has experts where i + 1 is a
 * multiple of the step. */
static void a_step_says_which_layers_have_experts(void **state)
{
    (void)state;
    static const struct {
        const char *members, *layers;
    } rows[] = {
        {SMALL("qwen3_moe", ""), "EEEEEE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 1"), "EEEEEE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 2"), "mEmEmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 3"), "mmEmmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 4"), "mmmEmm"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 2, \"mlp_only_layers\": [0]"), "mEmEmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 2, \"mlp_only_layers\": [0, 1]"), "mmmEmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 2, \"mlp_only_layers\": [1]"), "mmmEmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 2, \"mlp_only_layers\": [4, 0]"), "mEmEmE"},
        {SMALL("qwen3_moe", ", \"decoder_sparse_step\": 3, \"mlp_only_layers\": [2, 3]"), "mmmmmE"},
        {SMALL("qwen3_moe", ", \"mlp_only_layers\": [0, 1]"), "mmEEEE"},
        {SMALL("qwen2_moe", ", \"shared_expert_intermediate_size\": 512, "
                            "\"decoder_sparse_step\": 2"),
         "mEmEmE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model const model = model_of(rows[i].members);
        uint64_t dense = 0;
        for (uint64_t layer = 0; layer < LAYERS; layer++) {
            bool const experts = rows[i].layers[layer] == 'E';
            dense += !experts;
            if (model_layer_kind(&model, layer, 0).experts != experts)
                fail_msg("%s: layer %u", rows[i].members, (unsigned)layer);
        }
        assert_int_equal(model_dense_layers(&model), dense);
    }
}

/* By hand, of D = 512, N = 8, K = 4, H = 64 in qwen3_moe's default, F = 1536, 8 experts of 256. */
static void parameters_are_those_of_each_layer(void **state)
{
    (void)state;
    struct model const model =
        model_of(SMALL("qwen3_moe", ", \"head_dim\": 64, \"decoder_sparse_step\": 2"));
    struct model_counts const counts = model_count(&model);
    uint64_t const attention = 2 * 512 * (8 + 4) * 64 + 2 * 64, norms = 2 * 512,
                   mlp = 3 * 512 * 1536, router = 512 * 8, expert = 3 * 512 * 256;
    uint64_t const ends = 2 * 1024 * 512 + 512;
    assert_int_equal(counts.mlp_layers, 3);
    assert_int_equal(counts.expert_layers, 3);
    assert_int_equal(counts.total,
                     6 * (attention + norms) + 3 * mlp + 3 * (router + 8 * expert) + ends);
    assert_int_equal(counts.active,
                     6 * (attention + norms) + 3 * mlp + 3 * (router + 2 * expert) + ends);
}

/* The last of 5 layers has experts, as the formulas of the oracle take it. */
static void sparse_set(struct model *model, uint32_t kind)
{
    static const uint64_t first[] = {0, 1, 2}, step[] = {2, 3, 2};
    model->experts = (struct model_experts){.count = 8,
                                            .top_k = 2,
                                            .width = 4096,
                                            .shared = kind % 2,
                                            .dense_layers = first[kind],
                                            .step = step[kind]};
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(sparse_set, 3);
}

static void step_text(char *text, const char *mesh, const char *workload, int step)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2}, \"mesh\": {%s}, "
        "\"workload\": {%s, \"model\": {\"_name_or_path\": \"sparse\", " SMALL(
            "qwen3_moe", ", \"decoder_sparse_step\": %d") "}}}",
        mesh, workload, step);
}

#define TRAIN                                                                                      \
    "\"kind\": \"train_step\", \"batch_tokens\": 65536, \"sequence_length\": 512, "                \
    "\"accumulate\": 4"

static const struct {
    const char *mesh, *workload;
    const char *experts; /* Layers with experts on each rank of pp. */
    int step;
} steps[] = {
    {"\"dp\": [\"node\", \"gpu\"]", TRAIN, "3", 2},
    {"\"dp\": [\"node\", \"gpu\"]", TRAIN ", \"zero\": 1", "1", 4},
    {"\"fsdp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN, "1", 4},
    {"\"pp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN ", \"schedule\": \"1f1b\"", "01", 4},
    {"\"dp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN ", \"zero\": 2", "3", 2},
    {"\"fsdp\": [\"node\", \"gpu:4\"], \"tp\": [\"gpu:2\"]", TRAIN, "3", 2},
    {"\"pp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN ", \"schedule\": \"1f1b\"", "12", 2},
    {"\"pp\": [\"node\"], \"dp\": [\"gpu\"]", TRAIN ", \"schedule\": \"1f1b\", \"zero\": 1", "12",
     2},
    {"\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]", TRAIN ", \"regather\": \"step\"", "12", 2},
    {"\"pp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN ", \"schedule\": \"interleaved:3\"", "03", 2},
    {"\"pp\": [\"node\"], \"ep\": [\"gpu\"]", TRAIN ", \"schedule\": \"zb-h1\"", "12", 2},
    {"\"pp\": [\"node\"], \"dp\": [\"gpu\"]", TRAIN ", \"schedule\": \"dualpipev\"", "12", 2},
    {"\"pp\": [\"node\"], \"tp\": [\"gpu\"]",
     TRAIN ", \"schedule\": \"1f1b\", \"layout\": \"Et|ttttt L\"", "03", 2},
    {"\"tp\": [\"gpu\"], \"dp\": [\"node\"]",
     "\"kind\": \"decode\", \"batch\": 8, \"context\": 512", "3", 2},
    {"\"pp\": [\"node\"], \"ep\": [\"gpu\"]",
     "\"kind\": \"prefill\", \"batch\": 16, \"prompt\": 512", "12", 2},
};
enum { STEPS = sizeof steps / sizeof *steps };

static bool has_experts(const struct program_template *template)
{
    bool has = false;
    for (uint32_t i = 0; i < template->op_count; i++)
        has = has || strncmp(template->op[i].name, "moe.", 4) == 0;
    return has;
}

/* FLOP of matmuls of all ranks of pp, and the forward passes of layers with experts of each. */
static double roles_sum(const struct play *play, uint64_t ret_experts[2])
{
    const struct program *program = &play->program;
    double flop = 0;
    for (uint32_t r = 0; r < program->role_count; r++) {
        ret_experts[r] = 0;
        for (uint32_t t = 0; t < program->template_count; t++) {
            const struct program_template *template = &program->templates[t];
            uint64_t const plays = program_role_plays(&program->roles[r], t, PROGRAM_ANY_PHASE);
            bool const forward = strncmp(template->name, "layer forward", 13) == 0;
            if (forward && has_experts(template)) ret_experts[r] += plays;
            for (uint32_t i = 0; i < template->op_count; i++)
                if (template->op[i].kind == PROGRAM_OP_COMPUTE)
                    flop += (double)plays *
                            (double)work_matmul_flop(&program->works[template->op[i].index]);
        }
    }
    return flop;
}

static void stages_have_the_layers_that_lie_there(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < STEPS; i++) {
        char text[TEXT_BYTES];
        struct play play;
        struct workload_counts counts;
        uint64_t experts[2];
        step_text(text, steps[i].mesh, steps[i].workload, steps[i].step);
        play_run(&play, text, &(struct play_options){.lower_only = true});
        double const flop = roles_sum(&play, experts);
        counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
        case_near(flop, counts.matmul_flop * play.program.role_count, 1e-9);
        uint64_t const passes = workload_microbatches(&play.scenario.workload);
        assert_int_equal(play.program.role_count, strlen(steps[i].experts));
        for (uint32_t r = 0; r < play.program.role_count; r++)
            if (experts[r] != (uint64_t)(steps[i].experts[r] - '0') * passes)
                fail_msg("%s: rank %u has %u passes of layers with experts", text, r,
                         (unsigned)experts[r]);
        play_close(&play);
    }
}

static void folded_steps_are_full_steps(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < STEPS; i++) {
        char text[TEXT_BYTES];
        struct play folded, full;
        step_text(text, steps[i].mesh, steps[i].workload, steps[i].step);
        play_run(&folded, text, NULL);
        play_run(&full, text, &(struct play_options){.full = true});
        assert_int_equal(folded.trace.step_ps, full.trace.step_ps);
        assert_int_equal(folded.trace.memory.peak_bytes, full.trace.memory.peak_bytes);
        play_close(&folded);
        play_close(&full);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_says_which_layers_have_experts),
        cmocka_unit_test(parameters_are_those_of_each_layer),
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(stages_have_the_layers_that_lie_there),
        cmocka_unit_test(folded_steps_are_full_steps),
    };
    return cmocka_run_group_tests_name("sparse layers", tests, case_arena_up, case_arena_down);
}
