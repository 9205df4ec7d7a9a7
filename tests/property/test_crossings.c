/*
 * Where the bare MLP of the book turns from compute bound to communication bound on a torus, played
 * (tests/support/crossing.h says how), beside the exact finite form of the book's rule (chapter 5,
 * 5.1).
 *
 * The exact form counts what the book drops: (N-1)/N of each array, and the hops of each gather,
 * as they follow one another on the ring: tokens = (C/W)/M_X·(N-1)/N/Y + hops·(token's math)^-1.
 * The forward pass meets it when each matrix is gathered by itself, as the book's listing does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/crossing.h"

static const double math_flop_per_s = 459e12; /* v5p, bf16 */
static const double width = 8192, mlp_width = 32768;

#define V5P "\"chip\": \"tpu-v5p\", \"shape\": "
#define WHAT_IF ", \"unrealisable\": true, \"wrap\": "
#define SIZES 8192, 32768, 8192, NULL /* D, F; no crossing lies beyond so many tokens a chip. */

static const struct crossing_setup rings[] = {
    {"16", V5P "\"16\"" WHAT_IF "{\"x\": true}", "{\"fsdp\": [\"x\"]}", "tensor", 16, SIZES},
    {"16x16", V5P "\"16x16\"" WHAT_IF "{\"x\": true, \"y\": true}", "{\"fsdp\": [\"x\", \"y\"]}",
     "tensor", 256, SIZES},
    {"16x16x16", V5P "\"16x16x16\"", "{\"fsdp\": [\"x\", \"y\", \"z\"]}", "tensor", 4096, SIZES},
};
/* The exact finite forms, and the book's. */
static const double exact_tokens[] = {2397, 1284, 870};
static const uint64_t book_tokens[] = {2550, 1275, 850};
static const double alpha = 459e12 / 180e9; /* C/W */
static const double hop_s = 1e-6;

/* alpha/M·(N-1)/N tokens for the bytes, and for the hops of two gathers as many as multiply in that
 * time: where the numbers above come from. */
static void the_exact_form_is_the_books_with_a_finite_ring_and_its_hops(void **state)
{
    (void)state;
    double const token_s = 4 * width * mlp_width / math_flop_per_s;
    for (uint32_t axes = 1; axes <= 3; axes++) {
        double const chips = rings[axes - 1].chips;
        double const tokens = alpha / axes * (chips - 1) / chips + 2 * 8 * axes * hop_s / token_s;
        crossing_assert_near(rings[axes - 1].name, exact_tokens[axes - 1], tokens, 0.0005);
        crossing_assert_near("the book's", (double)book_tokens[axes - 1], alpha / axes, 1e-9);
    }
}

static void the_forward_pass_of_fsdp_crosses_where_the_exact_form_says(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        crossing_assert_near(rings[i].name, exact_tokens[i],
                             crossing_tokens(&rings[i], CROSSING_FORWARD), 0.001);
}

/* Of the whole step: backward gathers and reduces at once, so the hops of one hide behind the bytes
 * of the other, and W_in and W_out travel together, which leaves at most 17 tokens' worth of hops
 * out; and math has the optimizer's update in it, 2 % of a layer where only 16 chips share it. */
static void the_whole_step_of_fsdp_crosses_within_three_percent_of_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct crossing_setup together = rings[i];
        together.gather = "block";
        crossing_assert_near(together.name, exact_tokens[i],
                             crossing_tokens(&together, CROSSING_WHOLE), 0.03);
    }
}

/* The crossing is a knee: below it a layer takes longer than its math, above it does not. */
static void fsdp_is_bound_by_communication_below_the_crossing_and_by_math_above(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        double const tokens = exact_tokens[i];
        uint64_t const below = (uint64_t)(0.9 * tokens), above = (uint64_t)(1.1 * tokens);
        struct crossing_pass const few =
            crossing_layer(&rings[i], below * rings[i].chips, (uint64_t)mlp_width, true).forward;
        struct crossing_pass const many =
            crossing_layer(&rings[i], above * rings[i].chips, (uint64_t)mlp_width, true).forward;
        assert_true(few.time_s > 1.09 * few.math_s);
        assert_true(many.time_s < 1.001 * many.math_s);
    }
}

/* 8 layers, whole, at the book's own number: above the math stand the first gather, the last
 * reduction, and tiles and updates that HBM has to carry. */
