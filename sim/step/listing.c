/* The listing of a step: what its letters mean, its passes (listing_passes.c), its streams. */
#include "sim/step/listing.h"

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/step/graph_terms.h"
#include "sim/step/padding.h"

static unsigned long long wide(uint64_t number)
{
    return number;
}

static void paddings_add(struct strbuf *text, const struct ranks *ranks)
{
    struct paddings paddings;
    padding_list(ranks, &paddings);
    for (uint32_t i = 0; i < paddings.count; i++) {
        const struct padding *of = &paddings.of[i];
        strbuf_add(text, "  padded over %s of %s: %s, %llu to %llu\n",
                   counted(of->ranks, "rank").text, of->role, of->what, wide(of->size),
                   wide(of->padded));
    }
}

/* Letters of the mesh. */
static void axes_add(struct strbuf *text, const struct ranks *ranks)
{
    for (uint32_t a = 0; a < ranks->axes.mesh.axis_count; a++) {
        uint32_t const axis = UINT32_C(1) << a;
        bool const sharded = axis == ranks->axes.x && ranks->mesh->axis[MESH_FSDP].size > 1;
        const char *roles = axis == ranks->axes.y   ? mesh_role_name(MESH_TP)
                            : axis == ranks->axes.w ? mesh_role_name(MESH_TP_D)
                            : sharded               ? mesh_role_name(MESH_FSDP)
                                                    : ranks->replicas.name;
        strbuf_add(text, "  %c = %s of %s\n", ranks->axes.mesh.letter[a],
                   counted(ranks->axes.mesh.size[a], "rank").text, roles);
    }
}

/* Ranks that share sequences. */
static void sequences_add(struct strbuf *text, const struct ranks *ranks)
{
    struct counted const rank_count = counted(ranks->cp, "rank");
    if (ranks_has_ulysses(ranks))
        strbuf_add(
            text,
            "  C = %s of cp, which other letters count too; AllToAll_C brings whole sequences "
            "of some heads together, and takes them apart again\n",
            rank_count.text);
    else if (ranks->cp > 1)
        strbuf_add(text, "  sequences of %llu tokens lie on %s of cp, %llu on each\n",
                   wide(workload_keys(ranks->plan)), rank_count.text,
                   wide(units_ceil_divide(workload_keys(ranks->plan), ranks->cp)));
}

/* --- Letters of dimensions --- */

/* Dimensions of some parts of the model, by their places in the terms. */
struct legend {
    const struct ranks *ranks;
    struct strbuf *text;
    bool listed[GRAPH_DIMENSIONS_MAX];
};

/* Ranks that split the batch, among the axes of a dimension. */
static uint32_t data_ways(const struct ranks *ranks, const struct sharding_dimension *of)
{
    uint32_t const data = ranks->axes.x | ranks->axes.z;
    uint32_t ways = 1;
    for (uint32_t a = 0; a < of->axis_count; a++)
        if ((data >> of->axis[a] & 1) != 0) ways *= ranks->axes.mesh.size[of->axis[a]];
    return ways;
}

/* How many data ranks split each dimension of the terms, as activations have it. 0: no array of the
 * graph has the dimension. */
static void ways_find(const struct ranks *ranks, const struct graph *graph, uint32_t *ret_ways)
{
    const struct graph_terms *terms = graph->terms;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_tensor *of = &graph->tensor[t];
        for (uint32_t d = 0; d < of->at.dimension_count; d++) {
            const struct sharding_dimension *at = &of->at.dimension[d];
            uint32_t *most = &ret_ways[graph_dimension_of(terms, at->name) - terms->dimension];
            uint32_t const ways = of->role == GRAPH_WEIGHT ? 1 : data_ways(ranks, at);
            if (ways > *most) *most = ways;
        }
    }
}

static void dimensions_add(struct legend *legend, const struct graph *graph)
{
    const struct graph_dimension *dimension = graph->terms->dimension;
    uint32_t ways[GRAPH_DIMENSIONS_MAX] = {0};
    ways_find(legend->ranks, graph, ways);
    for (uint32_t i = 0; dimension[i].name != NULL; i++) {
        const struct graph_dimension *of = &dimension[i];
        if (ways[i] == 0 || legend->listed[i]) continue;
        legend->listed[i] = true;
        SIM_ASSERT(of->meaning != NULL);
        strbuf_add(legend->text, "  %s = %llu, %s%s\n", of->name,
                   wide(ways[i] > 1 ? of->padded / ways[i] : of->useful), of->meaning,
                   ways[i] > 1 ? ", on one data rank" : "");
    }
}

/* The batch has a line of its own. */
static void batch_add(struct legend *legend, const struct graph_terms *terms)
{
    const struct ranks *ranks = legend->ranks;
    legend->listed[graph_dimension_of(terms, "B") - terms->dimension] = true;
    strbuf_add(legend->text, "  B = %s a %s, %llu on one data rank\n",
               counted(ranks->rows * ranks->data, "token").text,
               ranks_serves(ranks) ? "pass" : "microbatch", wide(ranks->rows));
}

