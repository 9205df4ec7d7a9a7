/*
 * splits.h: attention on the cores of a chip. A core takes the keys of one sequence and one head of
 * keys at a time, with all queries of these up to a tile of rows: a unit. Keys of a unit may be
 * split among cores (flash decoding); what the parts have found is merged.
 *
 * Cores share the units of a pass in the way that is done first:
 * - whole, the kind with longer units first;
 * - those of a kind, or of both, each split into as many parts, as if all were as long as the
 * longest one (flash-attention, num_splits_heuristic, which takes a number near the best);
 * - end to end, each core with a share of equal size, in whole blocks of keys
 * (deepseek-ai/FlashMLA, get_mla_metadata; flash-attention 3 divides as its
 * prepare_varlen_num_blocks says, hopper/flash_prepare_scheduler.cu).
 * A part is never less than a block, nor its end within one. So no pass takes longer than with
 * whole units, or than if all units were as long as the longest one.
 */
#ifndef SIM_GRAPH_SPLITS_H
#define SIM_GRAPH_SPLITS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/units.h"

enum { SPLITS_MAX = 128, SPLITS_BLOCK_KEYS = 128, SPLITS_KINDS = 2 };

/* Units of decodes, or of prompts. Work is in any measure of a core's time, the same in all fields.
 */
struct splits_kind {
    uint64_t count;     /* 0: none. */
    units_wide each;    /* Work of the mean unit. */
    units_wide longest; /* Work of the longest unit. */
    units_wide block;   /* Work of a block of keys. */
    units_wide part;    /* Work of merging a part. */
    bool even_out; /* Units are of many lengths: where there are as many as cores, they fill the
                      cores evenly. */
};

struct splits_request {
    struct splits_kind kind[SPLITS_KINDS];
    uint32_t cores;
    uint32_t most; /* Parts of a unit; 1: units stay whole. */
};

struct splits_shares {
    units_wide busiest;            /* Work of the busiest core, merging included. */
    uint64_t merged[SPLITS_KINDS]; /* Parts of units that were split. */
};

/* The way that is done first; the first of equally fast ones. */
struct splits_shares splits_best(const struct splits_request *of);

#endif
