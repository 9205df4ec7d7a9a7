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

/* The busiest core has its rounds of mean parts, or a part of the longest unit. */
uint32_t splits_idle_ppm(const struct splits_request *of, uint32_t splits)
{
    uint64_t const parts = of->units * splits;
    if (parts == 0 || of->keys == 0) return 0;
    uint64_t const rounds = units_ceil_divide(parts, of->cores);
    units_wide const mean = (units_wide)rounds * of->keys; /* Times parts. */
    units_wide const longest = (units_wide)of->longest * of->units;
    units_wide const busiest = mean > longest ? mean : longest;
    units_wide const all = (units_wide)of->keys * parts;
    units_wide const busy = all * PPM_ONE / (busiest * of->cores);
    return busy >= PPM_ONE ? 0 : PPM_ONE - (uint32_t)busy;
}
