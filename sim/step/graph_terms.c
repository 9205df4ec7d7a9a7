#include "sim/step/graph_terms.h"

#include "sim/base/units.h"
#include "sim/graph/named.h"
#include "sim/graph/splits.h"
#include "sim/kernels/kernels.h"
#include "sim/step/overheads.h"
#include "sim/step/ranks.h"

enum { PICK_NUMBERS = 2 }; /* A value, and its token. */

/* A dimension of a block has its meaning already. */
static void size_set(struct graph_terms *terms, const char *name, uint64_t size)
{
    graph_dimension_set(terms, name, size, size);
}

/* Tokens of a microbatch on all ranks. In inference the last ranks may have fewer than others. */
static uint64_t tokens_of(const struct ranks *ranks)
{
    return ranks_serves(ranks) ? ranks->inference.all.tokens : ranks->rows * ranks->data;
}

/* Tokens, widths, heads, rows of the vocabulary: as ranks have parts of them. */
static void widths_set(const struct ranks *ranks, struct graph_terms *terms)
{
    uint64_t const tp = ranks->tp;
    graph_dimension_set(terms, "B", ranks->rows * ranks->data, tokens_of(ranks));
    graph_dimension_pad(terms, "D", ranks_block_columns(ranks));
    graph_dimension_pad(terms, "F", ranks->widths.mlp);
    if (!ranks_is_decoder(ranks)) return;
    graph_dimension_pad(terms, "N", ranks->heads.queries * tp);
    graph_dimension_pad(terms, "K", ranks->heads.kv * tp)->holders = ranks->heads.kv_holders;
    graph_dimension_pad(terms, "Vocab", ranks->widths.vocabulary);
    if (ranks->plan->model.mtp_modules != 0)
        graph_dimension_pad(terms, "2D", 2 * ranks_block_columns(ranks));
}

/* Whole sequences: the tokens of those that a rank has a part of, and KV heads that each of its
 * ranks has one of at least; and the keys of one. */
static void sequences_set(const struct ranks *ranks, struct graph_terms *terms)
{
    const struct model *model = &ranks->plan->model;
    const struct inference_ranks *inference = &ranks->inference;
    bool const ulysses = ranks_has_ulysses(ranks);
    /* A decode has the queries of all; where prompts are in the pass too, of decodes alone. */
    bool const mixed = inference->kinds_apart;
    uint64_t const rows = mixed ? inference->part[INFERENCE_DECODES].own : ranks->rows;
    graph_dimension_plain(terms, "T", ranks->sequences.of.keys, "keys of a sequence");
    graph_dimension_plain(terms, "Bc",
                          rows * ranks->data * (ulysses || inference->has_decodes ? ranks->cp : 1),
                          "tokens of the sequences that a rank has a part of");
    uint64_t const kv_heads = ranks->sequences.kv_heads * (ulysses ? ranks->cp : 1) * ranks->tp;
    struct graph_dimension *heads = graph_dimension_set(terms, "Kc", kv_heads, model->kv_heads);
    heads->holders = ranks->heads.kv_holders;
    heads->of_width = GRAPH_OF_WIDTH_HEADS;
    heads->meaning = "KV heads, at least one for each rank that shares a sequence";
    if (!mixed) return;
    graph_dimension_set(terms, "Bd", rows * ranks->data, inference->part[INFERENCE_DECODES].all)
        ->meaning = "tokens of sequences that answer";
    graph_dimension_set(terms, "Bp", inference->part[INFERENCE_PROMPTS].own * ranks->data,
                        inference->part[INFERENCE_PROMPTS].all)
        ->meaning = "tokens of prompts";
}

/* Ranks that exchange sequences for heads (Ulysses) have an axis of their own. */
static uint32_t axis_c_add(const struct ranks *ranks, struct sharding_mesh *mesh)
{
    if (!ranks_has_ulysses(ranks)) return 0;
    SIM_ASSERT(mesh->axis_count < SHARDING_AXES_MAX);
    mesh->letter[mesh->axis_count] = 'C';
    mesh->size[mesh->axis_count] = ranks->cp;
    return UINT32_C(1) << mesh->axis_count++;
}

/* Experts of the layer and of a rank, their rows and widths; rows that come to a rank, that come
 * back, and that all ranks together exchange. */
