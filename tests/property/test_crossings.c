/*
 * Where the bare MLP of the book turns from compute bound to communication bound, played, beside
 * the exact finite form of the book's rule (chapter 5, 5.1).
 *
 * What is measured is one more layer in the middle of the step: the difference between 16 layers
 * and 8, so that the first gather and the last reduction, which no schedule hides, are left out.
 * With few tokens a layer takes as long as its collectives: a constant, since weights do not depend
 * on tokens. With many it takes as long as its math: a line through 0. The crossing is where that
 * line meets that constant, found by bisection over tokens a chip and a straight line between the
 * last two (token rows are padded to 8, so math is a staircase otherwise).
 *
 * The exact form counts what the book drops: (N-1)/N of each array, and the hops of each gather,
 * as they follow one another on the ring: tokens = (C/W)/M_X·(N-1)/N/Y + hops·(token's math)^-1.
 * The forward pass meets it when each matrix is gathered by itself, as the book's listing does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024, LAYERS = 8, ROWS = 8 };

static const double math_flop_per_s = 459e12; /* v5p, bf16 */
static const double width = 8192, mlp_width = 32768;

struct setup {
    const char *shape;
    const char *wrap; /* What follows the profile: "" where the product has the rings. */
    const char *mesh;
    const char *gather;
    uint32_t chips;
};

static const struct setup rings[] = {
    {"16", ", \"unrealisable\": true, \"wrap\": {\"x\": true}", "{\"fsdp\": [\"x\"]}", "tensor",
     16},
    {"16x16", ", \"unrealisable\": true, \"wrap\": {\"x\": true, \"y\": true}",
     "{\"fsdp\": [\"x\", \"y\"]}", "tensor", 256},
    {"16x16x16", "", "{\"fsdp\": [\"x\", \"y\", \"z\"]}", "tensor", 4096},
};
/* The exact finite forms, and the book's. */
static const double exact_tokens[] = {2397, 1284, 870};
static const uint64_t book_tokens[] = {2550, 1275, 850};
static const double alpha = 459e12 / 180e9; /* C/W */
static const double hop_s = 1e-6;

struct pass {
    double time_s;
    double math_s;
};

struct step {
    struct pass forward;
    struct pass whole;
    double over_math; /* The step over the MXU's share of it. */
};

static struct step played(const struct setup *setup, uint64_t tokens, uint64_t f, uint32_t layers,
                          bool collective_matmul)
{
    char text[TEXT_BYTES];
    int const length = snprintf(
        text, sizeof text,
        "{\"podsim\": 1, \"title\": \"crossing\", \"machine\": {\"chip\": \"tpu-v5p\", "
        "\"shape\": \"%s\", \"profile\": \"ideal\"%s}, \"mesh\": %s, \"workload\": {\"kind\": "
        "\"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 8192, \"F\": %llu, \"layers\": %u, "
        "\"matrices\": 2}, \"batch_tokens\": %llu, \"gather\": \"%s\", "
        "\"allow_oversubscription\": true}, \"run\": {\"collective_matmul\": %s}}",
        setup->shape, setup->wrap, setup->mesh, (unsigned long long)f, layers,
        (unsigned long long)tokens, setup->gather, collective_matmul ? "true" : "false");
    assert_true(length > 0 && length < TEXT_BYTES);
    struct play play;
    play_run(&play, text, NULL);
    const struct trace_phase *forward = &play.trace.phase[PROGRAM_PHASE_FORWARD];
    double const second = (double)TIME_PS_PER_S;
    struct step const step = {
        .forward = {(double)(forward->end_ps - forward->begin_ps) / second,
                    (double)forward->compute_ps / second},
        .whole = {(double)play.trace.step_ps / second, (double)play.trace.compute_ps / second},
        .over_math = (double)play.trace.step_ps / second / play.roofline.math_s,
    };
    play_close(&play);
    return step;
}

static struct pass difference(struct pass more, struct pass less)
{
    return (struct pass){(more.time_s - less.time_s) / LAYERS,
                         (more.math_s - less.math_s) / LAYERS};
}

/* One more layer, in the middle. */
static struct step layer(const struct setup *setup, uint64_t tokens, uint64_t f,
                         bool collective_matmul)
{
    struct step const less = played(setup, tokens, f, LAYERS, collective_matmul);
    struct step const more = played(setup, tokens, f, 2 * LAYERS, collective_matmul);
    return (struct step){.forward = difference(more.forward, less.forward),
                         .whole = difference(more.whole, less.whole)};
}

static double gap_s(const struct setup *setup, uint64_t tokens, bool forward,
                    double communication_s)
{
    struct step const at = layer(setup, tokens * setup->chips, (uint64_t)mlp_width, true);
    return (forward ? at.forward.math_s : at.whole.math_s) - communication_s;
}

/* Tokens a chip at which a layer's math takes as long as its collectives. */
static double crossing(const struct setup *setup, bool forward)
{
    struct step const few = layer(setup, (uint64_t)ROWS * setup->chips, (uint64_t)mlp_width, true);
    double const communication_s = forward ? few.forward.time_s : few.whole.time_s;
    uint64_t low = 1, high = 1024; /* In rows of 8. */
    while (high - low > 1) {
        uint64_t const middle = (low + high) / 2;
        if (gap_s(setup, middle * ROWS, forward, communication_s) < 0)
            low = middle;
        else
            high = middle;
    }
    double const below = gap_s(setup, low * ROWS, forward, communication_s);
    double const above = gap_s(setup, high * ROWS, forward, communication_s);
    assert_true(below < 0 && above >= 0);
    return ROWS * ((double)low + below / (below - above));
}

