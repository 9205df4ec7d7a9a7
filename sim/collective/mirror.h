/*
 * mirror.h: primitives that are others run backwards: a Reduce is a Broadcast whose copies
 * become sums, a Gather a Scatter whose chunks come home, a ReduceScatter an AllGather whose chunks
 * are summed on their way back.
 *
 * Time runs back: who got a message last sends first, to the position that it came from. A message
 * waits for the mirror images of all that could not be sent before it had come. What it holds is
 * the same; where a Scatter says for whom a chunk is, a Gather says whose it is, and where an
 * AllGather says whose it is, a ReduceScatter says for whom.
 *
 * A mirrored entry is a line of workloads/collectives.def; it is proved as every other is.
 */
#ifndef SIM_COLLECTIVE_MIRROR_H
#define SIM_COLLECTIVE_MIRROR_H

#include "sim/collective/collective.h"

uint32_t mirror_send_count(const struct primitive *of, uint32_t size, uint32_t lane,
                           uint32_t position);
uint32_t mirror_arrival_count(const struct primitive *of, uint32_t size, uint32_t lane,
                              uint32_t position);
struct primitive_step mirror_step(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step);
struct primitive_move mirror_move(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step, uint32_t move);
/* ReduceScatter. */
uint32_t mirror_chunk_at(const struct primitive *of, uint32_t size, uint32_t position,
                         uint32_t index);

#endif
