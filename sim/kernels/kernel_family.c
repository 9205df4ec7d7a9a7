/*
 * What families of kernels do: their FLOP, their bytes, and the tiles that their time grows with.
 *
 * A kernel of a product computes 128 x 128 of the result in each core at a time, by steps of 64 of
 * k (CUTLASS, "Efficient GEMM in CUDA"; cuBLAS' kernels of tensor cores have tiles of 64 to 256).
 * One of attention takes 128 queries of a head, by steps of 128 keys (FlashAttention-2, arXiv
 * 2307.08691, 3.2); of a decode the queries of a group go together, and keys are split over cores
 * ("Flash-Decoding for long-context inference", 2023).
 */
#include <stddef.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

enum { TILE_ROWS = 128, TILE_COLUMNS = 128, TILE_INNER = 64, TILE_WIDTH = 64, RESULT_BYTES = 2 };
/* The parts that a step of causal attention is counted in. */
enum { STEP_PARTS = 4096 };
/* A tile's steps in addition to its blocks of keys: to read queries and write values moves as many
 * bytes as a block of keys and values, and neither the first scores nor the last product overlaps
 * with another (FlashAttention-3, arXiv 2407.08608, 3.2). Rows beyond left-out edges agree
 * (docs/kernels.md, "Where the tables come from"). */
enum { FILL_STEPS = 2 };

struct amounts {
    uint64_t flop, bytes;
};

static uint64_t plus(uint64_t left, uint64_t right)
{
    return units_saturated((units_wide)left + right);
}

static uint64_t stored_bytes(enum format format, uint64_t elements)
{
    return units_saturated((units_wide)elements * format_bits(format) / 8);
}

static struct amounts matmul_amounts(const struct kernel_table *table, const uint64_t *side)
{
    uint64_t const m = side[KERNEL_M], n = side[KERNEL_N], k = side[KERNEL_K];
    uint64_t const operands = plus(units_times(m, k), units_times(n, k));
    return (struct amounts){
        .flop = units_times(units_times(2 * m, n), k),
        .bytes = plus(stored_bytes(table->format, operands), units_times(RESULT_BYTES * m, n)),
    };
}

static uint64_t matmul_steps(const uint64_t *side, uint32_t core_count)
{
    uint64_t const tiles = units_times(units_ceil_divide(side[KERNEL_M], TILE_ROWS),
                                       units_ceil_divide(side[KERNEL_N], TILE_COLUMNS));
    return units_times(units_ceil_divide(tiles, core_count),
                       units_ceil_divide(side[KERNEL_K], TILE_INNER));
}

/* Each product has matrices of its own. What they are multiplied with lies in 16 bits, like the
 * result. */
static struct amounts batched_amounts(const struct kernel_table *table, const uint64_t *side)
{
    uint64_t const batch = side[KERNEL_BATCH], m = side[KERNEL_EACH + KERNEL_M],
                   n = side[KERNEL_EACH + KERNEL_N], k = side[KERNEL_EACH + KERNEL_K];
    uint64_t const rows = units_times(RESULT_BYTES, units_times(m, plus(n, k)));
    return (struct amounts){
        .flop = units_times(batch, units_times(units_times(2 * m, n), k)),
        .bytes = units_times(batch, plus(rows, stored_bytes(table->format, units_times(n, k)))),
    };
}

/* One kernel has the tiles of all products. */
static uint64_t batched_steps(const uint64_t *side, uint32_t core_count)
{
    const uint64_t *each = side + KERNEL_EACH;
    uint64_t const tiles = units_times(units_ceil_divide(each[KERNEL_M], TILE_ROWS),
                                       units_ceil_divide(each[KERNEL_N], TILE_COLUMNS));
    return units_times(units_ceil_divide(units_times(side[KERNEL_BATCH], tiles), core_count),
                       units_ceil_divide(each[KERNEL_K], TILE_INNER));
}

/* `products` of the scores of `pairs` of a head. `queries` and `keys` are arrays of the size of Q
 * and of K that are read or written. */
