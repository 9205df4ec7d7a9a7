/*
 * The pipeline of an op. Its HBM traffic is cut into n equal tiles. Tile k is loaded into one of
 * two buffers, computed (MXU, VPU and VMEM side by side; the slowest counts) and stored from one
 * of two others. HBM serves loads and stores first come, first served; when tile k is computed its
 * store is asked for first, then the load of tile k + 2, whose buffer is free now. With L, M, S
 * the time of all loads, all math and all stores:
 *
 *     one tile          L + M + S
 *     M >= L + S        fill L/n, then n tiles of M/n, drain S/n
 *     M <  L + S        HBM never waits but for the first and before the last tile:
 *                       (n-1)·(L+S)/n + max(L, M)/n + max(M, S)/n
 *
 * Both agree where M = L + S. All is counted in units of 1/n ps, so that the only rounding of the
 * pipeline is one division at its end.
 *
 * The tile: 1/256 of VMEM (512 KiB of v5e's 128 MiB), in and out together, so that the four
 * buffers take about 1 % of it. The rest is left to what makes one pass over the operands enough:
 * the stationary operand and the accumulators (book, chapter 1, note 11; chapter 2, "What Is a
 * TPU?" for the streaming and the 8x128 by 128x128 chunks that shapes are padded to).
 *
 * An op that a table of measured kernels has takes what the table says, and no tiles are counted.
 */
#include "sim/resource/compute.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"

enum { COMPUTE_VMEM_TILES = 256, COMPUTE_TILE_BUFFERS = 4 };

static const int64_t compute_ps_max = TIME_PS_NEVER / 4; /* As units_duration_ps() saturates. */

struct compute_tiles {
    int64_t load_ps; /* Each of all tiles together. */
    int64_t math_ps;
    int64_t store_ps;
    uint64_t tile_count;
};

