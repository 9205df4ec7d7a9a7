/*
 * mesh_part.h: the text of one part of a mesh axis: "x" or "x:4".
 */
#ifndef SIM_MESH_MESH_PART_H
#define SIM_MESH_MESH_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"

struct mesh_part_text {
    uint32_t axis; /* The machine's axis. */
    uint32_t size;
    bool whole; /* "x", not "x:16". */
};

enum status mesh_part_parse(const char *text, const struct machine *machine, const char *where,
                            struct mesh_part_text *ret_part, struct error *reterr);

/* The divisor of `length` nearest to `wanted`, the lower of two equally near. */
uint32_t mesh_part_divisor(uint32_t length, uint32_t wanted);

#endif
