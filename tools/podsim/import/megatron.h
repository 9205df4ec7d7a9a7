/* megatron.h: the tables of Megatron-LM's arguments. */
#ifndef TOOLS_PODSIM_IMPORT_MEGATRON_H
#define TOOLS_PODSIM_IMPORT_MEGATRON_H

#include "tools/podsim/import/import.h"

extern const struct import_row megatron_facts[];
extern const struct import_row megatron_plain[];
extern const struct import_row megatron_lacks[];

#endif
