#include "sim/mesh/mesh.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/mesh/mesh_part.h"

const char *const mesh_role_names[MESH_ROLE_COUNT + 1] = {
#define X(name, text, help) text,
    MESH_ROLE_TABLE(X)
#undef X
};

const enum mesh_role mesh_order_standard[MESH_ROLE_COUNT] = {MESH_TP,   MESH_TP_D, MESH_CP, MESH_EP,
                                                             MESH_FSDP, MESH_DP,   MESH_PP};

enum { WHERE_BYTES = 32, TEXT_BYTES = 256 };

const char *mesh_role_name(enum mesh_role role)
{
    SIM_ASSERT(role < MESH_ROLE_COUNT);
    return mesh_role_names[role];
}

/* How much of each machine axis the parts so far take: the stride of the next. */
struct taken {
    uint32_t size[MACHINE_AXES_MAX];
    bool whole[MACHINE_AXES_MAX];
};

static enum status check_part(const struct machine *machine, const struct mesh_axis *axis,
                              const struct mesh_part_text *part, const struct taken *taken,
                              const char *where, struct error *reterr)
{
    const char *name = machine_axis_name(machine, part->axis);
    uint32_t const length = machine->shape[part->axis];
    uint32_t const left = length / taken->size[part->axis];
    for (uint32_t i = 0; i < axis->part_count; i++) {
        if (axis->part[i].axis != part->axis) continue;
        return error_set(reterr, STATUS_INVALID, where,
                         "%s is named twice in one mesh axis; name one part of %s with both sizes "
                         "multiplied",
                         name, name);
    }
    if (taken->whole[part->axis]) {
        return error_set(reterr, STATUS_INVALID, where,
                         "the whole of %s is taken already; name a part of it, such as %s:%u, in "
                         "both places",
                         name, name, mesh_part_divisor(length, 2));
    }
    if (part->whole && taken->size[part->axis] > 1) {
        return error_set(reterr, STATUS_INVALID, where,
                         "a part of %s is taken already; write %s:%u for the rest", name, name,
                         left);
    }
    if (left % part->size != 0) {
        return error_set(reterr, STATUS_INVALID, where,
                         "a part of %u does not divide the %u left of %s (its length is %u); the "
                         "nearest that does is %s:%u",
                         part->size, left, name, length, name, mesh_part_divisor(left, part->size));
    }
    return STATUS_OK;
}

/* A strided part whose steps reach around a wrapped axis closes into a ring through real links, as
 * a whole axis does; a part of neighbours does not, and neither does one that others continue. */
struct group_dimension mesh_dimension(const struct machine *machine, const struct mesh_part *part)
{
    return (struct group_dimension){
        .axis = part->axis,
        .size = part->size,
        .stride = part->stride,
        .name = machine_axis_name(machine, part->axis),
        .switched = machine->axis_level[part->axis] != LEVEL_NONE,
        .ring = machine->wrap[part->axis] &&
                (uint64_t)part->size * part->stride == machine->shape[part->axis],
    };
}

/* Parts of size 1 are left out of the group: nobody stands beside them. */
static struct group group_of(const struct machine *machine, const struct mesh_axis *axis)
{
    struct group group = {0};
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        if (part->size == 1) continue;
        group.dimension[group.dimension_count++] = mesh_dimension(machine, part);
    }
    return group;
}

static const struct mesh_axis_plan *axis_named(const struct mesh_plan *plan, enum mesh_role role)
{
    for (uint32_t i = 0; i < plan->axis_count; i++)
        if (plan->axis[i].role == role) return &plan->axis[i];
    return NULL;
}

bool mesh_plan_has(const struct mesh_plan *plan, enum mesh_role role)
{
    return axis_named(plan, role) != NULL;
}

/* A part of ep that names another axis of the mesh. */
static enum status over_add(const struct mesh_plan *all, enum mesh_role role, const char *where,
                            struct mesh *mesh, struct error *reterr)
{
    static const uint32_t may = 1u << MESH_TP | 1u << MESH_CP | 1u << MESH_DP;
    const char *name = mesh_role_name(role);
    if ((may >> role & 1) == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "experts over ranks of %s are not modelled; ep lies over tp, cp and dp, "
                         "and over axes of the machine",
                         name);
    if (!mesh_plan_has(all, role))
        return error_set(reterr, STATUS_INVALID, where,
                         "the mesh has no %s whose ranks could have experts; leave it out", name);
    if (mesh_ep_over(mesh, role))
        return error_set(reterr, STATUS_INVALID, where, "%s is named twice in one mesh axis", name);
    mesh->ep_over |= 1u << role;
    return STATUS_OK;
}

