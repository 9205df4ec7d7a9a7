/*
 * recipe.h: recipes of fp8. A recipe says how many numbers share a scale, and which kernels find
 * the scales and cast what the products of a linear layer multiply. A new one is one file in
 * workloads/recipes, with its line in workloads/recipes.def.
 *
 * Bytes are of an element of a 16-bit array. Scales of blocks are not counted: a number for 32 or
 * 128 others. Attention, norms, routers and the head stay in 16 bits.
 */
#ifndef SIM_KERNELS_RECIPE_H
#define SIM_KERNELS_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/work.h"

/* Whose linear layers a stack of software has. */
enum recipe_library {
    RECIPE_LIBRARY_NONE, /* None that trains in fp8. */
    RECIPE_TRANSFORMER_ENGINE,
    RECIPE_TORCHAO, /* torchao's float8, compiled. */
    RECIPE_LIBRARIES,
};

/* Chips that multiply fp8. */
enum recipe_chip {
    RECIPE_CHIP_TN,     /* Operands lie as TN has them, and no other way (Hopper). */
    RECIPE_CHIP_BLOCKS, /* In any layout, and with scales of blocks in the tensor core (Blackwell).
                         */
    RECIPE_CHIPS,
};

/* Arrays that are cast, by who writes them. */
enum recipe_array {
    RECIPE_NORMED, /* What a norm gives, where its kernel belongs to the library or the compiler. */
    RECIPE_FUNCTION, /* What a gate or a function gives. */
    RECIPE_FOUND,    /* What a kernel of another library gives: attention, an exchange. */
    RECIPE_GRADIENT, /* The gradients of a product's results. */
    RECIPE_WEIGHT,
    RECIPE_ARRAYS,
};

/* Kernels one after the other, and what they read and write. */
struct recipe_cast {
    uint8_t kernels;
    uint8_t read_bytes, write_bytes;
};

/* How a library plays a recipe. */
struct recipe_way {
    bool is_there;
    bool is_default[RECIPE_CHIPS]; /* What the library does where nothing is asked for. */
    bool norms_write;              /* Kernels of norms write fp8 themselves. */
    bool two_on[RECIPE_CHIPS];     /* The gradient of weights wants second arrays: transposed, or
                                      with scales of their own. */
    bool travels;                  /* What tp gathers is cast before; else behind, as a whole. */
    bool weights_stay;             /* Weights are cast once a step; else by each pass. */
    /* Casts into the array that a forward product, or the gradient of its input, multiplies. */
    struct recipe_cast one[RECIPE_ARRAYS];
    /* Casts into that array and a second one, which the gradient of the weights multiplies. */
    struct recipe_cast both[RECIPE_ARRAYS];
    /* What makes the second array of the first one, once tp has gathered that. */
    struct recipe_cast second;
    struct recipe_cast weight_backward; /* By a backward pass, where weights do not stay. */
};

struct recipe {
    const char *name;
    const char *help;
    const char *source;
    enum work_cast cast;
    bool runs_on[RECIPE_CHIPS];
    struct recipe_way way[RECIPE_LIBRARIES];
};

/* The place of a recipe in the list; NULL past its end. */
const struct recipe *recipe_at(uint32_t index);
const char *recipe_library_name(enum recipe_library library);

#define RECIPE(name) extern const struct recipe recipe_##name;
#include "workloads/recipes.def"
#undef RECIPE

#endif
