/*
 * ranks.h: the sizes of a step, of training or inference, on one chip: ranks, local dimensions, and
 * the weights with what is gathered and reduced as one. Here it is refused what does not divide.
 *
 * Letters of the mesh as in the book: X for the ranks that split the batch and the parameters
 * (fsdp, or dp where there is no fsdp), Y for tp, Z for dp with fsdp (replicas of the shards), W
 * for tp_d, which splits the width of weights and of activations.
 */
#ifndef SIM_STEP_RANKS_H
#define SIM_STEP_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/graph/block.h"
#include "sim/kernels/kernels.h"
#include "sim/mesh/mesh.h"
#include "sim/mesh/sharding.h"
#include "sim/step/routing.h"
#include "sim/step/workload.h"

/* A layer's matrices by their place in it: the op that reads them, counted in the order of the
 * forward pass. Sets of places have a bit for each. */
enum { MATRICES_MAX = 32 };

/* At most one of each weight, and the experts' together. */
enum { LAYER_BUCKETS_MAX = GRAPH_TENSORS_MAX };

/* Weights that are gathered by one AllGather and whose gradients are reduced by one op. */
struct bucket {
    char name[SHARDING_NAME_BYTES]; /* "W_mlp" */
    uint32_t places;                /* A bit each. */
    uint64_t elements; /* Whole over X, on one rank of tp, and of ep where they are experts. */
    enum format format;
    bool experts;
    uint8_t end; /* 1 + enum block_part of the end of the model that has the weights; 0: layers have
                    them. */
};

static inline uint64_t bucket_bytes(const struct bucket *bucket)
{
    return format_stored_bytes(bucket->format, bucket->elements);
}

/* The weights of an end of a model, or of a module's own. */
struct ranks_end {
    struct bucket bucket; /* Weights that are updated together: of a tied head the embedding's. */
    struct bucket read;   /* Weights that a use reads, and gathers where they are sharded. */
    uint64_t matrix;      /* Elements of the matrix of the vocabulary alone. */
    uint64_t biases;      /* Of the vocabulary's columns: elements on one rank. */
};

/* Weights of a layer. */
struct ranks_layer {
    struct bucket bucket[LAYER_BUCKETS_MAX]; /* In the order of the forward pass. */
    uint32_t bucket_count;
    uint64_t place_elements[MATRICES_MAX]; /* With the norm's, on the in-projections. */
    uint32_t mixer_places;                 /* Places of the block that mixes tokens, a bit each. */
    uint32_t expert_places;                /* Places of experts' own matrices, a bit each. */
    bool sums_parts; /* Ranks of tp have parts of some weights' gradients, which are added up. */
    uint8_t weights; /* The first kind of layers that has the same buckets. */
};

/* Letters of the mesh as sharded arrays have them; see above. */
struct ranks_axes {
    struct sharding_mesh mesh; /* Axes of size 1 are left out. */
    uint32_t x, y, z, w;       /* Bits in `mesh`; 0 where there is none. */
};

/* When gradients of weights are reduced, and how long they lie there. */
struct ranks_gradients {
    bool once;     /* Stages keep weights and gradients whole; see `regather`. */
    bool last;     /* Gradients are reduced in the last microbatch only. */
    bool resident; /* Gradients are accumulated, so they are there all the time. */
};

/* Attention heads of one rank of tp, with padding: each KV head has its queries' with it. */
struct ranks_heads {
    uint64_t queries;     /* N / tp */
    uint64_t kv;          /* K / tp, at least 1. */
    uint64_t kv_distinct; /* KV heads of all ranks of tp, each counted once; K if tp divides it. */
    uint32_t kv_holders;  /* Chips of tp that hold one KV head. */
    struct group group;   /* Chips of tp that have each a part of the same weights' gradients: the
                             holders of a KV head, or all of tp for down-projections. */
};

/* Columns and rows that all ranks of tp have together, with the padding that makes their shares
 * equal. */
struct ranks_widths {
    uint64_t mlp;        /* Columns of an MLP. */
    uint64_t expert;     /* Columns of an expert. */
    uint64_t vocabulary; /* Rows of the embedding, and columns of the head. */
};

