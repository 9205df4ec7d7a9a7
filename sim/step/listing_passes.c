/*
 * Graphs of a layer and of a module that predicts a further token as a listing, and the collectives
 * of their weights, which are in no graph: how often they are gathered and reduced, and with which
 * others, is alike for all blocks.
 */
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/graph/derive.h"
#include "sim/graph/list.h"
#include "sim/step/graph_terms.h"
#include "sim/step/listing.h"

static const char later[] = "  later, in another pass:\n";

struct part {
    enum block_part part;
    struct graph_terms terms, state_terms;
    struct graph_derived derived;
    struct graph state;
    struct graph_list_weights weights;
    struct graph_list list;
};

/* A layer is the last one, which is of the kind at the top. */
static void part_derive(const struct ranks *ranks, enum block_part part, bool used_before,
                        struct part *of)
{
    const struct model *model = &ranks->plan->model;
    of->part = part;
    if (part == BLOCK_LAYER)
        graph_terms_of(ranks, model->layers - 1, &of->terms);
    else
        graph_terms_of_end(ranks, used_before, &of->terms);
    of->state_terms = of->terms;
    of->state_terms.policy.weights_split = ranks->state_shards > 1;
    graph_derive(&of->terms, model, part, model->layers - 1, &of->derived);
    block_write_part(&of->state_terms, model, part, model->layers - 1, &of->state);
    of->weights = (struct graph_list_weights){.state = &of->state};
    of->list = (struct graph_list){.sharded = &of->derived.sharded,
                                   .backward = &of->derived.backward,
                                   .kept = &of->derived.kept,
                                   .weights = &of->weights};
}

static void part_steps(const struct part *of, struct graph_request request,
                       struct graph_steps *ret_steps)
{
    graph_steps(&of->derived.sharded, &of->derived.backward, &of->derived.kept, request, ret_steps);
}

/* --- Weights --- */

static bool has_template(const struct program *program, enum lower_module module,
                         enum lower_act act)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        if (lower_is(&program->templates[t], module, act)) return true;
    return false;
}

/* Whether some backward pass of a layer gathers weights, or reduces their gradients. */
static bool backward_has(const struct program *program, enum lower_urgency urgency)
{
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        bool const backward = lower_is(template, MODULE_LAYER, ACT_BACKWARD) ||
                              lower_is(template, MODULE_LAYER, ACT_INPUT) ||
                              lower_is(template, MODULE_LAYER, ACT_WEIGHT);
        for (uint32_t i = 0; backward && i < template->op_count; i++)
            if (template->op[i].kind == PROGRAM_OP_COLLECTIVE &&
                program->stream[template->op[i].stream].urgency == urgency)
                return true;
    }
    return false;
}

