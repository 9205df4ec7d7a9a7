/*
 * emit.h: the passes of a layer as ops of a template: each step of its graph (sim/graph/steps.h) is
 * one op. Internal to sim/workload.
 *
 *   stream  by the collective's kind and ranks
 *   needs   whoever wrote a value that the step reads; chunk by chunk where a product is coupled
 *           with the collective that brings its operand or takes its result
 *   memory  each value from the step that writes it to the last one that reads it (graph/live.h)
 *
 * Gathers and reductions of weights by buckets, updates and copies stand around it
 * (lower_weights.c).
 */
#ifndef SIM_WORKLOAD_EMIT_H
#define SIM_WORKLOAD_EMIT_H

#include <stdbool.h>
#include <stdint.h>

struct lower;

/* The forward pass of the layer that the template is of; the backward pass, or its half. */
void emit_forward(struct lower *lower);
void emit_backward(struct lower *lower);

/* Bytes that the layer keeps from its forward to its backward pass. */
uint64_t emit_kept_bytes(struct lower *lower);

#endif
