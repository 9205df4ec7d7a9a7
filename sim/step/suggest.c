#include "sim/step/suggest.h"

#include <stdio.h>

#include "sim/base/units.h"

enum { NUMBERS_BYTES = 48 };

/* 0 stands for none below or none above. */
static const char *both(uint64_t below, uint64_t above, char text[NUMBERS_BYTES])
{
    if (below != 0 && above != 0)
        (void)snprintf(text, NUMBERS_BYTES, "%llu and %llu", (unsigned long long)below,
                       (unsigned long long)above);
    else
        (void)snprintf(text, NUMBERS_BYTES, "%llu",
                       (unsigned long long)(below != 0 ? below : above));
    return text;
}

const char *suggest_multiples(uint64_t amount, uint64_t by, char text[SUGGEST_TEXT_BYTES])
{
    uint64_t const below = amount - amount % by;
    return both(below, below + by, text);
}

const char *suggest_divisors(uint64_t amount, uint64_t by, char text[SUGGEST_TEXT_BYTES])
{
    uint64_t below = by < amount ? by : amount;
    uint64_t above = by;
    while (amount % below != 0) below--;
    while (above <= amount && amount % above != 0) above++;
    return both(below, above <= amount ? above : 0, text);
}

bool suggest_sequences_split(const struct ranks *ranks, uint64_t sequences, uint32_t *ret_parts,
                             enum mesh_role *ret_role)
{
    static const enum mesh_role roles[] = {MESH_FSDP, MESH_DP};
    uint64_t const data = ranks->data;
    *ret_parts = 1;
    if (sequences == 0) return false;
    if (ranks->cp > 1) return sequences % (data / ranks->cp) == 0;
    *ret_parts = (uint32_t)(data / units_common_divisor(data, sequences));
    if (ranks->plan->sequence_length % *ret_parts != 0) return false;
    for (uint32_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        struct group ignored;
        struct error unused;
        *ret_role = roles[i];
        if (ranks->mesh->axis[roles[i]].size % *ret_parts != 0) continue;
        if (mesh_subgroup(ranks->mesh, ranks->machine, roles[i], *ret_parts, "", &ignored,
                          &unused) == STATUS_OK)
            return true;
    }
    return false;
}

/* Tokens of which all batches are multiples. */
static uint64_t batch_multiple(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    bool const by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    if (ranks_is_decoder(ranks)) return plan->accumulate * plan->sequence_length;
    return plan->accumulate * (uint64_t)ranks->data * (by_tokens ? ranks->tp : 1);
}

/* Whether the units are a batch that nothing refuses: ranks of data and of tp split its tokens,
 * and ranks of data its sequences, of which some layers want whole ones. Multiples of the ranks of
 * data and of tp do, once the sequences' length has been checked. `ret_parts` share a sequence. */
static bool batch_fits(const struct ranks *ranks, uint64_t units, uint32_t *ret_parts)
{
    const struct workload_plan *plan = ranks->plan;
    enum mesh_role role = MESH_FSDP;
    uint64_t const ways = (uint64_t)plan->accumulate * ranks->data;
    uint64_t const tokens = units * batch_multiple(ranks);
    *ret_parts = 1;
    if (!ranks_is_decoder(ranks)) return true;
    if (tokens % ways != 0 || !suggest_sequences_split(ranks, units, ret_parts, &role))
        return false;
    if (plan->activations == WORKLOAD_ACTIVATIONS_TOKENS && tokens / ways % ranks->tp != 0)
        return false;
    bool const windowed = model_window_layers(&plan->model, plan->sequence_length) != 0;
    bool const shared = block_lacking(&plan->model, BLOCK_SHARED_IN_TRAINING) == NULL;
    return *ret_parts == 1 || (shared && !windowed);
}

/* Ranks that may share a sequence in a batch that is named: a few, or not many more than there have
 * to be. 768 sequences on 4,096 ranks need 6 and have 16, and 769 would have all 4,096. */
enum { PARTS_FEW = 16, PARTS_TIMES = 4 };

static bool batch_is_even(const struct ranks *ranks, uint64_t units)
{
    uint32_t parts = 1;
    return batch_fits(ranks, units, &parts) &&
           (parts <= PARTS_FEW || parts <= PARTS_TIMES * units_ceil_divide(ranks->data, units));
}

uint64_t suggest_batch_below(const struct ranks *ranks, uint64_t most)
{
    uint64_t const unit = batch_multiple(ranks);
    uint32_t ignored_parts = 1;
    uint64_t even = most / unit, below = even;
    while (even != 0 && !batch_is_even(ranks, even)) even--;
    while (even == 0 && below != 0 && !batch_fits(ranks, below, &ignored_parts)) below--;
    return (even != 0 ? even : below) * unit;
}

/* In units. */
static uint64_t batch_above(const struct ranks *ranks, uint64_t above, uint64_t most)
{
    uint32_t ignored_parts = 1;
    uint64_t even = above;
    while (even <= most && !batch_is_even(ranks, even)) even++;
    while (even > most && above <= most && !batch_fits(ranks, above, &ignored_parts)) above++;
    return even <= most ? even : above;
}

const char *suggest_batch(const struct ranks *ranks, char text[SUGGEST_TEXT_BYTES])
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const unit = batch_multiple(ranks);
    uint64_t const most = WORKLOAD_TOKENS_MAX / unit;
    uint64_t const below = suggest_batch_below(ranks, plan->batch_tokens);
    uint64_t const above = batch_above(ranks, plan->batch_tokens / unit + 1, most);
    char nearest[NUMBERS_BYTES];
    if (below == 0 && above > most)
        (void)snprintf(text, SUGGEST_TEXT_BYTES, "no batch_tokens up to %llu fit",
                       (unsigned long long)WORKLOAD_TOKENS_MAX);
    else
        (void)snprintf(text, SUGGEST_TEXT_BYTES, "the nearest batch_tokens that fit: %s",
                       both(below, above <= most ? above * unit : 0, nearest));
    return text;
}
