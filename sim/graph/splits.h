/*
 * splits.h: attention of decodes on the cores of a chip. A core takes the keys of one sequence and
 * one head of keys at a time, with all queries of these up to a tile of rows. Where such units are
 * fewer than cores, the keys of each are split (flash decoding), and what the parts have found is
 * merged.
 */
#ifndef SIM_GRAPH_SPLITS_H
#define SIM_GRAPH_SPLITS_H

#include <stdint.h>

enum { SPLITS_MAX = 128, SPLITS_TILE_ROWS = 64, SPLITS_TILE_KEYS = 128 };

struct splits_request {
    uint64_t units;
    uint64_t keys;    /* Of all units. */
    uint64_t longest; /* Keys of the longest unit. */
    uint32_t cores;
    uint32_t most; /* Parts of a unit; 1: units stay whole. */
};

/* As many parts as flash-attention takes: one if the units keep 80 % of the cores busy; else the
 * fewest with which cores are idle for little more than with the best number, by the mean unit
 * (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp, num_splits_heuristic). */
uint32_t splits_count(const struct splits_request *of);

/* Of the time that the busiest core takes, what the mean core has nothing to do; in millionths. */
uint32_t splits_idle_ppm(const struct splits_request *of, uint32_t splits);

#endif
