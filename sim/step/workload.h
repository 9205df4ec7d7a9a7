/*
 * workload.h: a step of training or inference on a mesh becomes a program. Knows models, shardings
 * and strategies; knows no time. The only layer that knows both model and mesh.
 */
#ifndef SIM_STEP_WORKLOAD_H
#define SIM_STEP_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/cancel.h"
#include "sim/base/status.h"
#include "sim/collective/all_reduce_kernels.h"
#include "sim/graph/terms.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/model/model.h"
#include "sim/program/program.h"
#include "sim/step/inference.h"

struct arena;
struct routing_drawn;
struct schedule;

enum workload_attention { WORKLOAD_ATTENTION_FULL, WORKLOAD_ATTENTION_CAUSAL };
/* Whether scores lie in HBM between kernels of their own, with a mask for each that drops out. */
enum workload_kernel {
    WORKLOAD_KERNEL_FLASH,
    WORKLOAD_KERNEL_UNFUSED,
    WORKLOAD_KERNEL_DROPOUT,
    WORKLOAD_KERNEL_PADDED, /* Flash, between copies that leave padding out and bring it back. */
};
enum workload_gather { WORKLOAD_GATHER_BLOCK, WORKLOAD_GATHER_TENSOR, WORKLOAD_GATHER_LAYER };
enum workload_backward { WORKLOAD_BACKWARD_DW_FIRST, WORKLOAD_BACKWARD_DX_FIRST };
enum workload_activations {
    WORKLOAD_ACTIVATIONS_MODEL,
    WORKLOAD_ACTIVATIONS_TOKENS,
    WORKLOAD_ACTIVATIONS_REPLICATED, /* Each rank of tp has all, in inference. */
};
/* How ranks of cp attend to sequences that they share. */
enum workload_context {
    WORKLOAD_CONTEXT_RING,
    WORKLOAD_CONTEXT_ALL_GATHER,
    WORKLOAD_CONTEXT_ULYSSES,
};
/* Which part of a sequence a rank of cp holds: one from each end, or one. */
enum workload_context_order { WORKLOAD_CONTEXT_ZIGZAG, WORKLOAD_CONTEXT_CONTIGUOUS };
/* How long a pipeline's ranks keep the weights that they gather; gradients are reduced as often. */
enum workload_regather {
    WORKLOAD_REGATHER_MICROBATCH, /* For one pass. */
    WORKLOAD_REGATHER_STEP,       /* From the start to the last pass of their stage. */
    WORKLOAD_REGATHER_STAGE,      /* While their stage is among the next few, after PyTorch. */
};
/* When ZeRO-1 and 2 gather the weights of which each rank has updated its part: at the end of the
 * step, or as Megatron's overlap_param_gather before their first use in the next one. */
enum workload_parameters { WORKLOAD_PARAMETERS_END, WORKLOAD_PARAMETERS_NEXT_STEP };
/* Which products run chunk by chunk with collectives of tp, and in how many kernels. */
enum workload_chunks {
    WORKLOAD_CHUNKS_RANKS,       /* Each product that can goes so, with a kernel for each rank. */
    WORKLOAD_CHUNKS_USERBUFFERS, /* Transformer Engine's user buffers: reductions of gradients come
                                    whole. */
    WORKLOAD_CHUNKS_PAIRS,       /* User buffers, with a kernel for two ranks where one gathers. */
};
/* What a rank of tp keeps of a block's normed input where remat is none. */
enum workload_tp_inputs {
    WORKLOAD_TP_INPUTS_SHARDS, /* The rank's part of the input; the whole input is gathered again
                                  for the weight gradient. */
    WORKLOAD_TP_INPUTS_WHOLE,  /* The whole input, which the rank has gathered. */
};
/* Which bytes a chip holds: the bytes that the book counts, or also the bytes of frameworks
 * (overheads.h). */
enum workload_memory {
    WORKLOAD_MEMORY_DEFAULT, /* By the chip: see workload_memory(). */
    WORKLOAD_MEMORY_BOOK,
    WORKLOAD_MEMORY_FRAMEWORK,
};
/* How messages of collectives are handed to the wire. */
enum workload_protocols {
    WORKLOAD_PROTOCOLS_DEFAULT, /* By the chip: see workload_protocols(). */
    WORKLOAD_PROTOCOLS_NONE,
    WORKLOAD_PROTOCOLS_NCCL,
};
/* Which cores collectives take from compute. */
enum workload_collective_cores {
    WORKLOAD_COLLECTIVE_CORES_DEFAULT, /* By the chip: see workload_collective_cores(). */
    WORKLOAD_COLLECTIVE_CORES_NONE,
    WORKLOAD_COLLECTIVE_CORES_NCCL,
};
/* Recipes of fp8: the default of the stack; none; from FIRST on, the place in the list of recipes
 * (sim/kernels/recipe.h). */