static void assert_near(const char *what, double wanted, double got, double tolerance)
{
    print_message("    %-44s exact %9.4f  played %9.4f  %+.2f %%\n", what, wanted, got,
                  100 * (got / wanted - 1));
    if (got < wanted * (1 - tolerance) || got > wanted * (1 + tolerance))
        fail_msg("%s: %.4f is not within %.1f %% of %.4f", what, got, 100 * tolerance, wanted);
}

/* alpha/M·(N-1)/N tokens for the bytes, and for the hops of two gathers as many as multiply in that
 * time: where the numbers above come from. */
static void the_exact_form_is_the_books_with_a_finite_ring_and_its_hops(void **state)
{
    (void)state;
    double const token_s = 4 * width * mlp_width / math_flop_per_s;
    for (uint32_t axes = 1; axes <= 3; axes++) {
        double const chips = rings[axes - 1].chips;
        double const tokens = alpha / axes * (chips - 1) / chips + 2 * 8 * axes * hop_s / token_s;
        assert_near(rings[axes - 1].shape, exact_tokens[axes - 1], tokens, 0.0005);
        assert_near("the book's", (double)book_tokens[axes - 1], alpha / axes, 1e-9);
    }
}

static void the_forward_pass_of_fsdp_crosses_where_the_exact_form_says(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        assert_near(rings[i].shape, exact_tokens[i], crossing(&rings[i], true), 0.001);
}

/* Of the whole step: backward gathers and reduces at once, so the hops of one hide behind the bytes
 * of the other, and W_in and W_out travel together, which leaves at most 17 tokens' worth of hops
 * out; and math has the optimizer's update in it, 2 % of a layer where only 16 chips share it. */
static void the_whole_step_of_fsdp_crosses_within_three_percent_of_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct setup together = rings[i];
        together.gather = "block";
        assert_near(together.shape, exact_tokens[i], crossing(&together, false), 0.03);
    }
}

/* The crossing is a knee: below it a layer takes longer than its math, above it does not. */
static void fsdp_is_bound_by_communication_below_the_crossing_and_by_math_above(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        double const tokens = exact_tokens[i];
        uint64_t const below = (uint64_t)(0.9 * tokens), above = (uint64_t)(1.1 * tokens);
        struct pass const few =
            layer(&rings[i], below * rings[i].chips, (uint64_t)mlp_width, true).forward;
        struct pass const many =
            layer(&rings[i], above * rings[i].chips, (uint64_t)mlp_width, true).forward;
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
        struct step const step =
            played(&rings[i], book_tokens[i] * rings[i].chips, (uint64_t)mlp_width, LAYERS, false);
        print_message("    %-44s step/math %.4f\n", rings[i].shape, step.over_math);
        assert_true(step.over_math > 1.005 && step.over_math < 1.04);
    }
}

/* TP over a ring of 16: F* = 16·2,560, about 16·C/W. Chunk by chunk the gathers and reductions hide
 * behind the matmuls from F* on, but for the first chunk of each; one after the other they do not
 * at any width. The whole forward pass, and without it one more layer in the middle. */
static void tensor_parallelism_crosses_at_the_books_width(void **state)
{
    (void)state;
    static const struct setup ring = {"16", ", \"unrealisable\": true, \"wrap\": {\"x\": true}",
                                      "{\"tp\": [\"x\"]}", "block", 16};
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
        struct pass const pass =
            layer(&ring, tokens, wanted[i].f, wanted[i].collective_matmul).forward;
        double const math_s =
            4 * (double)tokens * width * (double)wanted[i].f / ring.chips / math_flop_per_s;
        assert_near(wanted[i].name, wanted[i].ratio, pass.time_s / math_s, 0.005);
    }
}

static const struct setup splits[] = {
    {"4x4x4", "", "{\"fsdp\": [\"x\", \"y\", \"z\"]}", "block", 64},
    {"4x4x4", "", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", "block", 64},
    {"4x4x4", "", "{\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]}", "block", 64},
    {"4x4x4", "", "{\"tp\": [\"x\", \"y\", \"z\"]}", "block", 64},
};

/* 2550/(2·4)·15/16 = 298.8 tokens, and 3.4 for two gathers of 4 hops each; the book has 319. */
static void fsdp_with_tp_crosses_at_302_tokens(void **state)
{
    (void)state;
    struct setup apart = splits[1];
    apart.gather = "tensor";
    assert_near("4x4x4 as 16x4, a matrix at a time", 302, crossing(&apart, true), 0.005);
    assert_near("4x4x4 as 16x4, a block at a time", 302, crossing(&splits[1], true), 0.03);
}

static void sixteen_by_four_is_the_fastest_split_of_a_cube(void **state)
{
    (void)state;
    static const char *const names[] = {"64x1", "16x4", "4x16", "1x64"};
    double time_s[4];
    for (uint32_t i = 0; i < 4; i++) {
        time_s[i] = played(&splits[i], 49152, (uint64_t)mlp_width, LAYERS, true).whole.time_s;
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
