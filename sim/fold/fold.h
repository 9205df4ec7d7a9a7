/*
 * fold.h: exactness bought with symmetry. The machine is divided by translations: each axis gets a
 * period that divides its length, the smallest shift that maps wraparound, overrides, mesh parts
 * and groups onto themselves. Only one chip for each residue is replayed.
 */
#ifndef SIM_FOLD_FOLD_H
#define SIM_FOLD_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"

struct arena;

struct fold {
    uint32_t axis_count;
    uint32_t shape[MACHINE_AXES_MAX];     /* Of the machine. */
    uint32_t period[MACHINE_AXES_MAX];    /* 1: fully folded; equal to the shape: not at all. */
    const char *reason[MACHINE_AXES_MAX]; /* Why the period is what it is. */
    uint32_t chip_count;                  /* Replayed: the product of the periods. */
};

/* `full`: every axis keeps its length. */
enum status fold_build(struct arena *arena, const struct machine *machine,
                       const struct program *program, bool full, struct fold *ret_fold,
                       struct error *reterr);

/* The machine's chip (lowest coordinates) that a replayed chip stands for. */
uint32_t fold_machine_chip(const struct fold *fold, const struct machine *machine,
                           uint32_t replayed);

/* The replayed chip that stands for a chip of the machine. */
uint32_t fold_replayed_chip(const struct fold *fold, const struct machine *machine, uint32_t chip);

/* The replayed chip that a link leads to; the link must exist. */
uint32_t fold_neighbour(const struct fold *fold, uint32_t replayed, uint32_t port);

#endif
