/*
 * lists.h: options that are lists of schedules with commas.
 */
#ifndef TOOLS_PODSIM_PIPELINE_LISTS_H
#define TOOLS_PODSIM_PIPELINE_LISTS_H

#include "sim/schedule/schedule.h"

enum { LISTS_FORMS_MAX = 64 };

/* "gpipe,interleaved:4"; for "all" and NULL the catalogue without its baseline. */
struct lists_form {
    const struct schedule_form *form;
    uint32_t chunk_count;
};

struct lists_forms {
    struct lists_form form[LISTS_FORMS_MAX];
    uint32_t count;
    bool all;
};

enum status lists_forms(struct arena *arena, const char *text, const char *where,
                        struct lists_forms *ret_forms, struct error *reterr);

/* Where the part of a list that begins here ends. */
const char *lists_part_end(const char *text);

#endif