/* How sequences lie on ranks. */
struct ranks_sequences {
    struct graph_sequence of; /* What one rank attends with, in a layer without a window. */
    uint32_t parts;           /* Ranks that share a sequence. */
    struct group group;       /* The ranks that share a sequence. */
    uint64_t kv_heads;       /* KV heads that a rank attends with: of its own, or some of theirs. */
    struct algorithm rounds; /* The algorithm by which keys pass round, where they do. */
};

/* What ends of the model have in common. */
struct ranks_tie {
    bool here;   /* Embedding and head are one array. */
    bool meets;  /* The first and the last stage lie on one rank. */
    bool apart;  /* One matrix lies on the first stage and on a later one. */
    bool lookup; /* The matrix that lies apart is the embedding, and modules on a later stage look
                    up rows of it. */
};

/* The pass that sizes are of. */
struct ranks_pass {
    uint32_t index;                 /* In a step of inference; training has one. */
    const struct step_graph *graph; /* Graphs of its parts, derived once (graph_terms.h). */
    uint32_t graph_count;           /* 0: none is kept. */
};

/* Modules that predict further tokens. */
struct ranks_mtp {
    uint64_t modules;
    bool apart; /* They lie on another stage than the head. */
};

struct ranks {
    const struct workload_plan *plan;
    const struct machine *machine;
    const struct mesh *mesh;

    uint32_t tp;
    uint32_t pp;               /* Ranks that the layers are split over. */
    uint32_t model_replicas;   /* Of the model: 2 where each stage lies on two ranks. */
    uint32_t cp;               /* Ranks that each sequence is split over. */
    uint32_t data;             /* Ranks that split the batch's tokens: X·Z. */
    uint32_t shards;           /* Ranks that parameters are split over: X, or 1. */
    enum mesh_role shard_role; /* The role of ranks with shards: fsdp, or dp with zero 3. */
    struct replicas replicas;  /* Ranks of dp, ep and cp; of experts' weights see `experts`. */
    struct ranks_gradients gradients;
    struct ranks_axes axes;

    uint64_t rows; /* Tokens of a microbatch on one data rank. */

    struct ranks_widths widths;

    /* MODEL_DECODER */
    struct ranks_heads heads;
    struct ranks_sequences sequences;

    struct ranks_pass pass;
    struct inference_ranks inference; /* Where ranks_serves(). */
    struct routing experts;
    struct layer_kinds kinds;                  /* Kinds of the model's layers. */
    struct ranks_layer layer[LAYER_KINDS_MAX]; /* [kind] */
    struct ranks_end end[BLOCK_PART_COUNT];    /* [part]: embedding, head, a module's own. */
    struct ranks_mtp mtp;
    struct ranks_tie tie;
};

/* Whether the step is one of inference. */
static inline bool ranks_serves(const struct ranks *ranks)
{
    return workload_serves(ranks->plan);
}

/* Whether a pass has tokens whose logits are wanted. */
static inline bool ranks_has_head(const struct ranks *ranks)
{
    return !ranks_serves(ranks) || ranks->inference.head_rows != 0;
}

/* Updated weights are gathered in the next step. */
static inline bool ranks_gathers_next(const struct ranks *ranks)
{
    return ranks->plan->parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP &&
           (ranks->plan->zero == 1 || ranks->plan->zero == 2);
}

/* Replicas reduce gradients behind all passes, and gather weights behind all updates. With shards
 * of gradients a reduction belongs to each microbatch, and is waited for there. */
static inline bool ranks_replicas_wait(const struct ranks *ranks)
{
    return ranks->plan->software.overlap.dp_apart && ranks->replicas.count > 1 &&
           ranks->shards == 1 && ranks->plan->zero <= 1;
}

/* The group of ranks that hold the same weights, or the same experts, and its name. The group is
 * empty in a step of inference that gathers no weights over it. */
enum status ranks_replicas_find(const struct ranks *ranks, bool experts,
                                struct replicas *ret_replicas, struct error *reterr);

