/*
 * collective.h: what `podsim collective` was asked, and what it found: shared by the reader of its
 * options and the writers of its table, its JSON and its CSV.
 */
#ifndef TOOLS_PODSIM_COLLECTIVE_H
#define TOOLS_PODSIM_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/measure/measure_group.h"
#include "sim/measure/row.h"
#include "sim/measure/sizes.h"
#include "tools/podsim/options.h"

struct arena;
struct text;

enum { COLLECTIVE_ALGORITHMS_MAX = 16 };

struct collective_study {
    struct arena *arena; /* Of everything but single runs. */
    const char *machine_text;
    struct machine machine;
    struct row_question question;
    char axes[MEASURE_AXES_BYTES];
    struct sizes sizes;
    const char *algorithm[COLLECTIVE_ALGORITHMS_MAX]; /* As asked. */
    uint32_t algorithm_count;
    struct measure_options run;

    struct row *rows; /* For each size one of each algorithm. */
    uint32_t row_count;
    uint32_t row_count_max;
    struct fold fold; /* Of the last run. */
};

extern const struct option collective_options[];

/* Reads the options into a study without rows, its memory taken. */
enum status collective_read(const struct options *options, struct collective_study *study,
                            struct error *reterr);

void collective_write_table(const struct collective_study *study, struct text *text);
void collective_write_json(const struct collective_study *study, struct text *text);
void collective_write_csv(const struct collective_study *study, struct text *text);

#endif