enum { WORKLOAD_RECIPE_DEFAULT, WORKLOAD_RECIPE_NONE, WORKLOAD_RECIPE_FIRST };

/* Which collectives run while the chip computes. It waits for the others where they are issued. */
enum workload_overlap {
    WORKLOAD_OVERLAP_ALL,
    WORKLOAD_OVERLAP_NONE,
    WORKLOAD_OVERLAP_GATHERS,    /* AllGathers alone. */
    WORKLOAD_OVERLAP_REDUCTIONS, /* ReduceScatters and AllReduces alone. */
    WORKLOAD_OVERLAP_PRODUCTS,   /* With the gradients of the product that they are of: what is
                                    gathered for the gradient of weights, with that of the input;
                                    the sum of the latter, with the former. */
};
/* By the mesh axis of a collective, and by the links that it crosses. */
struct workload_overlaps {
    enum workload_overlap fsdp; /* Gathers of weights and reductions of their gradients. */
    enum workload_overlap dcn;  /* Every collective between slices. */
    enum workload_overlap tp;   /* All, none or products. */
    bool dp_apart;              /* Reductions between replicas, and gathers of updated weights. */
    bool ep_apart;
    bool pp_apart; /* Messages between stages: a rank computes once its message has left. */
    bool
        tied; /* Gradients of a tied matrix travel while the last weight gradients of layers run. */
    bool norm; /* Updates do not wait for the sum of the norm of gradients over stages. */
};

/* What real software adds to what the book counts. */
struct workload_software {
    enum workload_memory memory;
    enum workload_protocols protocols;
    enum all_reduce_kernels all_reduce;
    enum workload_collective_cores collective_cores;
    uint32_t fp8_recipe; /* WORKLOAD_RECIPE_... */
    enum loss_fusion loss;
    enum product_joins joins;
    enum gradient_sums sums;
    enum shard_kernels shards; /* See workload_shards(). */
    bool autocast;             /* Steps run under PyTorch's autocast. */
    bool persistent_layernorm; /* Gradients of layernorms read their arrays once. */
    int8_t clips; /* Updates clip gradients by the norm of all of them: 1, 0, or by default -1; see
                     workload_clips(). */
    struct workload_overlaps overlap;
    enum workload_chunks chunks; /* Products' way with collective_matmul. */
};
/* What is kept in the host's memory. */
enum workload_offload {
    WORKLOAD_OFFLOAD_NONE,
    WORKLOAD_OFFLOAD_OPTIMIZER,
    WORKLOAD_OFFLOAD_ACTIVATIONS,
    WORKLOAD_OFFLOAD_BOTH,
};

#define WORKLOAD_SCHEDULE_DEFAULT "1f1b"

/* Of a batch, and of a sequence. */
#define WORKLOAD_TOKENS_MAX (UINT64_C(1) << 34)

/* How queries meet keys. */
struct workload_scores {
    enum workload_attention mask;
    enum workload_kernel kernel;
    enum workload_context context;
    enum workload_context_order order; /* The order of the parts of a sequence. */
};

/* How often a token goes to a rank: once, and once to its node on the way; or straight there, once
 * for each of its experts, as DeepEP's low-latency kernels send it. */
enum workload_token_copies { WORKLOAD_COPY_A_RANK, WORKLOAD_COPY_AN_EXPERT };

/* How routers are taken to choose experts, and how tokens get there. */
struct workload_routing {
    enum workload_token_copies token_copies;
    uint32_t skew_ppm;           /* 0: every expert is as likely, and nothing is drawn. */
    uint32_t capacity_ppm;       /* Millionths of its even rows that an expert computes; 0: all. */
    uint64_t seed;               /* The seed of what is drawn. */
    struct routing_drawn *drawn; /* Keeps what was drawn last, for the next one (routing_load.h);
                                    NULL: everyone draws. */
};

/* The layers that `remat` is of; all others keep what the backward pass reads. All 0: all layers,
 * each by itself. */
struct workload_repeated {
    uint32_t first;     /* The first layers of each stage. */
    uint32_t every;     /* Each layer of this place, counted over the layers of a rank. */
    uint32_t groups_of; /* All layers, repeated by groups of this many of a stage. */
};

/* Arrays that are kept otherwise than the policy says, and where. */
struct workload_kept {
    struct graph_named named; /* Arrays for which `remat` does not hold. */
    struct workload_repeated repeated;
    enum workload_offload offload;
};

