/*
 * inference_whole.h: bytes of all weights and the whole cache of a step of inference.
 */
#ifndef SIM_REPORT_INFERENCE_WHOLE_H
#define SIM_REPORT_INFERENCE_WHOLE_H

#include "sim/report/report.h"

/* Bytes of keys and values of one token: what all layers read together, and how much of this lies
 * in the cache of another layer. */
double inference_whole_read_bytes(const struct workload_plan *plan);
double inference_whole_shared_bytes(const struct workload_plan *plan);

/* Tokens of a part of the pass in the cache, averaged over the layers: those with a window read
 * fewer. */
double inference_whole_tokens(const struct workload_plan *plan, enum inference_part part);
/* Tokens of a part of the pass in the cache, averaged over the layers that hold rows of their own,
 * which take room. */
double inference_whole_held_tokens(const struct workload_plan *plan, enum inference_part part);

/* Bytes of weights and cache that `chip_count` chips hold together. Ranks of tp have equal shares
 * of heads, MLP and vocabulary, so these are padded; K and V weights beyond the KV heads are held
 * several times. Other axes than tp keep their ranks where fewer chips allow it. `owner` is a
 * struct report_input.
 */
double inference_whole_bytes(const void *owner, uint64_t chip_count);

#endif
