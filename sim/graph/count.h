/*
 * count.h: what a part of a model asks of one chip, a microbatch: sums over the steps of its
 * forward and its backward pass, by what is alike in them. Rooflines are computed from these sums;
 * they know no order and no stream.
 */
#ifndef SIM_GRAPH_COUNT_H
#define SIM_GRAPH_COUNT_H

#include "sim/base/units.h"
#include "sim/graph/steps.h"

enum { GRAPH_SUMS_MAX = 48 };

/* Of ops that some cores have no part of: FLOP that all cores would do in the time by which the
 * others take longer. Of all ops: bytes that VMEM would move by all cores in the time that it
 * takes; and in the time by which it takes longer than the math of its op, one after the other. */
struct graph_scarce {
    units_wide padded_flop, vector_flop;
    units_wide vmem_bytes, vmem_longer_bytes;
};

/* Computes of a pass, of a kind of op and in a format. */
struct graph_compute_sum {
    enum op_pass pass;
    const struct op_kind *kind;
    enum format format;
    uint64_t count;
    uint64_t measured; /* Computes of `count` that a stack of software has measured kernels of. */
    uint64_t flop;     /* FLOP of matmuls that are executed. */
    units_wide padded_flop; /* FLOP of matmuls with padded shapes. */
    uint64_t useful_flop;   /* FLOP of matmuls that are neither repeated nor duplicated. */
    struct op_spare spare;
    uint64_t vector_flop;
    uint64_t hbm_bytes;
    struct graph_scarce scarce;
};

/* Collectives of a pass, of a kind of op and over an axis. */
struct graph_move_sum {
    enum op_pass pass;
    const struct op_kind *kind;
    enum collective_kind collective;
    enum op_axis axis;
    enum format widest; /* The widest format that elements have. */
    uint64_t count;
    uint64_t bytes;
};

/* A block's forward pass. */
struct graph_block_sum {
    uint64_t flop;        /* FLOP of matmuls that are executed. */
    uint64_t linear_flop; /* FLOP of the products with weights among them. */
    uint64_t tp_moves;    /* Collectives over tp that may run chunk by chunk with products. */
};

struct graph_count {
    struct graph_compute_sum compute[GRAPH_SUMS_MAX];
    struct graph_move_sum move[GRAPH_SUMS_MAX]; /* Sums of gradients in parts are among them. */
    uint32_t compute_count, move_count;
    struct graph_block_sum block[GRAPH_BLOCKS_MAX]; /* [block of the graph] */
    uint64_t kept_bytes;      /* Kept from the forward to the backward pass. */
    uint64_t framework_bytes; /* Kept by frameworks in addition. */
};

/* Bytes that VMEM moves while a unit works. */
units_wide graph_moved_meanwhile(const struct graph_units *units, uint64_t flop,
                                 uint64_t flop_per_s);

void graph_count(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 const struct graph_kept *kept, const struct graph_units *units,
                 struct graph_count *ret_count);

#endif
