/*
 * Cores take sequences and heads of keys apart, and parts of long sequences (flash decoding).
 * Source of tiles: FlashMLA, and hopper/tile_size.h of flash-attention 3.
 */
#include "workloads/ops/attention_cores.h"

#include "sim/base/units.h"
#include "sim/graph/count.h"
#include "sim/graph/splits.h"

/* Elements of a row, without its first dimension. */
static uint64_t row_elements(const struct graph *graph, tensor of)
{
    const struct sharding *at = &graph->tensor[of].at;
    uint64_t elements = 1;
    for (uint32_t d = 1; d < at->dimension_count; d++)
        elements *= sharding_local_size(&graph->terms->mesh, &at->dimension[d]);
    return elements;
}

void attention_rows_read(const struct graph *graph, tensor in, uint64_t rows, struct work *work)
{
    const struct graph_tensor *of = &graph->tensor[in];
    uint64_t const elements = rows * row_elements(graph, in);
    enum graph_role const role = graph_is_of_cache(graph, in) ? GRAPH_CACHE : of->role;
    work->hbm_read_bytes += graph_bytes(role, of->format, elements);
    work->vector_flop += attention_widening_flop(graph, in, elements);
}

void attention_served_products_add(const struct attention_served *of,
                                   const struct graph_served *served, uint64_t rows,
                                   struct work *work)
{
    const struct attention_shape *shape = &of->shape;
    if (served->columns == 0) return;
    attention_products_add(of->graph->terms, shape,
                           attention_score(shape, rows, served->columns, shape->keys), work);
}

/* The rows of queries of a sequence and a head of keys as kernels take them: in tiles of FlashMLA
 * (block M), or of flash-attention 3, whose clusters of two read keys once. */
struct tiles {
    uint64_t count;
    uint64_t half_reads; /* Twice: of the keys, by all tiles but the first one. */
    uint64_t rows;       /* Of queries. */
    uint64_t full_rows;  /* With the rows that fill the last of several tiles. */
};

static struct tiles tiles_of(const struct attention_shape *shape, uint64_t tiles_most,
                             uint64_t rows)
{
    bool const narrow = shape->is_latent || rows <= SPLITS_TILE_ROWS;
    uint64_t const edge = narrow ? SPLITS_TILE_ROWS : SPLITS_WIDE_TILE_ROWS;
    uint64_t const all = units_ceil_divide(rows, edge);
    uint64_t const count = all < tiles_most ? all : tiles_most;
    return (struct tiles){
        .count = count,
        .half_reads = narrow ? 2 * (count - 1) : units_larger(count, 2) - 2,
        .rows = count < all ? count * edge : rows,
        .full_rows = count == 1 && all == 1 ? rows : count * edge,
    };
}

/* Sequences of a kind and heads of keys as cores take them, each with up to a tile of rows of
 * queries. */
struct units {
    uint64_t rows;      /* Of all. */
    uint64_t full_rows; /* With the rows that fill the last of several tiles. */
    uint64_t again;     /* Keys that further tiles of a head read, of a head for all sequences. */
    uint64_t count, keys, longest;
};

static struct units decodes_units(const struct attention_served *of, uint64_t tiles_most)
{
    const struct graph_served *served = of->decodes;
    const struct attention_shape *shape = &of->shape;
    if (served->columns == 0) return (struct units){0};
    struct tiles const tiles = tiles_of(shape, tiles_most, served->rows * shape->group);
    uint64_t const each = shape->keys * tiles.count;
    return (struct units){
        .rows = served->count * tiles.rows * shape->keys,
        .full_rows = served->count * tiles.full_rows * shape->keys,
        .again = units_ceil_divide(served->columns * tiles.half_reads, 2),
        .count = served->count * each,
        .keys = served->columns * each,
        .longest = served->longest,
    };
}

/* All prompts have as many queries as the mean one, and these as many keys as the mean query. */
static struct units prompts_units(const struct attention_served *of, uint64_t tiles_most)
{
    const struct graph_served *served = of->prompts;
    const struct attention_shape *shape = &of->shape;
    if (served->columns == 0) return (struct units){0};
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const rows = served->rows * shape->group;
    struct tiles const tiles =
        tiles_of(shape, tiles_most, units_ceil_divide(two * rows, served->count));
    uint64_t const count = shape->keys * served->count * tiles.count;
    uint64_t const keys = units_ceil_divide(served->columns, two);
    uint64_t const some =
        tiles.rows * served->count; /* Of unlike prompts the mean is rounded up. */
    uint64_t const taken = some < two * rows ? some : two * rows;
    bool const are_full = tiles.full_rows == tiles.rows;
    return (struct units){
        .rows = shape->keys * taken,
        .full_rows = shape->keys * (are_full ? taken : tiles.full_rows * served->count),
        .again = units_ceil_divide(keys * served->count * tiles.half_reads, 2),
        .count = count,
        .keys = count * keys,
        .longest = served->longest > keys ? served->longest : keys,
    };
}