static void experts_set(const struct ranks *ranks, struct graph_terms *terms)
{
    const struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    uint64_t const tp = ranks_tp_of_ep(ranks), data = ranks->data * tp;
    bool const drawn = experts->drawn.expert_count != 0;
    /* Of the rows of all ranks' tokens as many as there are tokens. */
    units_wide const kept = (units_wide)experts->kept * tokens_of(ranks) / experts->tokens;
    terms->experts_held = experts->count;
    terms->experts_asked = experts->asked;
    terms->experts_read = experts->read;
    struct graph_dimension *held =
        graph_dimension_set(terms, "L", experts->count * tp, experts->count * tp);
    if (tp > 1) held->meaning = "experts of the ranks of Y";
    graph_dimension_set(terms, "W", experts->all * data, (uint64_t)kept);
    if (tp == 1) graph_dimension_pad(terms, "Fe", ranks->widths.expert);
    graph_dimension_pad(terms, "Fs", model->shared * ranks->widths.expert);
    size_set(terms, "A", experts->arrivals * data);
    size_set(terms, "S", experts->sent * data);
    size_set(terms, "Sent", drawn ? experts->ranks * experts->tokens : experts->exchanged);
}

/* Whether sequences that the pass has attend by a measured kernel that writes the cache. */
static bool append_within(const struct kernel_stack *stack, const struct graph_served *served,
                          enum kernel_family family, const struct graph_formats *formats)
{
    bool const reads = family == KERNEL_DECODE || family == KERNEL_LATENT_DECODE;
    enum format const stored = reads ? formats->cache : formats->activations;
    if (served->columns == 0) return true;
    const struct kernel_table *table = kernel_other_of(stack, family, formats->activations, stored);
    return table != NULL && table->appends;
}

/* Of ranks that have parts of sequences the write stays a kernel of its own. */
static bool appends_within(const struct ranks *ranks, const struct graph_terms *terms)
{
    const struct kernel_stack *stack = ranks->machine->chip.kernels.stack;
    const struct graph_cache *cache = &terms->cache;
    enum format const format = terms->formats.activations;
    bool const latent = model_has_mla(&ranks->plan->model);
    bool const makes_heads = !latent || cache->begins || cache->makes_heads;
    if (stack == NULL || ranks->cp > 1) return false;
    bool const made =
        latent && kernel_other_of(stack, KERNEL_LATENT_ATTENTION, format, format) != NULL;
    enum kernel_family const answers = latent ? KERNEL_LATENT_DECODE : KERNEL_DECODE;
    enum kernel_family const asks = !makes_heads ? KERNEL_LATENT_DECODE
                                    : made       ? KERNEL_LATENT_ATTENTION
                                                 : KERNEL_ATTENTION;
    return append_within(stack, &cache->decodes, answers, &terms->formats) &&
           append_within(stack, &cache->prompts, asks, &terms->formats);
}

