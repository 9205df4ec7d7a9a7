#include "sim/step/graph_terms.h"

#include <string.h>

#include "sim/step/local.h"
#include "sim/step/overheads.h"

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
static void decoder_add(const struct local *local, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &local->plan->model;
    uint64_t const tp = local->tp;
    plain_add(terms, count, "B", local->rows * local->data);
    dimension_add(terms, count,
                  (struct graph_dimension){"D", local->block_columns, local->width, 1});
    dimension_add(terms, count,
                  (struct graph_dimension){"F", local->mlp_columns * tp, model->mlp_width, 1});
    if (!local_is_llama(local)) return;
    dimension_add(terms, count, (struct graph_dimension){"N", local->heads * tp, model->heads, 1});
    dimension_add(
        terms, count,
        (struct graph_dimension){"K", local->kv_heads * tp, model->kv_heads, local->kv_holders});
    plain_add(terms, count, "H", local->head_width);
    plain_add(terms, count, "V", local->value_width);
}

/* Tables of rows by token and by position; two arrays side by side. */
static void ends_add(const struct local *local, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &local->plan->model;
    dimension_add(
        terms, count,
        (struct graph_dimension){"Vocab", local->vocabulary * local->tp, model->vocabulary, 1});
    plain_add(terms, count, "2D", 2 * local->width);
    if (model->positions != 0) plain_add(terms, count, "P", model->positions);
}

/* Whole sequences: the tokens of those that a rank has a part of, and KV heads that each of its
 * ranks has one of at least; and the keys of one. */
static void sequences_add(const struct local *local, struct graph_terms *terms, uint32_t *count)
{
    const struct model *model = &local->plan->model;
    uint32_t const ranks = local_turns(local) ? local->cp : 1;
    plain_add(terms, count, "T", local->keys);
    plain_add(terms, count, "Bc", local->rows * local->data * ranks);
    dimension_add(terms, count,
                  (struct graph_dimension){"Kc", local->attention_kv_heads * ranks * local->tp,
                                           model->kv_heads, local->kv_holders});
}

/* Ranks that turn sequences into heads have an axis of their own. */
static uint32_t axis_c_add(const struct local *local, struct sharding_mesh *mesh)
{
    if (!local_turns(local)) return 0;
    SIM_ASSERT(mesh->axis_count < SHARDING_AXES_MAX);
    mesh->letter[mesh->axis_count] = 'C';
    mesh->size[mesh->axis_count] = local->cp;
    return UINT32_C(1) << mesh->axis_count++;
}

/* Latents, the columns of K that are turned, and what K and V of a head have from their latent. */
static void latent_add(const struct local *local, struct graph_terms *terms, uint32_t *count)
{
    const struct model_latent *latent = &local->plan->model.latent;
    plain_add(terms, count, "Cq", latent->query_rank);
    plain_add(terms, count, "Ckv", latent->kv_rank);
    plain_add(terms, count, "R", latent->rope);
    plain_add(terms, count, "J", latent->plain + local->value_width);
}

/* Experts of the layer and of a rank, their rows and widths; rows that come to a rank, that come
 * back, and that all ranks together exchange. */
static void experts_add(const struct local *local, struct graph_terms *terms, uint32_t *count)
{
    const struct routing *experts = &local->experts;
    const struct model_experts *model = &local->plan->model.experts;
    uint64_t const tp = local->tp, data = local->data;
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
    plain_add(terms, count, "Sent", drawn ? experts->ranks * local->rows : experts->exchanged);
}

static struct graph_sequence sequence_of(const struct local *local, uint64_t layer)
{
    const struct workload_plan *plan = local->plan;
    return (struct graph_sequence){
        .keys = local->keys,
        .queries = local->attention_queries,
        .count = local->sequences,
        .parts = local_turns(local) ? 1 : local->sequence_parts,
        .rings = local_rings(local),
        .causal = plan->attention == WORKLOAD_ATTENTION_CAUSAL,
        .pairs = local->key_pairs,
        .window = local_layer_is_windowed(local, layer) ? plan->model.window : 0,
        .tile_columns = local->machine->chip.mxu_columns,
    };
}

static struct graph_policy policy_of(const struct local *local)
{
    static const enum graph_remat remats[] = {
        [WORKLOAD_REMAT_NONE] = GRAPH_REMAT_NONE,
        [WORKLOAD_REMAT_NORMS] = GRAPH_REMAT_NORMS,
        [WORKLOAD_REMAT_BIG_MATMULS] = GRAPH_REMAT_BIG_MATMULS,
        [WORKLOAD_REMAT_BLOCK] = GRAPH_REMAT_BLOCK,
        [WORKLOAD_REMAT_LAYER] = GRAPH_REMAT_LAYER,
    };
    const struct workload_plan *plan = local->plan;
    return (struct graph_policy){
        .remat = remats[plan->remat],
        .by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS,
        .keeps_whole = !local_keeps_parts(local),
        .dx_first = plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST,
        .weights_split = local->shards > 1,
        .stores_scores = local_is_unfused(local),
        .drops = plan->attention_kernel == WORKLOAD_KERNEL_DROPOUT,
        .counts_frameworks = overheads_count(local) && local_is_llama(local),
        .remakes_frameworks = local_offloads_activations(local),
        .adds = local->gradients_resident && local->gradient_shards == 1,
        .adds_of_experts = local->gradients_resident && local->experts.gradient_shards == 1,
    };
}

void graph_terms_of(const struct local *local, uint64_t layer, struct graph_terms *ret_terms)
{
    const struct workload_formats *formats = &local->plan->formats;
    uint32_t count = 0;
    *ret_terms = (struct graph_terms){
        .mesh = local->axes,
        .axis_x = local->axis_x,
        .axis_y = local->axis_y,
        .ranks = local->data * local->tp,
        .ranks_y = local->tp,
        .ranks_exchange = local->mesh->axis[MESH_EP].size,
        .sequence = sequence_of(local, layer),
        .formats = {formats->weights, formats->activations, formats->gradients, formats->matmuls,
                    formats->dispatch},
        .policy = policy_of(local),
    };
    ret_terms->axis_c = axis_c_add(local, &ret_terms->mesh);
    decoder_add(local, ret_terms, &count);
    if (local_is_llama(local)) ends_add(local, ret_terms, &count);
    if (local_is_llama(local)) sequences_add(local, ret_terms, &count);
    if (local_is_latent(local)) latent_add(local, ret_terms, &count);
    if (model_has_experts(&local->plan->model)) experts_add(local, ret_terms, &count);
}

void graph_terms_of_end(const struct local *local, bool used_before, struct graph_terms *ret_terms)
{
    graph_terms_of(local, 0, ret_terms);
    ret_terms->policy.used_before = used_before;
    if (ret_terms->policy.remat > GRAPH_REMAT_NORMS) ret_terms->policy.remat = GRAPH_REMAT_NORMS;
}

bool graph_terms_embedding_used(const struct local *local)
{
    return local->tied || (local->predictors != 0 && local->pp == 1);
}
