/*
 * oracle.h: a step's counts by closed formulas alone, as workload_count() had them before a layer's
 * came from its graph: the independent second count. Frozen for the features of that day: a feature
 * that the formulas do not know is held by properties and by the program. docs/testing.md lists
 * what they have said differently since.
 */
#ifndef TESTS_ORACLE_ORACLE_H
#define TESTS_ORACLE_ORACLE_H

#include "sim/graph/parameters.h"
#include "sim/step/counts.h"

void oracle_count(const struct workload_plan *plan, const struct machine *machine,
                  const struct mesh *mesh, struct workload_counts *ret_counts);

/* Parameters, as model_count() had them before they came from graphs. */
struct model_counts oracle_model_count(const struct model *model);
uint64_t oracle_attention_vectors(const struct model *model);
uint64_t oracle_mlp_biases(const struct model *model);
uint64_t oracle_shared_biases(const struct model *model);

/* The first field in which counts differ from the oracle's, by more than rounding; NULL: none. */
struct oracle_difference {
    const char *field;
    double counted, oracle;
};
struct oracle_difference oracle_compare(const struct workload_counts *counted,
                                        const struct workload_counts *oracle);

#endif