/* Rows of the cache, and tokens whose logits are wanted. */
static void cache_set(const struct ranks *ranks, struct graph_terms *terms)
{
    const struct inference_ranks *inference = &ranks->inference;
    bool const windowed = terms->layer.windowed;
    const struct graph_served *decodes = &inference->served[INFERENCE_DECODES][windowed],
                              *prompts = &inference->served[INFERENCE_PROMPTS][windowed];
    /* The cores of a TPU work as one on each op. */
    uint64_t const apart = inference->apart == GRAPH_APART_TOKENS ? ranks_tp_d(ranks) : 1;
    bool const ulysses = ranks_has_ulysses(ranks);
    /* Of the pass' own tokens, or of all that a prompt has in the cache. */
    uint64_t const own = inference->part[INFERENCE_PROMPTS].own;
    uint64_t const rows = inference->prompt_rows[windowed];
    uint64_t const gathered = ranks->cp * (inference->own_rows ? own : rows);
    uint64_t const wanted =
        inference->own_rows ? inference->part[INFERENCE_PROMPTS].all : rows * ranks->data;
    /* Of prompts that stay a rank keeps rows that it does not read, and attends to decodes for
     * others alone. */
    bool const stay = inference->prompts_stay;
    uint32_t const parts = inference_parts(ranks);
    uint64_t const kept = units_ceil_divide(inference->part[INFERENCE_PROMPTS].kept, parts);
    uint64_t const shared = stay ? inference->part[INFERENCE_DECODES].kept : inference->kept_tokens;
    terms->formats.cache = ranks->plan->inference.cache;
    terms->formats.head = ranks->plan->inference.head;
    terms->cache = (struct graph_cache){
        .is_there = true,
        .apart = inference->apart,
        .batch_ways = inference->batch_ways,
        .sequence_ways = inference->sequence_ways,
        .context_ways = inference->has_decodes && !ulysses ? ranks->cp : 1,
        .prompt_ways = inference->prompts_in_parts && !ulysses ? ranks->cp : 1,
        .own_rows = inference->own_rows,
        .prompts_stay = stay,
        .kinds_apart = inference->kinds_apart,
        .begins = inference->begins,
        .makes_heads = inference->makes_heads,
        .cores = chip_cores_apart(&ranks->machine->chip),
        .splits_most = ranks->plan->inference.whole_units ? 1 : SPLITS_MAX,
        .units = step_units(&ranks->machine->chip),
        .prefetches = ranks->plan->inference.prefetch == INFERENCE_PREFETCH_VMEM,
        .kept_rows = units_ceil_divide(inference->kept_tokens, parts),
        .decodes = *decodes,
        .prompts = *prompts,
    };
    terms->cache.appends_within = appends_within(ranks, terms);
    graph_dimension_plain(terms, "Bb", shared * ranks->data * apart,
                          "tokens of the sequences whose rows a rank keeps");
    graph_dimension_plain(terms, "Nb", ranks->heads.queries * inference->batch_ways * ranks->tp,
                          "heads that attend for the sequences whose rows a rank keeps")
        ->of_width = GRAPH_OF_WIDTH_HEADS;
    graph_dimension_plain(terms, "Ns", ranks->heads.queries * inference->sequence_ways * ranks->tp,
                          "heads that attend to a rank's part of every sequence")
        ->of_width = GRAPH_OF_WIDTH_HEADS;
    graph_dimension_plain(terms, "Sc",
                          (decodes->read + (stay ? kept : prompts->read)) * ranks->data * apart,
                          "rows of the cache");
    struct graph_dimension *of_prompts =
        graph_dimension_set(terms, "Sg", gathered * ranks->data, wanted);
    of_prompts->holders = ranks->cp;
    of_prompts->meaning = "rows of prompts that ranks with parts of them have gathered";
    graph_dimension_set(terms, "Bh", inference->head_rows * ranks->data, inference->all.head_rows)
        ->meaning = "tokens whose logits are wanted";
    graph_dimension_plain(terms, "Pick", PICK_NUMBERS, "numbers that a token is chosen by");
}

static enum shard_format shard_format(enum format format)
{
    return format_bits(format) > 16 ? SHARD_WIDE : SHARD_NARROW;
}

/* What casts and copies sharded weights. */
static struct graph_copying copying_of(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    const struct shard_copies *copies =
        shard_copies_of(workload_shards(plan, &ranks->machine->chip));
    enum shard_format const weights = shard_format(plan->formats.weights);
    bool const scatters = ranks->shards > 1 || plan->zero == 2;
    struct graph_copying copying = {.once = ranks_gathers_once(ranks)};
    if (ranks_fusion(ranks) == NULL || ranks_serves(ranks) || !scatters) return copying;
    copying.gradients = copies->gradients[weights][shard_format(plan->formats.gradients)];
    if (ranks->shards == 1 || format_bits(plan->formats.weights) < 16) return copying;
    copying.shard = copies->shard[weights];
    if (!copies->tensors_stay || plan->gather != WORKLOAD_GATHER_TENSOR)
        copying.gathered = copies->gathered[weights];
    return copying;
}

/* Without a stack all products of one input are one, but gate and up are two. */
static struct graph_joins joins_of(const struct ranks *ranks)
{
    const struct fusion *fusion = ranks_fusion(ranks);
    if (fusion == NULL) return (struct graph_joins){.qkv = true, .latents = true, .all = true};
    enum product_joins const joins = workload_joins(ranks->plan, &ranks->machine->chip);
    return (struct graph_joins){.qkv = joins >= PRODUCT_JOINS_QKV,
                                .gate = joins == PRODUCT_JOINS_ALL,
                                .latents = fusion->joins_latents};
}

/* Without a stack, or in inference, there are no casts. */
static enum autocast autocast_of(const struct ranks *ranks)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    if (!ranks->plan->software.autocast || ranks_fusion(ranks) == NULL || ranks_serves(ranks))
        return AUTOCAST_NONE;
    return format_bits(formats->weights) > format_bits(formats->activations) ? AUTOCAST_WIDE
                                                                             : AUTOCAST_NARROW;
}

