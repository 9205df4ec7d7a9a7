/* recompute.h: lists of arrays that a framework keeps, repeats or sends to the host, as `remat`. */
#ifndef TOOLS_PODSIM_IMPORT_RECOMPUTE_H
#define TOOLS_PODSIM_IMPORT_RECOMPUTE_H

#include "tools/podsim/import/import.h"

enum import_list { IMPORT_LIST_SAVE, IMPORT_LIST_REPEAT, IMPORT_LIST_OFFLOAD, IMPORT_LISTS };

enum { IMPORT_ARRAYS_MAX = 48 };

/* Arrays of layers, by podsim's names. */
struct import_arrays {
    const char *name[IMPORT_LISTS][IMPORT_ARRAYS_MAX];
    uint32_t count[IMPORT_LISTS];
};

/* What names of arrays depend on. */
struct import_layers {
    uint64_t count;
    bool dense, experts; /* Some layers have an MLP; some have experts. */
    bool shared;         /* All tokens go to some experts. */
    bool gated, latent, parallel;
    bool offloads; /* podsim keeps arrays of the layers in the memory of the host. */
};

/* Of the model of the scenario, which is set before. */
enum status import_layers_find(struct import *import, struct import_layers *ret_layers,
                               struct error *reterr);

/* The most layers that a stage of the pipeline has, of the model and the layout of the scenario.
 * What has no such stages is refused when it is built. */
enum status import_stage_layers(struct import *import, uint64_t *ret_layers, struct error *reterr);

/* Adds a name to a list; an array is in one list alone, the last one that it was added to. */
void import_array_add(struct import_arrays *arrays, enum import_list list, const char *name);

/* "/workload/remat", with the policy of all other arrays. Without lists the policy alone. */
enum status import_remat(struct import *import, const char *policy,
                         const struct import_arrays *arrays, struct error *reterr);

/* "/workload/remat" of some layers, or of groups: `which` of workload.remat.layers. */
enum status import_remat_layers(struct import *import, const char *policy, const char *which,
                                uint64_t count, struct error *reterr);

/* "/workload/fp8_recipe", on a machine whose stack has kernels for it. Else the fact is not
 * expressed. `stack` is the framework's own. */
enum status import_recipe(struct import *import, const void *fact, const char *stack,
                          const char *recipe, struct error *reterr);

#endif
