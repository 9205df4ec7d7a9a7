#include "sim/step/graph_terms.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/step/overheads.h"
#include "sim/step/ranks.h"

enum { PICK_NUMBERS = 2 }; /* A value, and its token. */

static void dimension_add(struct graph_terms *terms, uint32_t *count,
                          struct graph_dimension dimension)
{
    SIM_ASSERT(*count + 1 < GRAPH_DIMENSIONS_MAX);
    if (dimension.holders == 0) dimension.holders = 1;
    terms->dimension[(*count)++] = dimension;
    terms->dimension[*count] = (struct graph_dimension){.name = NULL};
}

static void plain_add(struct graph_terms *terms, uint32_t *count, const char *name, uint64_t size)
{
    dimension_add(terms, count, (struct graph_dimension){name, size, size, 1});
}

/* Tokens, widths, heads: as in the book. */
static void widths_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &ranks->plan->model;
    uint64_t const tp = ranks->tp;
    plain_add(terms, count, "B", ranks->rows * ranks->data);
    dimension_add(terms, count,
                  (struct graph_dimension){"D", ranks->block_columns, ranks->width, 1});
    dimension_add(terms, count,
                  (struct graph_dimension){"F", ranks->mlp_columns * tp, model->mlp_width, 1});
    if (!ranks_is_decoder(ranks)) return;
    dimension_add(terms, count, (struct graph_dimension){"N", ranks->heads * tp, model->heads, 1});
    dimension_add(
        terms, count,
        (struct graph_dimension){"K", ranks->kv_heads * tp, model->kv_heads, ranks->kv_holders});
    plain_add(terms, count, "H", ranks->head_width);
    plain_add(terms, count, "V", ranks->value_width);
}

/* Tables of rows by token and by position; two arrays side by side. */
static void ends_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &ranks->plan->model;
    dimension_add(
        terms, count,
        (struct graph_dimension){"Vocab", ranks->vocabulary * ranks->tp, model->vocabulary, 1});
    plain_add(terms, count, "2D", 2 * ranks->width);
    if (model->positions != 0) plain_add(terms, count, "P", model->positions);
}

/* Whole sequences: the tokens of those that a rank has a part of, and KV heads that each of its
 * ranks has one of at least; and the keys of one. */
static void sequences_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &ranks->plan->model;
    uint32_t const rank_count = ranks_has_ulysses(ranks) ? ranks->cp : 1;
    plain_add(terms, count, "T", ranks->keys);
    plain_add(terms, count, "Bc", ranks->rows * ranks->data * rank_count);
    dimension_add(terms, count,
                  (struct graph_dimension){"Kc", ranks->attention_kv_heads * rank_count * ranks->tp,
                                           model->kv_heads, ranks->kv_holders});
}

/* Ranks that turn sequences into heads have an axis of their own. */
static uint32_t axis_c_add(const struct ranks *ranks, struct sharding_mesh *mesh)
{
    if (!ranks_has_ulysses(ranks)) return 0;
    SIM_ASSERT(mesh->axis_count < SHARDING_AXES_MAX);
    mesh->letter[mesh->axis_count] = 'C';
    mesh->size[mesh->axis_count] = ranks->cp;
    return UINT32_C(1) << mesh->axis_count++;
}

/* Latents, the columns of K that are turned, and what K and V of a head have from their latent. */
static void mla_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct model_mla *latent = &ranks->plan->model.latent;
    plain_add(terms, count, "Cq", latent->query_rank);
    plain_add(terms, count, "Ckv", latent->kv_rank);
    plain_add(terms, count, "R", latent->rope);
    plain_add(terms, count, "J", latent->plain + ranks->value_width);
}

/* Experts of the layer and of a rank, their rows and widths; rows that come to a rank, that come
 * back, and that all ranks together exchange. */
static void experts_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    uint64_t const tp = ranks->tp, data = ranks->data;
    bool const drawn = experts->drawn.expert_count != 0;
    plain_add(terms, count, "E", model->count);
    plain_add(terms, count, "L", experts->count);
    dimension_add(terms, count,
                  (struct graph_dimension){"W", experts->all * data, experts->kept * data, 1});
    dimension_add(terms, count,
                  (struct graph_dimension){"Fe", experts->columns * tp, model->width, 1});
    dimension_add(terms, count,
                  (struct graph_dimension){"Fs", experts->shared_columns * tp,
                                           model->shared * model->width, 1});
    plain_add(terms, count, "A", experts->arrivals * data);
    plain_add(terms, count, "S", experts->sent * data);
    plain_add(terms, count, "Sent", drawn ? experts->ranks * ranks->rows : experts->exchanged);
}

static struct graph_sequence sequence_of(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    return (struct graph_sequence){
        .keys = ranks->keys,
        .queries = ranks->attention_queries,
        .count = ranks->sequences,
        .parts = ranks_has_ulysses(ranks) ? 1 : ranks->sequence_parts,
        .rings = ranks_has_ring(ranks),
        .causal = plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL,
        .pairs = ranks->key_pairs,
        .tile_columns = ranks->machine->chip.mxu.columns,
    };
}

