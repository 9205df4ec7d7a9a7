/*
 * sharding.h: how an array lies on a mesh, in the book's notation (chapter 3), and which
 * collectives a product of two sharded arrays needs.
 *
 *   A[I_XY, J] {U_Z}   I is split over X and Y (X is the slower), J is not split, and what each
 *                      chip holds is a partial sum that is still to be reduced over Z.
 *
 * A mesh axis is one letter. It may appear once in an array: on a dimension or as unreduced.
 */
#ifndef SIM_MESH_SHARDING_H
#define SIM_MESH_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum {
    SHARDING_AXES_MAX = 5,
    SHARDING_DIMENSIONS_MAX = 4,
    SHARDING_NAME_BYTES = 24,
    SHARDING_TEXT_BYTES = 128,
};

struct sharding_mesh {
    uint32_t axis_count;
    char letter[SHARDING_AXES_MAX];
    uint32_t size[SHARDING_AXES_MAX];
};

struct sharding_dimension {
    char name[SHARDING_NAME_BYTES]; /* "D" */
    uint64_t size;
    uint8_t axis[SHARDING_AXES_MAX]; /* Indices into the mesh, slowest first. */
    uint8_t axis_count;
};

struct sharding {
    char name[SHARDING_NAME_BYTES]; /* "W_in" */
    struct sharding_dimension dimension[SHARDING_DIMENSIONS_MAX];
    uint32_t dimension_count;
    uint32_t unreduced; /* A bit an axis. */
};

/* Sizes of dimensions by name; ended by a NULL name. */
struct sharding_size {
    const char *name;
    uint64_t size;
};

/* Reads "W_in[D_X, F_Y] {U_X}". Refused with `where`: bad notation, an axis that the mesh does not
 * have or the array has twice, a dimension without a size. */
enum status sharding_read(const struct sharding_mesh *mesh, const struct sharding_size *sizes,
                          const char *text, const char *where, struct sharding *ret_array,
                          struct error *reterr);

/* "W_in[D_X, F_Y] {U_X}" into a buffer of SHARDING_TEXT_BYTES; returns it. */
const char *sharding_text(const struct sharding_mesh *mesh, const struct sharding *array,
                          char *buffer);
/* "[512, 2048]": what one chip holds; "[17280]" of an array that lies flat. */
const char *sharding_shape_text(const struct sharding_mesh *mesh, const struct sharding *array,
                                char *buffer);
/* "XY" for a set of axes. */
const char *sharding_axes_text(const struct sharding_mesh *mesh, uint32_t axes, char *buffer);

/* Whether ranks do not divide a dimension that they split: such an array lies flat, without its
 * dimensions, padded so that each rank has equally many elements. */
bool sharding_is_flat(const struct sharding_mesh *mesh, const struct sharding *array);

/* Elements that one chip holds, or the most of 64 bits where they are more. An unreduced axis does
 * not divide. */
uint64_t sharding_local_elements(const struct sharding_mesh *mesh, const struct sharding *array);
uint64_t sharding_local_size(const struct sharding_mesh *mesh,
                             const struct sharding_dimension *dimension);

/* Whether an array has a dimension of a name. */
bool sharding_has(const struct sharding *array, const char *name);

/* Axes that split any dimension, a bit each. */
uint32_t sharding_axes(const struct sharding *array);
/* The array without some axes, as after an AllGather over these axes. */
struct sharding sharding_gathered(const struct sharding *array, uint32_t axes);

/*
 * left · right -> wanted, contracting the dimensions that both have and `wanted` has not. The four
 * cases of chapter 3, decided for each mesh axis by itself:
 *   1  it splits no contracted dimension, and a kept dimension of one operand only: nothing to do
 *   2  it splits a contracted dimension of one operand: AllGather that operand
 *   3  it splits the contracted dimension of both: multiply partial sums, then ReduceScatter where
 *      `wanted` has the axis, else AllReduce
 *   4  it splits a kept dimension of both: AllGather the one that `wanted` does not have split
 */
struct sharding_product {
    uint32_t gather_left; /* Axes, a bit each. */
    uint32_t gather_right;
    struct sharding left; /* The left operand once its axes are gathered. */
    struct sharding right;
    struct sharding result; /* Of the local product: with its unreduced axes. */
    uint32_t scatter;       /* ReduceScatter to the dimension that `wanted` has split. */
    uint32_t all_reduce;
    uint32_t gather_result;    /* The product is more split than wanted. */
    struct sharding scattered; /* After the ReduceScatter. */
};

/* Refused: dimensions of `wanted` that no operand has. */
enum status sharding_multiply(const struct sharding_mesh *mesh, const struct sharding *left,
                              const struct sharding *right, const struct sharding *wanted,
                              struct sharding_product *ret_product, struct error *reterr);

#endif