/* Of both kinds. */
static struct units kinds_units(const struct attention_served *of, uint64_t tiles_most)
{
    struct units const one = decodes_units(of, tiles_most), other = prompts_units(of, tiles_most);
    return (struct units){
        .rows = one.rows + other.rows,
        .full_rows = one.full_rows + other.full_rows,
        .again = one.again + other.again,
        .count = one.count + other.count,
        .keys = one.keys + other.keys,
        .longest = one.longest > other.longest ? one.longest : other.longest,
    };
}

/* What the parts of sequences' keys leave to be merged: values, a maximum and a sum of each row in
 * fp32, which lie in VMEM. */
static void parts_add(uint64_t rows, const struct attention_shape *shape, struct work *work)
{
    uint64_t const numbers = shape->value_width + ATTENTION_STATISTICS;
    work->vector_flop += rows * (numbers + shape->value_width);
    work->vmem_read_bytes += rows * 2 * format_bytes(FORMAT_FP32, numbers);
}

static uint64_t moved_bytes(const struct work *work)
{
    return work->hbm_read_bytes + work->hbm_write_bytes + work->vmem_read_bytes;
}

/* What cores take for a work, as the bytes that VMEM moves in that time: matrix units, vector units
 * and VMEM work side by side. */
static units_wide cores_take(const struct graph_units *units, const struct work *work,
                             uint64_t vmem_bytes)
{
    units_wide const math = graph_moved_meanwhile(units, work_padded_flop(work, units->edges),
                                                  units->math_flop_per_s[work->math_format]);
    units_wide const vector =
        graph_moved_meanwhile(units, work->vector_flop, units->vector_flop_per_s);
    units_wide const longer = math > vector ? math : vector;
    return longer > vmem_bytes ? longer : vmem_bytes;
}

/* Of `all` keys that take as long as `all_bytes`, the number that takes as long as `bytes`. */
static uint64_t as_keys(units_wide bytes, uint64_t all, units_wide all_bytes)
{
    return (uint64_t)((bytes * all + all_bytes - 1) / all_bytes);
}

/* The work with its parts, and what of the cores' time is idle. */
static struct work shared_work(const struct work *work, const struct units *units,
                               const struct attention_shape *shape, struct splits_shares shares)
{
    struct work shared = *work;
    uint64_t const rows = (uint64_t)((units_wide)shares.merged * units->rows / units->count);
    shared.idle_core_ppm = shares.idle_ppm;
    parts_add(rows, shape, &shared);
    return shared;
}

static bool takes_longer(const struct graph_units *units, const struct work *one,
                         const struct work *other)
{
    units_wide const own = cores_take(units, one, moved_bytes(one)),
                     others = cores_take(units, other, moved_bytes(other));
    return own * (PPM_ONE - other->idle_core_ppm) > others * (PPM_ONE - one->idle_core_ppm);
}

/* The sequences of a pass as cores share them. `besides_bytes`: of what is read and written besides
 * keys. */
static struct splits_request request_of(const struct graph_cache *cache,
                                        const struct attention_shape *shape,
                                        const struct units *units, uint64_t besides_bytes,
                                        const struct work *work)
{
    struct work part = {.math_format = work->math_format};
    parts_add(units_ceil_divide(units->rows, units->count), shape, &part);
    units_wide const keys = cores_take(&cache->units, work, moved_bytes(work) - besides_bytes);
    return (struct splits_request){
        .units = units->count,
        .keys = units->keys,
        .longest = units->longest,
        .cores = cache->cores,
        .most = cache->splits_most,
        .besides_keys = as_keys(besides_bytes, units->keys, keys),
        .part_keys =
            as_keys(cores_take(&cache->units, &part, moved_bytes(&part)), units->keys, keys),
    };
}

/* Cores share a work in the way that takes least time. The tiles of prompts fill the cores, unless
 * there are fewer: then they are shared as decodes are. */
