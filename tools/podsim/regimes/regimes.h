/*
 * regimes.h: how `podsim regimes` shows what it found: as text, as JSON, as a picture.
 */
#ifndef TOOLS_PODSIM_REGIMES_REGIMES_H
#define TOOLS_PODSIM_REGIMES_REGIMES_H

#include <stdbool.h>

#include "sim/measure/regimes.h"
#include "sim/report/column.h"
#include "tools/podsim/common/collective_args.h"

struct strbuf;

/* Letters of algorithms on the map. */
static inline char regimes_letter(uint32_t algorithm)
{
    return (char)('A' + algorithm);
}

/* "64K", "1.5M": exact where it is a whole number of 1024ths, else three digits. */
enum { REGIMES_SIZE_BYTES = 16 };
const char *regimes_size(char buffer[REGIMES_SIZE_BYTES], uint64_t bytes);

/* Figures of groups, of struct regimes, and of the curves of algorithms in one (regimes_columns.c).
 */
extern const struct column_table regimes_group_table, regimes_curve_table;
struct regimes_curves_of {
    const struct regimes *regimes;
    const struct regimes_group *group;
};

/* The first line; ranks and axes of a group, or their headings; what no algorithm is faster than;
 * what bounds the group and where the fastest changes, to the line's end. */
enum { REGIMES_HEADINGS = REGIMES_GROUPS_MAX };
void regimes_add_title(const struct collective_args *args, const struct regimes *regimes,
                       struct strbuf *text);
void regimes_add_label(const struct regimes *regimes, uint32_t group, struct strbuf *text);
/* Behind a label: an algorithm's letter and name; the heading of `curves` NULL. */
void regimes_add_algorithm(const struct regimes_curves_of *curves, uint32_t algorithm,
                           struct strbuf *text);
void regimes_add_bound(const struct regimes *regimes, uint32_t group, struct strbuf *text);
void regimes_add_changes(const struct regimes *regimes, uint32_t group, struct strbuf *text);

void regimes_write_text(const struct collective_args *args, const struct regimes *regimes,
                        bool colour, struct strbuf *text);
void regimes_write_json(const struct collective_args *args, const struct regimes *regimes,
                        struct strbuf *text);
/* A self-contained SVG. */
void regimes_write_svg(const struct collective_args *args, const struct regimes *regimes,
                       struct strbuf *text);

#endif