/* Sums with gradients of earlier microbatches, where a kernel of its own computes them. What
 * autocast has cast to fp32 no product adds. */
static struct function_pass sums_of(const struct ranks *ranks)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    bool const is_cast = autocast_of(ranks) == AUTOCAST_WIDE;
    enum format const format = is_cast ? formats->weights : formats->activations;
    enum gradient_sums sums = ranks->plan->software.sums;
    if (ranks_fusion(ranks) == NULL || ranks_serves(ranks)) return (struct function_pass){0, 0, 0};
    if (is_cast && ranks->gradients.resident && sums == GRADIENT_SUMS_FUSED)
        sums = GRADIENT_SUMS_APART;
    return fusion_sums(sums, (uint8_t)format_bytes(format, 1),
                       (uint8_t)format_bytes(formats->main_gradients, 1));
}

/* Whether the stack has a table of all experts of a layer, which are of steps of inference. */
static bool has_experts_in_one(const struct ranks *ranks)
{
    const struct kernel_stack *stack = ranks->machine->chip.kernels.stack;
    const struct fusion *fusion = ranks_fusion(ranks);
    enum format const format = ranks->plan->formats.matmuls;
    return ranks_serves(ranks) && fusion != NULL && fusion->functions_apart &&
           kernel_other_of(stack, KERNEL_EXPERTS, format, format) != NULL;
}

/* Engines multiply head by head in 16 bits, with copies of weights that are narrower, but where
 * the stack has such a kernel. */
static enum format batched_format(const struct ranks *ranks)
{
    const struct kernel_stack *stack = ranks->machine->chip.kernels.stack;
    enum format const format = ranks->plan->formats.matmuls;
    bool const has =
        stack == NULL || kernel_other_of(stack, KERNEL_BATCHED, format, format) != NULL;
    return has ? format : ranks->plan->formats.activations;
}

static struct graph_policy policy_of(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    struct function_pass const sums = sums_of(ranks);
    bool const adds = ranks->gradients.resident && sums.kernels == 0;
    return (struct graph_policy){
        .names_kernels = ranks->machine->chip.kernels.stack != NULL,
        .fusion = ranks_fusion(ranks),
        .joins = joins_of(ranks),
        .experts_in_one = has_experts_in_one(ranks),
        .replacing = {plan->software.loss, plan->software.persistent_layernorm},
        .casts = workload_casts(plan, &ranks->machine->chip),
        .autocast = autocast_of(ranks),
        .copying = copying_of(ranks),
        .sums = sums,
        .remat = plan->remat,
        .by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS,
        .replicated = plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED,
        .keeps_whole = !ranks_keeps_parts(ranks),
        .dx_first = plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST,
        .bulk = plan->collective_matmul && plan->software.chunks != WORKLOAD_CHUNKS_RANKS,
        .weights_split = ranks->shards > 1,
        .stores_scores = ranks_is_unfused(ranks),
        .drops = plan->attention.kernel == WORKLOAD_KERNEL_DROPOUT,
        .pads = plan->attention.kernel == WORKLOAD_KERNEL_PADDED,
        .counts_frameworks = overheads_count(ranks) && ranks_is_decoder(ranks),
        .remakes_frameworks = ranks_offloads_kept(ranks),
        .adds = adds && ranks->replicas.gradient_shards == 1,
        .adds_of_experts = adds && ranks->experts.replicas.gradient_shards == 1,
    };
}

/* What a layer of a kind is, and what is kept. */
static void layer_set(const struct ranks *ranks, uint32_t kind, struct graph_terms *terms)
{
    const struct graph_named *named = &ranks->plan->kept.named;
    terms->layer = ranks->kinds.kind[kind];
    terms->policy.copying.again = true;
    if (terms->layer.keeps)
        terms->policy.remat = GRAPH_REMAT_NONE;
    else if (graph_named_any(named))
        terms->policy.named = named;
}

