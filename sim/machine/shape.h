/*
 * shape.h: which grids a product can be sliced into, what its names mean, and which axes wrap.
 *
 * Sources: the book, chapter 2, TPU Networking (pods, cubes, wraparound), and the slices that
 * the chip's file lists from the product's documentation. Axes may be named in any order, since a
 * slice can be turned; what counts is the lengths.
 */
#ifndef SIM_MACHINE_SHAPE_H
#define SIM_MACHINE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/chip.h"

struct shape {
    uint32_t axis_count;
    uint32_t length[CHIP_AXES_MAX]; /* 1 beyond axis_count. */
    bool twisted;                   /* The short axes wrap around shifted along the long ones. */
};

enum { SHAPE_TEXT_BYTES = 40 };

/* "x", "y", "z" */
const char *shape_axis_name(uint32_t axis);

/* "16x16x16": one to three lengths of at least 1; "4x4x8_twisted". */
enum status shape_parse(const char *text, const char *where, struct shape *ret_shape,
                        struct error *reterr);

/* Prints into `buffer` of SHAPE_TEXT_BYTES and returns it. */
const char *shape_text(char *buffer, const struct shape *shape);

uint64_t shape_chip_count(const struct shape *shape);

/* Refuses a shape that the product cannot be sliced into, with the nearest one that it can. */
enum status shape_check(const struct chip *chip, const struct shape *shape, const char *where,
                        struct error *reterr);

/* The slice that a product name with this number of chips means: the one that is sold under it,
 * else the box of whole cubes nearest to a cube (Cloud TPU documentation, types and topologies:
 * the default topology is the one most similar to a cube). False: there is none. */
bool shape_standard(const struct chip *chip, uint64_t chip_count, struct shape *ret_shape);

/* The smallest slice of at least that number of chips; false: there is none. */
bool shape_smallest(const struct chip *chip, uint64_t chip_count, struct shape *ret_shape);

/* The standard slice of a product's name: `units` stand behind its dash, in the product's units. */
enum status shape_of_product(const struct chip *chip, uint64_t units, const char *name,
                             const char *where, struct shape *ret_shape, struct error *reterr);

/* The product's rule, whether or not the shape is one of its slices. */
bool shape_wraps(const struct chip *chip, const struct shape *shape, uint32_t axis);

/* Whether the shape has the proportions of a twisted torus, k x k x 2k or k x 2k x 2k, in any
 * order: those whose graph is the same seen from every chip along every axis (Camarero, Martinez,
 * Beivide, Lattice graphs for high-scale interconnection topologies, IEEE TPDS 2015; Jouppi et al.,
 * TPU v4, ISCA 2023). */
bool shape_may_twist(const struct shape *shape);

/* Whether the shape is made of whole cubes of CHIP_WRAP_CUBES. */
bool shape_is_cubes(const struct chip *chip, const struct shape *shape);

#endif
