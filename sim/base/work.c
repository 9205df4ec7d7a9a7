#include "sim/base/work.h"

uint64_t work_matmul_flop(const struct work *work)
{
    uint64_t flop = 0;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        const struct work_matmul *matmul = &work->matmul[i];
        flop += 2 * matmul->rows * matmul->inner * matmul->columns * matmul->count;
    }
    return flop;
}
