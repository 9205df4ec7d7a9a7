/*
 * facts.h: what a configuration says about a step of training, in podsim's words.
 *
 * Each fact is a count or a text of eight bytes. 0 and NULL: nothing says it, or it is off.
 */
#ifndef TOOLS_PODSIM_IMPORT_FACTS_H
#define TOOLS_PODSIM_IMPORT_FACTS_H

#include <stdint.h>

/* Ranks of a mesh, and how layers lie on those of a pipeline. */
struct import_ranks {
    uint64_t tp, pp, cp, ep;
    uint64_t dp, fsdp;          /* Replicas, and ranks that shard all of a model. */
    uint64_t expert_tp;         /* Ranks that split an expert's matrices. */
    uint64_t ep_over;           /* Axes that ep lies over as well, a bit each. */
    uint64_t nodes, node_ranks; /* Nodes, and ranks of a node, that the launcher starts. */
    uint64_t stage_layers;      /* Layers of one chunk of a rank of the pipeline. */
    uint64_t chunks;            /* Chunks of a rank of the pipeline. */
    const char *schedule, *layout;
};

/* Ranks of a mesh in a framework's words, within a slice or node, or across slices and nodes. */
struct import_axes {
    const char *dp, *fsdp, *tp, *cp, *ep;
};

struct import_step {
    uint64_t sequences;  /* Sequences of a step, of the whole machine. */
    uint64_t local;      /* Sequences of a replica in one step, or in a part of it. */
    uint64_t microbatch; /* Sequences of a replica in one pass. */
    const char *each;    /* Sequences of a chip in one pass; may be a fraction. */
    uint64_t accumulate; /* Passes of a step. */
    uint64_t length;     /* Tokens of a sequence. */
};

/* What runs at the same time as compute. */
struct import_overlap {
    uint64_t gathers_ahead, reduces_ahead, overlaps_tp;
    uint64_t waits_for_stages; /* Compute waits for messages between stages. */
    uint64_t overlaps_shared;  /* A shared expert runs during the exchange of tokens. */
};

/* Where arrays of a layer are kept, by MaxText's names: "device", "offload" or "remat". */
struct import_tensors {
    const char *layer_input, *context, *query, *key, *value, *qkv, *out;
    const char *mlp_in, *mlp_in_0, *mlp_in_1, *mlp_out;
};

/* What is kept, repeated, sharded and overlapped. */
struct import_policy {
    const char *recompute, *recompute_method, *recompute_modules;
    uint64_t recompute_layers;
    uint64_t shards_optimizer;
    uint64_t full_sharding; /* A sharding of all of a model; `sharding` says more. */
    const char *sharding;
    uint64_t sharding_version; /* The version of FSDP. */
    const char *reshard;       /* Gathered weights are given up behind the forward pass. */
    uint64_t stage;            /* The stage of ZeRO. */
    uint64_t repeats;          /* Each layer is computed again. */
    uint64_t checkpoints; /* Each layer is computed again, where a framework has two keys for it. */
    struct import_overlap overlap;
    uint64_t sequence_parallel;
    const char *context, *attention;
    uint64_t sums_apart; /* Kernels of their own add gradients up. */
    uint64_t fuses_loss;
    const char *loss_fusion; /* Whose kernels the fused loss has. */
    uint64_t offloads_optimizer;
    const char *offload; /* Where the optimizer's state lies. */
    uint64_t compiles;   /* Kernels are compiled. */
    uint64_t autocasts;  /* Steps run under PyTorch's autocast. */
    const char *clips;   /* The norm that gradients are scaled to; 0: they are not. */
};

struct import_formats {
    uint64_t bf16, fp16, fp8;
    const char *fp8_format, *fp8_recipe;
    uint64_t gradients_bf16, gradients_fp32;
    const char *weights, *activations, *gradients, *moments;
    const char *converters;
    const char *precision; /* The format of activations and products. */
};

struct import_names {
    const char *model, *flavor, *tokenizer;
};

struct import_sizes {
    uint64_t layers, width, mlp_width, heads, head_width;
    uint64_t grouped; /* Whether `kv_heads` counts. */
    uint64_t kv_heads;
    uint64_t vocabulary, vocabulary_multiple;
    uint64_t padded_vocabulary;
    uint64_t untied, gated, layer_norm, qk_norm;
    uint64_t quick_gated; /* The gate has another activation than SwiGLU's. */
    uint64_t unbiased, qkv_biased;
    const char *norm, *positions;
    uint64_t rotary;
    uint64_t learned_positions;
    uint64_t mtp;
};

/* Parts of layers that some kinds of models have. */
struct import_parts {
    const char *type; /* The `model_type` whose layers the framework has by a name of its own. */
    const char *activations;           /* Of the MLP, in the framework's words. */
    uint64_t window, window_period;    /* Tokens; layers from one without a window to the next. */
    const char *score_cap, *logit_cap; /* 0: none. */
    uint64_t attention_normed, mlp_normed; /* Norms behind a block. */
    uint64_t sinks, mlp_biased;
};

struct import_experts {
    uint64_t count, top_k;
    uint64_t width;  /* The width of one expert. */
    uint64_t shared; /* Experts that all tokens go to. */
    uint64_t shared_width;
    uint64_t dense_layers;
    uint64_t step;      /* Layers from one with experts to the next; 0 and 1: all have them. */
    const char *layers; /* The layers that have experts, in the framework's words. */
    uint64_t groups, top_groups, router_biased;
    const char *capacity;
};

struct import_mla {
    uint64_t is_used, query_rank, kv_rank, plain_width, rope_width, value_width;
};

struct import_facts {
    struct import_ranks ranks;
    struct import_axes inner, outer;
    struct import_step batch;
    struct import_policy policy;
    struct import_tensors tensors;
    struct import_formats formats;
    struct import_names names;
    struct import_sizes sizes;
    struct import_parts parts;
    struct import_experts experts;
    struct import_mla mla;
};

#endif
