/*
 * chip.h: what a chip is: rates, capacities and overheads, after a profile has been applied.
 *
 * Chips are data: one JSON in topology/chips/ each, embedded in the binary, every number with its
 * source. A profile scales rates by an efficiency and adds overheads; the `ideal` profile does
 * neither. What this header holds are the effective numbers that a simulation may use, and the
 * peaks that MFU is measured against.
 */
#ifndef SIM_MACHINE_CHIP_H
#define SIM_MACHINE_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"

struct arena;

enum { CHIP_AXES_MAX = 3, CHIP_SLICES_MAX = 16 };

/* By which rule an axis of a slice has wraparound links (book, chapter 2, TPU Networking). */
enum chip_wrap_rule {
    CHIP_WRAP_FULL_AXIS, /* v3, v5e, v6e: an axis that has the pod's full length (32; 16). */
    CHIP_WRAP_CUBES,     /* v4p, v5p: every axis, once the slice is whole 4x4x4 cubes. */
};

struct chip {
    const char *name;       /* "tpu-v5p" */
    const char *short_name; /* "v5p": what product names begin with. */
    const char *title;      /* "TPU v5p" */
    const char *profile;    /* "ideal", "measured" */

    uint64_t hbm_capacity_bytes;
    uint64_t hbm_bytes_per_s; /* Effective. */
    uint64_t vmem_capacity_bytes;
    uint64_t vmem_bytes_per_s; /* Effective. */

    uint64_t math_flop_per_s[FORMAT_COUNT]; /* MXU, effective; 0: the format is not supported. */
    uint64_t math_peak_flop_per_s[FORMAT_COUNT]; /* MXU, of the data sheet: what MFU is against. */
    uint64_t vector_flop_per_s;                  /* VPU, effective, fp32. */
    uint32_t mxu_rows, mxu_columns, mxu_count;   /* Of the whole chip. */
    uint32_t core_count;

    uint64_t ici_bytes_per_s; /* One link, one way, effective. */
    uint64_t ici_peak_bytes_per_s;
    int64_t hop_latency_ps;
    uint64_t pcie_bytes_per_s; /* One way. */
    uint64_t dcn_bytes_per_s;  /* One way, this chip's share of its host's NIC. */

    int64_t op_overhead_ps;      /* Added to each compute op. */
    int64_t message_overhead_ps; /* Added to the latency of each message over a link. */

    uint32_t axis_count;               /* Dimensions of the torus. */
    uint32_t pod_shape[CHIP_AXES_MAX]; /* Largest slice. */
    uint32_t host_shape[CHIP_AXES_MAX];
    enum chip_wrap_rule wrap_rule;
    uint32_t wrap_length; /* FULL_AXIS: the length that wraps. CUBES: the edge of a cube. */
    uint32_t name_units;  /* What a product name like v5p-8192 counts per chip: 2 cores, or 1. */

    /* The slices that are sold, as the product writes them; under CHIP_WRAP_CUBES only those
     * smaller than a cube, since every box of whole cubes is one too. */
    uint32_t slice[CHIP_SLICES_MAX][CHIP_AXES_MAX];
    uint32_t slice_count;
};

/* Finds a chip by name ("tpu-v5p", "v5p") and applies a profile. Unknown names are refused with
 * the nearest one; `where` is the place of the name in the input, `where_profile` the profile's. */
enum status chip_find(struct arena *arena, const char *name, const char *profile, const char *where,
                      const char *where_profile, struct chip *ret_chip, struct error *reterr);

/* Names of the catalogue, in its order; NULL past the end. */
const char *chip_name_at(uint32_t index);

/* The embedded JSON of a chip by its full name, or NULL. */
const char *chip_json(const char *name, uint32_t *ret_size_bytes);

/* One number of a chip's file as it stands there, for `list chips NAME`. */
struct chip_fact {
    const char *key; /* "hbm_rate", "math/bf16", "profiles/measured/hbm_ppm" */
    const char *value;
    const char *source;
};

enum status chip_facts(struct arena *arena, const char *name, const char *where,
                       const struct chip_fact **ret_facts, uint32_t *ret_count,
                       struct error *reterr);

#endif