static void weights_derive(const struct ranks *ranks, const struct program *program,
                           struct part *layer)
{
    bool const zero = ranks->plan->zero != 0;
    bool const gathers = !ranks->reduce_once || backward_has(program, LOWER_URGENCY_WEIGHTS);
    bool const reduces = !ranks->reduce_once || backward_has(program, LOWER_URGENCY_GRADIENTS);
    layer->weights = (struct graph_list_weights){
        .state = &layer->state,
        .gathers = {UINT64_MAX, gathers ? UINT64_MAX : 0},
        .reduces = reduces ? UINT64_MAX : 0,
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
        bool const gathers = forward || (backward && weights->gathers[1] != 0);
        if (ranks->shards > 1 && gathers)
            bucket_tell(listing, COLLECTIVE_ALL_GATHER, /* shards= */ true, bucket);
        if (ranks->shards > 1 && backward && weights->reduces != 0)
            bucket_tell(listing, COLLECTIVE_REDUCE_SCATTER, /* shards= */ true, bucket);
        if (same > 1 && backward && weights->reduces != 0)
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

static struct graph_list *list_begin(struct listing *listing, struct part *of)
{
    of->list.text = listing->text;
    of->list.tell = step_tell;
    of->list.context = listing;
    return &of->list;
}

static void backward_add(struct listing *listing, struct part *layer, const struct program *program)
{
    struct graph_steps steps;
    struct graph_list *list = list_begin(listing, layer);
    struct graph_request request = {
        .backward = true, .half = GRAPH_WHOLE, .sums_partial = layer->weights.reduces != 0};
    bool const halves = !has_template(program, MODULE_LAYER, ACT_BACKWARD);
    if (halves) request.half = GRAPH_INPUT_HALF;
    listing->section = WORKLOAD_SECTION_BACKWARD;
    part_steps(layer, request, &steps);
    graph_list_backward(list, &steps);
    if (halves) {
        strbuf_add(listing->text, "%s", later);
        request.half = GRAPH_WEIGHT_HALF;
        part_steps(layer, request, &steps);
        graph_list_backward(list, &steps);
    }
    listing_copies(listing, program, ACT_BACKWARD);
    units_tell(listing, &layer->weights);
}

static void layer_add(struct listing *listing, struct part *layer, const struct program *program)
{
    struct graph_steps forward, backward;
    part_steps(layer, (struct graph_request){.backward = false}, &forward);
    part_steps(layer, (struct graph_request){.backward = true}, &backward);
    listing->section = WORKLOAD_SECTION_FORWARD;
    graph_list_forward(list_begin(listing, layer), &forward, &backward);
    listing_copies(listing, program, ACT_FORWARD);
    units_tell(listing, &layer->weights);
    if (ranks_serves(listing->ranks)) return;
    backward_add(listing, layer, program);
    if (listing->ranks->state_shards == listing->ranks->shards) return;
    strbuf_add(listing->text, "\nUpdate: ZeRO-%u\n", listing->ranks->plan->zero);
    listing->section = WORKLOAD_SECTION_UPDATE;
    graph_list_update(&layer->list);
    units_tell(listing, &layer->weights);
}

/* --- A module --- */

/* Of the templates of a module's pass that one of most collectives, or NULL: microbatches differ in
 * them. */
static const struct program_template *module_find(const struct program *program, enum lower_act act)
{
    const struct program_template *best = NULL;
    uint32_t most = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        uint32_t count = 1;
        if (!lower_is(template, MODULE_MTP, act)) continue;
        for (uint32_t i = 0; i < template->op_count; i++)
            count += template->op[i].kind == PROGRAM_OP_COLLECTIVE;
        if (count <= most) continue;
        best = template;
        most = count;
    }
    return best;
}

struct module_pass {
    enum lower_act act; /* The template's. */
    struct graph_request request;
};

/* Notes that an end's weight is gathered for a pass, or its gradient reduced. */
static void weight_moved(struct part *end, const char *array, bool gradient, bool backward)
{
    struct graph_list_weights *weights = &end->weights;
    const struct graph *graph = &end->derived.graph;
    for (tensor of = 0; of < graph->tensor_count; of++)
        if (graph->tensor[of].role == GRAPH_WEIGHT &&
            name_same(graph->tensor[of].at.name, array + gradient))
            *(gradient ? &weights->reduces : &weights->gathers[backward]) |= 1ULL << of;
}

/* Collectives of weights and of their gradients. "gather fsdp" works for the mesh axis "fsdp". */
static void weights_read(struct listing *listing, const struct program *program,
                         const struct module_pass *pass, struct part *part[3])
{
    const struct program_template *template = module_find(program, pass->act);
    for (uint32_t i = 0; template != NULL && i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        const struct program_stream *stream = &program->stream[op->stream];
        const char *space = strrchr(stream->name, ' ');
        bool const gradient = stream->urgency == LOWER_URGENCY_GRADIENTS;
        if (op->kind != PROGRAM_OP_COLLECTIVE || stream->urgency == LOWER_URGENCY_ACTIVATIONS)
            continue;
        listing_tell(listing, program->plans[op->index].kind,
                     space == NULL ? stream->name : space + 1,
                     program->plans[op->index].size_bytes);
        for (uint32_t p = 0; p < 3; p += 2)
            weight_moved(part[p], op->array, gradient, pass->request.backward);
    }
}

/* Parts of a module in the order of the pass. Its layer is listed above. */
static void module_add(struct listing *listing, const struct module_pass *pass,
                       struct part *part[3])
{
    uint32_t line = part[0]->list.line;
    for (uint32_t i = 0; i < 3; i++) {
        struct part *of = part[pass->request.backward ? 2 - i : i];
        struct graph_steps steps;
        part_steps(of, pass->request, &steps);
        if (of->part == BLOCK_LAYER) {
            strbuf_add(listing->text, "  %s\n",
                       pass->request.backward ? "a layer as above: its dX is dOut of what follows"
                                              : "a layer as above: Out is its X");
            for (uint32_t s = 0; s < steps.count; s++)
                if (!steps.step[s].is_compute) step_tell(listing, &steps.step[s]);
        } else if (of->part != BLOCK_HEAD || !listing->ranks->mtp_apart) {
            of->list.line = line;
            graph_list_end(list_begin(listing, of), &steps);
            line = of->list.line;
        }
    }
    part[0]->list.line = line;
}

/* Modules that predict further tokens. */
static void modules_add(struct listing *listing, struct part *layer, const struct program *program)
{
    const struct ranks *ranks = listing->ranks;
    bool const halves = !has_template(program, MODULE_MTP, ACT_BACKWARD);
    struct module_pass const passes[] = {
        {ACT_FORWARD, {.backward = false}},
        {halves ? ACT_INPUT : ACT_BACKWARD,
         {.backward = true, .half = halves ? GRAPH_INPUT_HALF : GRAPH_WHOLE}},
        {ACT_WEIGHT, {.backward = true, .half = GRAPH_WEIGHT_HALF}}};
    struct part own = {0}, head = {0};
    struct part *part[] = {&own, layer, &head};
    if (ranks->mtp_modules == 0) return;
    part_derive(ranks, BLOCK_MTP, /* used_before= */ false, &own);
    part_derive(ranks, BLOCK_HEAD, /* used_before= */ true, &head);
    listing->section = WORKLOAD_SECTION_MTP;
    for (uint32_t i = 0; i < 2U + halves; i++) weights_read(listing, program, &passes[i], part);
    strbuf_add(listing->text,
               "\nMulti-token prediction, each of %s behind the last layer: forward\n",
               counted(ranks->mtp_modules, "module").text);
    module_add(listing, &passes[0], part);
    strbuf_add(listing->text, "\nMulti-token prediction: backward\n");
    own.list.line = 0;
    module_add(listing, &passes[1], part);
    if (!halves) return;
    strbuf_add(listing->text, "%s", later);
    module_add(listing, &passes[2], part);
}

void listing_passes(struct listing *listing, const struct program *program)
{
    struct part layer;
    part_derive(listing->ranks, BLOCK_LAYER, /* used_before= */ false, &layer);
    weights_derive(listing->ranks, program, &layer);
    layer_add(listing, &layer, program);
    modules_add(listing, &layer, program);
}
