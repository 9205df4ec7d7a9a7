/* A norm behind the embedding: formulas and programs agree for every combination of mesh, remat,
 * gather, ZeRO stage, accumulation, order and formats, whatever the blocks are; the norm is all
 * that a model has more, in training and in inference; pipelines compute its gradient whether or
 * not their backward passes are halved; and weights travel with the matrix. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/vector.h"
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/unit/blocks_case.h"
#include "tests/unit/config_case.h"

static void normed_set(struct model *model, uint32_t kind)
{
    model->norms.embedding = true;
    blocks_kind_set(model, kind);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(normed_set, BLOCKS_KINDS);
}

/* LLaMA-3-70B on 4 x 4 x 4: each of 4 ranks of tp has a quarter of each row of 1/16 of the tokens.
 */
static uint64_t const elements = (UINT64_C(1) << 20) / 16 * 8192 / 4;

/* What a pass of the embedding asks for, and what the forward pass leaves for the gradient. */
struct passed {
    struct blocks_sums sums;
    uint64_t kept_bytes;
};

static struct passed pass_of(const struct workload_case *made, bool backward)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    static struct graph_steps steps;
    struct passed passed = {.kept_bytes = 0};
    graph_ranks(&made->plan, &made->machine, &made->mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct graph_case *of = &cases.part[i];
        struct graph_request const request = {.backward = backward};
        if (of->which.part != BLOCK_EMBEDDING) continue;
        graph_steps(&of->sharded, &of->backward, &of->kept, request, &steps);
        passed.kept_bytes = graph_kept_bytes(&of->sharded, &of->kept);
        for (uint32_t s = 0; s < steps.count; s++) {
            const struct graph_step *step = &steps.step[s];
            passed.sums.vector_flop += step->work.vector_flop;
            passed.sums.hbm_bytes += step->work.hbm_read_bytes + step->work.hbm_write_bytes;
            passed.sums.computes += step->is_compute;
            passed.sums.collectives += !step->is_compute;
            passed.sums.collective_bytes += step->is_compute ? 0 : step->move.bytes;
        }
    }
    return passed;
}

/* The norm reads rows and writes their norm; its gradient reads both the rows, which stay for it
 * whatever layers repeat, and what comes from the first layer, and writes one array. */
static void one_norm_is_all_that_an_embedding_has_more(void **state)
{
    static const uint64_t arrays[] = {2, 3};
    static const uint64_t flop[] = {VECTOR_NORM_ALONE, VECTOR_NORM_ALONE_BACKWARD};
    (void)state;
    for (uint32_t variant = 0; variant < 10; variant++) {
        uint32_t const backward = variant % 2;
        struct workload_case made;
        blocks_build(&made, 1, normed_set, BLOCKS_SERIAL);
        made.plan.remat = (enum graph_remat)(variant / 2);
        struct passed const normed = pass_of(&made, backward == 1);
        made.plan.model.norms.embedding = false;
        struct passed const plain = pass_of(&made, backward == 1);
        assert_int_equal(normed.sums.vector_flop - plain.sums.vector_flop,
                         flop[backward] * elements);
        assert_int_equal(normed.sums.hbm_bytes - plain.sums.hbm_bytes,
                         2 * arrays[backward] * elements);
        assert_int_equal(normed.sums.computes, plain.sums.computes + 1);
        assert_int_equal(normed.sums.collectives, plain.sums.collectives);
        assert_int_equal(normed.sums.collective_bytes, plain.sums.collective_bytes);
        assert_int_equal(normed.kept_bytes, 2 * elements);
        assert_int_equal(plain.kept_bytes, 0);
        case_free(&made);
    }
}

/* A decode of 64 sequences: each of 16 data ranks has 4 of them, each rank of tp a quarter of a
 * row. Nothing is kept. */
static void rows_of_new_tokens_are_normed_too(void **state)
{
    uint64_t const few = 4 * 8192 / 4;
    struct passed passed[2];
    (void)state;
    for (uint32_t normed = 0; normed < 2; normed++) {
        struct workload_case made;
        blocks_build(&made, 1, normed_set, BLOCKS_SERIAL);
        made.plan.model.norms.embedding = normed == 1;
        blocks_decode(&made);
        passed[normed] = pass_of(&made, false);
        case_free(&made);
    }
    assert_int_equal(passed[1].sums.vector_flop - passed[0].sums.vector_flop,
                     VECTOR_NORM_ALONE * few);
    assert_int_equal(passed[1].sums.hbm_bytes - passed[0].sums.hbm_bytes, 2 * 2 * few);
    assert_int_equal(passed[1].sums.computes, passed[0].sums.computes + 1);
    assert_int_equal(passed[1].kept_bytes, 0);
}

/* The bucket of the embedding holds what the model counts, biases of the norm included. */
static void weights_travel_with_the_matrix(void **state)
{
    (void)state;
    for (uint32_t biases = 0; biases < 2; biases++) {
        struct workload_case made;
        static struct ranks ranks;
        blocks_build(&made, 0, normed_set, BLOCKS_SERIAL);
        made.plan.model.norms.biases = biases;
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        struct model_counts const counts = model_count(&made.plan.model);
        assert_int_equal(counts.norm_embedding, (1 + biases) * made.plan.model.width);
        assert_int_equal(ranks.end[BLOCK_EMBEDDING].bucket.elements,
                         counts.embedding + counts.norm_embedding);
        case_free(&made);
    }
}

