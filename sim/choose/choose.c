#include "sim/choose/choose.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/item_paths.h"
#include "sim/collective/algorithm.h"

/* Messages of a plan, over the chips that are not folded away, beyond which a run takes minutes. */
static const uint64_t messages_max = UINT64_C(1) << 24;

bool choose_by_protocols(const struct machine *machine)
{
    return machine->chip.kind == CHIP_GPU && !machine->chip.is_ideal;
}

enum status choose_apply(const struct choose_args *args, const struct choose_candidate *candidate,
                         const char *where, struct plan_request *ret_request, struct error *reterr)
{
    *ret_request = args->request;
    plan_request_links(args->machine, ret_request);
    ret_request->algorithm = candidate->algorithm;
    if (candidate->protocol == PROTOCOL_NONE) return STATUS_OK; /* Hosts may have a time. */
    struct protocol_use const use =
        protocol_use_of(args->machine, &args->request, candidate->algorithm, args->registered);
    return protocol_make(&use, candidate->protocol, where, &ret_request->protocol, reterr);
}

/* Its plan lies in the arena. */
static enum status estimate(struct arena *arena, const struct choose_args *args, const char *where,
                            struct choose_candidate *candidate, const struct plan **ret_plan,
                            struct error *reterr)
{
    struct plan_request request;
    void *memory = NULL;
    STATUS_TRY(choose_apply(args, candidate, where, &request, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct plan), &memory, reterr));
    struct plan *plan = memory;
    STATUS_TRY(plan_build(arena, &request, where, plan, reterr));
    collective_estimate(args->machine, plan, args->known, &candidate->estimate);
    candidate->message_count = item_paths_message_count(args->machine, plan);
    *ret_plan = plan;
    return STATUS_OK;
}

bool choose_is_same(const struct plan *plan, const struct plan *other)
{
    if (plan->item_count != other->item_count || plan->protocol.name != other->protocol.name)
        return false;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *a = &plan->item[i], *b = &other->item[i];
        if (a->primitive != b->primitive || a->dimension != b->dimension || a->after != b->after ||
            a->turn != b->turn || a->turn_lead != b->turn_lead || a->order != b->order ||
            a->flat != b->flat || a->unit_bytes != b->unit_bytes ||
            a->piece_count != b->piece_count)
            return false;
    }
    return true;
}

/* Several names may mean one plan: it is ranked once, by its own name if that is among them. */
struct contenders {
    const struct plan *plan[CHOOSE_MAX];
    bool huge[CHOOSE_MAX]; /* Too many messages to be simulated in reasonable time. */
    struct choose_candidate candidate[CHOOSE_MAX];
    uint32_t count;
};

static void contend(struct contenders *contenders, const struct choose_candidate *candidate,
                    const struct plan *plan)
{
    uint32_t at = 0;
    while (at < contenders->count && !choose_is_same(contenders->plan[at], plan)) at++;
    if (at < contenders->count && !algorithm_equal(&candidate->algorithm, &plan->algorithm)) return;
    SIM_ASSERT(at < CHOOSE_MAX);
    contenders->plan[at] = plan;
    contenders->candidate[at] = *candidate;
    contenders->huge[at] = candidate->message_count > messages_max;
    if (at == contenders->count) contenders->count++;
}

/* Behind all that are no slower. */
static void insert(struct choose_ranking *ranking, const struct choose_candidate *candidate)
{
    SIM_ASSERT(ranking->count < CHOOSE_MAX);
    uint32_t at = ranking->count++;
    for (; at > 0 && ranking->candidate[at - 1].estimate.time_s > candidate->estimate.time_s; at--)
        ranking->candidate[at] = ranking->candidate[at - 1];
    ranking->candidate[at] = *candidate;
}

static bool competes(const struct choose_args *args, const struct protocol_use *use,
                     enum protocol protocol)
{
    if (!args->protocols) return protocol == PROTOCOL_NONE;
    if (args->protocol != PROTOCOL_NONE) return protocol == args->protocol;
    return protocol != PROTOCOL_NONE && protocol_is_taken(use, protocol);
}

/* What NCCL itself can do: rings and trees of sums, switches that add, messages from each to each.
 * A ring over several levels stands for NCCL's rings, one a rail; so does for a root what goes
 * through its node and over all rails of it. */
static bool is_of_nccl(enum collective_kind kind, const struct algorithm *algorithm)
{
    bool const spread = kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE;
    bool const exchange = kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_GATHER ||
                          kind == COLLECTIVE_SCATTER || kind == COLLECTIVE_PERMUTE;
    bool const runs = primitive_family_is_of_nccl(algorithm_family(algorithm), kind);
    if (exchange) return algorithm_is_chosen(algorithm) || runs;
    if (spread && algorithm->means == ALGORITHM_HIERARCHICAL) return true;
    return runs && !algorithm->flat;
}

/* Whether NCCL can run the collective at all by one of the algorithms. Of GPUs without a switch
 * RCCL joins several rings, which together use the links to all others. A ring here uses one, so
 * that stands for none of RCCL's, and all take part. */
