/*
 * recipe.h: recipes of fp8. A recipe says how many numbers share a scale, and which kernels find
 * the scales and cast the operands of a linear layer. A new recipe is one file in
 * workloads/recipes, with its line in workloads/recipes.def.
 *
 * Bytes are per element of a 16-bit array. Scales of blocks are not counted: one number for 32 or
 * 128 elements. Attention, norms, routers and the head stay in 16 bits.
 */
#ifndef SIM_KERNELS_RECIPE_H
#define SIM_KERNELS_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/work.h"

/* The library whose linear layers a stack of software has. */
enum recipe_library {
    RECIPE_LIBRARY_NONE, /* No library that trains in fp8. */
    RECIPE_TRANSFORMER_ENGINE,
    RECIPE_TORCHAO, /* torchao's float8, compiled. */
    RECIPE_XLA,     /* Flax' products in fp8, as XLA rewrites them on GPUs. */
    RECIPE_LIBRARIES,
};

/* Chips that multiply fp8. */
enum recipe_chip {
    RECIPE_CHIP_TN,     /* Products in layout TN alone (Hopper). */
    RECIPE_CHIP_BLOCKS, /* Products in any layout, and with scales of blocks in the tensor core
                           (Blackwell). */
    RECIPE_CHIPS,
};

/* Arrays that are cast, by the kernel that writes them. */
enum recipe_array {
    RECIPE_NORMED,   /* The result of a norm whose kernel belongs to the library or its compiler. */
    RECIPE_FUNCTION, /* The result of a gate or a function. */
    RECIPE_FOUND,    /* The result of another library's kernel: attention, an exchange. */
    RECIPE_GRADIENT, /* The gradients of a product's results. */
    RECIPE_WEIGHT,
    RECIPE_ARRAYS,
};

/* Kernels that run one after the other, and what they read and write for an element. */
struct recipe_cast {
    uint8_t kernels;
    uint8_t read_bytes, write_bytes;
};

/* How a library runs a recipe. */
struct recipe_way {
    bool is_there;
    bool is_default[RECIPE_CHIPS]; /* The library's default. */
    bool norms_write;              /* Kernels of norms write fp8 themselves. */
    bool two_on[RECIPE_CHIPS]; /* The gradient of weights multiplies second arrays: transposed, or
                                  with scales of their own. */
    bool travels; /* Arrays that tp gathers are cast before the gather; else behind it, whole. */
    bool weights_stay; /* Weights are cast once a step; else by each pass. */
    /* Casts into the array that a forward product, or the gradient of its input, multiplies. */
    struct recipe_cast one[RECIPE_ARRAYS];
    /* Casts into that array and a second one, for the gradient of the weights. */
    struct recipe_cast both[RECIPE_ARRAYS];
    /* Kernels that make the second array of the first one, once tp has gathered the first one. */
    struct recipe_cast second;
    /* Casts of weights in a backward pass, unless `weights_stay`. */
    struct recipe_cast weight_backward;
};

struct recipe {
    const char *name;
    const char *help;
    const char *source;
    enum work_cast cast;
    bool runs_on[RECIPE_CHIPS];
    struct recipe_way way[RECIPE_LIBRARIES];
};

/* The recipe at a place in the list; NULL past the end of the list. */
const struct recipe *recipe_at(uint32_t index);
const char *recipe_library_name(enum recipe_library library);

#define RECIPE(name) extern const struct recipe recipe_##name;
#include "workloads/recipes.def"
#undef RECIPE

#endif