/* How ranks of pp play the model. */
struct workload_stages {
    const char *schedule;         /* The schedule's name in the catalogue; NULL: the default. */
    const struct schedule *given; /* Read from a file, which goes before the name. */
    uint32_t held_max;            /* "auto": microbatches a rank may hold; 0: as 1F1B. */
    const char *layout; /* The layers of each stage (stages.h); NULL: all stages are alike. */
    enum workload_regather regather; /* Unless the file says itself when. */
};

/* As a scenario says it: the workload and, from `run`, the policies that shape the program. */
struct workload_plan {
    enum workload_kind kind;
    struct model model;
    struct inference_plan inference; /* The plan of all kinds but TRAIN_STEP. */
    uint64_t batch_tokens;           /* Tokens of the whole machine, a step. */
    uint64_t sequence_length;
    enum graph_remat remat;
    uint32_t zero;       /* 0 to 3, for `dp`. */
    uint32_t accumulate; /* Microbatches a step; at least 1. */
    struct workload_scores attention;
    struct graph_formats formats;
    enum workload_gather gather;
    enum workload_backward backward_order;
    enum workload_activations activations; /* Between blocks: In[B_X, D_Y], or tokens over tp. */
    enum workload_tp_inputs tp_inputs;     /* WHOLE: of tp, norms and no remat. */
    struct workload_software software;
    struct workload_kept kept;
    struct workload_routing routing;
    struct workload_stages stages;
    bool allow_oversubscription;
    bool without_mtp;            /* Layers that predict further tokens (MTP) are left out. */
    const struct cancel *cancel; /* While it is built and lowered; NULL: nobody waits. */

    enum workload_parameters parameter_gather;
    uint32_t prefetch_layers;
    bool collective_matmul;
    struct algorithm algorithm; /* The algorithm of every collective. */
};

/* Whether the backward pass finds all that it reads. */
static inline bool workload_keeps_all(const struct workload_plan *plan)
{
    return plan->remat == GRAPH_REMAT_NONE && plan->kept.named.repeat.count == 0;
}

/* Whether layers differ in what they keep: remat is of some layers alone, or of groups. */
static inline bool workload_repeats_some(const struct workload_plan *plan)
{
    const struct workload_repeated *repeated = &plan->kept.repeated;
    return repeated->first != 0 || repeated->every != 0 || repeated->groups_of != 0;
}

/* The key that offloads something. */
static inline const char *workload_offload_key(const struct workload_plan *plan)
{
    return plan->kept.offload != WORKLOAD_OFFLOAD_NONE ? "/workload/offload"
                                                       : "/workload/remat/offload";
}

/* Whether the step is one of inference. */
static inline bool workload_serves(const struct workload_plan *plan)
{
    return plan->kind != WORKLOAD_TRAIN_STEP;
}

/* Tokens of a step, on the whole machine. */
static inline uint64_t workload_tokens(const struct workload_plan *plan)
{
    return workload_serves(plan) ? inference_sum_all(plan).tokens : plan->batch_tokens;
}

/* Keys of the longest sequence. */
static inline uint64_t workload_keys(const struct workload_plan *plan)
{
    return workload_serves(plan) ? inference_keys_most(plan) : plan->sequence_length;
}

/* Passes of the whole model, one after the other, each with tokens of its own. */
static inline uint32_t workload_microbatches(const struct workload_plan *plan)
{
    return workload_serves(plan) ? inference_pass_count(plan) : plan->accumulate;
}

/* Modules that a step trains to predict further tokens (MTP). */
static inline uint64_t workload_mtp(const struct workload_plan *plan)
{
    bool const without = workload_serves(plan) || plan->without_mtp;
    return without ? 0 : plan->model.mtp_modules;
}

/* What `memory` means on a machine: by default `framework` on GPUs in another profile than `ideal`,
 * where collectives go by NCCL's protocols too, and else `book`. */
enum workload_memory workload_memory(const struct workload_plan *plan, const struct chip *chip);

/* What `protocols` means on a machine: NCCL's on GPUs that have a stack of software. */
enum workload_protocols workload_protocols(const struct workload_plan *plan,
                                           const struct chip *chip);

/* What `collective_cores` means on a machine: the cores of NCCL's channels where a stack of
 * software has NCCL's protocols. */
enum workload_collective_cores workload_collective_cores(const struct workload_plan *plan,
                                                         const struct chip *chip);

/* Whose kernels cast and copy sharded weights; never the default. */
enum shard_kernels workload_shards(const struct workload_plan *plan, const struct chip *chip);