static struct work best_work(const struct attention_served *of, uint64_t tiles_most,
                             uint64_t besides_bytes, const struct work *work,
                             struct splits_shares *ret_shares)
{
    const struct graph_cache *cache = &of->graph->terms->cache;
    struct units const units = kinds_units(of, tiles_most);
    struct splits_shares shares[SPLITS_WAYS] = {{0}};
    uint32_t ways = 1, best = 0;
    if (prompts_units(of, tiles_most).count < cache->cores) {
        struct splits_request const request =
            request_of(cache, &of->shape, &units, besides_bytes, work);
        ways = splits_ways(&request, shares);
    }
    struct work least = shared_work(work, &units, &of->shape, shares[0]);
    for (uint32_t i = 1; i < ways; i++) {
        struct work const other = shared_work(work, &units, &of->shape, shares[i]);
        if (!takes_longer(&cache->units, &least, &other)) continue;
        least = other;
        best = i;
    }
    *ret_shares = shares[best];
    return least;
}

/* Products as kernels do them, which multiply whole tiles where a head has several. */
static void full_products_add(const struct attention_served *of, uint64_t tiles_most,
                              struct work *work)
{
    const struct graph_served *decodes = of->decodes, *prompts = of->prompts;
    uint64_t const keys = of->shape.keys;
    uint64_t const some = decodes_units(of, tiles_most).full_rows / keys,
                   others = prompts_units(of, tiles_most).full_rows / keys;
    uint64_t const two = prompts->paired ? 2 : 1;
    if (decodes->count != 0)
        attention_served_products_add(of, decodes, some / decodes->count, work);
    attention_served_products_add(of, prompts, units_ceil_divide(others, two), work);
}

/* A work with whole tiles in place of the queries' rows. */
static struct work full_work(const struct attention_served *of, const struct units *units,
                             const struct attention_parts *parts, const struct work *work)
{
    struct work full = *work;
    full.matmul_count = 0;
    full.vector_flop -= parts->products_flop;
    full_products_add(of, UINT64_MAX, &full);
    uint64_t const filling = units->full_rows - units->rows;
    full.hbm_write_bytes += (uint64_t)((units_wide)parts->besides_bytes * filling / units->rows);
    return full;
}

/* The work of the first tile of each sequence and head of keys. */
static struct work first_work(const struct attention_served *of, uint64_t besides_bytes,
                              const struct work *keys, enum format math_format)
{
    struct work work = {.math_format = math_format,
                        .vector_flop = keys->vector_flop,
                        .hbm_read_bytes = keys->hbm_read_bytes,
                        .hbm_write_bytes = besides_bytes};
    full_products_add(of, 1, &work);
    return work;
}

/* The share of the cores with which a work takes as long as another one, in millionths. */
static uint64_t busy_like_ppm(const struct graph_units *units, const struct work *work,
                              const struct work *other)
{
    units_wide const own = cores_take(units, work, moved_bytes(work)),
                     others = cores_take(units, other, moved_bytes(other));
    return (uint64_t)(own * (PPM_ONE - other->idle_core_ppm) / others);
}

/* Rows that L2 has once more, for further tiles of heads: keys that the cache has in a narrower
 * format are widened again. */
static void tiles_read(const struct attention_served *of, uint64_t rows, struct work *work)
{
    struct work again = {.math_format = work->math_format};
    for (uint8_t i = 1; i < of->op->in_count; i++)
        attention_rows_read(of->graph, of->op->in[i], rows, &again);
    work->vmem_read_bytes += again.hbm_read_bytes;
    work->vector_flop += again.vector_flop;
}

void attention_cores_share(const struct attention_served *of, const struct attention_parts *parts,
                           struct work *work)
{
    const struct graph_cache *cache = &of->graph->terms->cache;
    struct units const units = kinds_units(of, UINT64_MAX);
    struct splits_shares shares, firsts_shares;
    if (cache->cores == 1 || units.count == 0) return;
    tiles_read(of, units.again, work);
    struct work const full = full_work(of, &units, parts, work),
                      best = best_work(of, UINT64_MAX, parts->besides_bytes, &full, &shares);
    *work = shared_work(work, &units, &of->shape, shares);
    uint64_t busy_ppm = busy_like_ppm(&cache->units, work, &best);
    struct units const firsts = kinds_units(of, 1);
    if (firsts.count < units.count) {
        units_wide const besides = parts->besides_bytes;
        uint64_t const bytes = (uint64_t)(besides * firsts.rows / units.rows);
        struct work const first = first_work(of, bytes, &parts->keys, work->math_format),
                          least = best_work(of, 1, bytes, &first, &firsts_shares);
        uint64_t const most_ppm = busy_like_ppm(&cache->units, work, &least);
        busy_ppm = busy_ppm < most_ppm ? busy_ppm : most_ppm;
    }
    work->idle_core_ppm = PPM_ONE - busy_ppm;
}
