#include "sim/mesh/mesh_part.h"

#include <string.h>

static enum status refuse_axis(const char *text, const struct machine *machine, const char *where,
                               struct error *reterr)
{
    static const char *const known[] = {"x", "x and y", "x, y and z"};
    return error_set(reterr, STATUS_INVALID, where,
                     "\"%.40s\" names no axis of the machine; it has %s, and a part of 4 of x is "
                     "\"x:4\"",
                     text, known[machine->axis_count - 1]);
}

enum status mesh_part_parse(const char *text, const struct machine *machine, const char *where,
                            struct mesh_part_text *ret_part, struct error *reterr)
{
    struct mesh_part_text part = {0};
    while (part.axis < machine->axis_count && machine_axis_name(part.axis)[0] != text[0])
        part.axis++;
    if (part.axis == machine->axis_count || (text[1] != '\0' && text[1] != ':'))
        return refuse_axis(text, machine, where, reterr);
    uint32_t const length = machine->shape[part.axis];
    if (text[1] == '\0') {
        *ret_part = (struct mesh_part_text){.axis = part.axis, .size = length, .whole = true};
        return STATUS_OK;
    }
    const char *digits = text + 2;
    uint64_t size = 0;
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.40s\" is not a part of an axis; write \"%c:%u\"", text, text[0],
                         mesh_part_divisor(length, 4));
    }
    for (; *digits != '\0' && size <= length; digits++)
        size = 10 * size + (uint64_t)(*digits - '0');
    if (size == 0 || size > length) {
        return error_set(reterr, STATUS_INVALID, where,
                         "the part \"%.40s\" is not between 1 and the length of %c, %u", text,
                         text[0], length);
    }
    part.size = (uint32_t)size;
    *ret_part = part;
    return STATUS_OK;
}

uint32_t mesh_part_divisor(uint32_t length, uint32_t wanted)
{
    for (uint32_t step = 0; step < length; step++) {
        if (wanted > step && length % (wanted - step) == 0) return wanted - step;
        if (length % (wanted + step) == 0) return wanted + step;
    }
    return 1;
}
