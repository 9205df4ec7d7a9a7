/*
 * Sequences: whole ones on each rank, or some that ranks share; what must divide, and with what
 * each rank attends.
 *
 * With causal attention a query has as many keys as stand before it and itself. In zigzag order
 * rank r of n holds parts r and 2n-1-r of 2n, so that the rank's first query and its last have T+1
 * keys together, as all others in pairs, and all ranks have the same work, in each pass of a ring
 * too. In contiguous order the last rank has the most, T-q+1 and T keys of its first and last
 * query, and the others wait for it in the next exchange: each is charged what that rank does.
 */
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/step/local.h"
#include "sim/step/nearest.h"
#include "sim/step/refusals.h"

static bool orders_causally(const struct local *local)
{
    return local->plan->attention == WORKLOAD_ATTENTION_CAUSAL && !local_turns(local);
}

/* Parts that a sequence is cut into. */
static uint64_t parts_of(const struct local *local)
{
    bool const zigzag = local->plan->context_order == WORKLOAD_CONTEXT_ZIGZAG;
    return (uint64_t)local->cp * (orders_causally(local) && zigzag ? 2 : 1);
}

/* A rank has some of the heads, or one that it shares with others of cp; of numbers of ranks that
 * the machine's axes of cp offer. */
static bool heads_turn(const struct local *local, uint64_t cp)
{
    if (local_room(local, MESH_CP) % cp != 0) return false;
    return local->heads % cp == 0 && (local->kv_heads % cp == 0 || cp % local->kv_heads == 0);
}

static enum status turn_check(const struct local *local, struct error *reterr)
{
    uint64_t below = local->cp < local->heads ? local->cp : local->heads, above = local->cp;
    char more[NEAREST_TEXT_BYTES] = "";
    if (heads_turn(local, local->cp)) return STATUS_OK;
    while (!heads_turn(local, below)) below--; /* 1 does. */
    while (above <= local->heads && !heads_turn(local, above)) above++;
    if (above <= local->heads)
        (void)snprintf(more, sizeof more, " and %llu", (unsigned long long)above);
    return error_set(reterr, STATUS_INVALID, "/mesh/cp",
                     "with \"ulysses\" %u ranks have to divide the %llu attention heads and %llu "
                     "KV heads of a rank of tp among them; the nearest %s of ranks that can: "
                     "%llu%s (\"ring\" and \"all_gather\" take any)",
                     local->cp, (unsigned long long)local->heads,
                     (unsigned long long)local->kv_heads, more[0] == '\0' ? "number" : "numbers",
                     (unsigned long long)below, more);
}

enum status local_context_check(const struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const parts = parts_of(local);
    char nearest[NEAREST_TEXT_BYTES];
    if (local->cp == 1) return STATUS_OK;
    if (local_turns(local)) STATUS_TRY(turn_check(local, reterr));
    if (plan->sequence_length % parts == 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "/workload/sequence_length",
                     "%llu tokens cannot be cut into %llu equal parts, %s for each of %u ranks of "
                     "cp; the nearest that can: %s",
                     (unsigned long long)plan->sequence_length, (unsigned long long)parts,
                     parts > local->cp ? "two (zigzag)" : "one", local->cp,
                     nearest_multiples(plan->sequence_length, parts, nearest));
}

static enum status shared_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const sequences = plan->batch_tokens / plan->accumulate / plan->sequence_length;
    uint32_t const ranks = local->data / local->cp;
    char nearest[NEAREST_TEXT_BYTES];
    enum mesh_role ignored_role = MESH_CP;
    if (!nearest_sequences_split(local, sequences, &local->sequence_parts, &ignored_role))
        return error_set(
            reterr, STATUS_INVALID, "/workload/batch_tokens",
            "%s of %s cannot be split evenly over %s "
            "(dp, fsdp and ep together), with %u ranks of cp that share each; the nearest "
            "batch_tokens that fit: %s",
            counted(sequences, "sequence").text, counted(plan->sequence_length, "token").text,
            counted(ranks, "data rank").text, local->cp, nearest_batch(local, nearest));
    local->sequence_parts = local->cp;
    local->sequence_group = local->mesh->axis[MESH_CP].group;
    local->sequences = sequences / ranks;
    local->queries = local->keys / local->cp;
    return STATUS_OK;
}

static void attention_build(struct local *local)
{
    bool const last_has_most = local->cp > 1 && orders_causally(local) &&
                               local->plan->context_order == WORKLOAD_CONTEXT_CONTIGUOUS;
    const struct group_dimension *dimension = &local->mesh->axis[MESH_CP].group.dimension[0];
    if (local_rings(local)) /* Keys go to the next rank each time, the last one's to the first. */
        local->ring_name = dimension->switched ? "ring" : dimension->ring ? "ring-one-way" : "line";
    local->key_pairs = last_has_most ? 2 * local->keys - local->queries + 1 : local->keys + 1;
    local->attention_queries = local->queries;
    local->attention_kv_heads = local->kv_heads;
    if (local_turns(local)) {
        uint64_t const shared = local->kv_heads < local->cp ? local->cp : local->kv_heads;
        local->attention_queries = local->keys;
        local->attention_kv_heads = shared / local->cp;
    }
}

/* Whole sequences on each rank; or equal parts of them, where ranks are no divisor of sequences. */
enum status local_sequences_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const tokens = plan->batch_tokens / plan->accumulate;
    char nearest[NEAREST_TEXT_BYTES];
    uint64_t const sequences = tokens / plan->sequence_length;
    if (tokens % plan->sequence_length != 0) {
        return error_set(reterr, STATUS_INVALID, "/workload/sequence_length",
                         "a microbatch has %s, which are not whole sequences of %llu; the "
                         "nearest batch_tokens that fit: %s",
                         counted(tokens, "token").text, (unsigned long long)plan->sequence_length,
                         nearest_batch(local, nearest));
    }
    enum mesh_role role = MESH_FSDP;
    bool const split = nearest_sequences_split(local, sequences, &local->sequence_parts, &role);
    if (local->cp == 1 && !split) {
        return error_set(reterr, STATUS_INVALID, "/workload/batch_tokens",
                         "%s of %s cannot be split evenly over %s "
                         "(dp, fsdp, ep and cp together): %u would share each, and only neighbours "
                         "along fsdp or "
                         "along dp do; the nearest batch_tokens that fit: %s",
                         counted(sequences, "sequence").text,
                         counted(plan->sequence_length, "token").text,
                         counted(local->data, "data rank").text, local->sequence_parts,
                         nearest_batch(local, nearest));
    }
    local->keys = plan->sequence_length;
    if (local->cp > 1) {
        STATUS_TRY(shared_build(local, reterr));
    } else {
        STATUS_TRY(refusals_check(local, reterr));
        local->sequences = sequences * local->sequence_parts / local->data;
        local->queries = local->keys / local->sequence_parts;
        if (local->sequence_parts > 1)
            STATUS_TRY(mesh_subgroup(local->mesh, local->machine, role, local->sequence_parts,
                                     "/workload/batch_tokens", &local->sequence_group, reterr));
    }
    attention_build(local);
    return STATUS_OK;
}
