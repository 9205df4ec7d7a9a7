#include "sim/report/notes_parts.h"

#include "sim/base/arena.h"

/* Longest first; insertion, since the parts are few and equals keep their order. */
static void part_add(struct notes *notes, const char *name, double seconds)
{
    if (seconds == 0 || name == NULL) return;
    SIM_ASSERT(notes->part_count < NOTES_PARTS_MAX);
    uint32_t at = notes->part_count++;
    for (; at > 0 && notes->part[at - 1].seconds < seconds; at--)
        notes->part[at] = notes->part[at - 1];
    notes->part[at] = (struct notes_part){.name = name, .seconds = seconds};
}

/* The exposed time of collectives is shared out among the classes; those on the bounding axis are
 * within the bound, the others above it. What does not get a row of its own is summed in one. */
static double exposed_parts(struct arena *arena, const struct facts *facts, uint32_t bound_bits,
                            struct notes *notes)
{
    double within = 0, rest = facts->exposed_s;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < facts->class_count; i++) {
        const struct facts_class *row = &facts->classes[i];
        if (!row->collective || row->share_s == 0) continue;
        if ((row->axis_bits & bound_bits) != 0)
            within += row->share_s;
        else if (rows++ < NOTES_PARTS_MAX / 2)
            part_add(notes, arena_format(arena, "%s exposed", row->name), row->share_s);
        else
            continue;
        rest -= row->share_s;
    }
    if (rest < facts->exposed_s * 1e-9) rest = 0; /* Rounding of the shares. */
    part_add(notes, "other collectives exposed", rest);
    return within;
}

void notes_parts_build(struct arena *arena, const struct report_input *input,
                       const struct facts *facts, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    uint32_t const bits = roofline->bound_axis < 0 ? 0 : 1u << roofline->bound_axis;
    double const within = exposed_parts(arena, facts, bits, notes);
    if (input->program->role_count > 1) {
        part_add(notes, "bubbles: waiting for what other ranks of the pipeline do",
                 facts->bubble_s);
        part_add(notes, "waiting for messages of other ranks that are on their way",
                 facts->waiting_s);
    } else {
        part_add(notes, "neither compute nor collectives", facts->idle_s);
    }
    if (bits != 0) {
        /* The axis is busy lower_s at least; `within` of it beside idle compute, the rest beside
         * compute. The compute beyond that runs while the axis rests. */
        const char *axis = machine_axis_name(input->machine, (uint32_t)roofline->bound_axis);
        part_add(notes, arena_format(arena, "compute beside which the %s links rest", axis),
                 facts->compute_s - (roofline->lower_s - within));
        return;
    }
    double excess = 0;
    bool const mxu = roofline->lower_s == roofline->math_s;
    for (uint32_t i = 0; mxu && i < facts->class_count; i++)
        if (!facts->classes[i].collective) excess += facts->classes[i].hbm_excess_s;
    part_add(notes, "compute ops that wait for HBM rather than the MXU", excess);
    double const beyond_s = facts->compute_s - roofline->lower_s - excess;
    part_add(notes,
             beyond_s < 0
                 ? "less the bound's work that is done beside exposed collectives"
                 : "compute beyond the bound: fill and drain of tiles, overheads, HBM shared",
             beyond_s);
}