static enum status build_axis(const struct mesh_plan *all, const struct mesh_axis_plan *plan,
                              const struct machine *machine, struct taken *taken, struct mesh *mesh,
                              struct error *reterr)
{
    struct mesh_axis *axis = &mesh->axis[plan->role];
    char where[WHERE_BYTES];
    SIM_ASSERT(plan->part_count <= MACHINE_AXES_MAX);
    for (uint32_t i = 0; i < plan->part_count; i++) {
        struct mesh_part_text part;
        uint32_t const named = name_find(plan->part[i], mesh_role_names);
        (void)snprintf(where, sizeof where, "/mesh/%s/%u", mesh_role_name(plan->role), i);
        if (plan->role == MESH_EP && named < MESH_ROLE_COUNT) {
            STATUS_TRY(over_add(all, (enum mesh_role)named, where, mesh, reterr));
            continue;
        }
        STATUS_TRY(mesh_part_parse(plan->part[i], machine, where, &part, reterr));
        STATUS_TRY(check_part(machine, axis, &part, taken, where, reterr));
        axis->part[axis->part_count++] = (struct mesh_part){
            .axis = part.axis, .size = part.size, .stride = taken->size[part.axis]};
        axis->size *= part.size;
        taken->size[part.axis] *= part.size;
        taken->whole[part.axis] = part.whole;
    }
    axis->group = group_of(machine, axis);
    mesh->present[plan->role] = true;
    mesh->rank_count *= axis->size;
    return STATUS_OK;
}

static enum status check_filled(const struct machine *machine, const struct mesh *mesh,
                                const struct taken *taken, struct error *reterr)
{
    if (mesh->rank_count == machine->chip_count) return STATUS_OK;
    char missing[TEXT_BYTES] = "";
    size_t used = 0;
    for (uint32_t axis = 0; axis < machine->axis_count && used < sizeof missing; axis++) {
        const char *name = machine_axis_name(machine, axis);
        uint32_t const length = machine->shape[axis];
        if (taken->size[axis] == length) continue;
        if (taken->size[axis] == 1) {
            used += (size_t)snprintf(missing + used, sizeof missing - used,
                                     "; \"%s\" is named nowhere", name);
        } else {
            used +=
                (size_t)snprintf(missing + used, sizeof missing - used,
                                 "; %u of the %u of %s are named, \"%s:%u\" is missing",
                                 taken->size[axis], length, name, name, length / taken->size[axis]);
        }
    }
    return error_set(reterr, STATUS_INVALID, "/mesh", "the mesh holds %u of the machine's %s%s",
                     mesh->rank_count, counted(machine->chip_count, "chip").text, missing);
}

static enum status named_once(const struct mesh_plan *plan, struct error *reterr)
{
    char where[WHERE_BYTES];
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        if (axis_named(plan, plan->axis[i].role) == &plan->axis[i]) continue;
        (void)snprintf(where, sizeof where, "/mesh/%s", mesh_role_name(plan->axis[i].role));
        return error_set(reterr, STATUS_INVALID, where, "this mesh axis is named twice");
    }
    return STATUS_OK;
}

static enum status order_refuse(const struct mesh_plan *plan, struct error *reterr)
{
    char text[TEXT_BYTES] = "";
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        if (!mesh_plan_has(plan, mesh_order_standard[i])) continue;
        size_t const used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s\"%s\"", used == 0 ? "" : ", ",
                       mesh_role_name(mesh_order_standard[i]));
    }
    return error_set(reterr, STATUS_INVALID, "/mesh/order",
                     "the order names each axis of the mesh once, the innermost first; the "
                     "standard one is [%s]",
                     text);
}

enum status mesh_plan_order(const struct mesh_plan *plan, enum mesh_role ret_order[MESH_ROLE_COUNT],
                            struct error *reterr)
{
    bool const own = plan->order_count != 0;
    const enum mesh_role *wanted = own ? plan->order : mesh_order_standard;
    uint32_t const wanted_count = own ? plan->order_count : MESH_ROLE_COUNT;
    uint32_t count = 0, seen = 0;
    for (uint32_t i = 0; i < wanted_count; i++) {
        bool const here = mesh_plan_has(plan, wanted[i]);
        if (own && (!here || (seen >> wanted[i] & 1) != 0)) return order_refuse(plan, reterr);
        seen |= 1u << wanted[i];
        if (here) ret_order[count++] = wanted[i];
    }
    return own && count != plan->axis_count ? order_refuse(plan, reterr) : STATUS_OK;
}

static bool lies_on(const struct mesh_axis *axis, uint32_t machine_axis)
{
    for (uint32_t p = 0; p < axis->part_count; p++)
        if (axis->part[p].axis == machine_axis && axis->part[p].size > 1) return true;
    return false;
}

