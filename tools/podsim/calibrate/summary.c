/* What was read, for people. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "tools/podsim/calibrate/calibrate.h"

enum { LINES_MAX = 12, STEADY_PPM = 50000 };

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void calibrate_spread_add(const struct calibrate_spread *spread, struct strbuf *text)
{
    strbuf_add(text, "spread %.1f%%, at most %.1f%% (line %u)", spread->median_ppm / 1e4,
               spread->most_ppm / 1e4, spread->most_line);
}

static void table_add(const struct calibrate_table *made, struct strbuf *text)
{
    strbuf_add(text, "  ");
    kernel_table_name_add(&made->table, text);
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%s row%s, ", table_count(made->row_count).text, plural(made->row_count));
    if (made->refusal != NULL) {
        strbuf_add(text, "no table: %s\n", made->refusal);
        return;
    }
    calibrate_spread_add(&made->spread, text);
    strbuf_add(text, "\n");
    if (made->edges.point_count > 0) {
        strbuf_pad(text, CALIBRATE_NAME_COLUMN);
        strbuf_add(text, "without every second edge: half are within %.1f%%, nine of ten %.1f%%\n",
                   made->edges.median_ppm / 1e4, made->edges.ninetieth_ppm / 1e4);
    }
    if (made->filled_count == 0) return;
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%u point%s without a row, filled from points around\n", made->filled_count,
               plural(made->filled_count));
}

static void function_add(const struct calibration *calibration, enum work_function which,
                         struct strbuf *text)
{
    const struct calibrate_function *function = &calibration->function[which];
    if (function->share_ppm == 0) return;
    strbuf_add(text, "  between %s", work_function_name(which));
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%u row%s, ", function->row_count, plural(function->row_count));
    calibrate_spread_add(&function->spread, text);
    strbuf_add(text, "\n");
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%.1f%% of HBM's rate, the median of %u row%s of %s\n",
               function->share_ppm / 1e4, function->large_count, plural(function->large_count),
               function->largest_bytes >= CALIBRATE_LARGE_BYTES
                   ? "100 MB or more"
                   : table_bytes((double)function->largest_bytes).text);
}

static void measured_add(const struct calibration *calibration, struct strbuf *text)
{
    strbuf_add(text, "measured\n");
    for (uint32_t t = 0; t < calibration->table_count; t++) table_add(&calibration->table[t], text);
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        function_add(calibration, (enum work_function)f, text);
    if (calibration->launch_ps != 0) {
        strbuf_add(text, "  launch");
        strbuf_pad(text, CALIBRATE_NAME_COLUMN);
        strbuf_add(text, "%s a kernel\n", table_duration(calibration->launch_ps).text);
    }
    calibrate_summary_collectives(calibration, text);
    calibrate_summary_overlap(calibration, text);
}

static bool is_replaced(const struct calibration *calibration, const struct kernel_table *base)
{
    for (uint32_t t = 0; t < calibration->table_count; t++) {
        const struct calibrate_table *made = &calibration->table[t];
        if (made->refusal == NULL && calibrate_base_table(calibration, &made->table) == base)
            return true;
    }
    return false;
}

static void carried_add(const struct calibration *calibration, struct strbuf *text)
{
    const struct kernel_stack *base = calibration->base;
    if (base == NULL) {
        strbuf_add(text, "carried over: nothing; what was not measured has the profile's rates\n");
        return;
    }
    strbuf_add(text, "carried over from %s\n", calibration->base_name);
    for (uint32_t t = 0; t < base->table_count; t++) {
        if (is_replaced(calibration, &base->table[t])) continue;
        strbuf_add(text, "  ");
        kernel_table_name_add(&base->table[t], text);
        if (base->table[t].derived != NULL) {
            strbuf_pad(text, CALIBRATE_NAME_COLUMN);
            strbuf_add(text, "derived: %s", base->table[t].derived);
        }
        strbuf_add(text, "\n");
    }
    if (base->between.fusion != NULL && calibrate_parts_add(calibration, false, "  between ", text))
        strbuf_add(text, "\n");
    if (base->clock_ppm == 0 || strcmp(base->chip, calibration->chip->name) != 0) return;
    strbuf_add(text, "  clock of a step");
    strbuf_pad(text, CALIBRATE_NAME_COLUMN);
    strbuf_add(text, "%.3g%%", base->clock_ppm / 1e4);
    if (base->clock_fp8_ppm != 0)
        strbuf_add(text, ", of products in fp8 %.3g%%", base->clock_fp8_ppm / 1e4);
    strbuf_add(text, "\n");
}

static void left_out_add(const struct calibration *calibration, struct strbuf *text)
{
    uint32_t const count = calibration->left_out_count;
    const struct rows *rows = calibration->rows;
    if (count > 0) strbuf_add(text, "left out: %u row%s\n", count, plural(count));
    for (uint32_t i = 0; i < count && i < LINES_MAX; i++)
        strbuf_add(text, "  line %u: %s\n", calibration->left_out[i].line,
                   calibration->left_out[i].why);
    if (count > LINES_MAX) strbuf_add(text, "  and %u more\n", count - LINES_MAX);
    if (rows->skipped_count > 0)
        strbuf_add(text, "not measured by the program: %u\n", rows->skipped_count);
    for (uint32_t i = 0; i < rows->skipped_count && i < ROWS_SKIPPED_MAX; i++)
        strbuf_add(text, "  %s\n", rows->skipped[i]);
    if (rows->skipped_count > ROWS_SKIPPED_MAX)
        strbuf_add(text, "  and %u more\n", rows->skipped_count - ROWS_SKIPPED_MAX);
}

/* The first word of a chip's title that has a digit: "H100". */
static bool is_named(const struct chip *chip, const char *device)
{
    char word[32];
    const char *at = chip->title;
    while (*at != '\0') {
        size_t const length = strcspn(at, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (strpbrk(word, "0123456789") != NULL) return strstr(device, word) != NULL;
        at += length + (at[length] == ' ');
    }
    return true;
}

static void warnings_add(const struct calibration *calibration, struct strbuf *text)
{
    const struct rows *rows = calibration->rows;
    uint32_t unsteady = 0;
    if (rows->device != NULL && calibration->chip->kind == CHIP_GPU &&
        !is_named(calibration->chip, rows->device))
        strbuf_add(text, "warning: the rows are of %s, the shares of %s\n", rows->device,
                   calibration->chip->title);
    if (!rows->is_whole)
        strbuf_add(text, "warning: the rows have no line \"end\": the program was stopped%s\n",
                   rows->cut_line != 0 ? ", in its last line" : "");
    for (uint32_t t = 0; t < calibration->table_count; t++)
        unsteady += calibration->table[t].refusal == NULL &&
                    calibration->table[t].spread.median_ppm > STEADY_PPM;
    if (unsteady > 0)
        strbuf_add(text,
                   "warning: the spread of %u table%s is above %d%%; does anything else use the "
                   "device?\n",
                   unsteady, plural(unsteady), STEADY_PPM / 10000);
}

void calibrate_summary(const struct calibration *calibration, const char *path, struct strbuf *text)
{
    const struct rows *rows = calibration->rows;
    const struct chip *chip = calibration->chip;
    strbuf_add(text, "podsim calibrate: %s row%s of %s\n", table_count(rows->count).text,
               plural(rows->count), strcmp(path, "-") == 0 ? "standard input" : path);
    strbuf_add(text, "device   %s, driver %s, clock %s\n",
               rows->device != NULL ? rows->device : "unknown",
               rows->driver != NULL ? rows->driver : "unknown",
               rows->clock != NULL ? rows->clock : "unknown");
    strbuf_add(text, "library  %s\n", rows->libraries != NULL ? rows->libraries : "unknown");
    strbuf_add(text, "chip     %s: shares of %s in bf16, %s\n", chip->title,
               table_flop_rate((double)chip->math_peak_flop_per_s[FORMAT_BF16]).text,
               table_rate((double)chip->hbm_bytes_per_s).text);
    measured_add(calibration, text);
    carried_add(calibration, text);
    left_out_add(calibration, text);
    warnings_add(calibration, text);
}
