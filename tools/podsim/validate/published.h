/*
 * published.h: measurements that others published, as facts: a machine, a model, how it was split,
 * what the framework was told, and how long a step took. workloads/published has a file for each
 * group of rows; tools/published/tabulate.py makes them.
 */
#ifndef TOOLS_PODSIM_VALIDATE_PUBLISHED_H
#define TOOLS_PODSIM_VALIDATE_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/mesh/mesh.h"

struct arena;
struct json;

enum { PUBLISHED_TESTS_MAX = 4, PUBLISHED_UNSAID = -1 };

enum published_kind {
    PUBLISHED_STEP,
    PUBLISHED_PREFILL,
    PUBLISHED_DECODE,
    PUBLISHED_GENERATE,
    PUBLISHED_COLLECTIVE,
};
extern const char *const published_kind_names[]; /* By enum published_kind, ended by NULL. */

/* Where a step ran. */
struct published_machine {
    const char *chip;
    uint32_t chips;
    uint32_t gpus, nodes; /* GPUs, and their nodes. */
    const char *shape;    /* The shape of TPUs; NULL: the chips are GPUs. */
    uint32_t slices;      /* Slices of TPUs. */
    struct json *network; /* The network of a scenario's machine; NULL: the chip's own. */
    double hbm_share;     /* The share of the chip's HBM rate; 0: all. */
    uint32_t power_w;     /* Limit of the power of a chip; 0: the chip's own. */
};

/* What the framework was told. Numbers are PUBLISHED_UNSAID where nobody said, texts NULL. */
struct published_policy {
    const char *preset;
    const char *recompute;      /* In the framework's words. */
    uint32_t recompute_layers;  /* Layers that this is of; 0: all. */
    const char *precision;      /* "bf16" stands for either format of 16 bits. */
    const char *recipe;         /* The recipe of fp8. */
    const char *gradients;      /* The format that is reduced. */
    const char *main_gradients; /* The format that microbatches add to. */
    const char *weights;        /* The format of weights alone. */
    const char *schedule;
    const char *layout;
    const char *context;
    const char *activations;      /* Where it is not what the preset says. */
    const char *loss_fusion;      /* Where it is not what the preset says. */
    const char *attention_kernel; /* Where it is not what the preset says. */
    const char *matmul_chunks;    /* Where it is not what the preset says. */
    const char *token_copies;     /* Where it is not what the preset says. */
    const char *gradient_sums;    /* Where it is not what the preset says. */
    const char *backward_order;   /* Where it is not what the preset says. */
    int32_t zero, tp_overlap, overlap, mtp, persistent_layernorm;
    double capacity_factor; /* 0: not said. */
};

/* A collective by itself. */
struct published_collective {
    const char *operation; /* The name of nccl-tests. */
    const char *algorithm; /* NULL: NCCL's choice. */
    bool registered;       /* Arrays that NCCL wrote to directly. */
    uint64_t size_bytes;   /* Size as nccl-tests means it. */
};

struct published_row {
    const char *id, *group;
    const char *test[PUBLISHED_TESTS_MAX];
    uint32_t test_count;
    enum published_kind kind;
    bool learned; /* podsim may have learned from it, so it counts in no aim. */
    struct published_machine machine;
    struct published_policy policy;
    const char *model_name;
    struct json *model;              /* A name, or a config.json. */
    uint32_t ranks[MESH_ROLE_COUNT]; /* Ranks that no other axis has; 1: none. */
    uint32_t ep_over;                /* Axes that ep lies over as well, a bit each. */
    uint64_t sequences, microbatch;  /* Sequences of a step; of a rank's pass. */
    uint64_t length_tokens; /* Tokens of a sequence; of a decode in the cache; of a prompt. */
    uint64_t output_tokens; /* Tokens behind the first, of PUBLISHED_GENERATE. */
    struct published_collective collective; /* What PUBLISHED_COLLECTIVE is. */
    double seconds;                         /* 0: no time was published. */
    bool derived;                           /* Computed from a published rate. */
    double peak_bytes; /* Bytes that PyTorch had allocated at most; 0: not published. */
    bool low_confidence;
    const char
        *assumed; /* What the publication leaves out, with what stands for it; NULL: nothing. */
    const char *lacks; /* What it leaves out, so that the row cannot be run; NULL: nothing. */
};

/* Rows that are judged together: a test, or the rows of a group that podsim may learn from. */
struct published_set {
    const char *name; /* "T13", "llm-foundry" */
    const char *title;
    const char *source;
    bool learned;
    double aim, ratio_aim; /* Aims of mean absolute errors; 0: none. */
    const struct published_row **row;
    uint32_t row_count;
};

struct published {
    struct published_row *row;
    uint32_t row_count;
    struct published_set *set; /* Tests by number, then groups by name. */
    uint32_t set_count;
};

/* All files of the project. Errors: what is no such file, with file and place. */
enum status published_read(struct arena *arena, struct published *ret_published,
                           struct error *reterr);

/* The scenario of a row as JSON text, in the arena; of a collective the command that plays it.
 * STATUS_UNSUPPORTED: the row cannot be run, and the error says why. */
enum status published_scenario(struct arena *arena, const struct published_row *row,
                               const char **ret_text, struct error *reterr);

#endif
