/*
 * output_guard.h: what a file that is there holds, and what a path leads to, before a result takes
 * its place.
 */
#ifndef TOOLS_PODSIM_COMMON_OUTPUT_GUARD_H
#define TOOLS_PODSIM_COMMON_OUTPUT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* "a scenario": a file that verbs read and that a user writes, by its first keys or its first
 * bytes. NULL: anything else, such as a result. A scenario may have a machine alone; results name a
 * machine too, but none describes it. */
const char *output_guard_kind(const char *path);

/* The path that a link without a target leads to, or the path itself. False: it is too long, or the
 * links go round; errno says which. */
bool output_guard_target(const char *path, char *ret_target, size_t size);

#endif