void graph_terms_of_part(const struct ranks *ranks, const struct step_part *part,
                         struct graph_terms *ret_terms)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    *ret_terms = (struct graph_terms){
        .mesh = ranks->axes.mesh,
        .axis_x = ranks->axes.x,
        .axis_y = ranks->axes.y,
        .axis_w = ranks->axes.w,
        .ranks = ranks->data * ranks->tp * ranks_tp_d(ranks),
        .ranks_y = ranks->tp,
        .ranks_w = ranks_tp_d(ranks),
        .ranks_exchange = ranks->mesh->axis[MESH_EP].size,
        .ep_over_tp = ranks_tp_of_ep(ranks) > 1,
        .sequence = ranks->sequences.of,
        .formats = *formats,
        .policy = policy_of(ranks),
    };
    /* With a recipe casts are kernels of their own, and all other kernels write the format of
     * activations. */
    if (ret_terms->policy.casts.recipe != NULL) ret_terms->formats.matmuls = formats->activations;
    ret_terms->formats.head = formats->weights;
    ret_terms->formats.cache = formats->activations;
    ret_terms->formats.batched = batched_format(ranks);
    ret_terms->policy.used_before = part->used_before;
    if (part->part != BLOCK_LAYER && ret_terms->policy.remat > GRAPH_REMAT_NORMS)
        ret_terms->policy.remat = GRAPH_REMAT_NORMS;
    if (part->part == BLOCK_LAYER) layer_set(ranks, part->kind, ret_terms);
    ret_terms->axis_c = axis_c_add(ranks, &ret_terms->mesh);
    graph_dimensions_begin(&ranks->plan->model, ret_terms);
    widths_set(ranks, ret_terms);
    if (ranks_is_decoder(ranks)) sequences_set(ranks, ret_terms);
    if (model_has_experts(&ranks->plan->model)) experts_set(ranks, ret_terms);
    if (ranks_serves(ranks)) cache_set(ranks, ret_terms);
}

bool step_embedding_used(const struct ranks *ranks)
{
    return ranks->tie.here || (ranks->mtp.modules != 0 && ranks->pp == 1);
}

/* The first use of a matrix in a backward pass is another part than those behind it. */
uint32_t step_parts(const struct ranks *ranks, struct step_part ret_parts[STEP_PARTS_MAX])
{
    uint64_t const ends = ranks_is_decoder(ranks), modules = ranks->mtp.modules;
    struct step_part const others[] = {
        {.part = BLOCK_EMBEDDING, .used_before = step_embedding_used(ranks), .count = ends},
        {.part = BLOCK_HEAD, .count = ends && ranks_has_head(ranks)},
        {.part = BLOCK_HEAD, .used_before = true, .count = modules},
        {.part = BLOCK_MTP, .count = modules > 0},
        {.part = BLOCK_MTP, .used_before = true, .count = modules > 0 ? modules - 1 : 0},
    };
    uint32_t count = 0;
    for (; count < ranks->kinds.count; count++)
        ret_parts[count] = (struct step_part){
            .part = BLOCK_LAYER, .kind = count, .count = ranks_layer_count(ranks, count)};
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++) {
        ret_parts[count] = others[i];
        count += others[i].count > 0;
    }
    return count;
}

struct step_layers step_layers(const struct ranks *ranks, uint64_t first, uint64_t count)
{
    struct step_layers layers = {{0}};
    for (uint64_t layer = first; layer < first + count; layer++)
        layers.of[ranks_kind_at(ranks, layer)]++;
    return layers;
}

void step_graph_derive(const struct ranks *ranks, const struct step_part *part,
                       struct step_graph *ret_graph)
{
    ret_graph->part = *part;
    graph_terms_of_part(ranks, part, &ret_graph->terms);
    graph_derive(&ret_graph->terms, &ranks->plan->model, part->part, &ret_graph->derived);
}

const struct graph_derived *step_graph_kept(const struct ranks *ranks, const struct step_part *part)
{
    for (uint32_t i = 0; i < ranks->pass.graph_count; i++) {
        const struct step_part *of = &ranks->pass.graph[i].part;
        if (of->part == part->part && of->kind == part->kind &&
            of->used_before == part->used_before)
            return &ranks->pass.graph[i].derived;
    }
    return NULL;
}

const struct graph_derived *step_graph(const struct ranks *ranks, const struct step_part *part,
                                       struct step_graph *room)
{
    const struct graph_derived *kept = step_graph_kept(ranks, part);
    if (kept != NULL) return kept;
    step_graph_derive(ranks, part, room);
    return &room->derived;
}

struct graph_units step_units(const struct chip *chip)
{
    return (struct graph_units){.edges = {WORK_EDGE_ROWS, chip->mxu.rows, chip->mxu.columns},
                                .stack = chip->kernels.stack,
                                .math_flop_per_s = chip->math_flop_per_s,
                                .vector_flop_per_s = chip->vector_flop_per_s,
                                .vmem_bytes_per_s = chip->vmem_bytes_per_s};
}
