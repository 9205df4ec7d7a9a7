#include "tools/podsim/run/advise_mesh.h"

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"

/* The mesh while it is changed: of each role its parts, the slowest first. */
struct layout {
    const struct machine *machine;
    /* Parts' axes and sizes; nothing else is filled. Of ep its own. */
    struct mesh_axis axis[MESH_ROLE_COUNT];
    uint32_t ep_over; /* Axes that ep lies over as well. */
    bool has_order;
    enum mesh_role order[MESH_ROLE_COUNT];
    uint32_t order_count;
};

/* The mesh axis that has what tp has not: weights and batch, or the batch alone. */
static enum mesh_role data_role(const struct mesh *mesh)
{
    return mesh->present[MESH_FSDP] || !mesh->present[MESH_DP] ? MESH_FSDP : MESH_DP;
}

/* The axis along which neighbours are nearest: tp's own, else the nodes' GPUs or the last of the
 * grid. */
static uint32_t tp_axis(const struct session *session)
{
    const struct mesh *mesh = &session->mesh;
    const struct mesh_axis *tp = &mesh->axis[MESH_TP];
    if (mesh->present[MESH_TP] && tp->part_count > 0) return tp->part[tp->part_count - 1].axis;
    const struct machine *machine = &session->machine;
    return machine->chip.kind == CHIP_GPU ? 0 : machine->grid_axis_count - 1;
}

/* How many ranks of a mesh axis lie along an axis of the machine. */
static uint32_t ranks_along(const struct mesh_axis *axis, uint32_t machine_axis)
{
    for (uint32_t p = 0; p < axis->part_count; p++)
        if (axis->part[p].axis == machine_axis) return axis->part[p].size;
    return 1;
}

uint32_t advise_mesh_splits(const struct session *session, uint32_t ret_ranks[ADVISE_SPLITS_MAX])
{
    const struct mesh *mesh = &session->mesh;
    uint32_t const along = tp_axis(session);
    uint32_t const room =
        ranks_along(&mesh->axis[MESH_TP], along) * ranks_along(&mesh->axis[data_role(mesh)], along);
    uint32_t count = 0;
    for (uint32_t ranks = 1; ranks <= room && count < ADVISE_SPLITS_MAX; ranks *= 2)
        if (room % ranks == 0) ret_ranks[count++] = ranks;
    return count;
}

bool advise_mesh_is_current(const struct session *session, uint32_t tp_ranks)
{
    const struct mesh_axis *tp = &session->mesh.axis[MESH_TP];
    return tp->size == tp_ranks && ranks_along(tp, tp_axis(session)) == tp_ranks;
}

/* Ranks along an axis of the machine times `by`, over `over`: in the part that is there, else in
 * one more, the fastest. Parts of one rank go. */
static void part_scale(struct mesh_axis *axis, uint32_t machine_axis, uint32_t by, uint32_t over)
{
    uint32_t p = 0;
    while (p < axis->part_count && axis->part[p].axis != machine_axis) p++;
    if (p == axis->part_count)
        axis->part[axis->part_count++] = (struct mesh_part){.axis = machine_axis, .size = 1};
    SIM_ASSERT(axis->part[p].size * by % over == 0);
    axis->part[p].size = axis->part[p].size * by / over;
    if (axis->part[p].size > 1) return;
    for (axis->part_count--; p < axis->part_count; p++) axis->part[p] = axis->part[p + 1];
}

/* Where an axis that the scenario's mesh has not takes its neighbours: as in the standard order. */
static void order_add(struct layout *layout, enum mesh_role role)
{
    uint32_t rank[MESH_ROLE_COUNT], at = 0;
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) rank[mesh_order_standard[i]] = i;
    for (uint32_t i = 0; i < layout->order_count; i++)
        if (layout->order[i] == role) return;
    while (at < layout->order_count && rank[layout->order[at]] < rank[role]) at++;
    for (uint32_t i = layout->order_count++; i > at; i--) layout->order[i] = layout->order[i - 1];
    layout->order[at] = role;
}

static void layout_fill(const struct session *session, uint32_t tp_ranks, bool shards,
                        struct layout *layout)
{
    const struct mesh *mesh = &session->mesh;
    enum mesh_role data = data_role(mesh);
    uint32_t const along = tp_axis(session);
    *layout = (struct layout){.machine = &session->machine,
                              .ep_over = mesh->ep_over,
                              .has_order = session->scenario.mesh.order_count > 0,
                              .order_count = mesh->order_count};
    for (uint32_t i = 0; i < mesh->order_count; i++)
        layout->order[i] = shards && mesh->order[i] == MESH_DP ? MESH_FSDP : mesh->order[i];
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        if (mesh->present[role])
            layout->axis[shards && role == MESH_DP ? MESH_FSDP : role] =
                *mesh_own_axis(mesh, (enum mesh_role)role);
    if (shards) data = MESH_FSDP;
    struct mesh_axis const tp = mesh->axis[MESH_TP];
    layout->axis[MESH_TP].part_count = 0;
    for (uint32_t p = 0; mesh->present[MESH_TP] && p < tp.part_count; p++)
        part_scale(&layout->axis[data], tp.part[p].axis, tp.part[p].size, 1);
    part_scale(&layout->axis[data], along, 1, tp_ranks);
    part_scale(&layout->axis[MESH_TP], along, tp_ranks, 1);
    order_add(layout, MESH_TP);
    order_add(layout, data);
}

