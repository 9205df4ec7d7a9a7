/* What rows say of collectives, and of products during a copy, for people. */
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "tools/podsim/calibrate/calibrate.h"

/* "latencies 1.31 times NCCL's: line 12, 8 GPUs, 65.5 kB by ring, LL" */
static void factor_add(const char *what, const struct calibrate_factor *factor, struct strbuf *text)
{
    const struct row *row = factor->row;
    if (row == NULL) return;
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    if (factor->is_outside)
        strbuf_add(text, "%s: podsim's stays, as no factor from %g to %g gives line %u", what,
                   (double)KERNEL_FACTOR_LEAST_PPM / PPM_ONE,
                   (double)KERNEL_FACTOR_MOST_PPM / PPM_ONE, row->line);
    else
        strbuf_add(text, "%s %.3f times NCCL's: line %u", what, (double)factor->ppm / PPM_ONE,
                   row->line);
    strbuf_add(text, ", %s of %u GPUs by %s, %s\n", table_bytes((double)row->size_bytes).text,
               row->ranks, algorithm_text(&factor->algorithm).text,
               protocol_name(factor->protocol));
}

static void error_add(const struct calibrate_collectives *of, uint32_t kind, struct strbuf *text)
{
    const struct calibrate_error *error = &of->error[kind], *before = &of->before[kind];
    strbuf_add(text,
               "half are within %.1f%%, nine of ten %.1f%%; with podsim's own %.1f%%, %.1f%%\n",
               (double)error->median_ppm / 1e4, (double)error->ninetieth_ppm / 1e4,
               (double)before->median_ppm / 1e4, (double)before->ninetieth_ppm / 1e4);
}

void calibrate_summary_collectives(const struct calibration *calibration, struct strbuf *text)
{
    const struct calibrate_collectives *of = &calibration->collectives;
    if (of->row_count == 0) return;
    strbuf_add(text, "  collectives");
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%s row%s, ", table_count(of->row_count).text, of->row_count == 1 ? "" : "s");
    calibrate_spread_add(&of->spread, text);
    strbuf_add(text, "\n");
    factor_add("latencies", &of->latency, text);
    factor_add("a byte", &of->byte, text);
    factor_add("a byte by NVLS", &of->nvls, text);
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    error_add(of, MEASURE_COUNT, text);
    for (uint32_t kind = 0; kind < MEASURE_COUNT; kind++) {
        if (of->error[kind].count == 0) continue;
        strbuf_add(text, "    %s", measure_op_name((enum measure_op)kind));
        strbuf_pad(text, CALIBRATE_NAME_COLUMN);
        strbuf_add(text, "%s row%s, ", table_count(of->error[kind].count).text,
                   of->error[kind].count == 1 ? "" : "s");
        error_add(of, kind, text);
    }
}

static void part_add(const struct calibrate_overlap_part *part, struct strbuf *text)
{
    strbuf_add(text,
               "%.2f times as long, by podsim %.2f; half are within %.1f%%, nine of ten %.1f%%\n",
               (double)part->measured_ppm / PPM_ONE, (double)part->modelled_ppm / PPM_ONE,
               (double)part->error.median_ppm / 1e4, (double)part->error.ninetieth_ppm / 1e4);
}

void calibrate_summary_overlap(const struct calibration *calibration, struct strbuf *text)
{
    const struct calibrate_overlap *of = &calibration->overlap;
    if (of->row_count == 0) return;
    strbuf_add(text, "  matmul during a copy");
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%s row%s, ", table_count(of->row_count).text, of->row_count == 1 ? "" : "s");
    calibrate_spread_add(&of->spread, text);
    strbuf_add(text, "; they set nothing\n");
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    part_add(&of->all, text);
    for (uint32_t i = 0; i < of->part_count; i++) {
        strbuf_add(text, "    with %u of %u cores", of->part[i].cores,
                   chip_cores_apart(calibration->chip));
        strbuf_pad(text, CALIBRATE_NAME_COLUMN);
        strbuf_add(text, "%s row%s, ", table_count(of->part[i].error.count).text,
                   of->part[i].error.count == 1 ? "" : "s");
        part_add(&of->part[i], text);
    }
}