/* The first machine axis on which its mesh axes are named in another order than they lie. */
static uint32_t keys_differ_on(const struct mesh *mesh)
{
    for (uint32_t at = 0; at < MACHINE_AXES_MAX; at++) {
        uint32_t next = 0;
        for (uint32_t i = 0; i < mesh->order_count; i++) {
            if (!lies_on(mesh_own_axis(mesh, mesh->order[i]), at)) continue;
            while (!lies_on(mesh_own_axis(mesh, mesh->named[next]), at)) next++;
            if (mesh->named[next++] != mesh->order[i]) return at;
        }
    }
    return MACHINE_AXES_MAX;
}

/* Adds a part to those of an axis, or lengthens the one that it continues. False: another mesh axis
 * lies between them. */
static bool union_add(struct mesh_axis *all, const struct mesh_part *part)
{
    for (uint32_t i = 0; i < all->part_count; i++) {
        struct mesh_part *other = &all->part[i];
        if (other->axis != part->axis) continue;
        bool const behind = part->stride == other->stride * other->size;
        bool const before = other->stride == part->stride * part->size;
        if (!behind && !before) return false;
        if (before) other->stride = part->stride;
        other->size *= part->size;
        return true;
    }
    all->part[all->part_count++] = *part;
    return true;
}

static void name_add(char text[TEXT_BYTES], const char *between, const char *quote,
                     enum mesh_role role)
{
    size_t const used = strlen(text);
    (void)snprintf(text + used, TEXT_BYTES - used, "%s%s%s%s", used == 0 ? "" : between, quote,
                   mesh_role_name(role), quote);
}

/* A part of `last` does not continue those of the roles before it: says which axis is in the way,
 * and the order in which none is. */
static enum status union_refuse(const struct mesh *mesh, const struct machine *machine,
                                uint32_t roles, enum mesh_role last, uint32_t machine_axis,
                                const char *what, struct error *reterr)
{
    char together[TEXT_BYTES] = "", between[TEXT_BYTES] = "", order[TEXT_BYTES] = "";
    /* The others reduce experts' gradients without ep, so it is not to lie between them. */
    uint32_t const others = mesh->present[MESH_EP] ? roles & ~(1u << MESH_EP) : roles;
    bool seen = false, passed = false, placed = false;
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        enum mesh_role const role = mesh->order[i];
        bool const is_member = (roles >> role & 1) != 0;
        bool const lies = lies_on(mesh_own_axis(mesh, role), machine_axis);
        passed = passed || role == last;
        if (is_member && mesh_own_axis(mesh, role)->size > 1) name_add(together, " and ", "", role);
        if (seen && !passed && lies && !is_member) name_add(between, " and ", "", role);
        seen = seen || (is_member && lies);
        if (!is_member) name_add(order, ", ", "\"", role);
        for (uint32_t k = i; is_member && !placed && k < mesh->order_count; k++)
            if ((others >> mesh->order[k] & 1) != 0) name_add(order, ", ", "\"", mesh->order[k]);
        if (is_member && !placed && others != roles) name_add(order, ", ", "\"", MESH_EP);
        placed = placed || is_member;
    }
    return error_set(
        reterr, STATUS_UNSUPPORTED, "/mesh",
        "%s over %s together, which lie on %s with %s between them; that is modelled where they "
        "lie side by side: with \"order\": [%s] in the mesh",
        what, together, machine_axis_name(machine, machine_axis), between, order);
}

/* Adds the parts of several axes to those of one, from the innermost out. */
static enum status unite(const struct mesh *mesh, const struct machine *machine, uint32_t roles,
                         const char *what, struct mesh_axis *all, struct error *reterr)
{
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        const struct mesh_axis *axis = mesh_own_axis(mesh, mesh->order[i]);
        if (!(roles >> mesh->order[i] & 1)) continue;
        for (uint32_t p = 0; p < axis->part_count; p++) {
            if (axis->part[p].size == 1 || union_add(all, &axis->part[p])) continue;
            return union_refuse(mesh, machine, roles, axis->role, axis->part[p].axis, what, reterr);
        }
        all->size *= axis->size;
    }
    return STATUS_OK;
}

