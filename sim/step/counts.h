/*
 * counts.h: what a step, of training or inference, asks of one chip: FLOP, bytes and collectives,
 * of layers and ends summed over their graphs, of weights and the update by closed formulas. It
 * never looks at a lowered program, so a test can hold the program's sums against it; the rooflines
 * are computed from it. Of the ranks of a pipeline it is the mean: not all of them can be done
 * before a mean one, so bounds stay bounds.
 *
 * The workload must be one that workload_lower() accepts.
 */
#ifndef SIM_STEP_COUNTS_H
#define SIM_STEP_COUNTS_H

#include <stdint.h>

#include "sim/collective/group.h"
#include "sim/graph/overlap.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/step/padding.h"
#include "sim/step/workload.h"

/* The collectives of one group, a step. Bytes are the sums of V, the whole gathered or unreduced
 * array of each: what a link carries follows from V, the group and the algorithm. */
struct workload_traffic {
    struct group group;
    double gather_bytes;     /* AllGather */
    double scatter_bytes;    /* ReduceScatter */
    double all_reduce_bytes; /* AllReduce */
    double all_to_all_bytes; /* AllToAll: V is what all ranks have for each other. */
    double crossing_bytes[GROUP_DIMENSIONS_MAX]; /* Bytes over each dimension of tokens that go once
                                                    to each unit of the levels on their way. */
    double permute_bytes;                        /* To the next rank: V is a message. */
    uint64_t gather_count;
    uint64_t scatter_count;
    uint64_t all_reduce_count;
    uint64_t all_to_all_count;
    uint64_t permute_count;
    uint64_t critical_passes;   /* Gathers, reductions and exchanges that the compute stream waits
                                   for. An AllReduce is two. */
    enum format widest;         /* The widest format of the elements that ops move. */
    struct algorithm algorithm; /* The algorithm of gathers and scatters, whatever the plan says;
                                   `auto`: the plan's. */
};

/* Whether tokens of the exchanges go once to each unit of the levels on their way. */
static inline bool traffic_crosses(const struct workload_traffic *traffic)
{
    return traffic->crossing_bytes[0] != 0;
}

/* An AllReduce is both. */
static inline double traffic_gathered_bytes(const struct workload_traffic *traffic)
{
    return traffic->gather_bytes + traffic->all_reduce_bytes;
}

static inline double traffic_scattered_bytes(const struct workload_traffic *traffic)
{
    return traffic->scatter_bytes + traffic->all_reduce_bytes;
}

/* Blocks of layers whose products couple with collectives over tp: the forward pass of a microbatch
 * on one rank of tp, all layers. */
struct workload_blocks {
    uint64_t count;
    uint64_t tp_moves;  /* Collectives over tp that may run chunk by chunk with products. */
    double flop;        /* FLOP of matmuls, as they are executed. */
    double linear_flop; /* FLOP of the products with weights among them. */
};

/* Collectives of layers over tp, with what runs meanwhile: of all ranks of a pipeline in a step. */
struct workload_tp {
    struct graph_overlaps overlaps;
    double column_flop; /* FLOP of a rank's matmul from [B_X, D] to one column of all of tp. */
    struct workload_blocks attention;
    struct workload_blocks mlp;
    struct workload_blocks parallel; /* Attention and MLP side by side, which share collectives. */
};

/* FLOP of matmuls that are not useful, by the reason; see struct op_spare (graph/op.h). */
struct workload_spare {
    double flash; /* Scores that flash attention's backward pass computes again, with any remat. */
    double waiting; /* What the rank that has most has above the mean, while the others wait for it:
                       of cp with causal attention, of data ranks with sequences of inference. */
    double attended; /* Of `waiting`: attention's, below 0 where the rank that attends longest has
                        fewer scores than the mean. */
    double padding;  /* Heads, columns of MLPs and of the vocabulary that only make the shares of tp
                        equal; what is recomputed once. */
    double duplicated; /* What several ranks of tp compute alike, each time. */
    double uneven;     /* Rows of experts that not every rank has: each is charged those of the most
                          loaded rank, or of the capacity. Even routing rounds rows up. */
};

/* Attention heads of all ranks of tp together. */
struct workload_heads {
    double held;
    double kv_held;
    double kv_padded;       /* KV heads, each counted once though several ranks hold it: K where tp
                               divides it. */
    uint32_t spread_passes; /* Of inference: passes of prompts whose queries go to ranks with the
                               same heads, which have parts of the earlier tokens. */
    uint32_t summed_passes; /* Of inference: passes of prompts whose results ranks of tp_d add up,
                               which have parts of the rows of every sequence. */
};

/* Messages between two neighbours of a pipeline, a step, one way: [B_X, D_Y] each, at the pair that
 * has most. Messages of a tied matrix, and of modules that lie between the layers and their heads
 * are not among them. */
struct workload_messages {
    double bytes;
    double sent_bytes; /* Messages that one rank sends to all others, at the rank that sends most.
                        */
    double way_count;  /* Messages of all ranks and both ways, each from neighbour to neighbour; no
                          fewer than there are. */
    double way_bytes;
    double copy_bytes; /* Gradients that a mean rank sends to the rank of the other copy of the
                          model; 0: there is one copy. */
    double copy_count; /* Messages of these gradients, of all ranks. */
};

