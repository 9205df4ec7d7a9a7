/*
 * case_parts.h: parts of the project as rows name them, shared by the evaluators.
 */
#ifndef TESTS_VALIDATION_CASE_PARTS_H
#define TESTS_VALIDATION_CASE_PARTS_H

#include "sim/base/format.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "tests/validation/case_row.h"

/* "chip", "profile" (ideal if absent). */
struct chip row_chip(const struct case_row *row);
/* "shape" beside them; "wrap" names the axes that close and makes the rest lines. */
struct machine row_machine(const struct case_row *row);
/* "mesh": "fsdp=x,y,z:2 tp=z:8". */
struct mesh row_mesh(const struct case_row *row, const struct machine *machine);
/* The axis that "role" names. */
const struct mesh_axis *row_role(const struct case_row *row, const struct mesh *mesh);
enum format row_format(const struct case_row *row, const char *key, enum format otherwise);

#endif
