/*
 * alternatives.h: the same step on the other meshes that whole machine axes allow, by rooflines
 * alone: what an expert would try next.
 */
#ifndef SIM_ROOFLINE_ALTERNATIVES_H
#define SIM_ROOFLINE_ALTERNATIVES_H

#include "sim/base/status.h"
#include "sim/roofline/roofline.h"

struct arena;

enum { ALTERNATIVES_MAX = 1 << MACHINE_AXES_MAX };

struct alternative {
    const char *mesh; /* "fsdp over x y z" */
    uint32_t fsdp_ranks;
    uint32_t tp_ranks;
    uint32_t sequence_parts; /* Ranks that share a sequence; 1: none do. */
    bool fits;               /* Its memory is within the chip's. */
    bool current;            /* The mesh that was given. */
    struct roofline roofline;
};

/* Every way to give each whole machine axis to fsdp or to tp that the workload can be lowered to.
 */
enum status alternatives_build(struct arena *arena, const struct workload_plan *plan,
                               const struct machine *machine, const struct mesh *mesh,
                               struct alternative *ret_alternatives, uint32_t *ret_count,
                               struct error *reterr);

#endif
