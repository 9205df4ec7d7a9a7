#include "sim/graph/splits.h"

#include <stdbool.h>

#include "sim/base/units.h"

enum { ENOUGH_UNITS_PERCENT = 80, NEAR_BEST_PERCENT = 85 };

/* Of the cores' time in rounds of `units`, in millionths. */
static uint64_t busy_ppm(uint64_t units, uint32_t cores)
{
    uint64_t const rounds = units_ceil_divide(units, cores);
    return (uint64_t)((units_wide)units * PPM_ONE / ((units_wide)rounds * cores));
}

/* Whether one part fewer would have as many tiles of keys. */
static bool is_alike(uint64_t tiles, uint32_t splits)
{
    return splits > 1 && units_ceil_divide(tiles, splits) == units_ceil_divide(tiles, splits - 1);
}

uint32_t splits_count(const struct splits_request *of)
{
    uint64_t best_ppm = 0;
    if (of->units == 0 || of->units * 100 >= (uint64_t)of->cores * ENOUGH_UNITS_PERCENT) return 1;
    uint64_t const tiles =
        units_ceil_divide(units_ceil_divide(of->keys, of->units), SPLITS_TILE_KEYS);
    uint64_t most = of->most < of->cores ? of->most : of->cores;
    if (tiles < most) most = tiles;
    for (uint32_t n = 1; n <= most; n++)
        if (!is_alike(tiles, n) && busy_ppm(of->units * n, of->cores) > best_ppm)
            best_ppm = busy_ppm(of->units * n, of->cores);
    for (uint32_t n = 1; n <= most; n++)
        if (!is_alike(tiles, n) &&
            busy_ppm(of->units * n, of->cores) * 100 >= best_ppm * NEAR_BEST_PERCENT)
            return n;
    return 1;
}

/* Of all keys and those of the busiest core, in the same unit. */
static uint32_t idle_ppm(units_wide all, units_wide busiest, uint32_t cores)
{
    units_wide const busy = all * PPM_ONE / (busiest * cores);
    return busy >= PPM_ONE ? 0 : PPM_ONE - (uint32_t)busy;
}

/* The mean unit has as many keys as the longest one, rounded up as parts of units are. */
static bool are_alike(const struct splits_request *of)
{
    return units_ceil_divide(of->keys, of->units) >= of->longest;
}

/* The busiest core has its rounds of mean parts, or the longest unit. */
static struct splits_shares share_alike(const struct splits_request *of)
{
    uint32_t const splits = splits_count(of);
    uint64_t const parts = of->units * splits;
    uint64_t const rounds = units_ceil_divide(parts, of->cores);
    units_wide const all = (units_wide)of->keys + of->besides_keys;
    units_wide const mean = rounds * all; /* Times parts. */
    units_wide const longest = (units_wide)of->longest * of->units + of->besides_keys;
    units_wide const busiest = mean > longest ? mean : longest;
    return (struct splits_shares){
        .merged = splits == 1 ? 0 : parts,
        .idle_ppm = idle_ppm(all * parts, busiest, of->cores),
    };
}

/* One way to share units of different lengths. */
struct way {
    /* Work of all cores together, and of the busiest core, in 1/FINE of a key. */
    units_wide all, busiest;
    uint64_t merged; /* Parts that are merged. */
};

enum { FINE = 1 << 20 };

static units_wide fine_of(units_wide keys, uint64_t divisor)
{
    return (keys * FINE + divisor - 1) / divisor;
}

/* Work of all units and of `merged` parts, in keys. */
static units_wide work_of(const struct splits_request *of, uint64_t keys, uint64_t merged)
{
    return (units_wide)keys + of->besides_keys + (units_wide)merged * of->part_keys;
}

/* The busiest core has its rounds of mean units, or the longest unit. */
static struct way way_whole(const struct splits_request *of)
{
    units_wide const all = work_of(of, of->keys, 0);
    uint64_t const rounds = units_ceil_divide(of->units, of->cores);
    units_wide const mean = fine_of(all * rounds, of->units);
    units_wide const longest =
        (units_wide)of->longest * FINE + fine_of(of->besides_keys, of->units);
    return (struct way){all * FINE, mean > longest ? mean : longest, 0};
}

/* Each unit is split as the longest unit is, and each core has as many parts as if all units were
 * as long. */
static struct way way_of_longest(const struct splits_request *of)
{
    struct splits_request raised = *of;
    raised.keys = of->units * of->longest;
    uint32_t const splits = splits_count(&raised);
    uint64_t const parts = of->units * splits, merged = splits == 1 ? 0 : parts;
    uint64_t const rounds = units_ceil_divide(parts, of->cores);
    return (struct way){work_of(of, of->keys, merged) * FINE,
                        fine_of(work_of(of, raised.keys, merged) * rounds, parts), merged};
}

/* Where one core's share ends and the next one's begins a unit is split: into two parts, or one
 * more if it was split before. */
static struct way way_evenly(const struct splits_request *of)
{
    uint64_t const blocks =
        (uint64_t)((work_of(of, of->keys, 0) + SPLITS_TILE_KEYS - 1) / SPLITS_TILE_KEYS);
    uint64_t const share = units_ceil_divide(blocks, of->cores);
    uint64_t const cuts = units_ceil_divide(blocks, share) - 1;
    uint64_t const merged = cuts + (of->units < cuts ? of->units : cuts);
    return (struct way){work_of(of, of->keys, merged) * FINE,
                        (units_wide)share * SPLITS_TILE_KEYS * FINE +
                            fine_of((units_wide)merged * of->part_keys, of->cores),
                        merged};
}

static struct splits_shares share_unlike(const struct splits_request *of)
{
    struct way best = way_whole(of);
    struct way const others[] = {way_of_longest(of), way_evenly(of)};
    for (uint32_t i = 0; i < 2 && of->most > 1; i++)
        if (others[i].busiest < best.busiest) best = others[i];
    return (struct splits_shares){
        .merged = best.merged,
        .idle_ppm = idle_ppm(best.all, best.busiest, of->cores),
    };
}

struct splits_shares splits_share(const struct splits_request *of)
{
    if (of->units == 0 || of->keys == 0) return (struct splits_shares){0, 0};
    return are_alike(of) ? share_alike(of) : share_unlike(of);
}