static bool nccl_has_any(const struct plan_request *request,
                         const struct plan_algorithms *algorithms)
{
    enum collective_kind const kind = request->kind;
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        if (request->meshed[d]) return false;
    for (uint32_t i = 0; i < algorithms->count; i++)
        if (is_of_nccl(kind, &algorithms->of[i])) return true;
    return false;
}

bool choose_takes_part(const struct plan_request *request, const struct algorithm *algorithm)
{
    struct plan_algorithms const all = plan_algorithms(request);
    return is_of_nccl(request->kind, algorithm) || !nccl_has_any(request, &all);
}

/* The first rule that fits goes before what is cheaper, estimated though it is. */
static enum status rule_apply(struct arena *arena, const struct choose_args *args,
                              struct choose_ranking *ranking, struct error *reterr)
{
    char where[192];
    uint64_t nodes, ranks;
    protocol_extent(args->machine, &args->request.group, &nodes, &ranks);
    const struct tuner_rule *rule =
        tuner_find(args->tuner, args->request.kind, args->size_bytes, nodes, ranks);
    if (rule == NULL || algorithm_is_chosen(&rule->algorithm)) return STATUS_OK;
    struct choose_candidate chosen = {.algorithm = rule->algorithm,
                                      .protocol = args->protocols ? rule->protocol : PROTOCOL_NONE};
    struct protocol_use const use =
        protocol_use_of(args->machine, &args->request, rule->algorithm, args->registered);
    bool const runs = protocol_refusal(&use, chosen.protocol) == NULL;
    snprintf(where, sizeof where, "%.150s:%u:%u", args->tuner->path, rule->line,
             runs ? rule->algorithm_column : rule->protocol_column);
    const struct plan *plan = NULL;
    STATUS_TRY(estimate(arena, args, where, &chosen, &plan, reterr));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ranking->count; i++)
        if (!algorithm_equal(&ranking->candidate[i].algorithm, &chosen.algorithm) ||
            ranking->candidate[i].protocol != chosen.protocol)
            ranking->candidate[kept++] = ranking->candidate[i];
    if (kept == CHOOSE_MAX) kept--;
    memmove(ranking->candidate + 1, ranking->candidate, kept * sizeof *ranking->candidate);
    ranking->candidate[0] = chosen;
    ranking->count = kept + 1;
    ranking->rule = rule;
    return STATUS_OK;
}

/* Another name for "direct", for which the tokens would be drawn anew. */
static bool is_drawn_twice(const struct plan_request *request, const struct algorithm *algorithm)
{
    return request->ragged.expert_count > 0 && algorithm->means == ALGORITHM_HIERARCHICAL;
}

enum status choose_rank(struct arena *arena, const struct choose_args *args, const char *where,
                        struct choose_ranking *ret_ranking, struct error *reterr)
{
    struct plan_request request = args->request;
    plan_request_links(args->machine, &request);
    struct plan_algorithms const all = plan_algorithms(&request);
    struct choose_ranking *ranking = ret_ranking;
    bool const of_nccl = args->protocols && nccl_has_any(&request, &all);
    void *memory = NULL;
    STATUS_TRY(arena_try_unset(arena, 1, sizeof(struct contenders), &memory, reterr));
    struct contenders *contenders = memory;
    contenders->count = 0;
    ranking->count = ranking->left_out = 0;
    ranking->rule = NULL;
    for (uint32_t i = 0; i < all.count; i++) {
        const struct algorithm *algorithm = &all.of[i];
        if (algorithm_is_chosen(algorithm) && all.count > 1) continue;
        if (of_nccl && !is_of_nccl(request.kind, algorithm)) continue;
        if (is_drawn_twice(&request, algorithm)) continue;
        struct protocol_use const use =
            protocol_use_of(args->machine, &request, *algorithm, args->registered);
        if (of_nccl && !protocol_contends(&use)) continue;
        for (uint32_t p = 0; p < PROTOCOL_COUNT; p++) {
            struct choose_candidate candidate = {.algorithm = *algorithm,
                                                 .protocol = (enum protocol)p};
            if (!competes(args, &use, candidate.protocol) ||
                protocol_refusal(&use, candidate.protocol) != NULL)
                continue;
            const struct plan *plan = NULL;
            STATUS_TRY(estimate(arena, args, where, &candidate, &plan, reterr));
            contend(contenders, &candidate, plan);
        }
    }
    bool any = false;
    for (uint32_t i = 0; i < contenders->count; i++) any = any || !contenders->huge[i];
    for (uint32_t i = 0; i < contenders->count; i++)
        if (!any || !contenders->huge[i])
            insert(ranking, &contenders->candidate[i]);
        else
            ranking->left_out++;
    STATUS_TRY(rule_apply(arena, args, ranking, reterr));
    if (ranking->count == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where, "%s cannot be used here: %s",
                         protocol_name(args->protocol),
                         args->machine->chip.kind == CHIP_GPU
                             ? "no algorithm of this collective can be driven with it"
                             : "it is NCCL's, and these chips are no GPUs");
    return STATUS_OK;
}
