/*
 * kernel_files.h: stacks in files that take each other's tables. Only the build reads these files:
 * tools/kernel_stacks.c makes the arrays of kernel_stacks.h from topology/kernels/.
 */
#ifndef SIM_KERNELS_KERNEL_FILES_H
#define SIM_KERNELS_KERNEL_FILES_H

#include "sim/kernels/kernels.h"

enum { KERNEL_FILES_DEPTH_MAX = 8 };

struct embed_file;

/* Reads the stack of a file, by its name. Errors: STATUS_NOT_FOUND for a name that no file has;
 * files that take each other's tables in a circle. */
enum status kernel_files_read(struct arena *arena, const struct embed_file *files, unsigned count,
                              const char *name, struct kernel_stack *ret_stack,
                              struct error *reterr);

#endif
