/* pipeline_places.h: what a pass of a stage has at each place, in the order of its slots. Internal
 * to sim/step. */
#ifndef SIM_STEP_PIPELINE_PLACES_H
#define SIM_STEP_PIPELINE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/step/pipeline.h"

/* The modules of a stage that have a part in a pass, in the order of the forward pass: the
 * embedding has no input gradient. */
struct pipeline_places {
    const struct ranks *ranks;
    const struct stage *stage;
    bool embedding, head;
    bool again;     /* Groups of layers are repeated ahead of their backward passes. */
    uint32_t count; /* With repeated layers, which come twice. */
};

struct pipeline_places pipeline_places_of(const struct pipeline *pipeline,
                                          const struct schedule_pass *pass);

/* What a pass has at a place. */
struct pipeline_placed {
    enum lower_module module;
    int32_t layer; /* The module's layer, or the number of a module of MTP, or -1. */
    bool again;    /* The forward pass of a layer, repeated. */
};

struct pipeline_placed pipeline_placed_at(const struct pipeline_places *modules, bool forward,
                                          uint32_t place);

/* How many modules from `place` on are equal to its module; with `weights`, have equal weights. */
uint32_t pipeline_run_at(const struct pipeline_places *modules, bool forward, uint32_t place,
                         bool weights);

#endif
