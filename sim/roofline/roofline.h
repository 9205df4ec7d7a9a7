/*
 * roofline.h: closed forms of a training step: what bounds it if everything overlapped perfectly,
 * and if nothing did. Computed from the scenario's numbers alone: it shares constants and the
 * counts of FLOP and bytes with the simulator, never its queues, durations or schedule.
 *
 * Source: the book, chapters 1, 4 and 5, with the finite factors (N-1)/N that it drops.
 */
#ifndef SIM_ROOFLINE_ROOFLINE_H
#define SIM_ROOFLINE_ROOFLINE_H

#include <stdint.h>

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/workload/workload.h"

struct roofline {
    double math_s;   /* MXU: executed FLOP, recomputation and padding included. */
    double vector_s; /* VPU */
    double hbm_s;    /* Bytes of the compute ops and of the collectives over HBM bandwidth. */
    double
        ici_s[MACHINE_AXES_MAX]; /* Bytes over each machine axis, both directions of its links. */
    double latency_s;     /* Hops of the collectives on the critical path, had they no bytes. */
    double lower_s;       /* The largest of the whole-step busy times above. */
    double upper_s;       /* Their serial sum: nothing overlaps. */
    const char *bound_by; /* "mxu", "vpu", "hbm", "ici" */

    double useful_flop;   /* 6·P·tokens over the machine. */
    double executed_flop; /* Over the machine; unpadded. */
    double ideal_s;       /* useful FLOP at peak: MFU 1. */

    /* Of collectives by what moves, one chip: bytes sent over ICI a step. */
    double fsdp_bytes, dp_bytes, tp_bytes;
    /* Times of the pieces, one chip, for the notes and for `podsim roofline`. */
    double tp_s, fsdp_s, dp_s;
    /* The book's rules, evaluated: communication bound if below/above. 0 if not applicable. */
    double fsdp_critical_tokens; /* (C/W)/M_X */
    double tp_critical_width;    /* Y·(C/W)/M_Y */
    double tokens_per_chip;
};

void roofline_train_step(const struct workload_plan *plan, const struct machine *machine,
                         const struct mesh *mesh, struct roofline *ret_roofline);

#endif