/* Computes of a template of the embedding, what its effects leave in memory, and whether the first
 * compute waits for something. */
struct template_sums {
    uint32_t computes;
    int64_t left;
    bool waits;
};

static struct template_sums template_sums_of(const struct program *program, const char *name)
{
    struct template_sums sums = {0};
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        if (strcmp(template->name, name) != 0) continue;
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            bool const compute = op->kind == PROGRAM_OP_COMPUTE;
            if (compute && sums.computes++ == 0) sums.waits = op->need_count > 0;
            for (uint32_t e = 0; e < op->effect_count; e++)
                if (op->effect[e].memory == PROGRAM_MEMORY_ACTIVATIONS)
                    sums.left += op->effect[e].bytes;
        }
        return sums;
    }
    fail_msg("no template is called %s", name);
    return sums;
}

/* No stage waits for gradients of the embedding, so where backward passes are halved all of them
 * come in the second half. The first stage has no layers: what the norm waits for are messages. */
static void pipelines_compute_the_gradient(void **state)
{
    static const struct {
        const char *schedule, *backward;
    } rows[] = {{"1f1b", "embedding backward"}, {"zb-h1", "embedding weight gradient"}};
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct play play;
        char text[1024];
        (void)snprintf(
            text, sizeof text,
            "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 4, "
            "\"profile\": \"ideal\"}, \"mesh\": {\"pp\": [\"node\"], \"tp\": [\"gpu\"]}, "
            "\"workload\": {\"kind\": \"train_step\", \"model\": "
            "\"tests/property/norms-embedding.json\", \"batch_tokens\": 65536, "
            "\"sequence_length\": 1024, \"accumulate\": 8, \"layout\": \"E|ttt|ttt|ttL\", "
            "\"schedule\": \"%s\"}}",
            rows[r].schedule);
        play_run(&play, text, &lower_only);
        struct template_sums const forward = template_sums_of(&play.program, "embedding forward");
        struct template_sums const backward = template_sums_of(&play.program, rows[r].backward);
        assert_int_equal(forward.computes, 2);
        assert_int_equal(backward.computes, 2);
        assert_true(backward.waits);
        assert_int_equal(forward.left, 65536 / 8 * 512 / 8 * 2); /* A rank has 1/8 of each row. */
        assert_int_equal(backward.left, -forward.left);
        play_close(&play);
    }
}

/* Published: the model cards of BLOOM on Hugging Face; bloom-1b1's count is the sum of the tensors
 * of its checkpoint. */
static void bloom_has_the_published_counts(void **state)
{
    static const struct {
        uint64_t width, layers, heads, parameters;
    } published[] = {
        {1024, 24, 16, 559214592},  {1536, 24, 16, 1065314304}, {2048, 24, 16, 1722408960},
        {2560, 30, 32, 3002557440}, {4096, 30, 32, 7069016064}, {14336, 70, 112, 176247271424},
    };
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const char *config = arena_format(
            case_arena,
            "{\"model_type\": \"bloom\", \"hidden_size\": %llu, \"n_layer\": %llu, "
            "\"n_head\": %llu, \"n_inner\": null, \"offset_alibi\": 100, \"seq_length\": 2048, "
            "\"skip_bias_add\": true, \"vocab_size\": 250880}",
            (unsigned long long)published[i].width, (unsigned long long)published[i].layers,
            (unsigned long long)published[i].heads);
        struct model const model = config_model(config);
        assert_int_equal(model_count(&model).total, published[i].parameters);
        assert_true(model.norms.embedding && model.tied && model.attends.biases_scores);
        assert_false(model_rotates(&model));
    }
}

/* BloomConfig takes `n_embed` before `hidden_size`, and names of its own or everyone's for the
 * rest. It knows no other width of the MLP than four times the model's. */
static void sizes_have_either_name(void **state)
{
    static const char *const configs[] = {
        "{\"model_type\": \"bloom\", \"n_embed\": 512, \"n_layer\": 2, "
        "\"num_attention_heads\": 8, \"vocab_size\": 1000}",
        "{\"model_type\": \"bloom\", \"hidden_size\": 512, \"num_hidden_layers\": 2, "
        "\"n_head\": 8, \"vocab_size\": 1000}",
        "{\"model_type\": \"bloom\", \"n_embed\": 512, \"hidden_size\": 64, \"n_layer\": 2, "
        "\"n_head\": 8, \"n_inner\": 1024, \"vocab_size\": 1000}",
    };
    struct model const first = config_model(configs[0]);
    (void)state;
    assert_int_equal(first.width, 512);
    assert_int_equal(first.mlp_width, 2048);
    assert_int_equal(first.head_width, 64);
    for (size_t i = 1; i < sizeof configs / sizeof *configs; i++) {
        struct model const model = config_model(configs[i]);
        assert_true(model_same(&first, &model));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(one_norm_is_all_that_an_embedding_has_more),
        cmocka_unit_test(rows_of_new_tokens_are_normed_too),
        cmocka_unit_test(weights_travel_with_the_matrix),
        cmocka_unit_test(pipelines_compute_the_gradient),
        cmocka_unit_test(bloom_has_the_published_counts),
        cmocka_unit_test(sizes_have_either_name),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