/* Whether ep lies over an axis that the layout still has. */
static bool is_over(const struct layout *layout, enum mesh_role role)
{
    return (layout->ep_over >> role & 1) != 0 && layout->axis[role].part_count > 0;
}

static bool is_there(const struct layout *layout, enum mesh_role role)
{
    bool is = layout->axis[role].part_count > 0;
    for (uint32_t other = 0; role == MESH_EP && other < MESH_ROLE_COUNT; other++)
        is = is || is_over(layout, (enum mesh_role)other);
    return is;
}

/* "\"fsdp\":[\"x\",\"y:2\"]," */
static void role_add(const struct layout *layout, enum mesh_role role, struct strbuf *text)
{
    const struct machine *machine = layout->machine;
    const struct mesh_axis *axis = &layout->axis[role];
    const char *between = "";
    if (!is_there(layout, role)) return;
    strbuf_add(text, "\"%s\":[", mesh_role_name(role));
    for (uint32_t p = 0; p < axis->part_count; p++, between = ",") {
        const struct mesh_part *part = &axis->part[p];
        strbuf_add(text, "%s\"%s", between, machine_axis_name(machine, part->axis));
        strbuf_add(text, part->size == machine->shape[part->axis] ? "\"" : ":%u\"", part->size);
    }
    for (uint32_t other = 0; role == MESH_EP && other < MESH_ROLE_COUNT; other++) {
        if (!is_over(layout, (enum mesh_role)other)) continue;
        strbuf_add(text, "%s\"%s\"", between, mesh_role_name((enum mesh_role)other));
        between = ",";
    }
    strbuf_add(text, "],");
}

static void order_write(const struct layout *layout, struct strbuf *text)
{
    bool first = true;
    strbuf_add(text, "\"order\":[");
    for (uint32_t i = 0; i < layout->order_count; i++) {
        if (!is_there(layout, layout->order[i])) continue;
        strbuf_add(text, "%s\"%s\"", first ? "" : ",", mesh_role_name(layout->order[i]));
        first = false;
    }
    strbuf_add(text, "],");
}

static const char *setting_of(const struct layout *layout, struct arena *arena)
{
    struct strbuf text = {0};
    strbuf_add(&text, "/mesh={");
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        role_add(layout, (enum mesh_role)role, &text);
    if (layout->has_order) order_write(layout, &text);
    const char *setting = NULL;
    if (!text.failed) /* Without the last comma. */
        setting = arena_format(arena, "%.*s}", (int)text.size_bytes - 1, text.bytes);
    strbuf_free(&text);
    return setting;
}

const char *advise_mesh_setting(const struct session *session, uint32_t tp_ranks, bool shards,
                                bool *ret_keeps_zero)
{
    struct layout layout;
    layout_fill(session, tp_ranks, shards, &layout);
    const char *const setting = setting_of(&layout, session->arena);
    const struct mesh_axis *axis = layout.axis;
    bool const replicates =
        axis[MESH_DP].part_count + axis[MESH_EP].part_count + axis[MESH_CP].part_count > 0;
    *ret_keeps_zero = replicates && axis[MESH_FSDP].part_count == 0;
    return setting;
}

/* What a part gives, of the ranks that are still to be found; 0: they do not divide it. */
static uint32_t part_gives(const struct mesh_part *part, uint32_t left)
{
    if (left % part->size == 0) return part->size;
    return part->size % left == 0 ? left : 0;
}

const char *advise_mesh_moved(const struct session *session, enum mesh_role from, enum mesh_role to,
                              uint32_t ranks)
{
    const struct mesh *mesh = &session->mesh;
    const struct mesh_axis *given = mesh_own_axis(mesh, from);
    struct layout layout = {.machine = &session->machine,
                            .ep_over = mesh->ep_over,
                            .has_order = session->scenario.mesh.order_count > 0,
                            .order_count = mesh->order_count};
    uint32_t left = ranks;
    for (uint32_t i = 0; i < mesh->order_count; i++) layout.order[i] = mesh->order[i];
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        if (mesh->present[role]) layout.axis[role] = *mesh_own_axis(mesh, (enum mesh_role)role);
    for (uint32_t i = 0; i < given->part_count && left > 1; i++) {
        const struct mesh_part *part = &given->part[to == MESH_TP ? given->part_count - 1 - i : i];
        uint32_t const gives = part_gives(part, left);
        if (gives == 0) return NULL;
        part_scale(&layout.axis[from], part->axis, 1, gives);
        part_scale(&layout.axis[to], part->axis, gives, 1);
        left /= gives;
    }
    if (left > 1) return NULL;
    order_add(&layout, to);
    return setting_of(&layout, session->arena);
}
