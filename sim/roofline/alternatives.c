#include "sim/roofline/alternatives.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/workload/local.h"

/* The machine's axes of more than one chip whose bit says tp (or, inverted, fsdp). */
static void mesh_axis_plan_fill(const struct machine *machine, uint32_t bits,
                                struct mesh_axis_plan *axis)
{
    for (uint32_t i = 0; i < machine->axis_count; i++)
        if (machine->shape[i] > 1 && (bits >> i & 1) != 0)
            axis->part[axis->part_count++] = machine_axis_name(machine, i);
}

static bool same_axis(const struct mesh_axis *one, const struct mesh_axis *other)
{
    uint32_t one_bits = 0, other_bits = 0;
    for (uint32_t i = 0; i < one->part_count; i++) one_bits |= 1u << one->part[i].axis;
    for (uint32_t i = 0; i < other->part_count; i++) other_bits |= 1u << other->part[i].axis;
    return one->size == other->size && (one->size == 1 || one_bits == other_bits);
}

static const char *mesh_text(struct arena *arena, const struct mesh_plan *plan)
{
    char text[96] = "";
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        const struct mesh_axis_plan *axis = &plan->axis[i];
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%s over", i > 0 ? ", " : "",
                       mesh_role_name(axis->role));
        for (uint32_t p = 0; p < axis->part_count; p++) {
            used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, " %s", axis->part[p]);
        }
    }
    return arena_text(arena, text);
}

/* Whether the mesh is one that the workload can run on; then the alternative is filled. */
static bool try_mesh(struct arena *arena, const struct workload_plan *plan,
                     const struct machine *machine, const struct mesh *current, uint32_t tp_bits,
                     struct alternative *alternative)
{
    struct mesh_plan mesh_plan = {0};
    struct mesh_axis_plan fsdp = {.role = MESH_FSDP};
    struct mesh_axis_plan tp = {.role = MESH_TP};
    mesh_axis_plan_fill(machine, ~tp_bits, &fsdp);
    mesh_axis_plan_fill(machine, tp_bits, &tp);
    if (fsdp.part_count > 0) mesh_plan.axis[mesh_plan.axis_count++] = fsdp;
    if (tp.part_count > 0) mesh_plan.axis[mesh_plan.axis_count++] = tp;
    struct error refusal = {0}; /* A mesh that cannot run is not an alternative. */
    struct mesh mesh;
    struct local local;
    if (mesh_build(arena, &mesh_plan, machine, &mesh, &refusal) != STATUS_OK) return false;
    if (local_build(plan, machine, &mesh, &local, &refusal) != STATUS_OK) return false;
    *alternative = (struct alternative){
        .mesh = mesh_text(arena, &mesh_plan),
        .fsdp_ranks = mesh.axis[MESH_FSDP].size,
        .tp_ranks = mesh.axis[MESH_TP].size,
        .sequence_parts = local_is_llama(&local) ? local.sequence_parts : 1,
        .current = current->axis[MESH_DP].size == 1 &&
                   same_axis(&mesh.axis[MESH_FSDP], &current->axis[MESH_FSDP]) &&
                   same_axis(&mesh.axis[MESH_TP], &current->axis[MESH_TP]),
    };
    if (alternative->sequence_parts == 0) alternative->sequence_parts = 1;
    roofline_train_step(plan, machine, &mesh, &alternative->roofline);
    alternative->fits =
        alternative->roofline.memory_bytes <= (double)machine->chip.hbm_capacity_bytes;
    return alternative->mesh != NULL;
}

enum status alternatives_build(struct arena *arena, const struct workload_plan *plan,
                               const struct machine *machine, const struct mesh *mesh,
                               struct alternative *ret_alternatives, uint32_t *ret_count,
                               struct error *reterr)
{
    uint32_t const choices = 1u << machine->axis_count;
    uint32_t count = 0;
    for (uint32_t bits = 0; bits < choices; bits++) {
        bool counted = true; /* An axis of one chip is given to nobody, so it has one choice. */
        for (uint32_t i = 0; i < machine->axis_count; i++)
            if (machine->shape[i] == 1 && (bits >> i & 1) != 0) counted = false;
        if (!counted) continue;
        if (try_mesh(arena, plan, machine, mesh, bits, &ret_alternatives[count])) count++;
    }
    *ret_count = count;
    STATUS_TRY(watch_check(plan->watch, reterr)); /* Who was interrupted tried too few. */
    if (arena_take(arena, 1, 1) == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the alternative meshes");
    return STATUS_OK;
}
