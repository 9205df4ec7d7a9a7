/*
 * program_text_inbox.c: messages that a rank gets in a step, held against what it waits for.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/machine/machine.h"
#include "sim/program/program_text_plan.h"

/* Where the one message of a permute leads to from a chip; false: the chip sends none. */
static bool receiver_find(const struct machine *machine, const struct plan *plan,
                          const uint32_t at[MACHINE_AXES_MAX], uint32_t ret_to[MACHINE_AXES_MAX])
{
    const struct plan_lane *lane = &plan->lane[0];
    const struct plan_item *item = &plan->item[lane->item];
    uint32_t const position = plan_item_position(plan, item, at);
    if (lane->send_count[position] == 0) return false;
    if (lane->leg_count == 0) {
        plan_item_peer(plan, item, at, plan_step(plan, item, lane->lane, position, 0).peer, ret_to);
        return true;
    }
    memcpy(ret_to, at, MACHINE_AXES_MAX * sizeof *at);
    for (uint32_t leg = 0; leg < lane->leg_count; leg++)
        for (uint32_t hop = 0; hop < lane->leg[leg].hops; hop++) {
            uint32_t next[MACHINE_AXES_MAX];
            machine_neighbour(machine, ret_to, lane->leg[leg].port, next);
            memcpy(ret_to, next, sizeof next);
        }
    return true;
}

/* A plan of a stream of sends: all go the same way. NULL: nothing is sent on the stream. */
static const struct plan *plan_of(const struct program *program, uint32_t stream)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind == PROGRAM_OP_SEND && op->stream == stream)
                return &program->plans[op->index];
        }
    return NULL;
}

/* Adds what chips get by a stream of sends in a step. */
static void sent_add(const struct machine *machine, const struct program *program, uint32_t stream,
                     uint64_t *sent)
{
    const struct plan *plan = plan_of(program, stream);
    for (uint32_t chip = 0; plan != NULL && chip < machine->chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX], to[MACHINE_AXES_MAX];
        machine_coordinates(machine, chip, at);
        const struct program_role *role = &program->roles[program_role_at(program, at)];
        if (role->stream_total[stream] == 0 || !receiver_find(machine, plan, at, to)) continue;
        sent[machine_chip_at(machine, to)] += role->stream_total[stream];
    }
}

static bool receives_on(const struct program_template *template, uint32_t inbox)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_RECEIVE && template->op[i].stream == inbox)
            return true;
    return false;
}

/* The block of a role that waits for most messages of an inbox; PROGRAM_NOWHERE: none does. */
static uint32_t last_wait_find(const struct program *program, const struct program_role *role,
                               uint32_t inbox)
{
    uint32_t last = PROGRAM_NOWHERE;
    for (uint32_t b = 0; b < role->block_count; b++) {
        if (!receives_on(&program->templates[role->block[b].template_index], inbox)) continue;
        if (last == PROGRAM_NOWHERE || role->block[b].arrivals >= role->block[last].arrivals)
            last = b;
    }
    return last;
}

static enum status waits_check(const struct program *program, uint32_t role, uint32_t inbox,
                               uint64_t sent, struct program_place *ret_place, struct error *reterr)
{
    const struct program_role *of = &program->roles[role];
    uint32_t const block = sent == 0 ? PROGRAM_NOWHERE : last_wait_find(program, of, inbox);
    uint64_t const waits = block == PROGRAM_NOWHERE ? 0 : of->block[block].arrivals;
    if (waits >= sent) return STATUS_OK;
    ret_place->role = role;
    ret_place->block = block;
    if (block == PROGRAM_NOWHERE)
        return error_set(reterr, STATUS_INVALID, "",
                         "role %u is sent %s for stream %u in a step and has no op that receives "
                         "there; a step ends when all that is sent in it has come",
                         role, counted(sent, "message").text, inbox);
    return error_set(reterr, STATUS_INVALID, "",
                     "role %u is sent %s for stream %u in a step and waits for no more than %llu; "
                     "a step ends when all that is sent in it has come",
                     role, counted(sent, "message").text, inbox, (unsigned long long)waits);
}

static enum status inbox_check(const struct machine *machine, const struct program *program,
                               uint32_t inbox, uint64_t *sent, struct program_place *ret_place,
                               struct error *reterr)
{
    memset(sent, 0, machine->chip_count * sizeof *sent);
    for (uint32_t stream = 0; stream < program->stream_count; stream++)
        if (program->stream[stream].kind == PROGRAM_OP_SEND &&
            program->stream[stream].inbox == inbox)
            sent_add(machine, program, stream, sent);
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX];
        if (sent[chip] == 0) continue;
        machine_coordinates(machine, chip, at);
        STATUS_TRY(waits_check(program, program_role_at(program, at), inbox, sent[chip], ret_place,
                               reterr));
    }
    return STATUS_OK;
}

enum status text_inboxes_check(struct arena *arena, const struct machine *machine,
                               const struct program *program, struct program_place *ret_place,
                               struct error *reterr)
{
    void *memory = NULL;
    memset(ret_place, 0xff, sizeof *ret_place);
    for (uint32_t inbox = 0; inbox < program->stream_count; inbox++) {
        if (program->stream[inbox].kind != PROGRAM_OP_RECEIVE) continue;
        if (memory == NULL)
            STATUS_TRY(arena_try(arena, machine->chip_count, sizeof(uint64_t), &memory, reterr));
        STATUS_TRY(inbox_check(machine, program, inbox, memory, ret_place, reterr));
    }
    return STATUS_OK;
}
