/* maxtext.h: the tables of MaxText's keys. */
#ifndef TOOLS_PODSIM_IMPORT_MAXTEXT_H
#define TOOLS_PODSIM_IMPORT_MAXTEXT_H

#include "tools/podsim/import/import.h"

/* "/workload/remat", once the model is set. */
enum status maxtext_remat_set(struct import *import, struct error *reterr);

extern const struct import_row maxtext_facts[];
extern const struct import_row maxtext_plain[];
extern const struct import_row maxtext_lacks[];

/* "/mesh". `ret_copies` are ranks with a batch of their own. */
enum status maxtext_mesh_set(struct import *import, uint64_t *ret_copies, struct error *reterr);

#endif
