/*
 * published_case.h: the published rows of the project, read once, for tests of what is made of
 * each.
 */
#ifndef TESTS_UNIT_PUBLISHED_CASE_H
#define TESTS_UNIT_PUBLISHED_CASE_H

#include <string.h>

#include "tests/support/case.h"
#include "tools/podsim/validate/validate.h"

static struct published published;

static inline int published_up(void **state)
{
    if (case_arena_up(state) != 0) return 1;
    return published_read(case_arena, &published, &case_error) == STATUS_OK ? 0 : 1;
}

static inline const struct published_row *row_of(const char *id)
{
    for (uint32_t i = 0; i < published.row_count; i++)
        if (strcmp(published.row[i].id, id) == 0) return &published.row[i];
    fail_msg("no row %s", id);
    return NULL;
}

#endif