/* What `joined_products` means on a machine: what was asked for, or what the stack does; without
 * a stack that Q, K and V are one product. */
enum product_joins workload_joins(const struct workload_plan *plan, const struct chip *chip);

/* What `clip_gradients` means on a machine: a training step of a stack of software clips, unless
 * it updates each layer behind its backward pass. */
bool workload_clips(const struct workload_plan *plan, const struct chip *chip);

/* What `fp8_recipe` means on a machine: the recipe that was asked for, or the default of the
 * stack's library. */
uint32_t workload_recipe(const struct workload_plan *plan, const struct chip *chip);

/* The recipe of a step, as the stack's library runs it in kernels of the step. `recipe` NULL: casts
 * are within the products. */
struct graph_casting workload_casts(const struct workload_plan *plan, const struct chip *chip);

/* Lowers a plan to a program. Errors: dimensions that do not divide, combinations that are not
 * modelled, each with its place. */
enum status workload_lower(struct arena *arena, const struct workload_plan *plan,
                           const struct machine *machine, const struct mesh *mesh,
                           struct program *ret_program, struct error *reterr);

/* Lowers the plan of ranks that are made already (ranks.h), and stay until it returns. */
enum status workload_lower_ranks(struct arena *arena, const struct ranks *ranks,
                                 struct program *ret_program, struct error *reterr);

/* The name of the plan's schedule, or of the default. */
const char *workload_schedule_name(const struct workload_plan *plan);

/* The schedule with the places of its stages on `ranks` of pp. It has no passes unless it comes
 * from a file. Errors are of the stages alone, whatever the batch is. */
enum status workload_places(struct arena *arena, const struct workload_plan *plan, uint32_t ranks,
                            struct schedule *ret_schedule, struct error *reterr);

/* The schedule of the ranks of pp, as workload_lower() builds it. A program's role is a rank, and
 * program_block.pass counts the passes of its list from 1. */
enum status workload_schedule(struct arena *arena, const struct workload_plan *plan,
                              const struct machine *machine, const struct mesh *mesh,
                              struct schedule *ret_schedule, struct error *reterr);

/* Whether the plan's schedule lays the first and the last stage, of either copy, on one rank where
 * pp has `ranks`. */
bool workload_ends_meet(const struct workload_plan *plan, uint32_t ranks);

/* Borders between stages on different ranks of pp, of all copies of the model: each microbatch of a
 * copy crosses its borders once as an activation, and back as a gradient. */
struct workload_borders {
    uint32_t pair; /* Borders of two neighbours, at the pair that has most. */
    uint32_t rank; /* Borders of one rank with all others, at the rank that has most. */
    uint32_t way;  /* All messages, each once for each pair of neighbours on its way: at most. */
};

/* Borders over `ranks` of pp; all 0: there is one rank. */
struct workload_borders workload_borders(const struct workload_plan *plan, uint32_t ranks);

/* What the lists of a schedule say, at least: an order that is built for times is not known here.
 */
struct workload_lists {
    uint64_t held_ppm;     /* Microbatches whose activations the rank of pp holds that holds most,
                              in millionths of its whole share; of a schedule that is built for
                              memory, what it may hold. Where passes are split, with what the
                              model's input gradients leave. PPM_ONE: there is one rank. */
    uint32_t head_returns; /* Microbatches whose head does other passes between its forward and its
                              backward pass, so that sharded weights are gathered for each. */
};
enum status workload_lists_read(const struct workload_plan *plan, const struct machine *machine,
                                const struct mesh *mesh, struct workload_lists *ret_lists,
                                struct error *reterr);

/* Copies of the model that the plan's schedule lays over `ranks` of pp: 1, or 2. */
uint32_t workload_model_replicas(const struct workload_plan *plan, uint32_t ranks);

struct strbuf;

/* The listing of one layer, forward and backward, in the book's notation (chapter 5): every step
 * with its shardings, collectives and remarks; of models with layers of two kinds the kind at the
 * top. Then the streams of the program that the plan was lowered to. Errors: what workload_lower()
 * refuses of sizes. */
enum status workload_listing(const struct workload_plan *plan, const struct machine *machine,
                             const struct mesh *mesh, const struct program *program,
                             struct strbuf *text, struct error *reterr);

/* What the passes derive of each part of the model: an embedding, layers of each kind, a head, what
 * a module that predicts a further token has of its own (sim/graph/print.h). Headings are bold with
 * `colour`. Errors: what workload_lower() refuses of sizes. */
enum status workload_graphs(const struct workload_plan *plan, const struct machine *machine,
                            const struct mesh *mesh, bool colour, struct strbuf *text,
                            struct error *reterr);

#endif
