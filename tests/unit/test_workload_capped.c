/* Capped scores and logits: formulas and programs agree for every combination of mesh, remat,
 * gather, ZeRO stage, accumulation, order and formats, whatever the blocks are; the vector unit
 * caps each score and each logit, backward once more with its gradient; and where scores lie in
 * HBM, a kernel of its own caps them. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/counts.h"
#include "tests/unit/blocks_case.h"

static void capped_set(struct model *model, uint32_t kind)
{
    model->attends.caps_scores = model->caps_logits = true;
    blocks_kind_set(model, kind);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(capped_set, BLOCKS_KINDS);
}

/* LLaMA-3-70B on 4 x 4 x 4: each of 4 ranks of tp has 16 heads of 1/16 of the tokens. */
static uint64_t const scores = (UINT64_C(1) << 20) / 16 * 8192 * 16;

/* What a layer has more with caps than without. */
static struct blocks_sums more_of(enum workload_kernel kernel, enum graph_remat remat,
                                  bool backward)
{
    struct workload_case made;
    struct blocks_layer layer;
    blocks_build(&made, 1, capped_set, BLOCKS_SERIAL);
    made.plan.remat = remat;
    made.plan.attention.kernel = kernel;
    made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
    blocks_derive(&made, &layer);
    struct blocks_sums const capped = blocks_sums_of(&layer, backward);
    made.plan.model.attends.caps_scores = false;
    blocks_derive(&made, &layer);
    struct blocks_sums const plain = blocks_sums_of(&layer, backward);
    case_free(&made);
    return (struct blocks_sums){.flop = capped.flop - plain.flop,
                                .vector_flop = capped.vector_flop - plain.vector_flop,
                                .hbm_bytes = capped.hbm_bytes - plain.hbm_bytes,
                                .computes = capped.computes - plain.computes,
                                .collectives = capped.collectives - plain.collectives};
}

/* A flash kernel caps scores as it computes them. In HBM they are read and written once more, in
 * two bytes; backward their gradient is read and written, and the capped scores are read. */
static void each_score_is_capped(void **state)
{
    (void)state;
    enum { FORWARD = VECTOR_CAP, BACKWARD = VECTOR_CAP_BACKWARD, ALL = FORWARD + BACKWARD };
    static const struct {
        enum workload_kernel kernel;
        enum graph_remat remat;
        bool backward;
        uint64_t flop, bytes, computes; /* Of a score; of a layer. */
    } rows[] = {
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, false, FORWARD, 0, 0},
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, true, ALL, 0, 0},
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_BLOCK, true, FORWARD + ALL, 0, 0},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_NONE, false, FORWARD, 4, 1},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_NONE, true, BACKWARD, 6, 1},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_BLOCK, true, ALL, 10, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blocks_sums const more = more_of(rows[i].kernel, rows[i].remat, rows[i].backward);
        assert_int_equal(more.flop, 0);
        assert_int_equal(more.collectives, 0);
        assert_int_equal(more.vector_flop, rows[i].flop * scores);
        assert_int_equal(more.hbm_bytes, rows[i].bytes * scores);
        assert_int_equal(more.computes, rows[i].computes);
    }
}

/* The kernel of the loss gives the gradient too. */
static void each_logit_is_capped(void **state)
{
    (void)state;
    struct workload_case made;
    struct workload_counts capped, plain;
    blocks_build(&made, 1, capped_set, BLOCKS_SERIAL);
    counts_make(&made.plan, &made.machine, &made.mesh, &capped);
    made.plan.model.caps_logits = false;
    counts_make(&made.plan, &made.machine, &made.mesh, &plain);
    double const logits =
        (double)made.plan.batch_tokens / 16 * (double)made.plan.model.vocabulary / 4;
    case_near(capped.vector_flop - plain.vector_flop, (VECTOR_CAP + VECTOR_CAP_BACKWARD) * logits,
              1e-6);
    case_near(capped.hbm_bytes, plain.hbm_bytes, 1e-12);
    case_free(&made);
}

static void uncapped_set(struct model *model, uint32_t kind)
{
    capped_set(model, kind);
    model->attends.caps_scores = model->caps_logits = false;
}

/* A rank has 4 sequences, 16 heads of each, and a quarter of the vocabulary. */
static void new_tokens_are_capped_too(void **state)
{
    static const struct {
        enum block_part part;
        uint64_t values;
    } rows[] = {{BLOCK_LAYER, 4 * 1024 * 16}, {BLOCK_HEAD, 4 * 128256 / 4}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t const capped = blocks_decode_vector_flop(capped_set, rows[i].part);
        uint64_t const plain = blocks_decode_vector_flop(uncapped_set, rows[i].part);
        assert_int_equal(capped - plain, VECTOR_CAP * rows[i].values);
    }
}

/* Published: the sums of the tensors of the checkpoints of Gemma 2 on Hugging Face, of 2, 9 and 27
 * billion parameters. A cap has none. */
static void gemma_2_has_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t width, layers, heads, kv_heads, head_width, mlp_width, parameters;
    } published[] = {
        {2304, 26, 8, 4, 256, 9216, 2614341888},
        {3584, 42, 16, 8, 256, 14336, 9241705984},
        {4608, 46, 32, 16, 128, 36864, 27227128320},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        struct model model = catalogue_model("gemma-2-9b");
        assert_true(model.attends.caps_scores && model.caps_logits);
        model.width = published[i].width;
        model.layers = published[i].layers;
        model.heads = published[i].heads;
        model.kv_heads = published[i].kv_heads;
        model.head_width = published[i].head_width;
        model.mlp_width = published[i].mlp_width;
        model.by_layer.windowed = NULL;
        assert_int_equal(model_count(&model).total, published[i].parameters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(each_score_is_capped),
        cmocka_unit_test(each_logit_is_capped),
        cmocka_unit_test(new_tokens_are_capped_too),
        cmocka_unit_test(gemma_2_has_the_published_counts),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
