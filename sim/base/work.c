#include "sim/base/work.h"

#include "sim/base/units.h"

static const char *const work_function_names[] = {
#define X(name, text) text,
    WORK_FUNCTION_TABLE(X)
#undef X
};

uint64_t work_matmul_flop(const struct work *work)
{
    uint64_t flop = 0;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        const struct work_matmul *matmul = &work->matmul[i];
        flop += 2 * matmul->rows * matmul->inner * matmul->columns * matmul->count;
    }
    return flop;
}

static uint64_t pad(uint64_t amount, uint64_t multiple)
{
    return units_saturated((units_wide)units_ceil_divide(amount, multiple) * multiple);
}

uint64_t work_padded_flop(const struct work *work, struct work_edges edges)
{
    units_wide flop = 0;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        const struct work_matmul *matmul = &work->matmul[i];
        uint64_t product =
            units_saturated((units_wide)2 * pad(matmul->rows + work->masked_rows, edges.rows));
        product = units_saturated((units_wide)product * pad(matmul->inner, edges.inner));
        product = units_saturated((units_wide)product * pad(matmul->columns, edges.columns));
        flop += units_saturated((units_wide)product * matmul->count);
    }
    return units_saturated(flop);
}

const char *work_cast_name(enum work_cast cast)
{
    static const char *const names[WORK_CAST_COUNT] = {
        [WORK_CAST_WITHIN] = "within", [WORK_CAST_TENSOR] = "tensor", [WORK_CAST_BLOCK] = "block",
        [WORK_CAST_ROW] = "row",       [WORK_CAST_MX] = "mx",
    };
    return names[cast];
}

const char *work_function_name(enum work_function function)
{
    return work_function_names[function];
}
