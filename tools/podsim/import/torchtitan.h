/* torchtitan.h: the tables of torchtitan's job files that state no facts. */
#ifndef TOOLS_PODSIM_IMPORT_TORCHTITAN_H
#define TOOLS_PODSIM_IMPORT_TORCHTITAN_H

#include "tools/podsim/import/import.h"

extern const struct import_row torchtitan_plain[];
extern const struct import_row torchtitan_lacks[];

#endif
