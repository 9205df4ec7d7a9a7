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

/* Work of all units and of `merged` parts, in keys. */
static units_wide work_of(const struct splits_request *of, units_wide keys, uint64_t merged)
{
    return keys + of->besides_keys + (units_wide)merged * of->part_keys;
}

/* Keys of the busiest core, times `parts` of all units together: of rounds of mean parts, or of a
 * part of the longest unit. */
static units_wide busiest_of(const struct splits_request *of, uint64_t parts, uint64_t merged)
{
    uint64_t const rounds = units_ceil_divide(parts, of->cores);
    units_wide const mean = rounds * work_of(of, of->keys, merged);
    units_wide const longest = work_of(of, (units_wide)of->longest * of->units, merged);
    return mean > longest ? mean : longest;
}

/* As many parts as splits_count() says, or fewer where these are done sooner, as fewer are merged.
 */
static uint32_t parts_of_unit(const struct splits_request *of)
{
    uint32_t best = splits_count(of);
    units_wide best_busiest = busiest_of(of, of->units * best, best == 1 ? 0 : of->units * best);
    for (uint32_t n = best - 1; n > 0 && of->part_keys != 0; n--) {
        uint64_t const parts = of->units * n;
        units_wide const busiest = busiest_of(of, parts, n == 1 ? 0 : parts);
        if (busiest * best >= best_busiest * n) continue;
        best = n;
        best_busiest = busiest;
    }
    return best;
}

static struct splits_shares share_alike(const struct splits_request *of, uint32_t splits)
{
    uint64_t const parts = of->units * splits;
    units_wide const all = work_of(of, of->keys, 0);
    return (struct splits_shares){
        .merged = splits == 1 ? 0 : parts,
        .idle_ppm = idle_ppm(all * parts, busiest_of(of, parts, 0), of->cores),
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
    uint32_t const splits = parts_of_unit(&raised);
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

static struct splits_shares share_unlike(const struct splits_request *of, struct way way)
{
    return (struct splits_shares){
        .merged = way.merged,
        .idle_ppm = idle_ppm(way.all, way.busiest, of->cores),
    };
}

uint32_t splits_ways(const struct splits_request *of, struct splits_shares ret_ways[SPLITS_WAYS])
{
    bool const whole = of->most == 1;
    ret_ways[0] = (struct splits_shares){0, 0};
    if (of->units == 0 || of->keys == 0) return 1;
    if (are_alike(of)) {
        ret_ways[0] = share_alike(of, parts_of_unit(of));
        ret_ways[1] = share_alike(of, 1);
        return whole ? 1 : 2;
    }
    ret_ways[0] = share_unlike(of, way_whole(of));
    if (whole) return 1;
    ret_ways[1] = share_unlike(of, way_of_longest(of));
    ret_ways[2] = share_unlike(of, way_evenly(of));
    return SPLITS_WAYS;
}
