/*
 * ranks.h: the sizes of a training step on one chip: ranks, local dimensions, and the weights with
 * what is gathered and reduced as one. Here it is refused what does not divide.
 *
 * Letters of the mesh as in the book: X for the ranks that split the batch and the parameters
 * (fsdp, or dp where there is no fsdp), Y for tp, Z for dp with fsdp (replicas of the shards).
 */
#ifndef SIM_STEP_RANKS_H
#define SIM_STEP_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/graph/graph.h"
#include "sim/mesh/mesh.h"
#include "sim/mesh/sharding.h"
#include "sim/step/routing.h"
#include "sim/step/workload.h"

/* A layer's matrices by their place in it: the op that reads them, counted in the order of the
 * forward pass. */
enum { MATRICES_MAX = GRAPH_OPS_MAX };

/* At most one of each weight, and the experts' together. */
enum { LAYER_BUCKETS_MAX = GRAPH_TENSORS_MAX };

/* Weights that are gathered by one AllGather and whose gradients are reduced by one op. */
struct bucket {
    char name[SHARDING_NAME_BYTES]; /* "W_mlp" */
    uint32_t places;                /* A bit each. */
    uint64_t elements; /* Whole over X, on one rank of tp, and of ep where they are experts. */
    bool experts;
};

/* Layers of a model that are alike. */
struct ranks_layer {
    struct bucket bucket[LAYER_BUCKETS_MAX]; /* In the order of the forward pass. */
    uint32_t bucket_count;
    uint64_t place_elements[MATRICES_MAX]; /* With the norm's, on the in-projections. */
    uint32_t mixer_places;                 /* Of the block that mixes tokens, a bit each. */
    uint32_t expert_places;                /* Of experts' own matrices. */
    uint64_t count;                        /* 0: the model has none. */
    bool experts;
};

/* The first layers of a model have one MLP each, the others experts; a model may have one kind. */
enum { LAYER_DENSE, LAYER_MOE, LAYER_KINDS };

struct ranks {
    const struct workload_plan *plan;
    const struct machine *machine;
    const struct mesh *mesh;

    uint32_t tp;
    uint32_t pp;               /* Ranks that the layers are split over. */
    uint32_t copies;           /* Of the model on them: 2 where each stage lies on two ranks. */
    uint32_t cp;               /* Ranks that each sequence is split over. */
    uint32_t data;             /* Ranks that split the batch's tokens: X·Z. */
    uint32_t shards;           /* Ranks that parameters are split over: X, or 1. */
    enum mesh_role shard_role; /* Their role: fsdp, or dp with zero 3. */
    uint32_t replicas;         /* Ranks of dp, ep and cp that hold the same parameters, or 1. */
    struct group replica_group;
    const char *replica_name;  /* "dp" */
    uint32_t state_shards;     /* Ranks that the optimizer state is split over. */
    uint32_t gradient_shards;  /* Ranks that gradients are split over once they are reduced. */
    bool reduce_once;          /* Stages keep weights and gradients whole; see `regather`. */
    bool reduce_last;          /* Gradients are reduced in the last microbatch only. */
    bool gradients_resident;   /* They are accumulated, so they are there all the time. */
    struct sharding_mesh axes; /* Letters; axes of size 1 left out. */
    uint32_t axis_x, axis_y, axis_z; /* Bits in `axes`; 0 where there is none. */

    uint64_t rows;          /* Tokens of a microbatch on one data rank. */
    uint64_t width;         /* D */
    uint64_t block_columns; /* D between blocks: up to a multiple of Y where it lies in parts. */
    uint64_t block_shard;   /* Elements of [B_X, D_Y] */
    uint64_t mlp_columns;   /* F / tp, rounded up. */