static void at_the_books_batch_the_step_takes_little_more_than_its_math(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct crossing_step const step =
            crossing_played(&rings[i], book_tokens[i] * rings[i].chips, (uint64_t)mlp_width,
                            CROSSING_LAYERS, false);
        print_message("    %-44s step/math %.4f\n", rings[i].name, step.over_math);
        assert_true(step.over_math > 1.005 && step.over_math < 1.04);
    }
}

/* TP over a ring of 16: F* = 16·2,560, about 16·C/W. Chunk by chunk the gathers and reductions hide
 * behind the matmuls from F* on, but for the first chunk of each; one after the other they do not
 * at any width. The whole forward pass, and without it one more layer in the middle. */
static void tensor_parallelism_crosses_at_the_books_width(void **state)
{
    (void)state;
    static const struct crossing_setup ring = {
        "16", V5P "\"16\"" WHAT_IF "{\"x\": true}", "{\"tp\": [\"x\"]}", "block", 16, SIZES};
    static const struct {
        const char *name;
        uint64_t f;
        bool collective_matmul;
        double ratio;
    } wanted[] = {{"F = 0.75 F*, collective matmul", 30720, true, 1.36},
                  {"F = F*, collective matmul", 40960, true, 1.06},
                  {"F = 2 F*, collective matmul", 81920, true, 1.00},
                  {"F = F*", 40960, false, 1.94}};
    uint64_t const tokens = 16384;
    for (uint32_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct crossing_pass const pass =
            crossing_layer(&ring, tokens, wanted[i].f, wanted[i].collective_matmul).forward;
        double const math_s =
            4 * (double)tokens * width * (double)wanted[i].f / ring.chips / math_flop_per_s;
        crossing_assert_near(wanted[i].name, wanted[i].ratio, pass.time_s / math_s, 0.005);
    }
}

static const struct crossing_setup splits[] = {
    {"4x4x4", V5P "\"4x4x4\"", "{\"fsdp\": [\"x\", \"y\", \"z\"]}", "block", 64, SIZES},
    {"4x4x4", V5P "\"4x4x4\"", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", "block", 64, SIZES},
    {"4x4x4", V5P "\"4x4x4\"", "{\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]}", "block", 64, SIZES},
    {"4x4x4", V5P "\"4x4x4\"", "{\"tp\": [\"x\", \"y\", \"z\"]}", "block", 64, SIZES},
};

/* 2550/(2·4)·15/16 = 298.8 tokens, and 3.4 for two gathers of 4 hops each; the book has 319. */
static void fsdp_with_tp_crosses_at_302_tokens(void **state)
{
    (void)state;
    struct crossing_setup apart = splits[1];
    apart.gather = "tensor";
    crossing_assert_near("4x4x4 as 16x4, a matrix at a time", 302,
                         crossing_tokens(&apart, CROSSING_FORWARD), 0.005);
    crossing_assert_near("4x4x4 as 16x4, a block at a time", 302,
                         crossing_tokens(&splits[1], CROSSING_FORWARD), 0.03);
}

static void sixteen_by_four_is_the_fastest_split_of_a_cube(void **state)
{
    (void)state;
    static const char *const names[] = {"64x1", "16x4", "4x16", "1x64"};
    double time_s[4];
    for (uint32_t i = 0; i < 4; i++) {
        time_s[i] = crossing_played(&splits[i], 49152, (uint64_t)mlp_width, CROSSING_LAYERS, true)
                        .whole.time_s;
        print_message("    %-44s %.4f ms\n", names[i], 1e3 * time_s[i]);
    }
    for (uint32_t i = 0; i < 4; i++) assert_true(i == 1 || time_s[i] > time_s[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exact_form_is_the_books_with_a_finite_ring_and_its_hops),
        cmocka_unit_test(the_forward_pass_of_fsdp_crosses_where_the_exact_form_says),
        cmocka_unit_test(the_whole_step_of_fsdp_crosses_within_three_percent_of_it),
        cmocka_unit_test(fsdp_is_bound_by_communication_below_the_crossing_and_by_math_above),
        cmocka_unit_test(at_the_books_batch_the_step_takes_little_more_than_its_math),
        cmocka_unit_test(tensor_parallelism_crosses_at_the_books_width),
        cmocka_unit_test(fsdp_with_tp_crosses_at_302_tokens),
        cmocka_unit_test(sixteen_by_four_is_the_fastest_split_of_a_cube),
    };
    return cmocka_run_group_tests_name("crossings", tests, NULL, NULL);
}
