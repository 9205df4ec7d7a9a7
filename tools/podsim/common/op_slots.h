/*
 * op_slots.h: the kinds of slots of a step that have compute ops, and the pipeline ranks of each.
 *
 * A kind is a template's compute ops and how often a step of one rank has them. Ranks whose step
 * has it as often share it, also where their templates differ in what they send and receive.
 */
#ifndef TOOLS_PODSIM_COMMON_OP_SLOTS_H
#define TOOLS_PODSIM_COMMON_OP_SLOTS_H

#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct program;
struct program_template;

struct op_slot {
    const struct program_template *slot;
    uint64_t times;        /* Of a step of each rank. */
    uint64_t *ranks;       /* [role / 64]: a bit for each role that has it. */
    const char *rank_text; /* "0-2,5"; NULL: all ranks have one role. */
    struct op_slot *next;
};

/* Kinds of slots in the order of templates, and of one template by the first role. Errors:
 * STATUS_NO_MEMORY. */
enum status op_slots_find(struct arena *arena, const struct program *program,
                          struct op_slot **ret_first, struct error *reterr);

#endif
