/*
 * fold.h: exactness bought with symmetry. The machine is divided by translations: each axis gets a
 * period that divides its length, the smallest shift that maps wraparound, overrides and groups
 * onto themselves, and units of the levels in use onto units. Only one chip for each residue is
 * replayed; a link that leaves the replayed box comes back on its other side. Groups keep their
 * true size. Along an axis on a level, where no link leads to a neighbour, any part of a coordinate
 * may be folded, whatever lies around it (fold_digits.c).
 *
 * What is odd about the machine (overridden chips and links) is resolved here into small classes,
 * so that nobody behind it has to search overrides.
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
    uint32_t shape[MACHINE_AXES_MAX]; /* Of the machine; 1 beyond axis_count. */
    /* Replayed along the axis. 1: fully folded; equal to the shape: not at all; else mostly a
     * period, */
    uint32_t period[MACHINE_AXES_MAX];
    /* and always the product of the parts of a coordinate that tell chips apart, the fastest first:
     * one of stride 1 where it is a period, none if it is 1. */
    struct fold_run run[MACHINE_AXES_MAX][FOLD_RUNS_MAX];
    uint32_t run_count[MACHINE_AXES_MAX];
    const char *reason[MACHINE_AXES_MAX]; /* Why the period is what it is. */
    uint32_t chip_count;                  /* Replayed: the product of the periods. */

    struct fold_chip_class *chip_classes; /* Class 0: a chip like the others. */
    uint32_t chip_class_count;
    struct fold_link_class
        link_classes[FOLD_LINK_CLASSES_MAX]; /* Class 0: a link like the others. */
    uint32_t link_class_count;
    const uint16_t *chip_class; /* [replayed chip]; NULL: all of class 0. */
    const uint8_t
        *link_class; /* [replayed chip · MACHINE_PORTS_MAX + port]; NULL: all of class 0. */

    /* Pipelines are alike until a plan tells them apart, as reductions over switches do at the end
     * of a step. How the machine folds until then: fewer chips, of periods that divide these; and
     * in that fold, which plans end it. NULL: there is no such time. */
    const struct fold *early;
    const bool *late; /* [plan] */
};

/* `full`: every axis keeps its length. More than FOLD_LINK_CLASSES_MAX kinds of links are refused.
 */
enum status fold_build(struct arena *arena, const struct machine *machine,
                       const struct program *program, bool full, struct fold *ret_fold,
                       struct error *reterr);

/* Whether messages of a routed item may have to go exactly half way round an axis of the grid. */
bool fold_axis_has_antipodes(const struct machine *machine, const struct plan *plan,
                             const struct plan_item *item, uint32_t axis);

/* What decides which way round they go, so that both ways carry the same: whether they go an odd
 * way along another such axis, which is returned; or, if it is the axis itself, whether their
 * sender stands at an odd place on it. */
uint32_t fold_antipode_axis(const struct machine *machine, const struct plan *plan,
                            const struct plan_item *item, uint32_t axis);

/* What is replayed for a coordinate of an axis: its number among `period`; */
uint32_t fold_along(const struct fold *fold, uint32_t axis, uint32_t at);
/* and the lowest coordinate of those that it stands for. */
uint32_t fold_lowest(const struct fold *fold, uint32_t axis, uint32_t replayed);

/* Coordinates of a replayed chip, which are those of the machine's chip it stands for (the one
 * with the lowest coordinates). */
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
