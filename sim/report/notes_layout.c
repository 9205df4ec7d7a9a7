#include "sim/report/notes_layout.h"

#include <stdio.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"

enum { NAMES_BYTES = 96, SHARE_BYTES = 24 };

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
              "on %s the mesh axes lie in the order %s, the innermost first, "
              "whatever the order of the file's keys, which is %s; \"order\": [%s] "
              "in the mesh keeps the order of the keys",
              machine_axis_name(input->machine, axis),
              names_on(mesh, mesh->order, axis, ", ", "", lie),
              names_on(mesh, mesh->named, axis, ", ", "", named),
              names_on(mesh, mesh->named, MACHINE_AXES_MAX, ", ", "\"", all));
}

/* What is small is not said to be nothing: "less than 0.01%". */
static const char *share_text(double share, char text[SHARE_BYTES])
{
    bool const is_small = share > 0 && share < 0.5e-4;
    (void)snprintf(text, SHARE_BYTES, is_small ? "less than 0.01%%" : "%.2f%%", 100 * share);
    return text;
}

/* Flat shards are padded in memory and on links, not in FLOP. */
void notes_padding_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct workload_counts *counts = &input->roofline->counts;
    const struct paddings *paddings = &counts->paddings;
    char share[SHARE_BYTES];
    struct strbuf text = {0};
    uint32_t const first = notes->count;
    for (uint32_t i = 0; i < paddings->count; i++) {
        const struct padding *of = &paddings->of[i];
        double const more = (double)(of->padded - of->size) / (double)of->size;
        strbuf_add(&text, "%s%s from %llu to %llu over %u ranks of %s (%s more)",
                   i == 0 ? "" : ", ", of->what, (unsigned long long)of->size,
                   (unsigned long long)of->padded, of->ranks, of->role, share_text(more, share));
    }
    if (counts->spare.padding > 0)
        strbuf_add(&text, "; that is %s of the executed FLOP%s, which HFU counts and MFU does not",
                   share_text(counts->spare.padding / counts->matmul_flop, share),
                   workload_keeps_all(input->workload) ? "" : " without what is recomputed");
    notes->lacks_memory = notes->lacks_memory || text.failed;
    if (paddings->count > 0 && !text.failed)
        notes_add(arena, notes, "padded, so that all ranks are alike: %s", text.bytes);
    notes_always(notes, first);
    strbuf_free(&text);
}

static void note_skew(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct workload_plan *plan = input->workload;
    bool const matters = plan->routing.capacity_ppm != 0 || input->mesh->axis[MESH_EP].size > 1;
    if (plan->routing.skew_ppm == 0 || matters) return;
    notes_add(arena, notes,
              "routing_skew %g changes nothing: without ep each rank has all experts and computes "
              "all rows of its own tokens, and without a capacity_factor no expert lacks room",
              (double)plan->routing.skew_ppm / PPM_ONE);
}

void notes_layout_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    note_order(arena, input, notes);
    note_skew(arena, input, notes);
    notes_padding_build(arena, input, notes);
}

/* Weights that come layer by layer: of shards, of the update before, or from the host. */
static bool comes_in_layers(const struct report_input *input)
{
    const struct workload_plan *plan = input->workload;
    return input->mesh->axis[MESH_FSDP].size > 1 || plan->zero == 3 ||
           plan->parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP ||
           plan->kept.offload != WORKLOAD_OFFLOAD_NONE ||
           plan->inference.weights == INFERENCE_GATHERED;
}

void notes_unused_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    if (input->workload->prefetch_layers != 1 && !comes_in_layers(input))
        notes_add(
            arena, notes,
            "prefetch_layers changes nothing here: no layer's weights are gathered, or loaded "
            "from the host");
    bool const chunks = input->workload->collective_matmul;
    bool const shares = input->workload->activations != WORKLOAD_ACTIVATIONS_MODEL;
    if (input->mesh->axis[MESH_TP].size > 1 || (!chunks && !shares)) return;
    notes_add(arena, notes, "%s%s%s change%s nothing here: the mesh has no tp of two ranks or more",
              chunks ? "collective_matmul" : "", chunks && shares ? " and " : "",
              shares ? "activations" : "", chunks && shares ? "" : "s");
}