static struct amounts scored_amounts(const struct kernel_table *table, const uint64_t *side,
                                     uint64_t pairs, uint64_t products, uint64_t queries,
                                     uint64_t keys)
{
    uint64_t const tokens = side[KERNEL_TOKENS], heads = side[KERNEL_HEADS];
    uint64_t const scored = units_times(units_times(pairs, heads), side[KERNEL_GROUP]);
    uint64_t const arrays = plus(units_times(queries, side[KERNEL_GROUP]), keys);
    uint64_t const rows = units_times(units_times(tokens, heads), arrays);
    return (struct amounts){
        .flop = units_times(units_times(2 * products, scored), side[KERNEL_WIDTH]),
        .bytes = stored_bytes(table->format, units_times(rows, side[KERNEL_WIDTH])),
    };
}

/* Query i has i keys, T·(T+1)/2 in all. */
static uint64_t causal_pairs(const uint64_t *side)
{
    uint64_t const tokens = side[KERNEL_TOKENS];
    return units_saturated((units_wide)tokens * (tokens + 1) / 2);
}

/* Reads Q, K and V, writes the heads' values. */
static struct amounts attention_amounts(const struct kernel_table *table, const uint64_t *side)
{
    return scored_amounts(table, side, causal_pairs(side), 2, 2, 2);
}

static struct amounts full_amounts(const struct kernel_table *table, const uint64_t *side)
{
    return scored_amounts(table, side, units_times(side[KERNEL_TOKENS], side[KERNEL_TOKENS]), 2, 2,
                          2);
}

/* Reads Q, K, V, the values and their gradient; writes dQ, dK, dV. */
static struct amounts backward_amounts(const struct kernel_table *table, const uint64_t *side)
{
    return scored_amounts(table, side, causal_pairs(side), 5, 4, 4);
}

/*
 * The steps of the core that ends last. A tile multiplies the blocks of keys up to its own queries.
 * Cores take tiles head by head, of a head the longest first (flash-attention
 * flash_attn/cute/tile_scheduler.py, SingleTileLPTScheduler). A head has B tiles of B/2 steps in
 * the mean, so C cores begin its tiles within B^2/2C steps. When the last tile begins, the last
 * head's longest has B - B^2/2C steps to go, and a core B/3 in the mean. The last core therefore
 * ends B (2/3 - B/2C) steps behind the mean, where that is above 0. Each tile has FILL_STEPS more,
 * so that B outside of the brackets is B + FILL_STEPS.
 */
static uint64_t attention_steps(const uint64_t *side, uint32_t core_count)
{
    uint64_t const blocks = units_ceil_divide(side[KERNEL_TOKENS], TILE_ROWS);
    uint64_t const heads = units_times(side[KERNEL_HEADS], side[KERNEL_GROUP]);
    uint64_t const cores = core_count, longest = units_times(STEP_PARTS, blocks + FILL_STEPS);
    units_wide const head = (units_wide)blocks * (blocks + 1 + 2 * FILL_STEPS) / 2;
    units_wide steps = (units_wide)units_times(units_saturated(head), heads) * STEP_PARTS / cores;
    if (3 * blocks < 4 * cores) steps += longest * (4 * cores - 3 * blocks) / (6 * cores);
    return units_times(units_saturated(steps > longest ? steps : longest),
                       units_ceil_divide(side[KERNEL_WIDTH], TILE_WIDTH));
}

/* Tiles of queries that all have all keys go in whole waves. */
static uint64_t full_steps(const uint64_t *side, uint32_t core_count)
{
    uint64_t const blocks = units_ceil_divide(side[KERNEL_TOKENS], TILE_ROWS);
    uint64_t const tiles = units_times(units_times(blocks, side[KERNEL_HEADS]), side[KERNEL_GROUP]);
    return units_times(units_times(units_ceil_divide(tiles, core_count), blocks + FILL_STEPS),
                       units_ceil_divide(side[KERNEL_WIDTH], TILE_WIDTH));
}

