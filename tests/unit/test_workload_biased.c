/* Scores with biases by position (ALiBi): formulas and programs agree for every combination of
 * mesh, remat, gather, ZeRO stage, accumulation, order and formats, whatever the blocks are; the
 * vector unit adds a bias to each score, backward only where scores are computed again; and Q and K
 * are not rotated. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/blocks_case.h"

/* The slope · the distance, and the sum; of a score. */
enum { BIAS = 2 };

static void biased_set(struct model *model, uint32_t kind)
{
    model->attends.biases_scores = true;
    blocks_kind_set(model, kind);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(biased_set, BLOCKS_KINDS);
}

/* LLaMA-3-70B on 4 x 4 x 4: each of 4 ranks of tp has 16 heads, and 2 of K, of 1/16 of the tokens.
 */
static uint64_t const tokens = (UINT64_C(1) << 20) / 16;
static uint64_t const scores = (UINT64_C(1) << 20) / 16 * 8192 * 16;

/* The sums of a layer of which `learned` rows by position, or else biases, say the positions. */
static struct blocks_sums layer_sums(enum workload_kernel kernel, enum graph_remat remat,
                                     bool backward, bool biases, uint64_t learned)
{
    struct workload_case made;
    struct blocks_layer layer;
    blocks_build(&made, 1, biased_set, BLOCKS_SERIAL);
    made.plan.remat = remat;
    made.plan.attention.kernel = kernel;
    made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
    made.plan.model.attends.biases_scores = biases;
    made.plan.model.positions.learned = learned;
    blocks_derive(&made, &layer);
    struct blocks_sums const sums = blocks_sums_of(&layer, backward);
    case_free(&made);
    return sums;
}

/* Beside a layer that rotates nothing either. A flash kernel adds biases as it computes scores;
 * unfused, the softmax adds them as it reads scores. */
static void each_score_has_a_bias(void **state)
{
    (void)state;
    static const struct {
        enum workload_kernel kernel;
        enum graph_remat remat;
        bool backward;
        uint64_t times;
    } rows[] = {
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, false, 1},
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, true, 1},
        {WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_BLOCK, true, 2},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_NONE, false, 1},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_NONE, true, 0},
        {WORKLOAD_KERNEL_UNFUSED, GRAPH_REMAT_BLOCK, true, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blocks_sums const biased =
            layer_sums(rows[i].kernel, rows[i].remat, rows[i].backward, true, 0);
        struct blocks_sums const plain =
            layer_sums(rows[i].kernel, rows[i].remat, rows[i].backward, false, 8192);
        assert_int_equal(biased.vector_flop - plain.vector_flop, rows[i].times * BIAS * scores);
        assert_int_equal(biased.flop, plain.flop);
        assert_int_equal(biased.hbm_bytes, plain.hbm_bytes);
        assert_int_equal(biased.computes, plain.computes);
        assert_int_equal(biased.collectives, plain.collectives);
    }
}

static void queries_and_keys_are_not_rotated(void **state)
{
    (void)state;
    struct blocks_sums const biased =
        layer_sums(WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, false, true, 0);
    struct blocks_sums const rotated =
        layer_sums(WORKLOAD_KERNEL_FLASH, GRAPH_REMAT_NONE, false, false, 0);
    uint64_t const columns = (16 + 2) * 128;
    assert_int_equal(biased.vector_flop + VECTOR_ROPE * tokens * columns,
                     rotated.vector_flop + BIAS * scores);
    assert_int_equal(biased.hbm_bytes, rotated.hbm_bytes);
}

static void unbiased_set(struct model *model, uint32_t kind)
{
    biased_set(model, kind);
    model->attends.biases_scores = false;
    model->positions.learned = 8192;
}

/* A rank has 4 sequences, and 16 heads of each. */
static void scores_of_new_tokens_have_biases_too(void **state)
{
    (void)state;
    uint64_t const biased = blocks_decode_vector_flop(biased_set, BLOCK_LAYER);
    uint64_t const plain = blocks_decode_vector_flop(unbiased_set, BLOCK_LAYER);
    assert_int_equal(biased - plain, BIAS * 4 * 1024 * 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(each_score_has_a_bias),
        cmocka_unit_test(queries_and_keys_are_not_rotated),
        cmocka_unit_test(scores_of_new_tokens_have_biases_too),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