/* All ranks of ep: of its own, and of the axes that it lies over. */
static enum status ep_unite(const struct machine *machine, struct mesh *mesh, struct error *reterr)
{
    struct mesh_axis *ep = &mesh->axis[MESH_EP];
    struct mesh_axis all = {.role = MESH_EP, .size = 1};
    mesh->own_ep = *ep;
    if (mesh->ep_over == 0) return STATUS_OK;
    STATUS_TRY(
        unite(mesh, machine, mesh->ep_over | 1u << MESH_EP, "experts are split", &all, reterr));
    *ep = all;
    for (uint32_t i = 0; i < all.part_count; i++) /* The slowest first. */
        ep->part[i] = all.part[all.part_count - 1 - i];
    ep->group = group_of(machine, ep);
    return STATUS_OK;
}

enum status mesh_build(const struct mesh_plan *plan, const struct machine *machine,
                       struct mesh *ret_mesh, struct error *reterr)
{
    struct mesh mesh = {.rank_count = 1, .keys_differ_on = MACHINE_AXES_MAX};
    struct taken taken = {.whole = {false}};
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) taken.size[axis] = 1;
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        mesh.axis[i].role = (enum mesh_role)i;
        mesh.axis[i].size = 1;
    }
    SIM_ASSERT(plan->axis_count <= MESH_ROLE_COUNT);
    STATUS_TRY(named_once(plan, reterr));
    STATUS_TRY(mesh_plan_order(plan, mesh.order, reterr));
    mesh.order_count = plan->axis_count;
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        mesh.named[i] = plan->axis[i].role;
        STATUS_TRY(
            build_axis(plan, axis_named(plan, mesh.order[i]), machine, &taken, &mesh, reterr));
    }
    STATUS_TRY(check_filled(machine, &mesh, &taken, reterr));
    STATUS_TRY(ep_unite(machine, &mesh, reterr));
    if (plan->order_count == 0) mesh.keys_differ_on = keys_differ_on(&mesh);
    *ret_mesh = mesh;
    return STATUS_OK;
}

uint32_t mesh_rank(const struct mesh *mesh, const struct machine *machine, enum mesh_role role,
                   uint32_t chip)
{
    const struct mesh_axis *axis = &mesh->axis[role];
    uint32_t at[MACHINE_AXES_MAX];
    uint32_t rank = 0;
    machine_coordinates(machine, chip, at);
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        rank = rank * part->size + at[part->axis] / part->stride % part->size;
    }
    return rank;
}

/* The box of `count` consecutive ranks that begin at a multiple of `count`: whole parts from the
 * last one on, then a divisor of the next. False: they are no box. */
static bool subgroup_find(const struct machine *machine, const struct mesh_axis *axis,
                          uint32_t count, struct group *ret_group)
{
    struct mesh_axis box = {.role = axis->role, .part_count = axis->part_count};
    for (uint32_t i = axis->part_count; i-- > 0;) {
        box.part[i] = axis->part[i];
        if (count % box.part[i].size == 0) {
            count /= box.part[i].size;
        } else if (box.part[i].size % count == 0) {
            box.part[i].size = count;
            count = 1;
        } else {
            return false;
        }
    }
    if (count != 1) return false;
    *ret_group = group_of(machine, &box);
    return true;
}

enum status mesh_subgroup(const struct mesh *mesh, const struct machine *machine,
                          enum mesh_role role, uint32_t count, const char *where,
                          struct group *ret_group, struct error *reterr)
{
    const struct mesh_axis *axis = &mesh->axis[role];
    struct group unused;
    if (count != 0 && subgroup_find(machine, axis, count, ret_group)) return STATUS_OK;
    uint32_t near = count > axis->size ? axis->size : 1;
    for (uint32_t step = 1; step < axis->size && count != 0 && count <= axis->size; step++) {
        near = count > step && subgroup_find(machine, axis, count - step, &unused) ? count - step
                                                                                   : count + step;
        if (near <= axis->size && subgroup_find(machine, axis, near, &unused)) break;
    }
    return error_set(reterr, STATUS_INVALID, where,
                     "%u neighbouring ranks of %s (%s) are not a box of the machine's axes; "
                     "the nearest count is %u",
                     count, mesh_role_name(role), counted(axis->size, "rank").text, near);
}

uint32_t mesh_replica_roles(const struct mesh *mesh, bool experts)
{
    uint32_t roles = 1u << MESH_DP | 1u << MESH_CP | (experts ? 0 : 1u << MESH_EP);
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        if (mesh_own_axis(mesh, (enum mesh_role)role)->size == 1) roles &= ~(1u << role);
    return experts ? roles & ~mesh->ep_over : roles;
}

enum status mesh_union(const struct mesh *mesh, const struct machine *machine, uint32_t roles,
                       const char *what, struct group *ret_group, struct error *reterr)
{
    struct mesh_axis all = {.size = 1};
    STATUS_TRY(unite(mesh, machine, roles, what, &all, reterr));
    *ret_group = group_of(machine, &all);
    return STATUS_OK;
}