static struct amounts decode_amounts(const struct kernel_table *table, const uint64_t *side)
{
    uint64_t const rows = units_times(side[KERNEL_TOKENS], side[KERNEL_HEADS]);
    uint64_t const keys = units_times(units_times(2, rows), side[KERNEL_WIDTH]);
    uint64_t const queries =
        units_times(units_times(2 * side[KERNEL_GROUP], side[KERNEL_HEADS]), side[KERNEL_WIDTH]);
    return (struct amounts){
        .flop = units_times(units_times(4 * side[KERNEL_GROUP], rows), side[KERNEL_WIDTH]),
        .bytes = plus(stored_bytes(table->stored, keys), stored_bytes(table->format, queries)),
    };
}

/* A row is as wide as the keys: 576 columns of which 512 are values, 18/17 of the mean of both
 * (DeepSeek-V2, arXiv 2405.04434, 2.1.2). */
static struct amounts latent_amounts(const struct kernel_table *table, const uint64_t *side)
{
    uint64_t const rows = units_times(side[KERNEL_TOKENS], side[KERNEL_HEADS]);
    uint64_t const keys = units_times(rows, plus(side[KERNEL_WIDTH], side[KERNEL_WIDTH] / 17));
    struct amounts of = decode_amounts(table, side);
    uint64_t const queries =
        units_times(units_times(2 * side[KERNEL_GROUP], side[KERNEL_HEADS]), side[KERNEL_WIDTH]);
    of.bytes = plus(stored_bytes(table->stored, keys), stored_bytes(table->format, queries));
    return of;
}

static uint64_t decode_steps(const uint64_t *side, uint32_t core_count)
{
    uint64_t const blocks = units_ceil_divide(side[KERNEL_TOKENS], TILE_COLUMNS);
    uint64_t const rows = units_ceil_divide(side[KERNEL_GROUP], TILE_ROWS);
    uint64_t const steps = units_ceil_divide(units_times(blocks, side[KERNEL_HEADS]), core_count);
    return units_times(units_times(steps, rows), units_ceil_divide(side[KERNEL_WIDTH], TILE_WIDTH));
}

/* Three matrices an expert with rows, each read once. Both products read and write rows: of the
 * model's columns, of gate and up, and of what the gate gives. */
static struct amounts experts_amounts(const struct kernel_table *table, const uint64_t *side)
{
    uint64_t const columns = side[KERNEL_COLUMNS], model = side[KERNEL_MODEL];
    uint64_t const rows = units_times(side[KERNEL_TOKENS], side[KERNEL_EXPERT]);
    uint64_t const matrix = units_times(units_times(3, columns), model);
    uint64_t const moved = units_times(rows, plus(units_times(2, model), units_times(3, columns)));
    return (struct amounts){
        .flop = units_times(units_times(2, rows), matrix),
        .bytes = stored_bytes(table->format, plus(units_times(side[KERNEL_EXPERT], matrix), moved)),
    };
}

static uint64_t experts_steps(const uint64_t *side, uint32_t core_count)
{
    uint64_t const tiles =
        units_times(units_times(units_ceil_divide(side[KERNEL_TOKENS], TILE_ROWS),
                                units_ceil_divide(side[KERNEL_COLUMNS], TILE_COLUMNS)),
                    side[KERNEL_EXPERT]);
    return units_times(units_ceil_divide(tiles, core_count),
                       units_ceil_divide(side[KERNEL_MODEL], TILE_INNER));
}

struct family {
    const char *name;
    uint32_t side_count;
    const char *side[KERNEL_SIDES_MAX];
    struct amounts (*amounts)(const struct kernel_table *table, const uint64_t *side);
    uint64_t (*steps)(const uint64_t *side, uint32_t core_count);
};

#define ATTENTION_SIDES                                                                            \
    4,                                                                                             \
    {                                                                                              \
        "tokens", "heads", "group", "width"                                                        \
    }