/* Charges a step of inference the slowest replica (replicas.c), where replicas are apart. All else
 * of `ranks` is set. Errors: as ranks_pass_set(). */
enum status ranks_replica_choose(struct ranks *ranks, struct error *reterr);

/* How sequences lie on ranks (sequences.c): what cp has to divide, whatever the batch; and all. */
enum status ranks_context_check(const struct ranks *ranks, struct error *reterr);
enum status ranks_sequences_build(struct ranks *ranks, struct error *reterr);

static inline bool ranks_has_ring(const struct ranks *ranks)
{
    return ranks->cp > 1 && ranks->plan->attention.context == WORKLOAD_CONTEXT_RING;
}

/* Ranks of cp exchange their part of a sequence, with all heads, for all of it with some heads. */
static inline bool ranks_has_ulysses(const struct ranks *ranks)
{
    return ranks->cp > 1 && ranks->plan->attention.context == WORKLOAD_CONTEXT_ULYSSES;
}

static inline bool ranks_has_mla(const struct ranks *ranks)
{
    return model_has_mla(&ranks->plan->model);
}

/* Whether scores lie in HBM. */
static inline bool ranks_is_unfused(const struct ranks *ranks)
{
    enum workload_kernel const kernel = ranks->plan->attention.kernel;
    return kernel == WORKLOAD_KERNEL_UNFUSED || kernel == WORKLOAD_KERNEL_DROPOUT;
}

/* The kind of a layer, by its place in `kinds`. */
static inline uint32_t ranks_kind_at(const struct ranks *ranks, uint64_t layer)
{
    return layer_kinds_at(&ranks->kinds, &ranks->plan->model, layer);
}

/* Refuses what does not divide, with the nearest amounts that would. */
enum status ranks_divide(uint64_t amount, uint64_t by, const char *where, const char *what,
                         const char *by_what, uint64_t *ret_share, struct error *reterr);

/* Heads over ranks of tp. A KV head stays together with the heads that ask it, and all ranks have
 * as many, so there are padded ones where the numbers do not divide: KV heads up to a multiple of
 * the ranks, or up to a divisor of them, whose holders then share the heads that ask. */
struct ranks_heads ranks_heads_of(const struct model *model, uint32_t tp);

/* The number of ranks of tp that hold the same keys: the holders of a KV head, with padding. All
 * ranks hold the same latents (MLA), as a latent serves all heads. */
uint32_t ranks_key_holders(const struct model *model, uint32_t tp);

/* Widths over ranks of tp, padded so that all ranks have equal parts. */
struct ranks_widths ranks_widths_of(const struct model *model, uint32_t tp);

/* Parameters and cache of a decoder on ranks of tp, all of them together: heads, widths and
 * vocabulary are padded to equal shares, and weights of KV heads that several ranks hold count
 * several times. Any other model is as it is. */
struct ranks_padded {
    struct model weights; /* A model whose parameters are the ranks' weights. */
    struct model cache;   /* A model whose keys and values are the ranks' cache. */
};
struct ranks_padded ranks_padded_of(const struct model *model, uint32_t tp);

/* Weights of layers and ends, by what is gathered and reduced as one (ranks_buckets.c). The graphs
 * that say so are kept in `arena`; NULL: they are not kept. Refused: parts of the model that are
 * too large to be counted. */
enum status ranks_buckets_build(struct arena *arena, struct ranks *ranks, struct error *reterr);
/* Buckets and places of layers, found again for a pass whose layers have other ops. */
enum status ranks_places_build(struct ranks *ranks, struct error *reterr);

/* Sets `kinds.kept`, where remat is of some layers alone (remat_layers.c). Refused: what repeats no
 * layer, or cannot be told. */
enum status ranks_kept_find(struct ranks *ranks, struct error *reterr);

/* Refuses lists of arrays for remat that name no array of a layer (remat_names.c). */
enum status ranks_remat_check(const struct ranks *ranks, struct error *reterr);

