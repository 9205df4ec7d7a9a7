/*
 * advise_row.h: the settings of a neighbour. Internal to advise.
 */
#ifndef TOOLS_PODSIM_RUN_ADVISE_ROW_H
#define TOOLS_PODSIM_RUN_ADVISE_ROW_H

#include "tools/podsim/run/advise.h"

/* Adds a copy of a setting, such as "/workload/remat=none". It replaces the row's setting of the
 * same pointer. `setting` NULL: there was no memory for it, which is refused. */
enum status advise_setting_add(struct arena *arena, struct advise_row *row, const char *setting,
                               struct error *reterr);

/* Whether the row has a setting of a pointer, such as "/workload/remat". */
bool advise_sets(const struct advise_row *row, const char *pointer);

/* Whether the row has a setting, such as "/workload/remat=none". */
bool advise_sets_to(const struct advise_row *row, const char *setting);

/* Whether the row has a mesh of its own without an axis of that role. */
bool advise_loses(const struct advise_row *row, enum mesh_role role);

#endif