static uint64_t saturate_add(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

/* No amount takes no time, whatever the rate: a chip may lack a unit that is not asked for. */
static int64_t demand_ps(uint64_t amount, uint64_t rate_per_s)
{
    return amount == 0 ? 0 : units_duration_ps(amount, rate_per_s);
}

/* The time at a share of a rate. */
static int64_t demand_at_ps(uint64_t amount, uint64_t rate_per_s, uint32_t ppm)
{
    return demand_ps(amount, units_scale_rate(rate_per_s, ppm, PPM_ONE, PPM_ONE));
}

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

static struct compute_tiles stages_of(const struct chip *chip, const struct work *work,
                                      uint64_t there_bytes, uint32_t math_ppm, uint32_t hbm_ppm,
                                      struct compute_time *ret_time)
{
    uint64_t const all_bytes = saturate_add(work->hbm_read_bytes, work->hbm_write_bytes);
    uint64_t const hbm_bytes = all_bytes - there_bytes;
    uint64_t const vmem_bytes = saturate_add(all_bytes, work->vmem_read_bytes);
    uint64_t const tile_bytes = chip->vmem_capacity_bytes / COMPUTE_VMEM_TILES;
    struct work_edges const edges = {WORK_EDGE_ROWS, chip->mxu.rows, chip->mxu.columns};
    uint64_t const flop = work_padded_flop(work, edges);
    uint32_t const busy_ppm = PPM_ONE - (uint32_t)work->idle_core_ppm;
    bool const rest = chip->kernels.stack != NULL;
    uint32_t const rest_math_ppm = rest ? chip->kernels.rest_math_ppm : PPM_ONE;
    uint32_t const rest_hbm_ppm = rest ? chip->kernels.rest_hbm_ppm : PPM_ONE;
    uint64_t const hbm_bytes_per_s =
        units_scale_rate(chip->hbm_bytes_per_s, hbm_ppm, rest_hbm_ppm, PPM_ONE);
    *ret_time = (struct compute_time){
        .mxu_ps = demand_ps(flop, units_scale_rate(chip->math_flop_per_s[work->math_format],
                                                   math_ppm, busy_ppm, rest_math_ppm)),
        .vpu_ps = demand_ps(work->vector_flop,
                            units_scale_rate(chip->vector_flop_per_s, math_ppm, busy_ppm, PPM_ONE)),
        .hbm_ps = demand_ps(hbm_bytes, hbm_bytes_per_s),
        .vmem_ps = demand_at_ps(vmem_bytes, chip->vmem_bytes_per_s, busy_ppm),
        .tile_count =
            all_bytes == 0 ? 1 : units_ceil_divide(all_bytes, tile_bytes ? tile_bytes : 1),
        .padded_flop = flop,
    };
    int64_t const store_ps = demand_ps(work->hbm_write_bytes, hbm_bytes_per_s);
    return (struct compute_tiles){
        .load_ps = ret_time->hbm_ps - store_ps,
        .math_ps = larger(larger(ret_time->mxu_ps, ret_time->vpu_ps), ret_time->vmem_ps),
        .store_ps = store_ps,
        .tile_count = ret_time->tile_count,
    };
}

/* From units of 1/n ps, rounded up, with the overhead. */
static int64_t whole_ps(units_wide tiles_ps, uint64_t tile_count, int64_t overhead_ps)
{
    units_wide const ps = (tiles_ps + tile_count - 1) / tile_count + (uint64_t)overhead_ps;
    return ps > (units_wide)compute_ps_max ? compute_ps_max : (int64_t)ps;
}

uint64_t compute_vmem_rest_bytes(const struct chip *chip)
{
    uint64_t const tile_bytes = chip->vmem_capacity_bytes / COMPUTE_VMEM_TILES;
    return chip->vmem_capacity_bytes - COMPUTE_TILE_BUFFERS * tile_bytes;
}

struct compute_time compute_time(const struct chip *chip, const struct work *work,
                                 uint32_t math_ppm, uint32_t hbm_ppm)
{
    return compute_time_of_rest(chip, work, 0, math_ppm, hbm_ppm);
}

/* A share of a rate that is left out of a time: demand / share. */
static int64_t at_share_ps(int64_t demand_ps, uint32_t share_ppm)
{
    units_wide const ps = ((units_wide)(uint64_t)demand_ps * PPM_ONE + share_ppm - 1) / share_ppm;
    return ps > (units_wide)compute_ps_max ? compute_ps_max : (int64_t)ps;
}

/* A measured kernel: what bounds it on the roofline has a share of its rate, and begin, end and
 * launch within a graph are in that share. */
static struct compute_time kernel_time(const struct chip *chip, const struct work *work,
                                       uint32_t share_ppm, uint64_t there_bytes, uint32_t math_ppm,
                                       uint32_t hbm_ppm)
{
    uint64_t const all_bytes = saturate_add(work->hbm_read_bytes, work->hbm_write_bytes);
    uint64_t const flop = work_matmul_flop(work);
    uint64_t const flop_per_s = chip->math_flop_per_s[work->math_format];
    struct compute_time time = {
        .mxu_ps = demand_at_ps(flop, flop_per_s, math_ppm),
        .vpu_ps = demand_at_ps(work->vector_flop, chip->vector_flop_per_s, math_ppm),
        .hbm_ps = demand_at_ps(all_bytes - there_bytes, chip->hbm_bytes_per_s, hbm_ppm),
        .vmem_ps =
            demand_ps(saturate_add(all_bytes, work->vmem_read_bytes), chip->vmem_bytes_per_s),
        .tile_count = 1,
        .padded_flop = flop,
    };
    int64_t *slower = time.mxu_ps >= time.hbm_ps ? &time.mxu_ps : &time.hbm_ps;
    *slower = at_share_ps(*slower, share_ppm);
    time.duration_ps = larger(larger(time.mxu_ps, time.hbm_ps), larger(time.vpu_ps, time.vmem_ps));
    return time;
}

/* Functions between matmuls: bytes at the rate that such kernels reach, and the launch of each. */
static struct compute_time between_time(const struct chip *chip, const struct work *work,
                                        uint64_t there_bytes, uint32_t math_ppm, uint32_t hbm_ppm)
{
    const struct kernel_between *between = &chip->kernels.stack->between;
    uint32_t const share_ppm = kernel_between_ppm(chip->kernels.stack, work);
    uint64_t const all_bytes = saturate_add(work->hbm_read_bytes, work->hbm_write_bytes);
    units_wide const launch_ps = (units_wide)(uint64_t)between->launch_ps * work->kernel_count;
    struct compute_time time = {
        .vpu_ps = demand_at_ps(work->vector_flop, chip->vector_flop_per_s, math_ppm),
        .hbm_ps = at_share_ps(demand_at_ps(all_bytes - there_bytes, chip->hbm_bytes_per_s, hbm_ppm),
                              share_ppm),
        .vmem_ps =
            demand_ps(saturate_add(all_bytes, work->vmem_read_bytes), chip->vmem_bytes_per_s),
        .rest_ps = whole_ps(0, 1, launch_ps > INT64_MAX ? INT64_MAX : (int64_t)launch_ps),
        .tile_count = 1,
    };
    time.vpu_rest_ps = time.rest_ps;
    time.duration_ps =
        whole_ps((units_wide)(uint64_t)larger(larger(time.hbm_ps, time.vpu_ps), time.vmem_ps), 1,
                 time.rest_ps);
    return time;
}

void compute_losses_ppm(const struct chip *chip, const struct work *work, uint32_t held_most,
                        uint32_t *ret_ppm)
{
    uint32_t const count = chip->core.count;
    SIM_ASSERT(held_most < count);
    bool const measured = kernel_waves_ppm(chip->kernels.stack, count, work, held_most, ret_ppm);
    for (uint32_t held = 0; held <= held_most; held++)
        ret_ppm[held] = !measured                 ? (uint32_t)((uint64_t)held * PPM_ONE / count)
                        : ret_ppm[held] < PPM_ONE ? PPM_ONE - ret_ppm[held]
                                                  : 0;
}

/* Of the work itself. */
static struct compute_time work_time(const struct chip *chip, const struct work *work,
                                     uint64_t there_bytes, uint32_t math_ppm, uint32_t hbm_ppm)
{
    if (kernel_is_within(chip->kernels.stack, work)) return (struct compute_time){.tile_count = 1};
    if (kernel_is_between(chip->kernels.stack, work))
        return between_time(chip, work, there_bytes, math_ppm, hbm_ppm);
    struct work_kernels const kernels =
        kernel_of_work(chip->kernels.stack, chip_cores_apart(chip), work);
    if (kernels.table != NULL)
        return kernel_time(chip, work, kernels.share_ppm, there_bytes, math_ppm, hbm_ppm);
    struct compute_time time;
    struct compute_tiles const stages =
        stages_of(chip, work, there_bytes, math_ppm, hbm_ppm, &time);
    uint64_t const count = stages.tile_count;
    uint64_t const load = (uint64_t)stages.load_ps;
    uint64_t const math = (uint64_t)stages.math_ps;
    uint64_t const store = (uint64_t)stages.store_ps;
    uint64_t const hbm = load + store;
    /* What the ends of the pipeline cost when HBM sets the pace, or would if it were slower. */
    units_wide ends = (units_wide)(load > math ? load : math) + (store > math ? store : math) -
                      (hbm > math ? hbm : math);
    units_wide tiles = (units_wide)hbm * count + ends;
    if (count == 1) {
        ends = math;
        tiles = (units_wide)hbm + math;
    } else if (math >= hbm) {
        tiles = (units_wide)math * count + hbm;
    }
    time.duration_ps = whole_ps(tiles, count, chip->launch.op_ps);
    time.rest_ps = whole_ps(ends, count, chip->launch.op_ps);
    time.vpu_rest_ps = whole_ps(hbm, count, chip->launch.op_ps); /* Filled and drained once. */
    int64_t const most_ps = larger(time.hbm_ps, (int64_t)math);
    time.ends_ps = time.duration_ps - chip->launch.op_ps - most_ps;
    return time;
}

struct compute_time compute_time_of_rest(const struct chip *chip, const struct work *work,
                                         uint64_t there_bytes, uint32_t math_ppm, uint32_t hbm_ppm)
{
    struct compute_time time = work_time(chip, work, there_bytes, math_ppm, hbm_ppm);
    /* HBM and the vector unit are free for messages then, so it is no part of `rest_ps`. */
    time.async_ps = (int64_t)work->async_ps;
    time.duration_ps = whole_ps((units_wide)(uint64_t)time.duration_ps, 1, time.async_ps);
    return time;
}
