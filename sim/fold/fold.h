/*
 * fold.h: exact results from fewer chips, by symmetry. The machine is divided by translations: each
 * axis gets a period that divides its length, the smallest shift that maps wraparound, overrides
 * and groups onto themselves, and units of the levels in use onto units. Only one chip for each
 * residue is replayed; a link that leaves the replayed box comes back on its other side. Groups
 * keep their true size. Along an axis on a level, where no link leads to a neighbour, any part of a
 * coordinate may be folded, whatever lies around it (fold_digits.c).
 *
 * Overridden chips and links are resolved here into small classes, so that sim/replay searches no
 * overrides.
 */
#ifndef SIM_FOLD_FOLD_H
#define SIM_FOLD_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"

struct arena;

enum {
    FOLD_CHIP_CLASSES_MAX = MACHINE_OVERRIDES_MAX + 1,
    FOLD_RUNS_MAX = 4,
    FOLD_LINK_CLASSES_MAX = 64, /* A message on its route names the slowest in six bits. */
};

struct fold_chip_class {
    uint32_t math_ppm;
    uint32_t hbm_ppm;
};

struct fold_link_class {
    uint64_t bytes_per_s;
    int64_t latency_ps; /* Per hop, without the overhead of a message. */
};

/* A part of a coordinate: at / stride % size. */
struct fold_run {
    uint32_t stride;
    uint32_t size;
};

struct fold {
    uint32_t axis_count;
    uint32_t shape[MACHINE_AXES_MAX]; /* The machine's shape; 1 beyond axis_count. */
    /* Number of places replayed along the axis: the product of the sizes of `run`. 1: fully folded;
     * equal to the shape: not folded. */
    uint32_t period[MACHINE_AXES_MAX];
    /* Parts of a coordinate that distinguish chips, the fastest first: one part of stride 1 where
     * the axis has a true period, none where the period is 1. */
    struct fold_run run[MACHINE_AXES_MAX][FOLD_RUNS_MAX];
    uint32_t run_count[MACHINE_AXES_MAX];
    const char *reason[MACHINE_AXES_MAX]; /* Why the period is what it is. */
    uint32_t chip_count;                  /* Replayed chips: the product of the periods. */

    struct fold_chip_class *chip_classes; /* [class]; 0: chips without overrides. */
    uint32_t chip_class_count;
    struct fold_link_class
        link_classes[FOLD_LINK_CLASSES_MAX]; /* [class]; 0: links without overrides. */
    uint32_t link_class_count;
    const uint16_t *chip_class; /* [replayed chip]; NULL: all of class 0. */
    const uint8_t
        *link_class; /* [replayed chip · MACHINE_PORTS_MAX + port]; NULL: all of class 0. */

    /* How the machine folds before the first refining plan: to fewer chips, of periods that divide
     * these. NULL: the run has no prefix fold. */
    const struct fold *prefix;
    const bool *refines; /* [plan]: it distinguishes pipelines alike until then (fold_prefix.h). */
};

/* `full`: every axis keeps its length. More than FOLD_LINK_CLASSES_MAX kinds of links are refused.
 */
enum status fold_build(struct arena *arena, const struct machine *machine,
                       const struct program *program, bool full, struct fold *ret_fold,
                       struct error *reterr);

/* The replayed place, from 0 to period - 1, that stands for a coordinate of an axis. */
uint32_t fold_along(const struct fold *fold, uint32_t axis, uint32_t at);
/* The lowest coordinate that a replayed place stands for. */
uint32_t fold_lowest(const struct fold *fold, uint32_t axis, uint32_t replayed);

/* Coordinates of a replayed chip: the coordinates of the machine's chip that it stands for, the
 * lowest ones. */
void fold_coordinates(const struct fold *fold, uint32_t replayed,
                      uint32_t ret_at[MACHINE_AXES_MAX]);

/* The machine's chip with these coordinates. */
uint32_t fold_machine_chip(const struct fold *fold, const struct machine *machine,
                           uint32_t replayed);

/* The replayed chip that stands for a chip of the machine. */
uint32_t fold_replayed_chip(const struct fold *fold, const struct machine *machine, uint32_t chip);

/* The replayed chip that a link leads to; the link must be there. */
uint32_t fold_neighbour(const struct fold *fold, const struct machine *machine, uint32_t replayed,
                        uint32_t port);

#endif
