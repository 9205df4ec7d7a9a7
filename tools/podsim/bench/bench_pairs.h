/*
 * bench_pairs.h: how two podsims compare, in words and in JSON.
 */
#ifndef TOOLS_PODSIM_BENCH_BENCH_PAIRS_H
#define TOOLS_PODSIM_BENCH_BENCH_PAIRS_H

#include <stdint.h>

struct bench_comparing;
struct bench_pairs;
struct json_writer;
struct strbuf;

/* A table, and a line for each step of which the other one has no result or another one. */
void bench_pairs_print(const struct bench_comparing *comparing, const struct bench_pairs *rows,
                       uint32_t count, struct strbuf *text);

/* A member "pairs", an array with one object a step, where a member may stand. */
void bench_pairs_write_json(const struct bench_pairs *rows, uint32_t count,
                            struct json_writer *writer);

#endif
