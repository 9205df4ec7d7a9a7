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
    units_wide const mean = (units_wide)rounds * of->keys; /* Times parts. */
    units_wide const longest = (units_wide)of->longest * of->units;
    units_wide const busiest = mean > longest ? mean : longest;
    return (struct splits_shares){
        .merged = splits == 1 ? 0 : parts,
        .idle_ppm = idle_ppm((units_wide)of->keys * parts, busiest, of->cores),
    };
}

/* Where one core's share ends and the next one's begins a unit is split: into two parts, or one
 * more if it was split before. */
static struct splits_shares share_evenly(const struct splits_request *of)
{
    uint64_t const blocks = units_ceil_divide(of->keys, SPLITS_TILE_KEYS);
    uint64_t const share = units_ceil_divide(blocks, of->cores);
    uint64_t const cuts = units_ceil_divide(blocks, share) - 1;
    return (struct splits_shares){
        .merged = cuts + (of->units < cuts ? of->units : cuts),
        .idle_ppm = idle_ppm(of->keys, (units_wide)share * SPLITS_TILE_KEYS, of->cores),
    };
}

struct splits_shares splits_share(const struct splits_request *of)
{
    if (of->units == 0 || of->keys == 0) return (struct splits_shares){0, 0};
    bool const whole = of->most == 1;
    return whole || are_alike(of) ? share_alike(of) : share_evenly(of);
}
