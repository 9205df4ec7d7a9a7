#include "tools/podsim/common/trace_chips.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/counted.h"

enum { ENDS_BYTES = 128 };

static const char place[] = "--trace-chips";

/* Reads "1,0,3" at `*at` and moves it behind; false if it is not of that form. */
static bool read_coordinates(const char **at, uint32_t count, uint32_t ret_at[MACHINE_AXES_MAX])
{
    for (uint32_t axis = 0; axis < count; axis++) {
        if (axis != 0 && *(*at)++ != ',') return false;
        size_t const digits = strspn(*at, "0123456789");
        if (digits == 0) return false;
        /* More digits than 7 are a number outside of every machine. */
        ret_at[axis] = digits > 7 ? UINT32_MAX : (uint32_t)strtoul(*at, NULL, 10);
        *at += digits;
    }
    return **at == ' ' || **at == '\0';
}

static enum status add_chip(const char *item, const uint32_t at[MACHINE_AXES_MAX],
                            const struct machine *machine, struct trace_chips *chips,
                            struct error *reterr)
{
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (at[axis] >= machine->shape[axis])
            return error_set(reterr, STATUS_INVALID, place,
                             "%.*s lies outside of the machine: %s goes from 0 to %u",
                             (int)strcspn(item, " "), item, machine_axis_name(machine, axis),
                             machine->shape[axis] - 1);
    uint32_t const chip = machine_chip_at(machine, at);
    for (uint32_t i = 0; i < chips->count; i++)
        if (chips->chip[i] == chip)
            return error_set(reterr, STATUS_INVALID, place, "%.*s is named twice",
                             (int)strcspn(item, " "), item);
    if (chips->count == TRACE_SHOWN_MAX)
        return error_set(reterr, STATUS_LIMIT, place, "more than %d chips; name fewer",
                         TRACE_SHOWN_MAX);
    chips->chip[chips->count++] = chip;
    return STATUS_OK;
}

/* Corners of the machine, which a timeline may show in place of all. */
static const char *ends_text(const struct machine *machine, char text[ENDS_BYTES])
{
    int used = 0;
    for (uint32_t end = 0; end < 2; end++)
        for (uint32_t axis = 0; axis < machine->axis_count; axis++)
            used +=
                snprintf(text + used, (size_t)(ENDS_BYTES - used), "%s%u",
                         axis > 0 ? "," : (end > 0 ? " " : ""), end * (machine->shape[axis] - 1));
    return text;
}

static enum status all_chips(const struct machine *machine, struct trace_chips *chips,
                             struct error *reterr)
{
    char ends[ENDS_BYTES];
    if (machine->chip_count > TRACE_SHOWN_MAX)
        return error_set(reterr, STATUS_LIMIT, place,
                         "the machine has %u chips, and a timeline shows at most %d; name some of "
                         "them, such as \"%s\"",
                         machine->chip_count, TRACE_SHOWN_MAX, ends_text(machine, ends));
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) chips->chip[chips->count++] = chip;
    return STATUS_OK;
}

enum status trace_chips_read(const char *list, const struct machine *machine,
                             struct trace_chips *ret_chips, struct error *reterr)
{
    *ret_chips = (struct trace_chips){.count = list == NULL}; /* Chip 0. */
    if (list != NULL && strcmp(list, "all") == 0) return all_chips(machine, ret_chips, reterr);
    for (const char *at = list; at != NULL && *at != '\0';) {
        uint32_t coordinates[MACHINE_AXES_MAX] = {0};
        const char *const item = at;
        if (!read_coordinates(&at, machine->axis_count, coordinates))
            return error_set(reterr, STATUS_INVALID, place,
                             "%.40s is no list of chips; each is %s, such as \"%s %s\"; or say all",
                             list, counted(machine->axis_count, "coordinate").text,
                             &"0,0,0,0"[2 * (MACHINE_AXES_MAX - machine->axis_count)],
                             &"1,1,1,1"[2 * (MACHINE_AXES_MAX - machine->axis_count)]);
        STATUS_TRY(add_chip(item, coordinates, machine, ret_chips, reterr));
        at += strspn(at, " ");
    }
    if (ret_chips->count == 0) return error_set(reterr, STATUS_INVALID, place, "names no chip");
    return STATUS_OK;
}