/* Rows of the cache, and tokens whose logits are wanted. */
static void cache_add(const struct ranks *ranks, struct graph_terms *terms, uint32_t *count)
{
    const struct inference_ranks *inference = &ranks->inference;
    const struct model *model = &ranks->plan->model;
    uint64_t const kept = units_ceil_divide(ranks->rows, inference->batch_ways);
    terms->cache = (struct graph_cache){
        .is_there = true,
        .batch_ways = inference->batch_ways,
        .sequence_ways = inference->sequence_ways,
        .kept_rows = units_ceil_divide(kept, inference->sequence_ways),
    };
    if (model_has_experts(model) && !routing_is_drawn(ranks)) {
        terms->cache.experts_held = ranks->experts.count;
        terms->cache.experts_read = inference_experts_read(ranks);
    }
    plain_add(terms, count, "Bb", kept * ranks->data);
    plain_add(terms, count, "Nb", ranks->heads * inference->batch_ways * ranks->tp);
    plain_add(terms, count, "Ns", ranks->heads * inference->sequence_ways * ranks->tp);
    plain_add(terms, count, "Sc", 0);
    plain_add(terms, count, "Bh", inference->head_rows * ranks->data);
    plain_add(terms, count, "Pick", PICK_NUMBERS);
    if (!ranks_has_mla(ranks)) return;
    plain_add(terms, count, "Plain", model->latent.plain);
    plain_add(terms, count, "Key", model->latent.kv_rank + model->latent.rope);
}

static struct graph_policy policy_of(const struct ranks *ranks)
{
    static const enum graph_remat remats[] = {
        [WORKLOAD_REMAT_NONE] = GRAPH_REMAT_NONE,
        [WORKLOAD_REMAT_NORMS] = GRAPH_REMAT_NORMS,
        [WORKLOAD_REMAT_BIG_MATMULS] = GRAPH_REMAT_BIG_MATMULS,
        [WORKLOAD_REMAT_BLOCK] = GRAPH_REMAT_BLOCK,
        [WORKLOAD_REMAT_LAYER] = GRAPH_REMAT_LAYER,
    };
    const struct workload_plan *plan = ranks->plan;
    return (struct graph_policy){
        .remat = remats[plan->remat],
        .by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS,
        .replicated = plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED,
        .keeps_whole = !ranks_keeps_parts(ranks),
        .dx_first = plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST,
        .weights_split = ranks->shards > 1,
        .stores_scores = ranks_is_unfused(ranks),
        .drops = plan->attention.kernel == WORKLOAD_KERNEL_DROPOUT,
        .counts_frameworks = overheads_count(ranks) && ranks_is_decoder(ranks),
        .remakes_frameworks = ranks_offloads_activations(ranks),
        .adds = ranks->gradients_resident && ranks->gradient_shards == 1,
        .adds_of_experts = ranks->gradients_resident && ranks->experts.gradient_shards == 1,
    };
}

void graph_terms_window(const struct ranks *ranks, bool windowed, struct graph_terms *terms)
{
    const struct graph_served *served = &ranks->inference.served[windowed];
    terms->sequence.window = windowed ? ranks->plan->model.window : 0;
    if (!ranks_serves(ranks)) return;
    *(ranks->plan->kind == WORKLOAD_DECODE ? &terms->cache.decodes : &terms->cache.prompts) =
        *served;
    struct graph_dimension *rows =
        &terms->dimension[graph_dimension_of(terms, "Sc") - terms->dimension];
    rows->padded = rows->useful = served->read * ranks->data;
}

void graph_terms_of(const struct ranks *ranks, uint64_t layer, struct graph_terms *ret_terms)
{
    const struct workload_formats *formats = &ranks->plan->formats;
    uint32_t count = 0;
    *ret_terms = (struct graph_terms){
        .mesh = ranks->axes,
        .axis_x = ranks->axis_x,
        .axis_y = ranks->axis_y,
        .ranks = ranks->data * ranks->tp,
        .ranks_y = ranks->tp,
        .ranks_exchange = ranks->mesh->axis[MESH_EP].size,
        .sequence = sequence_of(ranks),
        .formats = {formats->weights, formats->activations, formats->gradients, formats->matmuls,
                    formats->dispatch, formats->weights, formats->activations},
        .policy = policy_of(ranks),
    };
    if (ranks_serves(ranks)) {
        ret_terms->formats.cache = ranks->plan->inference.cache;
    }
    ret_terms->axis_c = axis_c_add(ranks, &ret_terms->mesh);
    widths_add(ranks, ret_terms, &count);
    if (ranks_is_decoder(ranks)) ends_add(ranks, ret_terms, &count);
    if (ranks_is_decoder(ranks)) sequences_add(ranks, ret_terms, &count);
    if (ranks_has_mla(ranks)) mla_add(ranks, ret_terms, &count);
    if (model_has_experts(&ranks->plan->model)) experts_add(ranks, ret_terms, &count);
    if (ranks_serves(ranks)) cache_add(ranks, ret_terms, &count);
    graph_terms_window(ranks, ranks_layer_is_windowed(ranks, layer), ret_terms);
}

void graph_terms_of_end(const struct ranks *ranks, bool used_before, struct graph_terms *ret_terms)
{
    graph_terms_of(ranks, 0, ret_terms);
    ret_terms->policy.used_before = used_before;
    if (ret_terms->policy.remat > GRAPH_REMAT_NORMS) ret_terms->policy.remat = GRAPH_REMAT_NORMS;
}

bool graph_terms_embedding_used(const struct ranks *ranks)
{
    return ranks->tied || (ranks->mtp_modules != 0 && ranks->pp == 1);
}
