/*
 * lower_experts.h: what the forward and the backward pass of a layer's experts share.
 *
 * Between blocks lies [B_X, D_Y]. The router scores its rows; AllToAll brings each token once to
 * every rank that has an expert for it (dispatch), where it is copied for each of them and sorted
 * by expert; the experts' matmuls follow, and the way back (combine). Over tp, parts of rows travel
 * and are gathered where their experts are; experts are split over tp as an MLP is. The weight
 * that the router gives a token is multiplied in between an expert's two matmuls, so its gradient
 * needs nothing that was not there for theirs.
 *
 * Shared experts are an MLP of the rank's own tokens, computed while others travel.
 *
 * In is read by router and shared experts and sent, so it lies in the format of the activations. A
 * copy in that of the dispatch, if another, is what travels to the experts; there the sort writes
 * rows as matmuls read them. What comes back travels in the format of the activations.
 */
#ifndef SIM_WORKLOAD_LOWER_EXPERTS_H
#define SIM_WORKLOAD_LOWER_EXPERTS_H

#include "sim/workload/lower.h"

/* What the forward pass leaves for the backward pass. */
enum experts_tensor {
    EXPERTS_X,          /* The block's input, [B_X, D_Y]. */
    EXPERTS_IN,         /* The same, normed; gathered over tp where there are shared experts; */
    EXPERTS_IN_WHOLE,   /* or, where parts are kept, gathered for as long as a pass reads it. */
    EXPERTS_GATES,      /* What the router gives, fp32. */
    EXPERTS_ROWS,       /* Tokens as the experts read them. */
    EXPERTS_TMP,        /* What their in-projections give; */
    EXPERTS_SHARED_TMP, /* and the shared ones'. */
    EXPERTS_PRODUCT,    /* Of frameworks: what lies between the projections, as the second reads */
    EXPERTS_SHARED_PRODUCT, /* it; and the shared ones'. */
    EXPERTS_TENSOR_COUNT,
};

uint64_t experts_tensor_bytes(const struct local *local, enum experts_tensor tensor);
/* Whether the remat policy keeps it from the forward to the backward pass. */
bool experts_tensor_saved(const struct local *local, enum experts_tensor tensor);
void experts_take(struct lower *lower, enum experts_tensor tensor, enum lower_pass pass,
                  uint32_t op);
/* Gives back what no backward pass will read. */
void experts_drop(struct lower *lower, enum experts_tensor tensor, enum lower_pass pass,
                  uint32_t op);
void experts_give(struct lower *lower, enum experts_tensor tensor, uint32_t op);

static inline const struct local_experts *experts_of(const struct lower *lower)
{
    return &lower->local->experts;
}

/* Whether In is gathered over tp for shared experts. */
static inline bool experts_gather_in(const struct local *local)
{
    return local->experts.shared_columns != 0 && local->tp > 1;
}

static inline bool experts_keep_parts(const struct local *local)
{
    return experts_gather_in(local) && local_keeps_parts(local);
}

/* "moe.Sort again" */
const char *experts_name(struct lower *lower, const char *name, enum lower_pass pass);

/* Elements of the rows that come to a chip, whole and as they travel. */
static inline uint64_t experts_arrivals(const struct lower *lower)
{
    return experts_of(lower)->arrivals * lower->local->width;
}

static inline uint64_t experts_arrivals_shard(const struct lower *lower)
{
    return experts_arrivals(lower) / lower->local->tp;
}

/* The same of those that come back to where their tokens are, as they travel. */
static inline uint64_t experts_sent_shard(const struct lower *lower)
{
    return experts_of(lower)->sent * lower->local->width / lower->local->tp;
}

static inline uint64_t experts_sorted(const struct lower *lower)
{
    return experts_of(lower)->all * lower->local->width;
}

/* An op of the VPU and HBM only. */
uint32_t experts_vector(struct lower *lower, const char *name, uint64_t flop, uint64_t read_bytes,
                        uint64_t write_bytes);

/* AllToAll over ep, or LOWER_NONE. `spreads`: to the experts; else back from them. */
uint32_t experts_exchange(struct lower *lower, const char *what, bool spreads);
/* A collective of activations over tp that moves `elements` in all, or LOWER_NONE. */
uint32_t experts_tp(struct lower *lower, enum collective_kind kind, const char *what,
                    uint64_t elements);

/* The matmul of one projection of all experts of the chip, or of the shared ones, in any of the
 * products that it takes part in. */
struct work experts_matmul(const struct lower *lower, bool shared, bool out, bool useful);
/* Elements of its matrices, and of what lies between in- and out-projection. */
uint64_t experts_weights(const struct lower *lower, bool shared, bool out);
uint64_t experts_tmp(const struct local *local, bool shared);

/* Brings rows from their ranks to the experts that they are for, sorted: forward In, backward dOut.
 * Returns the op after which they are there, which waits for `source`. */
uint32_t experts_dispatch(struct lower *lower, const char *what, const char *sort_name,
                          uint32_t source);
/* Before that, the copy that travels, if it has a format of its own; else returns `source`. */
uint32_t experts_cast(struct lower *lower, const char *name, uint32_t source);
/* The way back: rows are summed on their chip, which ends them, and travel to where their tokens
 * are. Returns the op after which they are there. */
uint32_t experts_combine(struct lower *lower, const char *what, const char *sum_name);

#endif
