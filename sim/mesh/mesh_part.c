#include "sim/mesh/mesh_part.h"

#include <stdio.h>
#include <string.h>

/* "x, y and z" */
static const char *axes_text(const struct machine *machine, char *buffer, size_t buffer_bytes)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t axis = 0; axis < machine->axis_count && used < buffer_bytes; axis++) {
        const char *before = axis == 0 ? "" : axis + 1 == machine->axis_count ? " and " : ", ";
        used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s%s", before,
                                 machine_axis_name(machine, axis));
    }
    return buffer;
}

static enum status refuse_axis(const char *text, const struct machine *machine, const char *where,
                               struct error *reterr)
{
    char axes[64];
    return error_set(reterr, STATUS_INVALID, where,
                     "\"%.40s\" names no axis of the machine; it has %s, and a part of 4 of %s is "
                     "\"%s:4\"",
                     text, axes_text(machine, axes, sizeof axes), machine_axis_name(machine, 0),
                     machine_axis_name(machine, 0));
}

enum status mesh_part_parse(const char *text, const struct machine *machine, const char *where,
                            struct mesh_part_text *ret_part, struct error *reterr)
{
    struct mesh_part_text part = {0};
    size_t const named = strcspn(text, ":");
    for (; part.axis < machine->axis_count; part.axis++) {
        const char *name = machine_axis_name(machine, part.axis);
        if (strlen(name) == named && memcmp(name, text, named) == 0) break;
    }
    if (part.axis == machine->axis_count) return refuse_axis(text, machine, where, reterr);
    const char *name = machine_axis_name(machine, part.axis);
    uint32_t const length = machine->shape[part.axis];
    if (text[named] == '\0') {
        *ret_part = (struct mesh_part_text){.axis = part.axis, .size = length, .whole = true};
        return STATUS_OK;
    }
    const char *digits = text + named + 1;
    uint64_t size = 0;
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.40s\" is not a part of an axis; write \"%s:%u\"", text, name,
                         mesh_part_divisor(length, 4));
    }
    for (; *digits != '\0' && size <= length; digits++)
        size = 10 * size + (uint64_t)(*digits - '0');
    if (size == 0 || size > length) {
        return error_set(reterr, STATUS_INVALID, where,
                         "the part \"%.40s\" is not between 1 and the length of %s, %u", text, name,
                         length);
    }
    part.size = (uint32_t)size;
    *ret_part = part;
    return STATUS_OK;
}

uint32_t mesh_part_divisor(uint32_t length, uint32_t wanted)
{
    if (wanted >= length) return length;
    for (uint32_t step = 0; step < wanted; step++) {
        if (length % (wanted - step) == 0) return wanted - step;
        if (length % (wanted + step) == 0) return wanted + step;
    }
    return 1;
}
