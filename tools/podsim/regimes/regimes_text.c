/* The map of `podsim regimes` on a terminal. */
#include <stdio.h>
#include <string.h>

#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/regimes/regimes.h"

enum { CELL_WIDTH = 6, LABEL_COLUMNS = 26, ALGORITHM_COLUMNS = 28 };

const char *regimes_size(char buffer[REGIMES_SIZE_BYTES], uint64_t bytes)
{
    static const char letters[] = "KMGTPE";
    uint32_t shift = 0;
    while (shift < 60 && bytes >> (shift + 10) != 0) shift += 10;
    if (shift == 0)
        (void)snprintf(buffer, REGIMES_SIZE_BYTES, "%u", (unsigned)bytes);
    else
        (void)snprintf(buffer, REGIMES_SIZE_BYTES, "%.4g%c",
                       (double)bytes / (double)(UINT64_C(1) << shift), letters[shift / 10 - 1]);
    return buffer;
}

static void paint(struct strbuf *text, bool colour, uint32_t algorithm)
{
    static const uint32_t codes[] = {36, 33, 32, 35, 34, 31}; /* Cyan first; letters tell apart. */
    if (colour) strbuf_add(text, "\033[%um", codes[algorithm % (sizeof codes / sizeof *codes)]);
}

static void unpaint(struct strbuf *text, bool colour)
{
    if (colour) strbuf_add(text, "\033[0m");
}

static void write_head(const struct collective_args *args, const struct regimes *regimes,
                       struct strbuf *text)
{
    char begin[REGIMES_SIZE_BYTES], end[REGIMES_SIZE_BYTES];
    regimes_add_title(args, regimes, text);
    strbuf_add(text, "size: %s, %s to %s; %u groups of neighbours; %llu runs\n",
               measure_op_size_text(args->row.operation),
               regimes_size(begin, regimes->size_bytes[0]),
               regimes_size(end, regimes->size_bytes[regimes->size_count - 1]),
               regimes->group_count, (unsigned long long)regimes->run_count);
    if (regimes->group_count < regimes->group_count_max)
        strbuf_add(text, "interrupted: %u of %u groups\n", regimes->group_count,
                   regimes->group_count_max);
}

static void write_map(const struct regimes *regimes, bool colour, struct strbuf *text)
{
    char size[REGIMES_SIZE_BYTES];
    strbuf_add(text, "\nwho is fastest\n");
    uint64_t const table = table_open(text);
    regimes_add_label(regimes, REGIMES_HEADINGS, text);
    for (uint32_t s = 0; s < regimes->size_count; s++)
        strbuf_add(text, "%*s", CELL_WIDTH, regimes_size(size, regimes->size_bytes[s]));
    strbuf_add(text, "\n");
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        const struct regimes_group *group = &regimes->group[g];
        regimes_add_label(regimes, g, text);
        for (uint32_t s = 0; s < regimes->size_count; s++) {
            if (group->winner[s] == REGIMES_NONE) {
                strbuf_add(text, "%*s", CELL_WIDTH, "-");
                continue;
            }
            strbuf_add(text, "%*s", CELL_WIDTH - 1, "");
            paint(text, colour, group->winner[s]);
            strbuf_add(text, "%c", regimes_letter(group->winner[s]));
            unpaint(text, colour);
        }
        strbuf_add(text, "\n");
    }
    table_close(text, table, LABEL_COLUMNS);
    for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
        uint32_t const width = 4 + (uint32_t)strlen(regimes->algorithm_name[a]);
        /* A name stays with its letter. */
        if (text->columns > 0 && a > 0 && strbuf_column(text) + width > text->columns)
            strbuf_add(text, "\n");
        strbuf_add(text, "  ");
        paint(text, colour, a);
        strbuf_add(text, "%c", regimes_letter(a));
        unpaint(text, colour);
        strbuf_add(text, " %s", regimes->algorithm_name[a]);
    }
    strbuf_add(text, "\n");
}

static void write_landmarks(const struct regimes *regimes, struct strbuf *text)
{
    strbuf_add(text, "\nfloor: of one byte; peak: algbw that the fastest tends to; n1/2 "
                     "and 95 %%: sizes that reach this part of it\n");
    uint64_t const table = table_open(text);
    regimes_add_label(regimes, REGIMES_HEADINGS, text);
    column_add_headings(&regimes_group_table.screen, 1, strbuf_column(text), text);
    regimes_add_changes(regimes, REGIMES_HEADINGS, text);
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        const struct regimes_group *group = &regimes->group[g];
        if (group->winner[0] == REGIMES_NONE) continue;
        regimes_add_label(regimes, g, text);
        column_add_row(&regimes_group_table, regimes, g, strbuf_column(text), text);
        regimes_add_changes(regimes, g, text);
    }
    table_close(text, table, LABEL_COLUMNS);
}

static void write_fits(const struct regimes *regimes, struct strbuf *text)
{
    strbuf_add(text,
               "\nfit: time = alpha + beta * size, least squares of the relative errors of the "
               "sizes above; theory: idle links\n");
    uint64_t const table = table_open(text);
    column_add_headings(&regimes_curve_table.screen, 0, LABEL_COLUMNS + ALGORITHM_COLUMNS, text);
    strbuf_add(text, "\n");
    regimes_add_label(regimes, REGIMES_HEADINGS, text);
    regimes_add_algorithm(NULL, 0, text);
    column_add_headings(&regimes_curve_table.screen, 1, strbuf_column(text), text);
    strbuf_add(text, "\n");
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        const struct regimes_group *group = &regimes->group[g];
        struct regimes_curves_of const curves = {regimes, group};
        for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
            if (!group->curve[a].applies) continue;
            regimes_add_label(regimes, g, text);
            regimes_add_algorithm(&curves, a, text);
            column_add_row(&regimes_curve_table, &curves, a, strbuf_column(text), text);
            strbuf_add(text, "\n");
        }
        regimes_add_bound(regimes, g, text);
    }
    table_close(text, table, LABEL_COLUMNS + ALGORITHM_COLUMNS + 2);
}

void regimes_write_text(const struct collective_args *args, const struct regimes *regimes,
                        bool colour, struct strbuf *text)
{
    write_head(args, regimes, text);
    write_map(regimes, colour, text);
    write_landmarks(regimes, text);
    write_fits(regimes, text);
}
