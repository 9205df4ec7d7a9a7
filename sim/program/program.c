#include "sim/program/program.h"

#include <stdio.h>
#include <string.h>

enum status program_seal(struct arena *arena, struct program *program, struct error *reterr)
{
    struct program_place place;
    enum status const status = program_try_seal(arena, program, &place, reterr);
    if (status != STATUS_OK && status != STATUS_NO_MEMORY)
        assert_fail(__FILE__, __LINE__, reterr->where, reterr->message);
    return status;
}

const struct program_block *program_slot_block(const struct program_role *role, uint32_t slot)
{
    SIM_ASSERT(slot < role->slot_count);
    uint32_t low = 0;
    uint32_t high = role->block_count;
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        if (role->block[middle].slot_first <= slot) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &role->block[low];
}

uint64_t program_slot_start(const struct program_role *role, const struct program *program,
                            uint32_t stream, int64_t slot)
{
    if (slot < 0) return 0;
    if (slot >= role->slot_count) return role->stream_total[stream];
    const struct program_block *block = program_slot_block(role, (uint32_t)slot);
    return block->stream_first[stream] +
           (uint64_t)(slot - block->slot_first) *
               program->templates[block->template_index].stream_parts[stream];
}

uint64_t program_role_plays(const struct program_role *role, uint32_t template_index, int phase)
{
    uint64_t slots = 0;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        if (block->template_index != template_index) continue;
        if (phase == PROGRAM_ANY_PHASE || (int)block->phase == phase) slots += block->repeat;
    }
    return slots;
}

uint32_t program_role_at(const struct program *program, const uint32_t *at)
{
    if (program->role_count == 1) return 0;
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    uint32_t const place =
        at[program->role_axis] / program->role_stride % (program->role_count / inner);
    if (inner == 1) return place;
    return place * inner + at[program->inner_axis] / program->inner_stride % inner;
}

void program_role_first(const struct program *program, uint32_t role,
                        uint32_t ret_at[LEVEL_AXES_MAX])
{
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    SIM_ASSERT(role < program->role_count);
    memset(ret_at, 0, LEVEL_AXES_MAX * sizeof *ret_at);
    if (program->role_count == 1) return;
    ret_at[program->role_axis] = role / inner * program->role_stride;
    if (inner > 1) ret_at[program->inner_axis] += role % inner * program->inner_stride;
}

uint32_t program_roles_along(const struct program *program, uint32_t axis, uint32_t *ret_stride)
{
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    *ret_stride = 1;
    if (program->role_count == 1) return 1;
    if (inner > 1 && program->inner_axis == axis) {
        *ret_stride = program->inner_stride;
        return inner;
    }
    if (program->role_axis != axis) return 1;
    *ret_stride = program->role_stride;
    return program->role_count / inner;
}

void program_role_name(const struct program *program, uint32_t role, char *buffer,
                       uint32_t buffer_bytes)
{
    if (program->role_count == 1)
        buffer[0] = '\0';
    else
        (void)snprintf(buffer, buffer_bytes, "pipeline rank %u", role);
}

void program_slot_name(const struct program_role *role, uint32_t slot, char *buffer,
                       uint32_t buffer_bytes)
{
    static const char *const phases[] = {
#define X(name, text) text,
        PROGRAM_PHASE_TABLE(X)
#undef X
    };
    const struct program_block *block = program_slot_block(role, slot);
    if (block->layer_first < 0) {
        (void)snprintf(buffer, buffer_bytes, "%s %s", block->name, phases[block->phase]);
        return;
    }
    int64_t const layer =
        block->layer_first + (int64_t)block->layer_step * (int64_t)(slot - block->slot_first);
    (void)snprintf(buffer, buffer_bytes, "%s %lld %s", block->name, (long long)layer,
                   phases[block->phase]);
}

void program_op_where(const struct program *program, const struct program_role *role, uint32_t slot,
                      uint32_t op, const char *otherwise, char *buffer, uint32_t buffer_bytes)
{
    const struct program_block *block = program_slot_block(role, slot);
    const struct program_template *template = &program->templates[block->template_index];
    if (template->op_line == NULL)
        (void)snprintf(buffer, buffer_bytes, "%s", otherwise);
    else
        (void)snprintf(buffer, buffer_bytes, "%.120s:%u:1", program->text_name,
                       template->op_line[op]);
}

bool program_is_drawn(const struct program *program, uint32_t axis)
{
    for (uint32_t i = 0; i < program->plan_count; i++)
        for (uint32_t d = 0; d < program->plans[i].group.dimension_count; d++)
            if (program->plans[i].ragged_units != NULL &&
                program->plans[i].group.dimension[d].axis == axis)
                return true;
    return false;
}
