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
#include "sim/step/ranks.h"
#include "sim/step/refusals.h"
#include "sim/step/suggest.h"

static bool orders_causally(const struct ranks *ranks)
{
    return ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL && !ranks_has_ulysses(ranks);
}

/* Parts that a sequence is cut into. */
static uint64_t parts_of(const struct ranks *ranks)
{
    bool const zigzag = ranks->plan->attention.order == WORKLOAD_CONTEXT_ZIGZAG;
    return (uint64_t)ranks->cp * (orders_causally(ranks) && zigzag ? 2 : 1);
}

/* A rank has some of the heads, or one that it shares with others of cp; of numbers of ranks that
 * the machine's axes of cp offer. */
static bool heads_divide(const struct ranks *ranks, uint64_t cp)
{
    if (ranks_room(ranks, MESH_CP) % cp != 0) return false;
    return ranks->heads.queries % cp == 0 &&
           (ranks->heads.kv % cp == 0 || cp % ranks->heads.kv == 0);
}

static enum status ulysses_check(const struct ranks *ranks, struct error *reterr)
{
    uint64_t below = ranks->cp < ranks->heads.queries ? ranks->cp : ranks->heads.queries,
             above = ranks->cp;
    char more[SUGGEST_TEXT_BYTES] = "";
    if (heads_divide(ranks, ranks->cp)) return STATUS_OK;
    while (!heads_divide(ranks, below)) below--; /* 1 does. */
    while (above <= ranks->heads.queries && !heads_divide(ranks, above)) above++;
    if (above <= ranks->heads.queries)
        (void)snprintf(more, sizeof more, " and %llu", (unsigned long long)above);
    return error_set(reterr, STATUS_INVALID, "/mesh/cp",
                     "with \"ulysses\" %u ranks have to divide the %llu attention heads and %llu "
                     "KV heads of a rank of tp among them; the nearest %s of ranks that can: "
                     "%llu%s (\"ring\" and \"all_gather\" take any)",
                     ranks->cp, (unsigned long long)ranks->heads.queries,
                     (unsigned long long)ranks->heads.kv, more[0] == '\0' ? "number" : "numbers",
                     (unsigned long long)below, more);
}

/* Prompts are cut into equal parts by padding, as servers do. */
enum status ranks_context_check(const struct ranks *ranks, struct error *reterr)
{
    uint64_t const parts = parts_of(ranks), tokens = ranks->plan->sequence_length;
    char nearest[SUGGEST_TEXT_BYTES];
    if (ranks->cp == 1) return STATUS_OK;
    if (ranks_has_ulysses(ranks)) STATUS_TRY(ulysses_check(ranks, reterr));
    if (ranks_serves(ranks) || tokens % parts == 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "/workload/sequence_length",
                     "%llu tokens cannot be cut into %llu equal parts, %s for each of %u ranks of "
                     "cp; the nearest that can: %s",
                     (unsigned long long)tokens, (unsigned long long)parts,
                     parts > ranks->cp ? "two (zigzag)" : "one", ranks->cp,
                     suggest_multiples(tokens, parts, nearest));
}

uint64_t inference_prompt_share(const struct ranks *ranks, uint64_t tokens)
{
    uint64_t const parts = parts_of(ranks);
    return ranks->cp == 1 ? tokens : units_ceil_divide(tokens, parts) * (parts / ranks->cp);
}

static enum status shared_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const sequences = plan->batch_tokens / plan->accumulate / plan->sequence_length;
    uint32_t const rank_count = ranks->data / ranks->cp;
    char nearest[SUGGEST_TEXT_BYTES];
    enum mesh_role ignored_role = MESH_CP;
    if (!suggest_sequences_split(ranks, sequences, &ranks->sequences.parts, &ignored_role))
        return error_set(
            reterr, STATUS_INVALID, "/workload/batch_tokens",
            "%s of %s cannot be split evenly over %s "
            "(dp, fsdp and ep together), with %u ranks of cp that share each; %s",
            counted(sequences, "sequence").text, counted(plan->sequence_length, "token").text,
            counted(rank_count, "data rank").text, ranks->cp, suggest_batch(ranks, nearest));
    ranks->sequences.parts = ranks->cp;
    ranks->sequences.group = ranks->mesh->axis[MESH_CP].group;
    return STATUS_OK;
}

