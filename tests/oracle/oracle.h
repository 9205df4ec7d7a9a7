/*
 * oracle.h: a step's counts by closed formulas alone, as workload_count() had them before a layer's
 * came from its graph: the independent second count. Frozen for the features of that day: a feature
 * that the formulas do not know is held by properties and by the program. Nothing is added here:
 * parameters of new models are counted in tests/formulas. docs/testing.md lists what the formulas
 * have said differently since.
 */
#ifndef TESTS_ORACLE_ORACLE_H
#define TESTS_ORACLE_ORACLE_H

#include "sim/step/counts.h"

void oracle_count(const struct workload_plan *plan, const struct machine *machine,
                  const struct mesh *mesh, struct workload_counts *ret_counts);

/* The first field in which counts differ from the oracle's, by more than rounding; NULL: none. */
struct oracle_difference {
    const char *field;
    double counted, oracle;
};
struct oracle_difference oracle_compare(const struct workload_counts *counted,
                                        const struct workload_counts *oracle);

#endif
