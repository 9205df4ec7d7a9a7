/* plan_cost.h: what a plan sends, and how long it takes, by closed formulas. */
#ifndef TESTS_ORACLE_PLAN_COST_H
#define TESTS_ORACLE_PLAN_COST_H

#include "sim/collective/plan.h"

/* Bytes that a rank at these positions sends over the links of one dimension, both directions,
 * each counted once however many links its route has. Messages that name their receivers count in
 * each dimension along which these lie elsewhere. */
uint64_t plan_sent_bytes(const struct plan *plan, uint32_t dimension,
                         const uint32_t position[GROUP_DIMENSIONS_MAX]);

/* Closed forms on the ideal machine: how long `size_bytes` take with
 * `bytes_per_s` a link and direction and `hop_ps` a hop, idle links. Exact for one dimension and
 * for rings of equal size; elsewhere what is reached if no dimension ever waits for another.
 * Source: the book, chapter 3, with the finite factor (N-1)/N that it drops. */
int64_t plan_closed_form_ps(const struct plan *plan, uint64_t bytes_per_s, int64_t hop_ps);

#endif
