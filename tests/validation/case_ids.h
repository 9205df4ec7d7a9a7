/*
 * case_ids.h: which answers of which cases there have to be: a case that nobody judges is missed.
 */
#ifndef TESTS_VALIDATION_CASE_IDS_H
#define TESTS_VALIDATION_CASE_IDS_H

#include "tests/validation/case_table.h"

/* Compares outcomes with a list {"category": {"id": ["answer", ...]}}: says on stderr what of a
 * listed category is missing, what it does not know and what comes twice, and returns how many. */
uint32_t case_ids_compare(struct arena *arena, const char *path, const struct case_outcome *outcome,
                          uint32_t count);

#endif