static const struct family families[KERNEL_FAMILIES] = {
    [KERNEL_MATMUL] = {"matmul", 3, {"m", "n", "k"}, matmul_amounts, matmul_steps},
    [KERNEL_GROUPED] = {"grouped_matmul", 3, {"m", "n", "k"}, matmul_amounts, matmul_steps},
    [KERNEL_BATCHED] =
        {"batched_matmul", 4, {"batch", "m", "n", "k"}, batched_amounts, batched_steps},
    [KERNEL_ATTENTION] = {"attention", ATTENTION_SIDES, attention_amounts, attention_steps},
    [KERNEL_ATTENTION_BACKWARD] = {"attention_backward", ATTENTION_SIDES, backward_amounts,
                                   attention_steps},
    [KERNEL_FULL_ATTENTION] = {"full_attention", ATTENTION_SIDES, full_amounts, full_steps},
    [KERNEL_LATENT_ATTENTION] = {"latent_attention", ATTENTION_SIDES, attention_amounts,
                                 attention_steps},
    [KERNEL_DECODE] = {"decode", ATTENTION_SIDES, decode_amounts, decode_steps},
    [KERNEL_LATENT_DECODE] = {"latent_decode", ATTENTION_SIDES, latent_amounts, decode_steps},
    [KERNEL_EXPERTS] =
        {"experts", 4, {"tokens", "experts", "columns", "model"}, experts_amounts, experts_steps},
};

const char *kernel_family_name(enum kernel_family family)
{
    return families[family].name;
}

bool kernel_is_of_products(enum kernel_family family)
{
    return family == KERNEL_MATMUL || family == KERNEL_GROUPED;
}

bool kernel_reads_cache(enum kernel_family family)
{
    return family == KERNEL_DECODE || family == KERNEL_LATENT_DECODE;
}

uint64_t kernel_point_count(const struct kernel_table *table)
{
    uint64_t count = 1;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) count *= table->edge_count[s];
    return count;
}

uint32_t kernel_side_count(enum kernel_family family)
{
    return families[family].side_count;
}

const char *kernel_side_name(enum kernel_family family, uint32_t side)
{
    return families[family].side[side];
}

static struct kernel_demand demand_of(const struct kernel_table *table, struct amounts of)
{
    return (struct kernel_demand){units_duration_ps(of.flop, table->flop_per_s),
                                  units_duration_ps(of.bytes, table->bytes_per_s)};
}

struct kernel_demand kernel_demand(const struct kernel_table *table,
                                   const uint64_t side[KERNEL_SIDES_MAX])
{
    return demand_of(table, families[table->family].amounts(table, side));
}

struct kernel_demand kernel_batched_demand(const struct kernel_table *table,
                                           const uint64_t side[KERNEL_SIDES_MAX])
{
    return demand_of(table, batched_amounts(table, side));
}

int64_t kernel_roofline_ps(const struct kernel_table *table, const uint64_t side[KERNEL_SIDES_MAX])
{
    struct kernel_demand const of = kernel_demand(table, side);
    return of.math_ps > of.move_ps ? of.math_ps : of.move_ps;
}

uint64_t kernel_tile_steps(enum kernel_family family, const uint64_t side[KERNEL_SIDES_MAX],
                           uint32_t core_count)
{
    return families[family].steps(side, core_count);
}

void kernel_table_name_add(const struct kernel_table *table, struct strbuf *text)
{
    strbuf_add(text, "%s %s", kernel_family_name(table->family), format_name(table->format));
    if ((table->family == KERNEL_EXPERTS || table->family == KERNEL_BATCHED) && table->quantises)
        strbuf_add(text, ", casts included");
    if (kernel_is_of_products(table->family))
        strbuf_add(text, " %s%s%s%s%s", kernel_layout_name(table->layout),
                   table->result == FORMAT_FP32 ? " into fp32" : "",
                   table->quantises ? ", casts included" : "",
                   table->cast == WORK_CAST_WITHIN ? "" : ", scales by ",
                   table->cast == WORK_CAST_WITHIN ? "" : work_cast_name(table->cast));
    if (kernel_reads_cache(table->family))
        strbuf_add(text, ", cache in %s", format_name(table->stored));
}
