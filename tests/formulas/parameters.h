/*
 * parameters.h: parameters of a model by closed formulas, which know nothing of graphs: a second
 * count of model_count(). A model, a fact or a bias with parameters of its own gets its terms here,
 * by hand. The counts of a step (tests/oracle) stay as they are.
 */
#ifndef TESTS_FORMULAS_PARAMETERS_H
#define TESTS_FORMULAS_PARAMETERS_H

#include "sim/graph/parameters.h"

struct model_counts formula_parameters(const struct model *model);

/* Weights of a layer in no matrix and no norm: biases, and sinks of attention. */
uint64_t formula_attention_vectors(const struct model *model);
uint64_t formula_mlp_biases(const struct model *model);
uint64_t formula_shared_biases(const struct model *model);

#endif
