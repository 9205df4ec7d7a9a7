#include "sim/report/notes_layout.h"

#include <stdio.h>

enum { NAMES_BYTES = 96 };

/* The mesh axes that lie on a machine axis, with what stands around and between their names. */
static const char *names_on(const struct mesh *mesh, const enum mesh_role *order, uint32_t axis,
                            const char *between, const char *quote, char text[NAMES_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < mesh->order_count && used < NAMES_BYTES; i++) {
        const struct mesh_axis *at = &mesh->axis[order[i]];
        bool lies = axis == MACHINE_AXES_MAX;
        for (uint32_t p = 0; p < at->part_count; p++)
            lies = lies || (at->part[p].axis == axis && at->part[p].size > 1);
        if (!lies) continue;
        used += (size_t)snprintf(text + used, NAMES_BYTES - used, "%s%s%s%s",
                                 used == 0 ? "" : between, quote, mesh_role_name(order[i]), quote);
    }
    return text;
}

/* Files whose keys stood in the order of what they meant, before the order had a rule. */
static void note_order(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct mesh *mesh = input->mesh;
    uint32_t const axis = mesh->keys_differ_on;
    char lie[NAMES_BYTES], named[NAMES_BYTES], all[NAMES_BYTES];
    if (axis == MACHINE_AXES_MAX) return;
    notes_add(arena, notes,
              "on %s the mesh axes lie in the order %s, the innermost first, whatever the order "
              "of the file's keys, which is %s; \"order\": [%s] in the mesh lays them as the keys "
              "stand",
              machine_axis_name(input->machine, axis),
              names_on(mesh, mesh->order, axis, ", ", "", lie),
              names_on(mesh, mesh->named, axis, ", ", "", named),
              names_on(mesh, mesh->named, MACHINE_AXES_MAX, ", ", "\"", all));
}

void notes_layout_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    note_order(arena, input, notes);
}