    /* MODEL_DECODER */
    uint64_t heads;           /* N / tp, with padding, as each KV head has its queries' with it. */
    uint64_t kv_heads;        /* K / tp, at least 1. */
    uint64_t kv_heads_padded; /* K, rounded up so that each KV head has equally many holders. */
    uint32_t kv_holders;      /* Chips of tp that hold one KV head. */
    uint64_t head_width;      /* H, of Q and K. */
    uint64_t value_width;     /* Of V. */
    uint32_t partial_ranks;   /* Chips of tp that hold the same weights and have each a part of
                                 their gradients: the holders of a KV head, or all of tp for the
                                 down-projections. */
    uint32_t sequence_parts;  /* Ranks that share a sequence. */
    const char *ring_name;    /* The algorithm by which keys pass round, where they do. */
    uint64_t sequences;       /* Of a microbatch on one rank, whole or in part. */
    uint64_t queries;         /* Of one sequence on one rank. */
    uint64_t keys;            /* T */
    uint64_t window_layers;   /* Whose queries have fewer keys than that: model.window. */
    uint64_t window_turns;    /* Layers that differ in this from the one before. */
    uint64_t key_pairs;       /* Causal: keys of the first query and of the last one together. */
    uint64_t attention_queries;  /* Of a sequence, and KV heads, as one rank attends with them: */
    uint64_t attention_kv_heads; /* as above, or all queries with some heads. */
    uint64_t vocabulary;         /* V / tp, rounded up. */
    struct group kv_group;
    struct group sequence_group;

    struct inference_ranks inference; /* Where ranks_serves(). */
    struct routing experts;
    struct ranks_layer layer[LAYER_KINDS];
    uint64_t vocabulary_elements; /* Of the embedding; of the head without its norm. */
    uint64_t norm_elements;       /* Of one norm on one rank of tp. */
    uint64_t head_vectors;        /* Of the head, what is in no matrix: its norm and biases. */
    uint64_t position_elements;   /* Of the rows that are added by position. */
    uint64_t attention_vectors;   /* Of a layer's attention, what is in no matrix and not its norm.
                                   */
    uint64_t mlp_vectors;  /* Vectors of a layer's MLP that are in no matrix and not its norm. */
    uint64_t mtp_modules;  /* Modules that predict further tokens. */
    uint64_t mtp_elements; /* Elements of one module outside its layer that are not shared. */
    bool mtp_apart;        /* They lie on another stage than the head. */
    bool tied;             /* Embedding and head are one array here. */
    bool ends_meet;        /* The first and the last stage lie on one rank. */
    bool tied_apart;       /* One matrix lies on the first stage and on a later one. */
    bool tied_lookup;      /* The matrix is the embedding that modules on a later stage look up. */
};

/* Whether the step is one of inference. */
static inline bool ranks_serves(const struct ranks *ranks)
{
    return ranks->plan->kind != WORKLOAD_TRAIN_STEP;
}

/* Updated weights are gathered in the next step. */
static inline bool ranks_gathers_next(const struct ranks *ranks)
{
    return ranks->plan->parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP &&
           (ranks->plan->zero == 1 || ranks->plan->zero == 2);
}

/* How sequences lie on ranks (sequences.c): what cp has to divide, whatever the batch; and all. */
enum status ranks_context_check(const struct ranks *ranks, struct error *reterr);
enum status ranks_sequences_build(struct ranks *ranks, struct error *reterr);

static inline bool ranks_has_ring(const struct ranks *ranks)
{
    return ranks->cp > 1 && ranks->plan->attention.context == WORKLOAD_CONTEXT_RING;
}

/* Ranks of cp turn their part of all heads into all of a part of the heads. */
static inline bool ranks_has_ulysses(const struct ranks *ranks)
{
    return ranks->cp > 1 && ranks->plan->attention.context == WORKLOAD_CONTEXT_ULYSSES;
}

static inline bool ranks_has_mla(const struct ranks *ranks)
{
    return ranks->plan->model.latent.kv_rank != 0;
}

/* Whether scores lie in HBM. */
static inline bool ranks_is_unfused(const struct ranks *ranks)
{
    return ranks->plan->attention.kernel != WORKLOAD_KERNEL_FLASH;
}

static inline bool ranks_layer_is_windowed(const struct ranks *ranks, uint64_t layer)
{
    return ranks->window_layers != 0 && model_layer_is_windowed(&ranks->plan->model, layer);
}