/* Ranks of the last pass, where a step of inference has several. */
enum status ranks_make(const struct workload_plan *plan, const struct machine *machine,
                       const struct mesh *mesh, struct ranks *ret_ranks, struct error *reterr);
/* Ranks of the last pass, as ranks_make() makes them, in an arena. The graphs of the pass are kept
 * there, too, until another pass is set. */
enum status ranks_take(struct arena *arena, const struct workload_plan *plan,
                       const struct machine *machine, const struct mesh *mesh,
                       struct ranks **ret_ranks, struct error *reterr);
/* Makes them the ranks of another pass. */
enum status ranks_pass_set(struct ranks *ranks, uint32_t pass, struct error *reterr);

static inline bool ranks_offloads_optimizer(const struct ranks *ranks)
{
    return ranks->plan->kept.offload == WORKLOAD_OFFLOAD_OPTIMIZER ||
           ranks->plan->kept.offload == WORKLOAD_OFFLOAD_BOTH;
}

/* Kernels between matmuls, as the machine's stack of software makes them; NULL: the fewest. */
static inline const struct fusion *ranks_fusion(const struct ranks *ranks)
{
    const struct kernel_stack *stack = ranks->machine->chip.kernels.stack;
    return stack == NULL ? NULL : stack->between.fusion;
}

/* Whether updates clip gradients, and so wait for the norm of all of them. */
static inline bool ranks_clips(const struct ranks *ranks)
{
    return workload_clips(ranks->plan, &ranks->machine->chip);
}

/* Whether updates wait for the norm of the gradients of all stages. */
static inline bool ranks_sums_norm_over_stages(const struct ranks *ranks)
{
    return ranks_clips(ranks) && ranks->pp > 1 && !ranks->plan->software.overlap.norm;
}

/* Whether ranks of pp keep gathered weights for passes of several microbatches. */
bool ranks_gathers_once(const struct ranks *ranks);

/* Whether shards in fp32 are cast to 16 bits for each gather (sim/kernels/shards.h). */
static inline bool ranks_casts_shards(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    enum shard_kernels const kernels = workload_shards(plan, &ranks->machine->chip);
    return ranks_fusion(ranks) != NULL && !ranks_serves(ranks) && ranks->shards > 1 &&
           format_bits(plan->formats.weights) == 16 && shard_copies_of(kernels)->wide;
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
    const struct workload_plan *plan = ranks->plan;
    bool const may = plan->remat == GRAPH_REMAT_NONE || plan->kept.named.save.count > 0 ||
                     workload_repeats_some(plan);
    return ranks->tp > 1 && ranks_is_decoder(ranks) && may &&
           plan->tp_inputs == WORKLOAD_TP_INPUTS_SHARDS;
}

/* Whether all that a layer keeps lies in the memory of the host. */
static inline bool ranks_offloads_kept(const struct ranks *ranks)
{
    return ranks->plan->kept.offload == WORKLOAD_OFFLOAD_ACTIVATIONS ||
           ranks->plan->kept.offload == WORKLOAD_OFFLOAD_BOTH;
}

/* The place of a layer in a group that is repeated together. */
enum ranks_group {
    RANKS_GROUP_NONE,  /* The layer is repeated by itself, or not at all. */
    RANKS_GROUP_FIRST, /* The first layer: its input is kept from the forward pass, and no more. */
    RANKS_GROUP_LATER, /* A later layer, of which nothing is kept. */
};

static inline enum ranks_group ranks_group_at(const struct ranks *ranks, uint64_t layer)
{
    const struct layer_set *kept = &ranks->kinds.kept;
    if (!ranks->kinds.grouped) return RANKS_GROUP_NONE;
    if (layer > 0 && layer_set_has(kept, layer - 1)) return RANKS_GROUP_LATER;
    return layer_set_has(kept, layer) ? RANKS_GROUP_FIRST : RANKS_GROUP_NONE;
}

/* Whether some of what a layer keeps does: of all layers but the last. */
static inline bool ranks_offloads_activations(const struct ranks *ranks)
{
    return ranks_offloads_kept(ranks) || ranks->plan->kept.named.offload.count > 0;
}

