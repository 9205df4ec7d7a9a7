/*
 * files_read.h: the files that this process has read, so that none of them is written. Every place
 * that opens a user's file for reading lists it here, whoever named it: the command line, a
 * scenario, or a file that a scenario names.
 */
#ifndef SIM_BASE_FILES_READ_H
#define SIM_BASE_FILES_READ_H

#include <stdbool.h>
#include <sys/stat.h>

#include "sim/base/status.h"

/* `file` is a descriptor that is open; what is no regular file is not listed. Several threads may.
 * Errors: STATUS_NO_MEMORY; the place is `path`. */
enum status files_read_add(int file, const char *path, struct error *reterr);

/* Whether the process has read the file, by whatever name. */
bool files_read_has(const struct stat *status);

#endif
