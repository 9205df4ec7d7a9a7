/*
 * chip_keys.h: the keys of a chip's file, as rows. Every number is an object of a value and its
 * source. What lies outside a row's bounds is refused, so that a slip in a unit is found where it
 * was written and no sum over a machine overflows.
 */
#ifndef SIM_MACHINE_CHIP_KEYS_H
#define SIM_MACHINE_CHIP_KEYS_H

#include "sim/base/key.h"
#include "sim/machine/chip.h"
#include "sim/machine/shape.h"

/* How much of each peak a profile leaves, and what it adds. */
struct chip_profile {
    const char *name;
    uint64_t hbm_capacity_bytes; /* 0: the chip's. */
    uint32_t math_ppm, vector_ppm, hbm_ppm;
    uint32_t link_ppm; /* ICI or NVLink. */
    uint32_t nic_ppm;
    int64_t op_overhead_ps, message_overhead_ps;
    int64_t async_overhead_ps;                           /* TPU. */
    int64_t dcn_begin_ps, dcn_message_ps, dcn_spread_ps; /* TPU. */
};

/* What a file holds: rates of `chip` are peaks. */
struct chip_file {
    struct chip chip;
    struct shape pod, host; /* The shapes of a whole pod of TPUs, and of one host. */
    struct chip_profile *profiles;
    uint32_t profile_count;
    struct json *document;
};

/* Of struct chip_file. */
extern const struct key chip_tpu_keys[], chip_gpu_keys[];
/* Of struct chip_profile. */
extern const struct key chip_tpu_profile_keys[], chip_gpu_profile_keys[];

#endif
