/*
 * advise_mesh.h: the scenario's mesh with other ranks of tp, as a setting of the command line.
 */
#ifndef TOOLS_PODSIM_RUN_ADVISE_MESH_H
#define TOOLS_PODSIM_RUN_ADVISE_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/podsim/common/session.h"

enum { ADVISE_SPLITS_MAX = 6 }; /* 1, 2, 4, 8, 16, 32. */

/* Ranks that tp may have along its axis of the machine: powers of two, from 1, that divide what tp
 * and the data axis have there together. */
uint32_t advise_mesh_splits(const struct session *session, uint32_t ret_ranks[ADVISE_SPLITS_MAX]);

/* Whether tp has just these ranks, along that axis alone. */
bool advise_mesh_is_current(const struct session *session, uint32_t tp_ranks);

/* "/mesh={...}" with tp over `tp_ranks` neighbours of its axis, and over the data axis (fsdp, or dp
 * where there is no fsdp) the other ranks of both. Every other axis stays, and so do the order of
 * the parts and the mesh's own order. `shards`: dp is called fsdp. `*ret_keeps_zero`: the stage of
 * zero that the scenario has may stay. The text lies in the session's arena; NULL: no memory. */
const char *advise_mesh_setting(const struct session *session, uint32_t tp_ranks, bool shards,
                                bool *ret_keeps_zero);

/* "/mesh={...}" with `ranks` of one mesh axis in another: the farthest apart, or to tp the nearest.
 * Every other axis stays, and so do the order of the parts and the mesh's own order. NULL: they do
 * not divide its parts, or there is no memory. The text lies in the session's arena. */
const char *advise_mesh_moved(const struct session *session, enum mesh_role from, enum mesh_role to,
                              uint32_t ranks);

#endif