/* Refuses what does not divide, with the nearest amounts that would. */
enum status ranks_divide(uint64_t amount, uint64_t by, const char *where, const char *what,
                         const char *by_what, uint64_t *ret_share, struct error *reterr);

/* The weights of layers, by units (ranks_buckets.c). */
void ranks_buckets_build(struct ranks *ranks);

enum status ranks_make(const struct workload_plan *plan, const struct machine *machine,
                       const struct mesh *mesh, struct ranks *ret_ranks, struct error *reterr);

static inline bool ranks_offloads_optimizer(const struct ranks *ranks)
{
    return ranks->plan->offload == WORKLOAD_OFFLOAD_OPTIMIZER ||
           ranks->plan->offload == WORKLOAD_OFFLOAD_BOTH;
}

static inline bool ranks_is_decoder(const struct ranks *ranks)
{
    return ranks->plan->model.kind == MODEL_DECODER;
}

/* Whether a rank of tp keeps its part [B_X, D_Y] of what norms give, and gathers the whole again
 * for the weight gradient, during other compute (Korthikanti et al., arXiv 2205.05198, 4.2.2;
 * `sequence_parallel` in Megatron-LM's core/tensor_parallel/layers.py). The bare MLP has no norm:
 * it keeps the gathered In, as the book's does (chapter 5). */
static inline bool ranks_keeps_parts(const struct ranks *ranks)
{
    return ranks->tp > 1 && ranks_is_decoder(ranks) && ranks->plan->remat == WORKLOAD_REMAT_NONE &&
           ranks->plan->tp_inputs == WORKLOAD_TP_INPUTS_SHARDS;
}

/* Of all layers but the last. */
static inline bool ranks_offloads_activations(const struct ranks *ranks)
{
    return ranks->plan->offload == WORKLOAD_OFFLOAD_ACTIVATIONS ||
           ranks->plan->offload == WORKLOAD_OFFLOAD_BOTH;
}

/* Which layers lie at the top, before the head. */
static inline uint32_t ranks_last_kind(const struct ranks *ranks)
{
    return ranks->layer[LAYER_MOE].count != 0 ? LAYER_MOE : LAYER_DENSE;
}

/* Layers of a kind, with those in modules that predict further tokens, which are as the last. */
static inline uint64_t ranks_layer_count(const struct ranks *ranks, uint32_t kind)
{
    bool const last = kind == ranks_last_kind(ranks);
    return ranks->layer[kind].count + (last ? ranks->mtp_modules : 0);
}

/* Ranks that the machine's axes have, of which an axis of the mesh lies on all or a part. */
uint64_t ranks_room(const struct ranks *ranks, enum mesh_role role);

/* Refused (pipeline_check.c): what no pipeline can have, stages that the model cannot be split
 * into, a schedule that takes another number of microbatches: whatever the batch is. */
enum status ranks_stages_check(const struct ranks *ranks, struct error *reterr);

/* Ranks that a unit's optimizer state, and its reduced gradients, are split over. */
static inline uint32_t ranks_state_shards(const struct ranks *ranks, bool experts)
{
    return experts ? ranks->experts.state_shards : ranks->state_shards;
}

static inline uint32_t ranks_gradient_shards(const struct ranks *ranks, bool experts)
{
    return experts ? ranks->experts.gradient_shards : ranks->gradient_shards;
}

/* Whether each chip of tp scores a part of D for the router. */
static inline bool ranks_sums_logits(const struct ranks *ranks)
{
    return ranks->experts.ranks != 0 && ranks->experts.router_inner < ranks->width;
}

/* Whether each chip of tp scores a part of the tokens: then it has a part of a router's gradient.
 */
static inline bool ranks_sums_rows(const struct ranks *ranks)
{
    return ranks->experts.ranks != 0 && ranks->tp > 1 && !ranks_sums_logits(ranks);
}

/* Whether ranks of tp have parts of weights' gradients, which are added up before all else. */
static inline bool ranks_sums_parts(const struct ranks *ranks)
{
    return ranks->partial_ranks > 1 || ranks_sums_rows(ranks);
}

#endif
