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
enum { NARROW_TILE_ROWS = 64, WIDE_TILE_ROWS = 128 };

struct tiles {
    uint64_t count;
    uint64_t half_reads; /* Twice: of the keys, by all tiles but the first one. */
    uint64_t rows;       /* Of queries, with the rows that fill the last of several tiles. */
};

static struct tiles tiles_of(const struct attention_shape *shape, uint64_t rows)
{
    bool const narrow = shape->is_latent || rows <= NARROW_TILE_ROWS;
    uint64_t const edge = narrow ? NARROW_TILE_ROWS : WIDE_TILE_ROWS;
    uint64_t const count = units_ceil_divide(rows, edge);
    return (struct tiles){
        .count = count,
        .half_reads = narrow ? 2 * (count - 1) : units_larger(count, 2) - 2,
        .rows = count == 1 ? rows : count * edge,
    };
}

/* Sequences of a kind: decodes, or prompts, which all have as many queries as the mean one, and
 * these as many keys as the mean query. */
struct kind {
    const struct graph_served *served;
    struct tiles tiles;    /* Of a sequence and a head of keys. */
    uint64_t rows;         /* Of queries of a head of keys, of all sequences. */
    uint64_t product_rows; /* Of the kind's products, in whole tiles. */
    uint64_t keys;         /* Of a head, of all sequences. */
    uint64_t longest;      /* Keys of a sequence. */
};

static struct kind decodes_kind(const struct attention_served *of)
{
    const struct graph_served *served = of->decodes;
    if (served->columns == 0) return (struct kind){0};
    uint64_t const rows = served->rows * of->shape.group;
    struct tiles const tiles = tiles_of(&of->shape, rows);
    return (struct kind){
        .served = served,
        .tiles = tiles,
        .rows = served->count * rows,
        .product_rows = tiles.rows,
        .keys = served->columns,
        .longest = served->longest,
    };
}

static struct kind prompts_kind(const struct attention_served *of)
{
    const struct graph_served *served = of->prompts;
    if (served->columns == 0) return (struct kind){0};
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const rows = two * served->rows * of->shape.group;
    struct tiles const tiles = tiles_of(&of->shape, units_ceil_divide(rows, served->count));
    uint64_t const keys = units_ceil_divide(served->columns, two);
    uint64_t const filled = tiles.count == 1 ? rows : tiles.rows * served->count;
    return (struct kind){
        .served = served,
        .tiles = tiles,
        .rows = rows,
        .product_rows = units_ceil_divide(filled, two),
        .keys = keys * served->count,
        .longest = units_larger(served->longest, keys),
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

/* What cores take for a work, as the bytes that VMEM moves in that time: matrix units, vector units
 * and VMEM work side by side. */
static units_wide cores_take(const struct graph_units *units, const struct work *work)
{
    units_wide const math = graph_moved_meanwhile(units, work_padded_flop(work, units->edges),
                                                  units->math_flop_per_s[work->math_format]);
    units_wide const vector =
        graph_moved_meanwhile(units, work->vector_flop, units->vector_flop_per_s);
    units_wide const moved =
        (units_wide)work->hbm_read_bytes + work->hbm_write_bytes + work->vmem_read_bytes;
    units_wide const longer = math > vector ? math : vector;
    return longer > moved ? longer : moved;
}

/* Rows of keys and values that L2 gives to cores. */
static void rows_given(const struct attention_served *of, uint64_t rows, struct work *work)
{
    struct work given = {.math_format = work->math_format};
    for (uint8_t i = 1; i < of->op->in_count; i++)
        attention_rows_read(of->graph, of->op->in[i], rows, &given);
    work->vmem_read_bytes += given.hbm_read_bytes;
    work->vector_flop += given.vector_flop;
}

/* Rows that further tiles of a kind's heads read again. */
static uint64_t rows_again(const struct kind *kind)
{
    return units_ceil_divide(kind->keys * kind->tiles.half_reads, 2);
}

/* Rows of queries of the mean unit. */
static uint64_t part_rows(const struct kind *kind)
{
    return kind->keys == 0 ? 0
                           : units_ceil_divide(kind->rows, kind->served->count * kind->tiles.count);
}

/* The units of a kind. `rows`: of all kinds. */
static struct splits_kind units_of(const struct attention_served *of, const struct kind *kind,
                                   uint64_t rows, uint64_t besides_bytes, enum format math_format)
{
    const struct graph_cache *cache = &of->graph->terms->cache;
    struct work work = {.math_format = math_format}, part = work;
    if (kind->keys == 0) return (struct splits_kind){0};
    attention_served_products_add(of, kind->served, kind->product_rows, &work);
    rows_given(of, kind->keys + rows_again(kind), &work);
    parts_add(part_rows(kind), &of->shape, &part);
    uint64_t const sequences = kind->served->count, mean = units_ceil_divide(kind->keys, sequences);
    uint64_t const count = of->shape.keys * sequences * kind->tiles.count;
    units_wide const keys = cores_take(&cache->units, &work);
    work.vmem_read_bytes += (uint64_t)((units_wide)besides_bytes * kind->rows / rows);
    units_wide const each = units_wide_ceil_divide(cores_take(&cache->units, &work), count);
    return (struct splits_kind){
        .count = count,
        .each = each,
        .longest = each + units_wide_ceil_divide(keys * (units_larger(kind->longest, mean) - mean),
                                                 (units_wide)count * mean),
        .block = units_wide_ceil_divide(keys * SPLITS_BLOCK_KEYS, (units_wide)count * mean),
        .part = cores_take(&cache->units, &part),
        .even_out = kind->served == of->prompts,
    };
}

void attention_cores_share(const struct attention_served *of, uint64_t besides_bytes,
                           struct work *work)
{
    const struct graph_cache *cache = &of->graph->terms->cache;
    struct kind const kinds[SPLITS_KINDS] = {decodes_kind(of), prompts_kind(of)};
    uint64_t const rows = kinds[0].rows + kinds[1].rows;
    struct splits_request request = {.cores = cache->cores, .most = cache->splits_most};
    if (cache->cores == 1 || rows == 0) return;
    for (uint32_t i = 0; i < SPLITS_KINDS; i++) {
        request.kind[i] = units_of(of, &kinds[i], rows, besides_bytes, work->math_format);
        rows_given(of, rows_again(&kinds[i]), work);
    }
    struct splits_shares const shares = splits_best(&request);
    for (uint32_t i = 0; i < SPLITS_KINDS; i++)
        parts_add(shares.merged[i] * part_rows(&kinds[i]), &of->shape, work);
    units_wide const busy = cores_take(&cache->units, work) * PPM_ONE;
    units_wide const busy_ppm = busy / (shares.busiest * cache->cores);
    work->idle_core_ppm = busy_ppm >= PPM_ONE ? 0 : PPM_ONE - (uint32_t)busy_ppm;
}
