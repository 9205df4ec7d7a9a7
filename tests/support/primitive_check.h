/*
 * primitive_check.h: the proof on sets (sim/collective/proof.h) of one entry of the catalogue of
 * collectives, on a dimension of its own.
 */
#ifndef TESTS_SUPPORT_PRIMITIVE_CHECK_H
#define TESTS_SUPPORT_PRIMITIVE_CHECK_H

#include "sim/base/status.h"
#include "sim/collective/collective.h"

/* `size` is the number of ranks, from 2 to 64. The proof plays steps in rounds until nothing moves;
 * then each position must hold what the kind promises, each contribution exactly once, and the
 * counts of sends and arrivals must be those announced. */
enum status primitive_check(const struct primitive *primitive, uint32_t size, struct error *reterr);

#endif
