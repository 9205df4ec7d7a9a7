/*
 * splits.h: attention of decodes on the cores of a chip. A core takes the keys of one sequence and
 * one head of keys at a time, with all queries of these up to a tile of rows: a unit. Keys of a
 * unit may be split among cores (flash decoding); what the parts have found is merged.
 *
 * Units of one length are all split alike, where they are fewer than cores, or stay whole. Units of
 * different lengths are shared in one of three ways:
 * - end to end, each core with a share of equal size, in whole blocks of keys
 * (deepseek-ai/FlashMLA, get_mla_metadata; flash-attention 3 divides as its
 * prepare_varlen_num_blocks says, hopper/flash_prepare_scheduler.cu);
 * - whole, with equally many units on each core;
 * - split as if all were as long as the longest one, so that they never take longer than units that
 *   are all as long.
 */
#ifndef SIM_GRAPH_SPLITS_H
#define SIM_GRAPH_SPLITS_H

#include <stdint.h>

enum { SPLITS_MAX = 128, SPLITS_TILE_KEYS = 128, SPLITS_WAYS = 3 };
/* Rows of a tile of queries. */
enum { SPLITS_TILE_ROWS = 64, SPLITS_WIDE_TILE_ROWS = 128 };

struct splits_request {
    uint64_t units;
    uint64_t keys;    /* Keys of all units. */
    uint64_t longest; /* Keys of the longest unit. */
    uint32_t cores;
    uint32_t most; /* Parts of a unit; 1: units stay whole. */
    /* Other work, as the number of keys that take as long: what all units read and write besides
     * their keys; what is merged of one part. */
    uint64_t besides_keys, part_keys;
};

struct splits_shares {
    uint64_t merged;   /* Parts of units that were split. */
    uint32_t idle_ppm; /* Of the time that the busiest core takes, what the mean core has nothing to
                          do; in millionths. */
};

/* The ways in which cores may share units. Returns how many there are. The fastest is best; the
 * first of equally fast ones. */
uint32_t splits_ways(const struct splits_request *of, struct splits_shares ret_ways[SPLITS_WAYS]);

/* Of units of one length: as many parts as flash-attention takes: one if the units keep 80 % of the
 * cores busy; else the fewest with which cores are idle for little more than with the best number,
 * by the mean unit (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp,
 * num_splits_heuristic). */
uint32_t splits_count(const struct splits_request *of);

#endif
