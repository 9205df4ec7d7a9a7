/*
 * compute.h: how long a compute op takes on a chip: a software pipeline of tiles, HBM -> VMEM ->
 * MXU or VPU -> VMEM -> HBM, double buffered. Tiles are not events: the pipeline of an op is the
 * closed form fill + (n-1)·slowest stage + drain, tested against a tile-by-tile replay.
 */
#ifndef SIM_RESOURCE_COMPUTE_H
#define SIM_RESOURCE_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/work.h"
#include "sim/machine/chip.h"

struct compute_time {
    int64_t duration_ps; /* Of the whole op on an idle chip, overhead included. */
    int64_t mxu_ps;      /* Demand on each server; the largest is what bounds the op. */
    int64_t vpu_ps;
    int64_t hbm_ps;
    int64_t vmem_ps;
    int64_t rest_ps;     /* duration when HBM is the slowest stage = hbm_ps + rest_ps: fill, drain
                            and overhead that do not stream. */
    int64_t vpu_rest_ps; /* duration when the VPU is the slowest stage = vpu_ps + vpu_rest_ps. */
    int64_t ends_ps;     /* duration without overhead, less the largest demand: fill and drain. */
    int64_t async_ps;    /* Start and end of asynchronous collectives, within duration. No unit of
                            the chip is busy meanwhile. */
    uint64_t tile_count;
    uint64_t padded_flop;
};

/* `math_ppm`, `hbm_ppm`: an overridden chip's share of the rates (PPM_ONE: as the others). */
struct compute_time compute_time(const struct chip *chip, const struct work *work,
                                 uint32_t math_ppm, uint32_t hbm_ppm);

/* compute_time() of an op of which `there_bytes` of what it reads lie in VMEM already. The op has
 * as many tiles. */
struct compute_time compute_time_of_rest(const struct chip *chip, const struct work *work,
                                         uint64_t there_bytes, uint32_t math_ppm, uint32_t hbm_ppm);

/* What a work loses of its rate where 0 to `held_most` of the chip's cores, not all of them, are
 * not its own. */
void compute_losses_ppm(const struct chip *chip, const struct work *work, uint32_t held_most,
                        uint32_t *ret_ppm);

/* Bytes of VMEM that the tiles of a running op leave to weights of ops that follow. */
uint64_t compute_vmem_rest_bytes(const struct chip *chip);

#endif
