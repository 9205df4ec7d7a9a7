#include "sim/workload/nearest.h"

#include <stdio.h>

#include "sim/base/units.h"

/* 0 stands for none below or none above. */
static const char *both(uint64_t below, uint64_t above, char text[NEAREST_TEXT_BYTES])
{
    if (below != 0 && above != 0)
        (void)snprintf(text, NEAREST_TEXT_BYTES, "%llu and %llu", (unsigned long long)below,
                       (unsigned long long)above);
    else
        (void)snprintf(text, NEAREST_TEXT_BYTES, "%llu",
                       (unsigned long long)(below != 0 ? below : above));
    return text;
}

const char *nearest_multiples(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES])
{
    uint64_t const below = amount - amount % by;
    return both(below, below + by, text);
}

const char *nearest_divisors(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES])
{
    uint64_t below = by < amount ? by : amount;
    uint64_t above = by;
    while (amount % below != 0) below--;
    while (above <= amount && amount % above != 0) above++;
    return both(below, above <= amount ? above : 0, text);
}

bool nearest_tp_splits(const struct model *model, uint64_t tp)
{
    return model->heads % tp == 0 && (model->kv_heads % tp == 0 || tp % model->kv_heads == 0);
}

const char *nearest_tp(const struct local *local, char text[NEAREST_TEXT_BYTES])
{
    const struct model *model = &local->plan->model;
    uint64_t below = local->tp < model->heads ? local->tp : model->heads;
    uint64_t above = local->tp;
    while (!nearest_tp_splits(model, below)) below--; /* 1 does. */
    while (above <= model->heads && !nearest_tp_splits(model, above)) above++;
    return both(below, above <= model->heads ? above : 0, text);
}

bool nearest_sequences_split(const struct local *local, uint64_t sequences)
{
    uint64_t const data = local->data;
    if (sequences == 0) return false;
    if (local->cp > 1) return sequences % (data / local->cp) == 0;
    if (sequences >= data) return sequences % data == 0;
    uint64_t const parts = data / sequences;
    enum mesh_role const role = local->mesh->axis[MESH_FSDP].size > 1 ? MESH_FSDP : MESH_DP;
    return data % sequences == 0 && local->plan->sequence_length % parts == 0 &&
           local->mesh->axis[role].size % parts == 0;
}

uint64_t nearest_batch_below(const struct local *local, uint64_t most)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const data = local->data / local->cp;
    if (!local_is_llama(local)) return most - most % (plan->accumulate * data);
    uint64_t const unit = plan->accumulate * plan->sequence_length;
    uint64_t below = most / unit;
    if (below >= data) below -= below % data;
    while (below != 0 && !nearest_sequences_split(local, below)) below--;
    return below * unit;
}

const char *nearest_batch(const struct local *local, char text[NEAREST_TEXT_BYTES])
{
    const struct workload_plan *plan = local->plan;
    uint64_t const data = local->data / local->cp; /* cp splits what each of these has. */
    if (!local_is_llama(local) || plan->sequence_length == 0)
        return nearest_multiples(plan->batch_tokens, plan->accumulate * data, text);
    uint64_t const unit = plan->accumulate * plan->sequence_length;
    uint64_t const sequences = plan->batch_tokens / unit;
    uint64_t above = sequences >= data ? sequences - sequences % data + data : sequences + 1;
    while (!nearest_sequences_split(local, above)) above++; /* `data` itself does. */
    return both(nearest_batch_below(local, plan->batch_tokens), above * unit, text);
}
