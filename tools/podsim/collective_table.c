/* The table of `podsim collective`, column by column that of nccl-tests, and its CSV. */
#include <stdio.h>

#include "sim/base/text.h"
#include "tools/podsim/collective.h"

enum { TIME_WIDTH = 7, RATE_WIDTH = 6 };

static const double us_per_s = 1e6;
static const double ps_per_us = 1e6;
static const double giga = 1e9;

/* As nccl-tests: as many decimals as the width leaves, at most two. */
static const char *figure(char buffer[32], int width, double value)
{
    int power = 0;
    for (double least = 1; value >= least; least *= 10) power++;
    int const decimals = power < width - 2 ? 2 : power < width - 1 ? 1 : 0;
    if (power < width + 1)
        (void)snprintf(buffer, 32, "%*.*f", width, decimals, value);
    else
        (void)snprintf(buffer, 32, "%*.*e", width, width >= TIME_WIDTH ? 1 : 0, value);
    return buffer;
}

static void write_head(const struct collective_study *study, struct text *text)
{
    const struct row_question *question = &study->question;
    uint64_t const ranks = group_rank_count(&question->group);
    text_add(text, "# podsim collective: %s on %s, profile %s\n",
             operation_name(question->operation), study->machine_text, study->machine.chip.profile);
    text_add(text, "# axes %s: %llu ranks a group, %llu groups at once on %u chips\n", study->axes,
             (unsigned long long)ranks, (unsigned long long)(study->machine.chip_count / ranks),
             study->machine.chip_count);
    text_add(text, "# size is %s; array is V, all that the group has\n",
             operation_size_text(question->operation));
}

static void write_fold(const struct collective_study *study, struct text *text)
{
    text_add(text, "# %u of %u chips played:", study->fold.chip_count, study->machine.chip_count);
    for (uint32_t axis = 0; axis < study->machine.axis_count; axis++)
        text_add(text, " %s %u of %u%s", machine_axis_name(&study->machine, axis),
                 study->fold.period[axis], study->machine.shape[axis],
                 axis + 1 < study->machine.axis_count ? "," : "\n");
}

static void write_columns(struct text *text)
{
    text_add(text, "#\n");
    text_add(text,
             "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place\n",
             "", "", "", "", "");
    text_add(text,
             "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %12s  %8s  %-7s"
             "  %s\n",
             "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
             "algbw", "busbw", "#wrong", "array", "roofline", "bound", "algorithm");
    text_add(text,
             "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %12s  %8s\n",
             "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
             "(GB/s)", "", "(B)", "(us)");
}

static void write_row(const struct collective_study *study, const struct row *row,
                      struct text *text)
{
    const struct row_question *question = &study->question;
    char time[32], algbw[32], busbw[32], roofline[32];
    (void)figure(time, TIME_WIDTH, (double)row->time_ps / ps_per_us);
    (void)figure(algbw, RATE_WIDTH, row->algbw_bytes_per_s / giga);
    (void)figure(busbw, RATE_WIDTH, row->busbw_bytes_per_s / giga);
    (void)figure(roofline, TIME_WIDTH, row->roofline_s * us_per_s);
    text_add(text, "%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)row->size_bytes,
             (unsigned long long)row->count, format_name(question->format),
             operation_adds(question->operation) ? "sum" : "none",
             operation_is_rooted(question->operation) ? (int)question->root : -1);
    for (uint32_t half = 0; half < 2; half++)
        text_add(text, "  %7s  %6s  %6s  %6s", time, algbw, busbw, "N/A");
    text_add(text, "  %12llu  %8s  %-7s  %s\n", (unsigned long long)row->array_bytes, roofline,
             row->bound_by, row->algorithm);
}

void collective_write_table(const struct collective_study *study, struct text *text)
{
    double sum = 0;
    write_head(study, text);
    if (study->row_count > 0) write_fold(study, text);
    write_columns(text);
    for (uint32_t i = 0; i < study->row_count; i++) {
        write_row(study, &study->rows[i], text);
        sum += study->rows[i].busbw_bytes_per_s / giga;
    }
    if (study->row_count < study->row_count_max)
        text_add(text, "# interrupted: %u of %u rows\n", study->row_count, study->row_count_max);
    if (study->row_count > 0)
        text_add(text, "# Avg bus bandwidth    : %g\n#\n", sum / study->row_count);
}

void collective_write_csv(const struct collective_study *study, struct text *text)
{
    const struct row_question *question = &study->question;
    text_add(text, "op,algorithm,ranks,size_bytes,array_bytes,time_ps,algbw_bytes_per_s,"
                   "busbw_bytes_per_s,roofline_s,bound_by\n");
    for (uint32_t i = 0; i < study->row_count; i++) {
        const struct row *row = &study->rows[i];
        text_add(text, "%s,%s,%llu,%llu,%llu,%lld,%.9g,%.9g,%.9g,%s\n",
                 operation_name(question->operation), row->algorithm,
                 (unsigned long long)group_rank_count(&question->group),
                 (unsigned long long)row->size_bytes, (unsigned long long)row->array_bytes,
                 (long long)row->time_ps, row->algbw_bytes_per_s, row->busbw_bytes_per_s,
                 row->roofline_s, row->bound_by);
    }
}
