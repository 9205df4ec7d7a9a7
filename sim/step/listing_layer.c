/*
 * A layer's graph as a listing, and the collectives of its weights, which are in no graph: how
 * often they are gathered and reduced, and with which others, is alike for all blocks.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/graph/derive.h"
#include "sim/graph/list.h"
#include "sim/step/graph_terms.h"
#include "sim/step/listing.h"
#include "sim/step/lower.h"

struct layer {
    struct graph_terms terms, state_terms;
    struct graph_derived derived;
    struct graph state;
    struct graph_list_weights weights;
};

/* The last layer, which is of the kind at the top. */
static void layer_derive(const struct ranks *ranks, struct layer *layer)
{
    const struct model *model = &ranks->plan->model;
    graph_terms_of(ranks, model->layers - 1, &layer->terms);
    layer->state_terms = layer->terms;
    layer->state_terms.policy.weights_split = ranks->state_shards > 1;
    graph_derive(&layer->terms, model, BLOCK_LAYER, model->layers - 1, &layer->derived);
    block_write_layer(&layer->state_terms, model, model->layers - 1, &layer->state);
}

/* --- Weights --- */

static bool has_template(const struct program *program, const char *name)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        if (strcmp(program->templates[t].name, name) == 0) return true;
    return false;
}

/* Whether some backward pass of a layer gathers weights, or reduces their gradients. */
static bool backward_has(const struct program *program, enum lower_urgency urgency)
{
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        bool const backward = strcmp(template->name, "layer backward") == 0 ||
                              strcmp(template->name, "layer input gradient") == 0 ||
                              strcmp(template->name, "layer weight gradient") == 0;
        for (uint32_t i = 0; backward && i < template->op_count; i++)
            if (template->op[i].kind == PROGRAM_OP_COLLECTIVE &&
                program->stream[template->op[i].stream].urgency == urgency)
                return true;
    }
    return false;
}

static void weights_derive(const struct ranks *ranks, const struct program *program,
                           struct layer *layer)
{
    bool const zero = ranks->plan->zero != 0;
    layer->weights = (struct graph_list_weights){
        .state = &layer->state,
        .gathers_backward = !ranks->reduce_once || backward_has(program, LOWER_URGENCY_WEIGHTS),
        .reduces = !ranks->reduce_once || backward_has(program, LOWER_URGENCY_GRADIENTS),
        .axis_same = ranks->shards > 1 ? ranks->axis_z : ranks->axis_x,
        .grouped_ranks = ranks->experts.ranks > 1 ? ranks->experts.replicas : 0,
        .grouped_scatters = zero,
    };
}

static void bucket_tell(struct listing *listing, enum collective_kind kind, bool shards,
                        const struct bucket *bucket)
{
    const struct ranks *ranks = listing->ranks;
    const struct workload_formats *formats = &ranks->plan->formats;
    bool const gathers = kind == COLLECTIVE_ALL_GATHER;
    const char *group = bucket->experts ? "experts" : ranks->replica_name;
    uint64_t const elements =
        shards || gathers ? bucket->elements : units_ceil_divide(bucket->elements, ranks->shards);
    if (shards) group = mesh_role_name(ranks->shard_role);
    listing_tell(listing, kind, group,
                 format_bytes(gathers ? formats->weights : formats->gradients, elements));
}

/* Units that travel in a section. */
static void units_tell(struct listing *listing, const struct graph_list_weights *weights)
{
    const struct ranks *ranks = listing->ranks;
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    bool const forward = listing->section == WORKLOAD_SECTION_FORWARD;
    bool const backward = listing->section == WORKLOAD_SECTION_BACKWARD;
    bool const split = ranks->plan->zero == 1 || ranks->plan->zero == 2;
    /* What ranks have updated is gathered behind the update, or by the next step. */
    bool const updated = split && (ranks_gathers_next(ranks)         ? forward
                                   : ranks_offloads_optimizer(ranks) ? backward
                                                                     : !forward && !backward);
    for (uint32_t u = 0; u < layer->bucket_count; u++) {
        const struct bucket *bucket = &layer->bucket[u];
        uint32_t const same = bucket->experts ? ranks->experts.replicas : ranks->replicas;
        bool const gathers = forward || (backward && weights->gathers_backward);
        if (ranks->shards > 1 && gathers)
            bucket_tell(listing, COLLECTIVE_ALL_GATHER, /* shards= */ true, bucket);
        if (ranks->shards > 1 && backward && weights->reduces)
            bucket_tell(listing, COLLECTIVE_REDUCE_SCATTER, /* shards= */ true, bucket);
        if (same > 1 && backward && weights->reduces)
            bucket_tell(listing,
                        ranks->plan->zero == 0 ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER,
                        /* shards= */ false, bucket);
        if (same > 1 && updated)
            bucket_tell(listing, COLLECTIVE_ALL_GATHER, /* shards= */ false, bucket);
    }
}

/* --- Sections --- */

static void step_tell(void *context, const struct graph_step *step)
{
    listing_tell(context, step->move.kind, op_axis_name(step->move.axis), step->move.bytes);
}

static void backward_add(struct listing *listing, struct graph_list *list,
                         const struct layer *layer, const struct program *program)
{
    struct graph_steps steps;
    struct graph_request request = {
        .backward = true, .half = GRAPH_WHOLE, .sums_partial = layer->weights.reduces};
    bool const halves = !has_template(program, "layer backward");
    if (halves) request.half = GRAPH_INPUT_HALF;
    listing->section = WORKLOAD_SECTION_BACKWARD;
    graph_steps(&layer->derived.sharded, &layer->derived.backward, &layer->derived.kept, request,
                &steps);
    graph_list_backward(list, &steps, /* begins= */ true);
    if (halves) {
        strbuf_add(listing->text, "  later, in another pass:\n");
        request.half = GRAPH_WEIGHT_HALF;
        graph_steps(&layer->derived.sharded, &layer->derived.backward, &layer->derived.kept,
                    request, &steps);
        graph_list_backward(list, &steps, /* begins= */ false);
    }
    listing_copies(listing, program, "layer backward");
    units_tell(listing, &layer->weights);
}

void listing_layer(struct listing *listing, const struct program *program)
{
    const struct ranks *ranks = listing->ranks;
    struct layer layer;
    struct graph_steps forward, backward;
    struct graph_list list = {.sharded = &layer.derived.sharded,
                              .backward = &layer.derived.backward,
                              .kept = &layer.derived.kept,
                              .weights = &layer.weights,
                              .text = listing->text,
                              .tell = step_tell,
                              .context = listing};
    layer_derive(ranks, &layer);
    weights_derive(ranks, program, &layer);
    graph_steps(&layer.derived.sharded, &layer.derived.backward, &layer.derived.kept,
                (struct graph_request){.backward = false}, &forward);
    graph_steps(&layer.derived.sharded, &layer.derived.backward, &layer.derived.kept,
                (struct graph_request){.backward = true}, &backward);
    listing->section = WORKLOAD_SECTION_FORWARD;
    graph_list_forward(&list, &forward, &backward);
    listing_copies(listing, program, "layer forward");
    units_tell(listing, &layer.weights);
    backward_add(listing, &list, &layer, program);
    if (ranks->state_shards == ranks->shards) return;
    strbuf_add(listing->text, "\nUpdate: ZeRO-%u\n", ranks->plan->zero);
    listing->section = WORKLOAD_SECTION_UPDATE;
    graph_list_update(&list);
    units_tell(listing, &layer.weights);
}