static void letters_add(struct strbuf *text, const struct ranks *ranks, enum listing_parts parts)
{
    struct legend legend = {.ranks = ranks, .text = text};
    struct step_graph room;
    struct step_part part[STEP_PARTS_MAX];
    struct step_part const last = {.part = BLOCK_LAYER, .kind = ranks_last_kind(ranks)};
    uint32_t const count = step_parts(ranks, part);
    batch_add(&legend, step_graph(ranks, &last, &room)->graph.terms);
    dimensions_add(&legend, &step_graph(ranks, &last, &room)->graph);
    for (uint32_t i = 0; i < count; i++)
        if (parts == LISTING_ALL_PARTS || part[i].part == BLOCK_MTP)
            dimensions_add(&legend, &step_graph(ranks, &part[i], &room)->graph);
    sequences_add(text, ranks);
    const struct graph *layer = &step_graph(ranks, &last, &room)->graph;
    for (uint8_t b = 0; b < layer->block_count; b++)
        if (layer->block[b].block->explain != NULL)
            layer->block[b].block->explain(layer, &ranks->kinds, text);
}

/* Layers that are recomputed, and which one is listed. */
static void kept_add(struct strbuf *text, const struct ranks *ranks)
{
    uint64_t repeated = 0;
    if (ranks->kinds.grouped) {
        strbuf_add(text,
                   "  layers are recomputed from one input for up to %s of a stage; the layer "
                   "below is the last of its group\n",
                   counted(ranks->plan->kept.repeated.groups_of, "layer").text);
        return;
    }
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        if (!ranks->kinds.kind[kind].keeps) repeated += ranks->kinds.layers[kind];
    strbuf_add(text, "  %llu of %s %s recomputed; the layer below is one that is%s\n",
               wide(repeated), counted(ranks->plan->model.layers, "layer").text,
               repeated == 1 ? "is" : "are",
               ranks->kinds.kind[ranks_last_kind(ranks)].keeps ? " not" : "");
}

void listing_heading(struct strbuf *text, const struct ranks *ranks, enum listing_parts parts)
{
    char bytes[QUANTITY_TEXT_BYTES];
    const struct workload_plan *plan = ranks->plan;
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    strbuf_add(text, "%s, one layer of %llu, on one chip\n", plan->model.name,
               wide(plan->model.layers));
    if (ranks->kinds.kept.any) kept_add(text, ranks);
    axes_add(text, ranks);
    bool const serves = ranks_serves(ranks);
    uint32_t const passes = serves ? inference_batch_passes(&plan->inference) : 1;
    if (serves && inference_batch_count(&plan->inference) > 1)
        strbuf_add(text, "  the last of %s, which are in flight together\n",
                   counted(inference_batch_count(&plan->inference), "batch").text);
    if (serves && plan->inference.generation.output != 0)
        strbuf_add(text,
                   "  the last of %u passes: a generation's last step, after its "
                   "prefill\n",
                   ranks->pass.index + 1);
    else if (passes > 1)
        strbuf_add(text, "  the last of %u passes, each with up to %llu tokens of every prompt\n",
                   passes, wide(plan->inference.prompts.chunk));
    letters_add(text, ranks, parts);
    paddings_add(text, ranks);
    for (uint32_t u = 0; ranks->shards > 1 && u < layer->bucket_count; u++) {
        strbuf_add(text, "  %s travels as one: %s gathered\n", layer->bucket[u].name,
                   quantity_text_bytes(bytes, (double)bucket_bytes(&layer->bucket[u])));
    }
    if (plan->formats.matmuls != plan->formats.activations)
        strbuf_add(text,
                   "  linear layers multiply in %s, which is also what only they read; the rest "
                   "is in %s\n",
                   format_name(plan->formats.matmuls), format_name(plan->formats.activations));
    if (ranks->pp > 1)
        strbuf_add(text,
                   "  layers lie on stages over %s of pp: what a stage begins with comes from the "
                   "one before\n",
                   counted(ranks->pp, "rank").text);
    if (ranks_offloads_optimizer(ranks))
        strbuf_add(text, "  the moments lie in the host's memory: each layer is updated one "
                         "slot after its backward pass\n");
    if (ranks_offloads_activations(ranks))
        strbuf_add(text,
                   "  what a layer saves lies in the host's memory, but for the last layer's\n");
}

enum status workload_listing(const struct workload_plan *plan, const struct machine *machine,
                             const struct mesh *mesh, const struct program *program,
                             struct strbuf *text, struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    listing_heading(text, &ranks, LISTING_LAYER);
    listing_passes(text, &ranks, program);
    listing_streams(text, program);
    return STATUS_OK;
}
