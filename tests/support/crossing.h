/*
 * crossing.h: where the bare MLP of the book turns from compute bound to communication bound,
 * played.
 *
 * What is measured is one more layer in the middle of the step: the difference between 16 layers
 * and 8, so that the first gather and the last reduction, which no schedule hides, are left out.
 * With few tokens a layer takes as long as its collectives: a constant, since weights do not depend
 * on tokens. With many it takes as long as its math: a line through 0. The crossing is where that
 * line meets that constant, found by bisection over tokens a chip and a straight line between the
 * last two (token rows are padded to 8, so math is a staircase otherwise).
 */
#ifndef TESTS_SUPPORT_CROSSING_H
#define TESTS_SUPPORT_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

enum { CROSSING_LAYERS = 8, CROSSING_ROWS = 8 };

struct crossing_setup {
    const char *name;
    const char *machine; /* What stands in the braces of /machine, less the profile. */
    const char *mesh;
    const char *gather;
    uint32_t chips;
    uint64_t width, mlp_width;
    uint64_t tokens_max; /* A chip: more than the crossing can be. */
    const char *offload; /* NULL: nothing. */
};

struct crossing_pass {
    double time_s;
    double math_s;
};

struct crossing_step {
    struct crossing_pass forward;
    struct crossing_pass backward; /* Its time is all that follows the forward pass. */
    struct crossing_pass whole;
    double over_math; /* The step over the MXU's share of it. */
};

/* `tokens` and `mlp_width` of the whole machine and model; `layers` of the whole step. */
struct crossing_step crossing_played(const struct crossing_setup *setup, uint64_t tokens,
                                     uint64_t mlp_width, uint32_t layers, bool collective_matmul);

/* One more layer, in the middle. */
struct crossing_step crossing_layer(const struct crossing_setup *setup, uint64_t tokens,
                                    uint64_t mlp_width, bool collective_matmul);

enum crossing_of { CROSSING_FORWARD, CROSSING_BACKWARD, CROSSING_WHOLE };

/* Tokens a chip at which a layer's math takes as long as its collectives. */
double crossing_tokens(const struct crossing_setup *setup, enum crossing_of of);

/* Prints both; fails if the relative difference is larger than the tolerance. */
void crossing_assert_near(const char *what, double wanted, double got, double tolerance);

#endif
