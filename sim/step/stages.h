/*
 * stages.h: which layers a pipeline stage has: stage 0 the first, with the embedding; the last with
 * the head.
 */
#ifndef SIM_STEP_STAGES_H
#define SIM_STEP_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/step/workload.h"

struct arena;

struct stage {
    uint32_t layer_first;
    uint32_t layer_count;
    uint32_t mtp_modules; /* Modules that predict further tokens (MTP). */
    uint32_t mtp_heads;   /* Heads of modules that lie on another stage. */
    bool embedding, head;
};

struct stages {
    struct stage *stage;
    uint32_t count;
};

/*
 * Without a layout all stages have as many layers; or, if they cannot, the first and the last one
 * less than the others, the embedding and the head being taken for a layer each. In inference any
 * number of layers goes, as in vLLM (get_pp_indices() of vllm/distributed/utils.py): layers beyond
 * even shares lie one each on the last stage but one and on the stages before it.
 *
 * A layout is Megatron's (--pipeline-model-parallel-layout): "E" the embedding, "t" a layer, "m" a
 * module that predicts a further token, "L" head and loss, "|" the border of two stages, "*3"
 * behind a letter or behind "( )" repeats it, commas mean nothing: "Et*7|(t*8|)*14t*7mL". Without a
 * layout such modules are with the last stage's layers.
 *
 * `room` is how many ranks the machine's axes of pp have: others than its divisors are not offered.
 *
 * Errors: STATUS_INVALID with the rule and the nearest counts that fit, or the place in the layout
 * ("/workload/layout", character); STATUS_UNSUPPORTED for "m" on several stages.
 */
enum status stages_build(struct arena *arena, const struct workload_plan *plan, uint32_t count,
                         uint64_t room, struct stages *ret_stages, struct error *reterr);

/* The layout of a plan without one, on `ranks` of pp: "Et*8|(t*8|)*2t*8L". Errors: what
 * workload_places() and stages_build() refuse. */
enum status stages_layout(struct arena *arena, const struct workload_plan *plan, uint32_t ranks,
                          const char **ret_layout, struct error *reterr);

/* Whether a layout puts modules that predict further tokens on another stage than the head. A NULL
 * layout does not. */
bool stages_mtp_apart(const char *layout);

#endif
