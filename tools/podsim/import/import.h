/*
 * import.h: from a framework's own configuration to a scenario.
 *
 * A reader makes a flat list of settings of any format: key, value, line. The table of a framework
 * has a row for each key: what fact it states, why it changes no step's time, or what podsim
 * cannot express of it. Then the framework turns facts into keys of a scenario. No setting is left
 * without an outcome, and all are printed with it.
 */
#ifndef TOOLS_PODSIM_IMPORT_IMPORT_H
#define TOOLS_PODSIM_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "tools/podsim/import/facts.h"
#include "tools/podsim/import/settings.h"

struct json;
struct json_writer;
struct strbuf;

/* How a row takes the value of its key. */
enum import_how {
    IMPORT_COUNT,   /* A whole number of 1 or more, into a fact. */
    IMPORT_AMOUNT,  /* A whole number, into a fact; 0 is none. */
    IMPORT_REST,    /* A whole number, into a fact; -1 is as if the key were not there. */
    IMPORT_LEFT,    /* A whole number of 1 or more, into a fact; -1 is as if it were not there. */
    IMPORT_WORD,    /* A text, into a fact. */
    IMPORT_ON,      /* A flag, or a boolean: 1 or 0 into a fact. */
    IMPORT_OFF,     /* A flag, or a boolean: its contrary into a fact. */
    IMPORT_NOTHING, /* The key changes no step's time. */
    IMPORT_LACKS,   /* podsim cannot express it, unless it has a value that changes nothing. */
};

struct import_row {
    const char *key; /* "--log-interval"; "profiling.*" is every key below it. */
    enum import_how how;
    size_t at;         /* The fact, as an offset in struct import_facts. */
    const char *text;  /* What it sets, why it changes nothing, or what it would mean. */
    const char *plain; /* IMPORT_LACKS: values that change nothing, separated by "|". */
};

#define IMPORT_FACT(key, how, field, text)                                                         \
    {                                                                                              \
        (key), (how), offsetof(struct import_facts, field), (text), NULL                           \
    }
#define IMPORT_SAYS_NOTHING(key, text)                                                             \
    {                                                                                              \
        (key), IMPORT_NOTHING, 0, (text), NULL                                                     \
    }
#define IMPORT_NOT_MODELLED(key, plain, text)                                                      \
    {                                                                                              \
        (key), IMPORT_LACKS, 0, (text), (plain)                                                    \
    }

struct import {
    struct arena *arena;
    struct import_file *file;
    const char *model;        /* `--model`: instead of the file's; NULL: the file's own. */
    const char *machine_text; /* `--machine` */
    struct machine machine;
    struct json *machine_json;
    bool is_ideal; /* The machine's profile is `ideal`. */
    struct import_facts facts;
    /* By the place of a fact: the setting that states it; NULL: none does. */
    struct import_setting *said[sizeof(struct import_facts) / sizeof(uint64_t)];
    struct json *scenario;
    const struct import_row *const *rows; /* The framework's. */
};

struct import_framework {
    const char *name;
    const char *preset; /* What it does with a step. */
    enum status (*read)(struct import_file *file, struct error *reterr);
    const struct import_row *const *rows; /* Tables, ended by NULL; each ends without a key. */
    /* Fills in facts that follow from others, and everything of the scenario but the machine. */
    enum status (*finish)(struct import *import, struct error *reterr);
};

/* By name. NULL: there is none, which `reterr` says. */
const struct import_framework *import_framework_find(const char *name, struct error *reterr);

/* Gives each setting the outcome that its row says, and fills in facts. Errors: a value that is
 * none of the key, at its line. */
enum status import_rows(struct import *import, const struct import_framework *framework,
                        struct error *reterr);

