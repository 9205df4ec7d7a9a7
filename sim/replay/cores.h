/*
 * cores.h: cores of a chip that drive collectives, and what compute ops lose by it.
 *
 * A collective, or a message to another rank, has its cores from its begin on this chip to its end,
 * whether bytes move or not. An op that runs meanwhile goes on with the others: at (n - c)/n of its
 * rate where c of n cores are taken, or, where a table has its kernels, as much slower as their
 * tiles have more steps on n - c cores than on n. What is lost is added up at each change, and the
 * op ends when it has had the time of its math on all cores. An op that is bound by memory has
 * cores to spare, and loses only what its math needs beyond that.
 *
 * The end of an op is put off by what it has lost so far, at the rate of that instant. A collective
 * that ends in that time does not bring it forward again.
 */
#ifndef SIM_REPLAY_CORES_H
#define SIM_REPLAY_CORES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct chip;
struct compute_time;
struct program;

struct cores_state {
    int64_t edge_ps; /* Instant up to which `lost_ps` is known. */
    int64_t lost_ps; /* By the running part, or the last one. */
    uint32_t held;   /* Cores of collectives under way. */
};

/* Math of a compute op on all cores, cut into parts as evenly as integers allow. */
struct op_cores {
    int64_t math_ps;
    uint32_t math_longer;
    uint32_t work;
    bool matter; /* Collectives of the program can delay it. */
};

struct cores {
    struct cores_state *states; /* [chip] */
    uint32_t *loss_ppm;         /* [work][cores held]: of the time that passes. */
    uint32_t held_most;         /* Of all streams together, and fewer than a chip has. */
    bool is_on;                 /* Some collective has cores. */
};

enum status cores_build(struct arena *arena, const struct program *program, const struct chip *chip,
                        struct cores *ret_cores, struct error *reterr);
/* What of an op's time is math. */
struct op_cores cores_op(const struct cores *cores, uint32_t work, const struct compute_time *time,
                         uint32_t parts);

/* A part of an op begins. */
static inline void cores_part_begin(const struct cores *cores, uint32_t chip, int64_t now_ps)
{
    cores->states[chip].edge_ps = now_ps;
    cores->states[chip].lost_ps = 0;
}

/* When the math of a part that began at `begin_ps` ends, as far as is known; not before now if it
 * has not. */
int64_t cores_end_ps(const struct cores *cores, uint32_t chip, uint32_t part,
                     const struct op_cores *own, int64_t begin_ps, int64_t now_ps);

/* Adds up what the running part has lost, before collectives hold another number of cores. */
void cores_settle(const struct cores *cores, uint32_t chip, uint32_t work, int64_t now_ps);

#endif
