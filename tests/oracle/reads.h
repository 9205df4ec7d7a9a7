/*
 * reads.h: what each op of a training step reads and writes, by its name: the arrays between ops,
 * whatever their sharding, so that a collective reads and writes the same one. An account that
 * knows no graph, to hold needs against. Frozen, as oracle.h says.
 *
 * "x" is the activation between slots, "dx" its gradient; "W" are weights, "dW" their gradients.
 * What is saved of a block's input is "attention.X", "mlp.X"; behind them stands what remat has to
 * repeat.
 */
#ifndef TESTS_ORACLE_READS_H
#define TESTS_ORACLE_READS_H

#include <stdbool.h>
#include <stdint.h>

/* Arrays, separated by spaces. */
struct reads {
    const char *name; /* Of the op, less " again". */
    const char *reads, *writes;
};

/* The row of an op; NULL: no op has such a name. */
const struct reads *reads_find(const char *op_name);

/* Whether an array stands in a list. */
bool reads_have(const char *list, const char *array);

/* The first array of a list that stands in another one too, as in `ret_array`; false: none does. */
enum { READS_ARRAY_BYTES = 32 };
bool reads_meet(const char *list, const char *other, char ret_array[READS_ARRAY_BYTES]);

#endif
