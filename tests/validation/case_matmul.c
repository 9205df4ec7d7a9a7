/*
 * Evaluators of single ops: the FLOP and bytes of a matmul, and the time they take on a chip as
 * the replay charges it (sim/resource/compute.h).
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "tests/validation/case_parts.h"

/* `count` products [rows x inner] · [inner x columns]; operands in their own formats. */
static struct work work_of(const struct case_row *row)
{
    struct work work = {.matmul = {{.rows = row_count(row, "rows"),
                                    .inner = row_count(row, "inner"),
                                    .columns = row_count(row, "columns"),
                                    .count = row_count_or(row, "count", 1)}},
                        .matmul_count = 1,
                        .math_format = row_format(row, "math", FORMAT_BF16)};
    const struct work_matmul *matmul = &work.matmul[0];
    enum format const weights = row_format(row, "weights", FORMAT_BF16);
    enum format const activations = row_format(row, "activations", FORMAT_BF16);
    uint64_t const weight_bytes =
        format_bytes(weights, matmul->inner * matmul->columns) * matmul->count;
    uint64_t const in_bytes =
        format_bytes(activations, matmul->rows * matmul->inner) * matmul->count;
    uint64_t const out_bytes =
        format_bytes(activations, matmul->rows * matmul->columns) * matmul->count;
    if (row_flag_or(row, "in_vmem", false)) {
        work.vmem_read_bytes = weight_bytes + in_bytes + out_bytes;
    } else {
        work.hbm_read_bytes = weight_bytes + in_bytes;
        work.hbm_write_bytes = out_bytes;
    }
    return work;
}

static struct case_value matmul(const struct case_row *row)
{
    struct work const work = work_of(row);
    const struct work_matmul *matmul = &work.matmul[0];
    const char *what = row_text(row, "what");
    double const flop = (double)work_matmul_flop(&work);
    double const bytes =
        (double)(work.hbm_read_bytes + work.hbm_write_bytes + work.vmem_read_bytes);
    if (strcmp(what, "flop") == 0) return value_number(flop);
    if (strcmp(what, "read") == 0) return value_number((double)work.hbm_read_bytes);
    if (strcmp(what, "written") == 0) return value_number((double)work.hbm_write_bytes);
    if (strcmp(what, "intensity") == 0) return value_number(flop / bytes);
    if (strcmp(what, "operands") == 0) /* Elements that are read. */
        return value_number((double)(matmul->rows * matmul->inner * matmul->count +
                                     matmul->inner * matmul->columns * matmul->count));
    struct chip const chip = row_chip(row);
    struct compute_time const time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    if (strcmp(what, "math_time") == 0) return value_number(units_seconds(time.mxu_ps));
    if (strcmp(what, "hbm_time") == 0) return value_number(units_seconds(time.hbm_ps));
    if (strcmp(what, "vmem_time") == 0) return value_number(units_seconds(time.vmem_ps));
    row_simulates(); /* The op by itself, tile after tile. */
    if (strcmp(what, "time") == 0) return value_number(units_seconds(time.duration_ps));
    if (strcmp(what, "attained") == 0) return value_number(flop / units_seconds(time.duration_ps));
    row_fail(row, "a matmul has no %s", what);
}

/* FLOP on the MXU with nothing to load: rows of one MXU's shape, as many as it takes. */
static struct case_value math_time(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    uint64_t const a_row = 2ull * chip.mxu.rows * chip.mxu.columns;
    struct work const work = {
        .matmul = {{.rows = units_ceil_divide(row_count(row, "flop"), a_row),
                    .inner = chip.mxu.rows,
                    .columns = chip.mxu.columns,
                    .count = 1}},
        .matmul_count = 1,
        .math_format = row_format(row, "math", FORMAT_BF16),
    };
    row_simulates();
    return value_number(units_seconds(compute_time(&chip, &work, PPM_ONE, PPM_ONE).duration_ps));
}

/* Bytes that one op streams from HBM and does nothing else. */
static struct case_value load_time(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    struct work const work = {.hbm_read_bytes = row_count(row, "bytes")};
    row_simulates();
    return value_number(units_seconds(compute_time(&chip, &work, PPM_ONE, PPM_ONE).duration_ps));
}

/* A sum of two fp32 arrays on the vector units. */
static struct case_value vector_add(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    uint64_t const elements = row_count(row, "elements");
    uint64_t const array_bytes = format_bytes(FORMAT_FP32, elements);
    struct work const work = {.vector_flop = elements,
                              .hbm_read_bytes = 2 * array_bytes,
                              .hbm_write_bytes = array_bytes,
                              .math_format = FORMAT_FP32};
    struct compute_time const time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    const char *what = row_text(row, "what");
    if (strcmp(what, "math_time") == 0) return value_number(units_seconds(time.vpu_ps));
    if (strcmp(what, "hbm_time") == 0) return value_number(units_seconds(time.hbm_ps));
    if (strcmp(what, "intensity") == 0)
        return value_number((double)work.vector_flop /
                            (double)(work.hbm_read_bytes + work.hbm_write_bytes));
    row_fail(row, "an addition has no %s", what);
}

const struct case_evaluator case_matmul[] = {{"matmul", matmul},
                                             {"math_time", math_time},
                                             {"load_time", load_time},
                                             {"vector", vector_add},
                                             {NULL, NULL}};
