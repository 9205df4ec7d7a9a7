/*
 * program_text_plan.h: what a text says of works, groups and roles, held against the machine.
 * Internal to sim/program.
 */
#ifndef SIM_PROGRAM_PROGRAM_TEXT_PLAN_H
#define SIM_PROGRAM_PROGRAM_TEXT_PLAN_H

#include "sim/program/program_text_token.h"

/* The FLOP of a work can be counted. The cursor stands behind its last line. */
enum status text_work_check(const struct text_cursor *cursor, const struct work *work);

/* Adds a dimension to a request whose group can take one more. */
enum status text_dimension_add(const struct text_cursor *cursor,
                               const struct text_dimension *dimension,
                               struct plan_request *request);

/* Builds the plan of a request, whose links it fills. */
enum status text_plan_build(const struct text_cursor *cursor, struct text_plan *plan,
                            struct plan *ret_plan);

/* Roles lie on the machine, and no collective joins ranks of two of them. The program is sealed. */
enum status text_roles_check(const struct machine *machine, const struct program *program,
                             struct program_place *ret_place, struct error *reterr);

/* Each rank waits, in a step, for all messages that it is sent in the step: else the next step
 * would begin before the last message has come. Roles lie on the machine. The error's place is the
 * block that waits for most, or the role where none does. Errors: STATUS_INVALID, STATUS_NO_MEMORY.
 */
enum status text_inboxes_check(struct arena *arena, const struct machine *machine,
                               const struct program *program, struct program_place *ret_place,
                               struct error *reterr);

#endif
