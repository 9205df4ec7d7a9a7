#include "sim/graph/splits.h"

/* What the kinds of a pass have together. */
struct pass {
    uint64_t units;
    units_wide all, block;
};

static struct pass pass_of(const struct splits_request *of)
{
    struct pass pass = {0};
    for (uint32_t i = 0; i < SPLITS_KINDS; i++) {
        const struct splits_kind *kind = &of->kind[i];
        if (kind->count == 0) continue;
        pass.units += kind->count;
        pass.all += kind->count * kind->each;
        pass.block = units_wide_larger(pass.block, kind->block);
    }
    return pass;
}

/* The kind whose mean unit takes longest goes first. */
static units_wide in_rounds(const struct splits_kind *longer, const struct splits_kind *shorter,
                            uint32_t cores)
{
    uint64_t const rounds = longer->count / cores, extra = longer->count % cores;
    units_wide const level = (rounds + (extra > 0)) * longer->each;
    uint64_t left = shorter->count;
    if (left == 0 || shorter->each == 0) return level;
    if (extra > 0) {
        /* Shorter units on cores that have no longer one in the last round. */
        units_wide const meanwhile = (cores - extra) * (longer->each / shorter->each);
        if (meanwhile >= left) return level;
        left -= (uint64_t)meanwhile;
    }
    return level + units_ceil_divide(left, cores) * shorter->each;
}

/* A unit, or one of its parts as if all units were as long as the longest one. */
static units_wide part_of(const struct splits_kind *kind, uint64_t parts)
{
    if (parts == 1) return kind->each;
    units_wide const blocks = units_wide_ceil_divide(kind->longest, kind->block);
    units_wide const part = units_wide_ceil_divide(blocks, parts) * kind->block;
    return part < kind->longest ? part : kind->longest;
}

/* Each unit of a kind in a number of parts; 1: they stay whole. */
static struct splits_shares way_in_parts(const struct splits_request *of,
                                         const uint64_t parts[SPLITS_KINDS])
{
    struct splits_kind kinds[SPLITS_KINDS];
    struct splits_shares shares = {0};
    units_wide all = 0, longest = 0, merging = 0;
    bool even = false;
    for (uint32_t i = 0; i < SPLITS_KINDS; i++) {
        const struct splits_kind *kind = &of->kind[i];
        kinds[i] = (struct splits_kind){0};
        if (kind->count == 0) continue;
        kinds[i] =
            (struct splits_kind){.count = kind->count * parts[i], .each = part_of(kind, parts[i])};
        bool const fill = kind->even_out && kinds[i].count >= of->cores;
        even = even || fill;
        all += kinds[i].count * kinds[i].each;
        if (parts[i] == 1 && !fill) longest = units_wide_larger(longest, kind->longest);
        if (parts[i] == 1) continue;
        shares.merged[i] = kinds[i].count;
        merging += kinds[i].count * kind->part;
    }
    bool const first =
        kinds[0].count > 0 && (kinds[1].count == 0 || kinds[0].each >= kinds[1].each);
    shares.busiest = units_wide_larger(longest, units_wide_ceil_divide(all, of->cores));
    if (!even)
        shares.busiest =
            units_wide_larger(shares.busiest, in_rounds(&kinds[!first], &kinds[first], of->cores));
    shares.busiest += units_wide_ceil_divide(merging, of->cores);
    return shares;
}

/* Where one core's share ends and the next one's begins a unit is split: into two parts, or one
 * more if it was split before. Kinds have parts by their work. */
static struct splits_shares way_evenly(const struct splits_request *of, const struct pass *pass)
{
    uint64_t const blocks = (uint64_t)units_wide_ceil_divide(pass->all, pass->block);
    uint64_t const share = units_ceil_divide(blocks, of->cores);
    uint64_t const cuts = units_ceil_divide(blocks, share) - 1;
    uint64_t const merged = cuts + (pass->units < cuts ? pass->units : cuts);
    struct splits_shares shares = {.busiest = share * pass->block};
    units_wide merging = 0;
    for (uint32_t i = 0; i < SPLITS_KINDS; i++) {
        const struct splits_kind *kind = &of->kind[i];
        if (kind->count == 0) continue;
        shares.merged[i] =
            (uint64_t)units_wide_ceil_divide(merged * (kind->count * kind->each), pass->all);
        merging += shares.merged[i] * kind->part;
    }
    shares.busiest += units_wide_ceil_divide(merging, of->cores);
    return shares;
}

static void take_better(struct splits_shares *best, struct splits_shares other)
{
    if (other.busiest < best->busiest) *best = other;
}

/* The units of some kinds in parts. More parts than two for each core are merged for nothing. */
static void take_parts(const struct splits_request *of, const bool splits[SPLITS_KINDS],
                       struct splits_shares *best)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < SPLITS_KINDS; i++) units += splits[i] ? of->kind[i].count : 0;
    if (units == 0) return;
    uint64_t const useful = 2 * (uint64_t)of->cores / units + 1;
    uint64_t const most = useful < of->most ? useful : of->most;
    for (uint64_t n = 2; n <= most; n++) {
        uint64_t const parts[SPLITS_KINDS] = {splits[0] ? n : 1, splits[1] ? n : 1};
        take_better(best, way_in_parts(of, parts));
    }
}

struct splits_shares splits_best(const struct splits_request *of)
{
    static const uint64_t whole[SPLITS_KINDS] = {1, 1};
    static const bool splits[][SPLITS_KINDS] = {{true, false}, {false, true}, {true, true}};
    struct pass const pass = pass_of(of);
    if (pass.all == 0 || pass.block == 0) return (struct splits_shares){0};
    struct splits_shares best = way_in_parts(of, whole);
    if (of->most == 1) return best;
    bool const both = of->kind[0].count > 0 && of->kind[1].count > 0;
    for (uint32_t i = 0; i < (both ? 3 : 2); i++) take_parts(of, splits[i], &best);
    take_better(&best, way_evenly(of, &pass));
    return best;
}