static inline bool ranks_offloads(const struct ranks *ranks)
{
    return ranks_offloads_optimizer(ranks) || ranks_offloads_activations(ranks);
}

/* The kind of the last layer, and of the layers of modules that predict further tokens. */
static inline uint32_t ranks_last_kind(const struct ranks *ranks)
{
    return ranks_kind_at(ranks, ranks->plan->model.layers - 1);
}

/* Layers of a kind, layers of modules that predict further tokens included. */
static inline uint64_t ranks_layer_count(const struct ranks *ranks, uint32_t kind)
{
    bool const last = kind == ranks_last_kind(ranks);
    return ranks->kinds.layers[kind] + (last ? ranks->mtp.modules : 0);
}

/* Layers with experts, or without; layers of MTP modules included. */
uint64_t ranks_layers_with(const struct ranks *ranks, bool experts);

/* Ranks that the machine's axes have, of which an axis of the mesh lies on all or a part. */
uint64_t ranks_room(const struct ranks *ranks, enum mesh_role role);

/* Refused (pipeline_check.c): what no pipeline can have, stages that the model cannot be split
 * into, a schedule that takes another number of microbatches: whatever the batch is. */
enum status ranks_stages_check(const struct ranks *ranks, struct error *reterr);

/* The group of ranks that hold copies of a rank's weights, or of its experts. */
static inline const struct replicas *ranks_replicas(const struct ranks *ranks, bool experts)
{
    return experts ? &ranks->experts.replicas : &ranks->replicas;
}

/* Whether ranks of tp have parts of weights' gradients, which are added up before all else. */
static inline bool ranks_sums_parts(const struct ranks *ranks)
{
    bool sums = false;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        sums = sums || ranks->layer[kind].sums_parts;
    return sums;
}

/* Ranks of tp that each have experts of their own: where ep lies over tp, all; else 1. */
static inline uint32_t ranks_tp_of_ep(const struct ranks *ranks)
{
    return mesh_ep_over(ranks->mesh, MESH_TP) ? ranks->tp : 1;
}

/* Ranks that the model's width is split over. */
static inline uint32_t ranks_tp_d(const struct ranks *ranks)
{
    return ranks->mesh->axis[MESH_TP_D].size;
}

/* Ranks that each have a part of D between blocks: of tp_d, and of tp unless they have tokens each,
 * or all. */
static inline uint32_t ranks_of_width(const struct ranks *ranks)
{
    bool const whole = ranks->plan->activations != WORKLOAD_ACTIVATIONS_MODEL;
    return ranks_tp_d(ranks) * (whole ? 1 : ranks->tp);
}

/* D between blocks: up to a multiple of these. */
static inline uint64_t ranks_block_columns(const struct ranks *ranks)
{
    return units_round_up(ranks->plan->model.width, ranks_of_width(ranks));
}

/* Elements of [B_X, D_WY]. */
static inline uint64_t ranks_block_shard(const struct ranks *ranks)
{
    return ranks->rows * ranks_block_columns(ranks) / ranks->tp / ranks_tp_d(ranks);
}

/* Whether ranks of tp that all have what they send to another stage send a part each, and the
 * receivers gather the parts: in training, as Megatron-LM's and DeepSpeed's pipelines do (Narayanan
 * et al., arXiv 2104.04473, 4.1; deepspeed/runtime/pipe/engine.py, is_pipe_partitioned). */
static inline bool ranks_gathers_messages(const struct ranks *ranks)
{
    return ranks->plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED && !ranks_serves(ranks) &&
           ranks->tp > 1 && ranks->pp > 1;
}

/* Elements that a rank sends to another stage: what it has between blocks, or its part of that. */
static inline uint64_t ranks_sent_elements(const struct ranks *ranks)
{
    bool const whole = ranks->plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED &&
                       !ranks_gathers_messages(ranks);
    return whole ? ranks->rows * ranks_block_columns(ranks) / ranks_tp_d(ranks)
                 : ranks_block_shard(ranks);
}

#endif
