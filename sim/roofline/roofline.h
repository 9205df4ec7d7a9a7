/*
 * roofline.h: closed forms of a step, of training or inference: what bounds it if everything
 * overlapped perfectly, and if nothing did. Computed from the scenario's numbers alone: it shares
 * constants and the counts of FLOP and bytes with the simulator, never its queues, durations or
 * schedule.
 *
 * Source: the book, chapters 1, 3, 4 and 5, with the finite factors (N-1)/N that it drops.
 */
#ifndef SIM_ROOFLINE_ROOFLINE_H
#define SIM_ROOFLINE_ROOFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/step/counts.h"
#include "sim/step/workload.h"

enum { ROOFLINE_GROUPS_MAX = MESH_ROLE_COUNT + 3 };

/* Whose collectives a group's are: of a mesh axis, by enum mesh_role, or of arrays that have ranks
 * of their own. */
enum { ROOFLINE_KV = MESH_ROLE_COUNT, ROOFLINE_SEQUENCE, ROOFLINE_EXPERTS };

/* The collectives of one mesh axis, or of neighbours on it, over a step; one chip. */
struct roofline_group {
    uint32_t of;      /* A mesh axis, or one of the above. */
    const char *name; /* The group as programs call it: "fsdp", "tp", "dp,ep", "kv", "sequence". */
    struct group group;
    struct algorithm algorithm; /* The algorithm of gathers and scatters; `auto`: the plan's. */
    uint64_t rank_count;
    uint64_t count;      /* Collectives. */
    double array_bytes;  /* Sum of V; an AllReduce counts twice, as the gather and scatter it is. */
    double gather_bytes; /* The part of array_bytes that gathers and scatters have. */
    double all_to_all_s; /* Time of the bytes of AllToAlls and permutes, one after another. */
    double all_to_all_slow_s; /* all_to_all_s from above. */
    double sent_bytes;        /* Bytes that one chip sends over all its links. */
    double axes;            /* M: as many machine axes' full rings as the group can keep busy; of a
                               level, its share of what roofline_axis_bytes_per_s() says. */
    double finite_share;    /* (N-1)/N; over several levels, of the one that binds. */
    double time_s;          /* Time of the bytes, one collective after another, no hop latency. */
    double hop_s;           /* Hop latencies of one gather or scatter that has no bytes. */
    double hops_total_s;    /* Hops of all collectives, one after another. */
    double hops_critical_s; /* Hops of the collectives that the compute stream waits for. */
};

/* A tp collective of the layers and the matmuls that can run during it: it is hidden if they are
 * wide enough, whatever the batch. */
struct roofline_overlap {
    char name[GRAPH_LABEL_BYTES]; /* "mlp.Out" */
    enum collective_kind kind;
    uint64_t count; /* Their number in the step, of all ranks of a pipeline together. */
    double bytes;   /* V of one. */
    double width;   /* Columns (gather) or rows (reduction) of those matmuls, over all of tp; 0:
                       nothing runs during it. */
    double link_s;  /* Time of one collective on the links, with no hop latency. */
    double math_s;  /* Time of the matmuls during one collective. */
};

/* The book's rules. Widths and tokens are 0 where a rule does not apply. `critical` is the book's
 * form, `exact` has (N-1)/N, `crossing` also the hops and this workload's own FLOP. */
struct roofline_rules {
    double alpha; /* C/W for two-byte numbers: FLOP/s over roofline_axis_bytes_per_s(). */
    double tokens_per_chip;
    uint32_t fsdp_gathers; /* m: forward passes of a step that gather their weights, at least. */
    double fsdp_critical_tokens; /* m·alpha/(M_X·Y·P), P ranks of pp, tokens a chip: fewer are
                                    communication bound. */
    double fsdp_exact_tokens;
    double fsdp_crossing_tokens;
    uint32_t reductions;       /* Of each gradient in a step. */
    double dp_critical_tokens; /* n·alpha/(M_dp·X·Y): fewer leave a reduction of gradients exposed.
                                  n counts AllReduces, of which a reduction that leaves shards and
                                  a gather of weights are half each. */
    double dp_exact_tokens;
    double experts_critical_tokens; /* dp_critical_tokens of experts: E/k times as many, as an
                                       expert meets k/E of the tokens; over ep as over tp. */
    double experts_exact_tokens;
    double tp_critical_width; /* Y·alpha/M_Y: a narrower block is communication bound. */
    double tp_exact_width;
    /* Against it, columns that a block multiplies for each of its collectives in the forward pass,
     * as they are executed: padded for tp, T the mean of a query's keys, K at least Y. 0: no layer
     * has such a block. */
    double tp_mlp_width;       /* F·matrices/2 */
    double tp_attention_width; /* (N+K)·H + T·N·H/D; with latents what their products have. */
    double tp_layer_width; /* Attention and MLP side by side, with the same collectives: the sum of
                              both widths, or 2/3 of the sum if each half has a norm. */
    double mixed_best_ranks;      /* X_opt = sqrt(B/F·M_X/M_Y·N/m/P). */
    double mixed_critical_tokens; /* m·alpha^2/(M_X·M_Y·F·P) tokens a chip. */
    double ring_tokens;      /* Tokens of a sequence on a rank of cp at which attention to a block
                                of keys and values takes as long as to pass it on. */
    double ring_rank_tokens; /* Here. */
    double offload_optimizer_tokens;  /* Tokens a chip from which on the math of the backward pass
                                         takes longer than moments over the link to the host. */
    double offload_activations_share; /* What a layer saves over that link, over the math of its
                                         forward pass. Above 1: the step waits. */
};

