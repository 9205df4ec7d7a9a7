/*
 * op_slots.h: the kinds of slots of a step that have compute ops, and the pipeline ranks of each.
 *
 * A kind is compute ops and how often a step of one rank has them, in one template or in several
 * that differ in what they send, receive and wait for. Ranks whose step has it as often share it.
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
    uint64_t *layers;      /* [layer / 64]: a bit for each layer. */
    const char *rank_text; /* "0-2,5"; NULL: all ranks have one role. */
    const char
        *layer_text; /* "0-2"; NULL: no layers, or no other kind of the same name has some. */
    int64_t place;   /* In the step: the phase first, then what comes before. */
    uint32_t seen;   /* Kinds that were found before, by role and slot. */
    struct op_slot *next;
};

/* Kinds of slots in the order of the step: forward, backward, update, and within these as the model
 * is passed, whatever the rank. Errors: STATUS_NO_MEMORY. */
enum status op_slots_find(struct arena *arena, const struct program *program,
                          struct op_slot **ret_first, struct error *reterr);

#endif