/* A key of the scenario: "/workload/zero=1". */
enum status import_set(struct import *import, struct error *reterr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A key of the scenario, "/workload/model", and any text as its value. */
enum status import_set_text(struct import *import, const char *key, const char *value,
                            struct error *reterr);

/* Refuses a word, with the nearest of those there are. Nothing said is no word. */
enum status import_choice(const struct import *import, const char *const *fact,
                          const char *const *choices, struct error *reterr);

/* The setting that states a fact; NULL: none does. */
struct import_setting *import_said(const struct import *import, const void *fact);
/* The framework's key that states a fact, the first where there are several. */
const char *import_key(const struct import *import, const void *fact);
/* The fact's setting is expressed at another place of the scenario than its row's. */
void import_at(struct import *import, const void *fact, const char *place);
/* The fact's setting is not expressed, or not wholly: what is missing. Nothing where none is. */
void import_lacks(struct import *import, const void *fact, const char *what);
/* Other settings of the file leave the fact's setting without effect. `why` is the reason that the
 * list of settings prints. */
void import_plain(struct import *import, const void *fact, const char *why);
/* A remark that no setting of the file has: what its absence means. */
enum status import_remark(struct import *import, const char *key, const char *what,
                          struct error *reterr);
/* Refuses a fact at the line of its setting, or at the file. */
enum status import_refuse(const struct import *import, const void *fact, struct error *reterr,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* --- What several frameworks have in common --- */

/* Ranks of the mesh on the axes of the machine, "/mesh". */
enum status import_mesh(struct import *import, const uint64_t ranks[MESH_ROLE_COUNT],
                        struct error *reterr);
/* "/mesh" of ranks of which some lie across slices of TPUs, or nodes of GPUs: `across` has their
 * number. */
enum status import_mesh_across(struct import *import, const uint64_t ranks[MESH_ROLE_COUNT],
                               const uint64_t across[MESH_ROLE_COUNT], struct error *reterr);
/* Slices of TPUs, or nodes of GPUs. */
uint32_t import_slices(const struct import *import);
/* Formats of weights, activations and gradients, in PyTorch's and JAX's words. */
enum status import_formats_set(struct import *import, struct error *reterr);
/* Refuses bf16 and fp16 at once, as the frameworks do. */
enum status import_precision_check(const struct import *import, struct error *reterr);
/* Batch and sequences. `copies` are ranks that have sequences of their own. Fills in those of
 * `sequences`, `microbatch` and `accumulate` that follow from the others. */
enum status import_batch(struct import *import, uint64_t copies, struct error *reterr);
/* "/workload/model": that of `--model`, a built-in one whose sizes are the facts', or these. */
enum status import_model(struct import *import, struct error *reterr);

/* What the facts say of windows, caps, norms, biases and sinks, and no layer of the type has. */
void import_family_gaps(struct import *import, const char *type);

/* Members of a config.json for those of these parts that its type has. */
void import_family_write(struct json_writer *json, const struct import_facts *facts,
                         const char *type);

/* "/workload/capacity_factor" of models with experts. -1 says that no token is dropped. */
enum status import_capacity(struct import *import, struct error *reterr);
/* Fills in the sizes of latent attention that nothing states. */
void import_mla_fill(struct import *import, const struct import_mla *otherwise);

/* A model by the name that a framework has for it: "llama3 8B", a name and a flavor. `ours` is
 * built in, or a row of workloads/named-models.json. */
struct import_name {
    const char *theirs, *ours; /* `theirs` NULL ends a table. */
    bool lacks_mtp; /* The module for multi-token prediction is off unless a key has it on. */
};
enum status import_model_named(struct import *import, const struct import_name *names,
                               struct error *reterr);

/* The model's name gives its sizes: settings of sizes have no influence, for the reason `why`. */
void import_sizes_drop(struct import *import, bool but_name, const char *why);
/* The model of `--model`, which is needed; and tokens of a sequence, which --with gives. */
enum status import_model_given(struct import *import, struct error *reterr);
/* Whether the model, of `--model` or of the file's sizes, predicts further tokens. */
bool import_has_mtp(const struct import *import);
/* Whether the same model has experts. */
bool import_has_experts(const struct import *import);
enum status import_length_given(struct import *import, struct error *reterr);
/* Fills in 1 for axes that nothing states, and gives what is left of the machine's chips. */
enum status import_rest(struct import *import, uint64_t *const *axes, uint32_t count,
                        uint64_t *ret_ranks, struct error *reterr);
/* The software whose kernels the machine has, where podsim has a table of them. */
enum status import_stack(struct import *import, const char *stack, struct error *reterr);
/* Whether podsim has kernels of PyTorch on the chip, in this profile. */
bool import_has_torch(const struct import *import);
/* PyTorch's autocast, where it has. */
enum status import_autocast(struct import *import, struct error *reterr);

/* The optimizer's state where DeepSpeed has it, "/workload/offload". */
enum status import_offload(struct import *import, struct error *reterr);

/* "/workload/clip_gradients", where gradients are not scaled to a norm. */
enum status import_clips(struct import *import, struct error *reterr);

/* What happened to each setting, for people. */
void import_report(struct strbuf *text, const struct import *import, const char *framework);

#endif