/* Copies between one chip and its host, a step: bytes of one way, equal both ways. */
struct workload_copies {
    double moment_bytes;     /* Moments of the optimizer. */
    double activation_bytes; /* Activations that layers save. */
};

/* Memory of one chip for its layers. Of what is offloaded: one layer's moments, with the gradients
 * of one layer if these are not accumulated; the activations of two layers. */
struct workload_held {
    double parameter_bytes;
    double optimizer_bytes;
    double gradient_bytes;   /* All gradients at once, as they are kept for the update. */
    double activation_bytes; /* Saved for the backward pass by remat, all layers, a microbatch; in a
                                pipeline of all microbatches that are held at once. */
    double master_bytes; /* Weights in fp32 that frameworks hold in addition to the parameters. */
    double cache_bytes;  /* Keys and values of inference. */
};

/* Memory of a chip on every rank of a pipeline, however many layers the rank has. */
struct workload_held_anyway {
    double fixed_bytes; /* Bytes that frameworks hold whatever the step does (overheads_chip()). */
    double gathered_bytes;   /* Weights of one layer, gathered: 0 if they always lie there whole. */
    double group_bytes;      /* What the largest group of layers keeps while it is repeated. */
    uint64_t held_ppm;       /* Microbatches in activation_bytes; see workload_lists_read(). */
    uint64_t kept_sequences; /* Sequences of inference whose rows a chip keeps, whole or in part, at
                                most. */
    uint64_t keepers;        /* Ranks that keep different ones. */
    uint64_t batches;        /* Batches, each with `kept_sequences` or one less. */
};

struct workload_ops {
    double count;
    double measured; /* Ops that are measured kernels, whose time has their launch. */
};

/* As struct graph_scarce has it, of a step. */
struct workload_scarce {
    double padded_flop, vector_flop;
    double vmem_bytes, vmem_longer_bytes;
};

/* A step of inference. Bytes are one chip's. */
struct workload_inference {
    double weight_bytes;     /* Weights that are multiplied: each product reads them once. */
    double again_bytes;      /* Among those, weights that an earlier product has read, too. */
    double wider_bytes;      /* What these are more than in the format in which they lie. */
    double kv_read_bytes;    /* Rows of the cache that attention reads. */
    double activation_bytes; /* That products with weights and attention read and write besides. */
};

/* How often a step moves each weight; more often where modules or another half of a pass ask. */
struct workload_weights {
    uint32_t gathers;    /* For the forward passes, where ranks have shards of it. */
    uint32_t reductions; /* Reductions of its gradients, where several ranks have the weight. */
    /* The ranks that have the same weight (role[MESH_DP]), by name: "dp,ep". */
    const char *holders;
};

/* The shares of matmul_flop and padded_flop in the format of `matmuls`: linear layers. */
struct workload_linear {
    double flop, padded_flop;
};

/* Assignments of tokens to experts. */
struct workload_rows {
    double dropped; /* To experts that have no room for them. */
    double assigned;
};

struct workload_counts {
    /* One chip of a mean rank of a pipeline, a step; recomputation and duplicated KV heads
     * included. All that lies before `paddings` is a sum over layers, which the ranks of a
     * pipeline divide: stages_divide() names each. */
    double matmul_flop; /* Executed. */
    double padded_flop; /* Matmuls with padded shapes: token rows to 8, the rest to the MXU. */
    struct workload_linear linear;
    double vector_flop;      /* VPU */
    double hbm_bytes;        /* Operands read once, results written once. */
    struct workload_ops ops; /* Compute ops. */
    double matmul_useful;    /* FLOP of matmul_flop that are neither recomputed nor duplicated. */
    struct workload_spare spare; /* FLOP of matmul_flop that are not useful. */
    struct workload_scarce scarce;
    struct workload_inference inference;
    struct workload_copies host;
    struct workload_held memory;

    struct paddings paddings; /* What is padded by how much. */
    struct workload_held_anyway held_anyway;
    struct workload_heads heads;

    /* All ranks of a pipeline, a step. */
    uint64_t host_copy_count; /* Copies between chips and their hosts, both ways. */
    struct workload_messages stage;

    /* The whole machine, a step. */
    struct workload_rows rows;
    double useful_attention_flop; /* FLOP of the dot products of attention, which are not among
                                     the useful FLOP of matmuls. */

    /* By mesh role, and the two kinds of neighbours. Roles of size 1 have no traffic. */
    struct workload_traffic role[MESH_ROLE_COUNT];
    struct workload_weights weights;
    struct workload_traffic experts;  /* Ranks that hold the same experts. */
    struct workload_traffic kv;       /* tp/K chips that hold the same KV head. */
    struct workload_traffic sequence; /* Ranks that share a sequence. */
    struct workload_tp tp;
};

/* Of a step that can be lowered. Errors: what lowering refuses, and no memory for a schedule. */
enum status workload_count(const struct workload_plan *plan, const struct machine *machine,
                           const struct mesh *mesh, struct workload_counts *ret_counts,
                           struct error *reterr);

/* Counts a step whose ranks are made already. The ranks go through the passes of a step of
 * inference, and at the end are of the last pass, as before. */
enum status workload_count_ranks(struct ranks *ranks, struct workload_counts *ret_counts,
                                 struct error *reterr);

#endif
