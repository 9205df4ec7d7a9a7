/*
 * mesh.h: logical axes laid on the machine's axes: which ranks talk to each other, and what shape
 * their groups have. It knows no time and no bytes.
 *
 * A mesh axis is called by what it does (dp, fsdp, tp) and lies on one or more machine axes or on
 * part of one: "x:4" is a part of x of 4. On a machine axis that several mesh axes share, the
 * innermost takes neighbours and the next is strided over it: tp, tp_d, cp, ep, fsdp, dp, pp,
 * unless the plan has an order of its own. Several parts: the first named is the slowest, as in a
 * JAX mesh; "neighbouring ranks" are consecutive, so they vary the last part first.
 *
 * Parts of ep may name other mesh axes: ["node", "tp"]. Ranks of these axes then split the experts
 * along with ranks that are ep's own (parallel folding, Liu et al., arXiv 2504.14960, 3.2).
 */
#ifndef SIM_MESH_MESH_H
#define SIM_MESH_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/group.h"
#include "sim/machine/machine.h"

struct arena;

#define MESH_ROLE_TABLE(X)                                                                         \
    X(DP, "dp", "data parallel: the batch is split, parameters are replicated (see zero)")         \
    X(FSDP, "fsdp", "fully sharded data parallel (ZeRO-3): batch and parameters are split")        \
    X(TP, "tp", "tensor parallel: each layer's matrices are split")                                \
    X(PP, "pp", "pipeline parallel: the layers are split into stages")                             \
    X(EP, "ep",                                                                                    \
      "expert parallel: the batch and the experts are split, the experts also over tp, cp or dp "  \
      "where the list has them")                                                                   \
    X(CP, "cp", "context parallel: each sequence is split")                                        \
    X(TP_D, "tp_d", "tensor parallel over the model's width D, with tp over the rest: 2D weights")

enum mesh_role {
#define X(name, text, help) MESH_##name,
    MESH_ROLE_TABLE(X)
#undef X
        MESH_ROLE_COUNT,
};

struct mesh_axis_plan {
    enum mesh_role role;
    const char *part[MACHINE_AXES_MAX]; /* "x", "x:4"; of ep "tp", too. */
    uint32_t part_count;
};

struct mesh_plan {
    struct mesh_axis_plan axis[MESH_ROLE_COUNT]; /* In the order the scenario names them. */
    uint32_t axis_count;
    enum mesh_role order[MESH_ROLE_COUNT]; /* Each axis once, innermost first. */
    uint32_t order_count;                  /* 0: mesh_order_standard. */
};

struct mesh_part {
    uint32_t axis; /* The machine's axis. */
    uint32_t size;
    uint32_t stride;
};

struct mesh_axis {
    enum mesh_role role;
    struct mesh_part part[MACHINE_AXES_MAX]; /* Slowest first. */
    uint32_t part_count;
    uint32_t size;      /* Ranks along this axis: the product of the parts. */
    struct group group; /* The whole axis as collectives see it; parts of size 1 left out. */
};

struct mesh {
    struct mesh_axis
        axis[MESH_ROLE_COUNT]; /* Indexed by role; size 1 where the scenario has none. */
    /* Ranks of ep that no other axis has. All ranks of ep are in `axis`. */
    struct mesh_axis own_ep;
    uint32_t ep_over; /* Axes whose ranks split experts along with own_ep, a bit each. */
    bool present[MESH_ROLE_COUNT];
    enum mesh_role order[MESH_ROLE_COUNT]; /* The axes, innermost first. */
    enum mesh_role named[MESH_ROLE_COUNT]; /* The axes in the order that was named. */
    uint32_t order_count;
    /* A machine axis that mesh axes share in another order than the scenario's keys have, where
     * nothing but the standard says so; MACHINE_AXES_MAX: there is none. */
    uint32_t keys_differ_on;
    uint32_t rank_count; /* Equal to the machine's chips. */
};

/* A part of an axis as collectives see it. */
struct group_dimension mesh_dimension(const struct machine *machine, const struct mesh_part *part);

/* tp, tp_d, cp, ep, fsdp, dp, pp: who talks most takes neighbours, as Megatron-LM lays its ranks.
 */
extern const enum mesh_role mesh_order_standard[MESH_ROLE_COUNT];

/* The order of a plan's axes, innermost first, as many as it has; STATUS_INVALID, "/mesh/order": an
 * order that does not name each of them once. */
enum status mesh_plan_order(const struct mesh_plan *plan, enum mesh_role ret_order[MESH_ROLE_COUNT],
                            struct error *reterr);

/* Whether a mesh has an axis of the role. */
bool mesh_plan_has(const struct mesh_plan *plan, enum mesh_role role);

/* Refused: an axis of the machine named twice in full, parts that do not divide, a mesh that does
 * not fill the machine, an order that does not name each of its axes once. */
enum status mesh_build(const struct mesh_plan *plan, const struct machine *machine,
                       struct mesh *ret_mesh, struct error *reterr);

/* Refused, as STATUS_UNSUPPORTED: a mesh whose pipeline stages lie where none are modelled. */
enum status mesh_stages_check(const struct mesh *mesh, struct error *reterr);

/* The rank of a chip along a mesh axis. */
uint32_t mesh_rank(const struct mesh *mesh, const struct machine *machine, enum mesh_role role,
                   uint32_t chip);

/* An axis with the ranks that no other axis has: the product of all these sizes is rank_count. */
static inline const struct mesh_axis *mesh_own_axis(const struct mesh *mesh, enum mesh_role role)
{
    return role == MESH_EP ? &mesh->own_ep : &mesh->axis[role];
}

/* Whether ranks of an axis split experts along with those of ep. */
static inline bool mesh_ep_over(const struct mesh *mesh, enum mesh_role role)
{
    return (mesh->ep_over >> role & 1) != 0;
}

/* The axes of more than one rank along which ranks hold the same weights, a bit each: dp, ep and
 * cp. Experts are along none of these that ep lies over. */
uint32_t mesh_replica_roles(const struct mesh *mesh, bool experts);

/* The group of all ranks of several mesh axes (a bit each) together, as for gradients that dp and
 * ep both replicate. Parts that continue each other on a machine axis become one. Refused: parts of
 * one machine axis with another mesh axis between them. `what` says in the error what the group
 * does: "gradients are added up". */
enum status mesh_union(const struct mesh *mesh, const struct machine *machine, uint32_t roles,
                       const char *what, struct group *ret_group, struct error *reterr);

/* Groups of `count` neighbouring ranks of a mesh axis (the KV head shared by two chips, the
 * sequence split over four). Refused where they would not be a box of the machine's axes. */
enum status mesh_subgroup(const struct mesh *mesh, const struct machine *machine,
                          enum mesh_role role, uint32_t count, const char *where,
                          struct group *ret_group, struct error *reterr);

/* By role, ended by NULL: "tp". */
extern const char *const mesh_role_names[MESH_ROLE_COUNT + 1];
const char *mesh_role_name(enum mesh_role role);

#endif
