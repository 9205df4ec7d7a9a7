#include "sim/resource/kernel_of_work.h"

#include <stddef.h>

#include "sim/base/units.h"

enum kernel_layout kernel_sides(const struct work *work, uint32_t index,
                                uint64_t ret_side[KERNEL_SIDES])
{
    const struct work_matmul *of = &work->matmul[index];
    bool const is_first_half = index < work->matmul_count / 2;
    bool const gradients = work->kernel == WORK_KERNEL_GRADIENTS;
    ret_side[KERNEL_M] = of->rows;
    ret_side[KERNEL_N] = of->columns;
    ret_side[KERNEL_K] = of->inner;
    if (work->kernel == WORK_KERNEL_INPUT || (gradients && is_first_half)) {
        ret_side[KERNEL_N] = of->inner;
        ret_side[KERNEL_K] = of->columns;
        return KERNEL_NN;
    }
    if (work->kernel == WORK_KERNEL_FORWARD || work->kernel == WORK_KERNEL_NONE) return KERNEL_TN;
    ret_side[KERNEL_M] = of->columns;
    ret_side[KERNEL_N] = of->inner;
    ret_side[KERNEL_K] = of->rows;
    return KERNEL_NT;
}

struct work_kernels kernel_of_work(const struct chip *chip, const struct work *work)
{
    struct work_kernels kernels = {.share_ppm = PPM_ONE};
    uint32_t const cores = chip->kind == CHIP_GPU ? chip->core.count : 1;
    units_wide roofline_ps = 0, all_ps = 0;
    if (chip->kernels.stack == NULL || work->kernel == WORK_KERNEL_NONE ||
        work->kernel >= WORK_KERNEL_CHAINS)
        return kernels;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        uint64_t side[KERNEL_SIDES];
        enum kernel_layout const layout = kernel_sides(work, i, side);
        const struct kernel_table *table =
            kernel_table_of(chip->kernels.stack, work->math_format, layout);
        if (table == NULL) return (struct work_kernels){.share_ppm = PPM_ONE};
        if (side[KERNEL_M] == 0 || side[KERNEL_N] == 0 || side[KERNEL_K] == 0) continue;
        struct kernel_share const share = kernel_table_share(table, side, cores);
        units_wide const ps =
            (units_wide)(uint64_t)kernel_roofline_ps(table, side) * work->matmul[i].count;
        roofline_ps += ps;
        all_ps += ps * PPM_ONE / share.ppm;
        kernels.table = kernels.table == NULL ? table : kernels.table;
        kernels.is_outside = kernels.is_outside || share.is_outside;
        kernels.is_of_other_layout = kernels.is_of_other_layout || table->layout != layout;
    }
    if (all_ps != 0) kernels.share_ppm = (uint32_t)(roofline_ps * PPM_ONE / all_ps);
    if (kernels.share_ppm == 0) kernels.share_ppm = 1;
    return kernels;
}
