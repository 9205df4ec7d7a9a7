/*
 * frontier.h: of answers that are fast or cheap: those that no other one beats in both, and where a
 * curve of them bends.
 */
#ifndef SIM_REPORT_FRONTIER_H
#define SIM_REPORT_FRONTIER_H

#include <stdbool.h>
#include <stdint.h>

/* An answer; what it is worth per chip. */
struct frontier_point {
    double latency_s;
    double rate; /* Tokens a second and chip. */
    bool is;     /* False: it was refused, and takes no part. */
};

static const uint32_t frontier_none = UINT32_MAX;

/* Whether no other point has less latency and no less rate, or more rate and no more latency. Of
 * equal points all are on the frontier. */
void frontier_mark(const struct frontier_point *points, uint32_t count, bool *ret_on);

/* The point with the largest rate over latency, the first of equals: beyond it latency grows by a
 * larger factor than the rate. Of T = a + b·B and a rate of B/T it is B = a/b, at twice the least
 * latency (L. Kleinrock, Power and deterministic rules of thumb for probabilistic problems in
 * computer communications, ICC 1979). frontier_none: there is no point. */
uint32_t frontier_knee(const struct frontier_point *points, uint32_t count);

#endif
