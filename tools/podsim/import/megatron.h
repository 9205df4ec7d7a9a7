/* megatron.h: the tables of Megatron-LM's arguments. */
#ifndef TOOLS_PODSIM_IMPORT_MEGATRON_H
#define TOOLS_PODSIM_IMPORT_MEGATRON_H

#include "tools/podsim/import/import.h"

/* "/workload/remat", once the model is set. */
enum status megatron_remat_set(struct import *import, struct error *reterr);

/* "/workload/activations" and "/run/collective_matmul" of ranks of tp, once the model is set. */
enum status megatron_tp_set(struct import *import, struct error *reterr);

/* "/workload/formats", and the recipe of fp8. `stage`: what is sharded over replicas, as ZeRO
 * counts. */
enum status megatron_formats_set(struct import *import, uint32_t stage, struct error *reterr);

extern const struct import_row megatron_facts[];
extern const struct import_row megatron_plain[];
extern const struct import_row megatron_lacks[];

/* Fills in what nothing says of experts, and finds the layers that have them. */
enum status megatron_experts_find(struct import *import, struct error *reterr);

#endif