/* In a ring, keys go from each rank to the next, and from the last to the first. With
 * Ulysses each has some of the heads. */
static void context_build(struct ranks *ranks)
{
    struct ranks_sequences *sequences = &ranks->sequences;
    const struct group_dimension *dimension = &ranks->mesh->axis[MESH_CP].group.dimension[0];
    uint64_t const shared = ranks->heads.kv < ranks->cp ? ranks->cp : ranks->heads.kv;
    if (ranks_has_ring(ranks)) sequences->rounds = algorithm_by_rounds(dimension);
    sequences->kv_heads = ranks_has_ulysses(ranks) ? shared / ranks->cp : ranks->heads.kv;
}

/* With Ulysses a rank has all queries of its heads. */
static void attention_build(struct ranks *ranks, uint64_t count)
{
    const struct workload_plan *plan = ranks->plan;
    struct ranks_sequences *sequences = &ranks->sequences;
    bool const rings = ranks_has_ring(ranks), exchanges = ranks_has_ulysses(ranks);
    bool const last_has_most = ranks->cp > 1 && orders_causally(ranks) &&
                               plan->attention.order == WORKLOAD_CONTEXT_CONTIGUOUS;
    uint64_t const keys = plan->sequence_length, queries = keys / sequences->parts;
    context_build(ranks);
    sequences->of = (struct graph_sequence){
        .keys = keys,
        .queries = exchanges ? keys : queries,
        .count = count,
        .parts = exchanges ? 1 : sequences->parts,
        .rings = rings,
        .causal = plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL,
        .pairs = last_has_most ? 2 * keys - queries + 1 : keys + 1,
        .tile_columns = ranks->machine->chip.mxu.columns,
    };
}

/* What attends to a cache has the lengths of its sequences there. Keys and values of prompts may go
 * round. */
static void served_build(struct ranks *ranks)
{
    struct ranks_sequences *sequences = &ranks->sequences;
    bool const rings = ranks_has_ring(ranks) && ranks->inference.prompts_in_parts;
    context_build(ranks);
    if (ranks->cp > 1) sequences->group = ranks->mesh->axis[MESH_CP].group;
    sequences->parts = rings ? ranks->cp : 1;
    sequences->of = (struct graph_sequence){
        .parts = sequences->parts,
        .rings = rings,
        .causal = ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL,
        .tile_columns = ranks->machine->chip.mxu.columns,
    };
}

/* Whole sequences on each rank; or equal parts of them, where ranks are no divisor of sequences. */
enum status ranks_sequences_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    if (ranks_serves(ranks)) {
        served_build(ranks);
        return STATUS_OK;
    }
    uint64_t const tokens = plan->batch_tokens / plan->accumulate;
    char nearest[SUGGEST_TEXT_BYTES];
    uint64_t const sequences = tokens / plan->sequence_length;
    if (tokens % plan->sequence_length != 0) {
        return error_set(reterr, STATUS_INVALID, "/workload/sequence_length",
                         "a microbatch has %s, which are not whole sequences of %llu; %s",
                         counted(tokens, "token").text, (unsigned long long)plan->sequence_length,
                         suggest_batch(ranks, nearest));
    }
    enum mesh_role role = MESH_FSDP;
    bool const split = suggest_sequences_split(ranks, sequences, &ranks->sequences.parts, &role);
    if (ranks->cp == 1 && !split) {
        return error_set(reterr, STATUS_INVALID, "/workload/batch_tokens",
                         "%s of %s cannot be split evenly over %s "
                         "(dp, fsdp, ep and cp together): %u would share each, and only neighbours "
                         "along fsdp or "
                         "along dp do; %s",
                         counted(sequences, "sequence").text,
                         counted(plan->sequence_length, "token").text,
                         counted(ranks->data, "data rank").text, ranks->sequences.parts,
                         suggest_batch(ranks, nearest));
    }
    if (ranks->cp > 1) {
        STATUS_TRY(shared_build(ranks, reterr));
    } else {
        STATUS_TRY(refusals_check(ranks, reterr));
        if (ranks->sequences.parts > 1)
            STATUS_TRY(mesh_subgroup(ranks->mesh, ranks->machine, role, ranks->sequences.parts,
                                     "/workload/batch_tokens", &ranks->sequences.group, reterr));
    }
    attention_build(ranks, sequences * ranks->sequences.parts / ranks->data);
    return STATUS_OK;
}
