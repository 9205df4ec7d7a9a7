/*
 * chip_read.h: a chip's JSON to a struct chip. Every number there is an object of a value and its
 * source; one that lacks its source is refused, also in our own files.
 */
#ifndef SIM_MACHINE_CHIP_READ_H
#define SIM_MACHINE_CHIP_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/chip.h"

struct arena;
struct json;

/* `path` is the document's file, which errors of the document name; NULL: they name none. `profile`
 * is one of the file's; `where_profile` is its place in the scenario. */
enum status chip_read(struct arena *arena, struct json *document, const char *path,
                      const char *profile, const char *where_profile, struct chip *ret_chip,
                      struct error *reterr);

/* The numbers of the document in its order. */
enum status chip_read_facts(struct arena *arena, struct json *document,
                            const struct chip_fact **ret_facts, uint32_t *ret_count,
                            struct error *reterr);

#endif
