#include "sim/step/padding.h"

#include "sim/base/units.h"
#include "sim/step/graph_terms.h"

static void sums_add(struct padding_sums *sums, uint32_t rank_count, uint64_t elements,
                     uint64_t times)
{
    sums->buckets += times;
    sums->elements += times * elements;
    sums->padding += times * (units_round_up(elements, rank_count) - elements);
}

struct padding_sums padding_sums(const struct ranks *ranks, uint32_t rank_count, bool experts)
{
    struct padding_sums sums = {0, 0, 0};
    for (uint32_t k = 0; k < ranks->kinds.count; k++)
        for (uint32_t u = 0; u < ranks->layer[k].bucket_count; u++)
            if (ranks->layer[k].bucket[u].experts == experts)
                sums_add(&sums, rank_count, ranks->layer[k].bucket[u].elements,
                         ranks_layer_count(ranks, k));
    if (experts || !ranks_is_decoder(ranks)) return sums;
    const struct ranks_end *end = ranks->end;
    sums_add(&sums, rank_count, end[BLOCK_EMBEDDING].bucket.elements, ranks->tie.lookup ? 2 : 1);
    if (!ranks->tie.here) sums_add(&sums, rank_count, end[BLOCK_HEAD].bucket.elements, 1);
    sums_add(&sums, rank_count, end[BLOCK_MTP].bucket.elements, ranks->mtp.modules);
    return sums;
}

static void list_add(struct paddings *paddings, const char *what, const char *role,
                     uint32_t rank_count, uint64_t size, uint64_t padded)
{
    if (padded == size) return;
    SIM_ASSERT(paddings->count < PADDINGS_MAX);
    paddings->of[paddings->count++] = (struct padding){what, role, rank_count, size, padded};
}

/* Parameters where they are sharded, else what the optimizer keeps. Experts have replicas of their
 * own. */
static void flat_add(const struct ranks *ranks, struct paddings *paddings, const char *what,
                     bool experts)
{
    const struct replicas *replicas = ranks_replicas(ranks, experts);
    uint32_t const rank_count = replicas->state_shards;
    struct padding_sums const sums = padding_sums(ranks, rank_count, experts);
    const char *const role =
        ranks->plan->zero != 0 ? replicas->name : mesh_role_name(ranks->shard_role);
    list_add(paddings, what, role, rank_count, sums.elements, sums.elements + sums.padding);
}

/* A dimension that ranks of tp round up, or of tp and tp_d together. What several ranks hold is no
 * padding. */
static void tp_add(const struct ranks *ranks, struct paddings *paddings,
                   const struct graph_dimension *of)
{
    bool const both = of->of_width == GRAPH_OF_WIDTH_ALWAYS && ranks_tp_d(ranks) > 1;
    bool const no_layer_has =
        of->counted == GRAPH_COUNTED_MLP && ranks_layers_with(ranks, /* experts= */ false) == 0;
    if (!of->rounded || no_layer_has) return;
    list_add(paddings, of->meaning, both ? "tp and tp_d" : mesh_role_name(MESH_TP),
             both ? ranks_of_width(ranks) : ranks->tp, of->useful, of->padded / of->holders);
}

void padding_list(const struct ranks *ranks, struct paddings *ret_paddings)
{
    struct paddings paddings = {.count = 0};
    struct graph_terms terms;
    bool const sharded = ranks->shards > 1;
    graph_terms_of_part(ranks, &(struct step_part){.part = BLOCK_LAYER}, &terms);
    list_add(&paddings, "tokens", mesh_role_name(MESH_TP_D), ranks_tp_d(ranks),
             ranks->inference.own_tokens, ranks->inference.tokens);
    list_add(&paddings, "tokens of prompts", mesh_role_name(MESH_CP), ranks->cp,
             ranks->inference.prompt_tokens,
             ranks->cp > 1 ? ranks->cp * ranks->inference.part[INFERENCE_PROMPTS].own
                           : ranks->inference.prompt_tokens);
    for (const struct graph_dimension *of = terms.dimension; of->name != NULL; of++)
        tp_add(ranks, &paddings, of);
    if (ranks_layers_with(ranks, /* experts= */ true) != 0)
        flat_add(ranks, &paddings, sharded ? "flat parameters of experts" : "flat state of experts",
                 /* experts= */ true);
    flat_add(ranks, &paddings, sharded ? "flat parameters" : "flat optimizer state",
             /* experts= */ false);
    *ret_paddings = paddings;
}