/* What of a chip, or of what it is linked to, may bound a step. */
enum roofline_resource {
    ROOFLINE_MXU,
    ROOFLINE_VPU,
    ROOFLINE_HBM,
    ROOFLINE_HOST,  /* The link to the host. */
    ROOFLINE_LINKS, /* The links of a machine axis. */
};

/* What lower_s of a roofline is. */
struct roofline_bound {
    enum roofline_resource resource;
    const char *by; /* "mxu", "vpu", "hbm", "host", "ici", or a level: "NVLink", "DCN" */
    int32_t axis;   /* The machine axis if it is "ici" or a level, else -1. */
    /* Of links, every axis that is busy as long, as arrays that may go over any of them share them:
     * as bits, and by name, "x, y, z". */
    uint32_t axis_bits;
    char axes[64];
};

/* Of the whole machine, a step. */
struct roofline_flop {
    double useful; /* 6 a token and parameter of a matmul, so that it is a part of what is executed:
                      what is looked up or scaled has parameters and no matmul. */
    double useful_attention; /* Useful FLOP of attention, in addition to `useful`. */
    double executed;         /* Unpadded. */
    double padded;           /* What the MXU's time is charged for. */
    double recomputed;       /* The part of `executed` that remat executes again. */
    double flash;      /* The part of `executed` that are scores again, in flash's backward pass. */
    double duplicated; /* The part of `executed` for KV heads that several tp ranks hold. */
};

/* Of matmuls on one chip. */
struct roofline_rates {
    double math_flop_per_s;  /* The effective rate in the format of linear layers. */
    double other_flop_per_s; /* The effective rate in the format of attention's products, router and
                                head. */
    double mean_flop_per_s;  /* The effective rate of all padded FLOP, one after another. */
    double peak_flop_per_s;  /* The data sheet's rate in the format of linear layers. */
};

/* What ranks of a pipeline send one another. */
struct roofline_stages {
    double messages_s; /* Of ici_s on pp's axis: messages between stages, over the links of the two
                          neighbours that exchange most, or the cables of a rank amid others. */
    double copies_s;   /* Of ici_s on pp's axis: gradients that two copies of a model exchange. */
    double hops_s;     /* Of inference: hops of a batch's messages from stage to stage. */
};

struct roofline {
    double math_s;               /* MXU: executed FLOP, recomputation and padding included. */
    double vector_s;             /* VPU: of the compute ops, and additions of the collectives. */
    double vector_collectives_s; /* The part of vector_s that collectives take. */
    double hbm_s; /* Bytes of the compute ops and of the collectives over HBM bandwidth. */
    double hbm_collectives_s; /* The part of hbm_s that collectives take. */
    /* Bytes over each machine axis on its busiest links, both directions used where it is a ring. A
     * group over several axes keeps all of them busy equally long where it can; with one that has
     * to take longer, an axis counts for what cannot go another way. Through switches the longest
     * of what each group takes alone and of what all put on the cables of a tier (link_bound.h). */
    double ici_s[MACHINE_AXES_MAX];
    double host_s; /* Bytes over the link to the host, the busier way, shared evenly. */
    struct roofline_stages stages;
    double latency_s; /* Hops of the collectives on the critical path, had they no bytes. */
    double lower_s;   /* The largest of math_s, vector_s, hbm_s, ici_s and host_s: a bound of any
                         schedule. */
    double upper_s; /* Nothing overlaps: math_s + vector_s + hbm_s + what VMEM takes longer than the
                       math of its op + each group's bytes and hops, on the slowest links, with the
                       overheads of the ops, and copies to and from the host; of a pipeline that of
                       all its ranks, and every message between stages. A sum of parts: where groups
                       share links a step may exceed it. */
    /* An estimate, not a bound: math_s, what the tp collectives need beyond the matmuls during them
     * (without collective matmul, all they need), what does not overlap by policy, the gathers of
     * split sequences, what goes to experts and back or to the cache, and latency_s; at least
     * lower_s. */
    double critical_s;
    double tp_excess_s; /* The part of critical_s that the tp collectives need beyond the matmuls
                           during them. */
    struct roofline_bound bound;

    struct roofline_flop flop;
    double ideal_s; /* Useful FLOP at peak: MFU 1. */
    struct roofline_rates rates;

    struct roofline_group group[ROOFLINE_GROUPS_MAX]; /* Groups that communicate. */
    uint32_t group_count;
    struct roofline_overlap overlap[GRAPH_OVERLAPS_MAX]; /* Collectives of layers, in order. */
    uint32_t overlap_count;
    struct roofline_rules rules;
    struct workload_counts counts;
    double memory_bytes; /* State, what is saved and one layer gathered, at once, on a chip. */
};

enum status roofline_train_step(const struct workload_plan *plan, const struct machine *machine,
                                const struct mesh *mesh, struct roofline *ret_roofline,
                                struct error *reterr);

/* The roofline of a step whose ranks are made already, as workload_count_ranks() takes them. */
enum status roofline_of_ranks(struct ranks *ranks, struct roofline *ret_roofline,
                              struct error *reterr);

/* As roofline_train_step(), from counts that were made elsewhere. */
void roofline_from_counts(const struct workload_plan *plan, const struct machine *machine,
                          const struct mesh *mesh, const struct workload_counts *counts,
                          struct roofline *ret_roofline);

/* The group of a mesh axis, or of ROOFLINE_KV and the like; NULL where it does not communicate. */
const struct roofline_group *roofline_group_find(const struct roofline *roofline, uint32_t of);

/* W of the book's C/W: bytes per second of a grid axis both ways, or of what the nearest level has
 * for a chip where there is no grid. */
double roofline_axis_bytes_per_s(const struct machine *machine);

#endif
