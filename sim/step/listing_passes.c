/*
 * Graphs of a layer and of a module that predicts a further token as a listing, and the collectives
 * of their weights, which are in no graph: how often they are gathered and reduced, and with which
 * others, is alike for all blocks.
 */
#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/graph/list.h"
#include "sim/step/graph_terms.h"
#include "sim/step/listing.h"
#include "sim/step/lower.h"

struct listing {
    struct strbuf *text;
    const struct ranks *ranks;
    const struct program *program;
};

struct part {
    struct step_graph room;
    const struct graph_derived *derived;
    struct graph_terms state_terms;
    struct graph state;
    struct graph_list list;
};

/* Whether one gather brings both weights, each to an op of its own. */
static bool is_one_gather(const struct ranks *ranks, const struct graph *graph,
                          const struct graph_op *one, tensor of_one, const struct graph_op *other,
                          tensor of_other)
{
    if (of_one == of_other) return true;
    if (graph->tensor[of_one].grouped != graph->tensor[of_other].grouped) return false;
    return ranks->plan->gather == WORKLOAD_GATHER_LAYER ||
           (ranks->plan->gather == WORKLOAD_GATHER_BLOCK && one->block == other->block);
}

/* Whether the forward pass that is repeated reads what comes with an op's weight. */
static bool is_read_again(const struct ranks *ranks, const struct graph_derived *derived,
                          const struct graph_op *op, tensor weight)
{
    const struct graph *graph = &derived->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *other = &graph->op[i];
        if (!other->kind->weights_apart || !derived->kept.again[i]) continue;
        for (uint8_t w = 0; w < other->weight_count; w++)
            if (is_one_gather(ranks, graph, op, weight, other, other->weight[w])) return true;
    }
    return false;
}

/* Weights whose gather a repeated forward pass shares with the gradients behind it. */
static units_wide weights_again(const struct ranks *ranks, const struct graph_derived *derived)
{
    const struct graph *graph = &derived->graph;
    units_wide again = 0;
    if (!graph_remat_repeats(graph->terms->policy.remat)) return 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; op->kind->weights_apart && w < op->weight_count; w++)
            if (is_read_again(ranks, derived, op, op->weight[w]))
                again |= (units_wide)1 << op->weight[w];
    }
    return again;
}

/* A layer is the last one, which is of the kind at the top. */
static void part_derive(const struct listing *listing, enum block_part part, bool used_before,
                        struct part *of)
{
    const struct ranks *ranks = listing->ranks;
    const struct model *model = &ranks->plan->model;
    struct step_part const which = {
        .part = part, .kind = ranks_last_kind(ranks), .used_before = used_before};
    of->derived = step_graph(ranks, &which, &of->room);
    of->state_terms = *of->derived->graph.terms;
    of->state_terms.policy.weights_split = ranks->replicas.state_shards > 1;
    block_write_part(&of->state_terms, model, part, &of->state);
    of->list = (struct graph_list){.part = of->derived,
                                   .text = listing->text,
                                   .weights.state = &of->state,
                                   .weights.again = weights_again(ranks, of->derived)};
}

/* --- Templates of the program --- */

/* Of the templates of a pass the one that moves most, of equals the last, or NULL. Microbatches
 * differ in their collectives. The last layer, which comes first backward, loads no activations,
 * and with it the head's moments are copied, not a layer's. */
static const struct program_template *template_find(const struct program *program,
                                                    enum lower_module module, enum lower_act act)
{
    const struct program_template *best = NULL;
    uint32_t most = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        uint32_t count = 0;
        if (!lower_is(template, module, act)) continue;
        for (uint32_t i = 0; i < template->op_count; i++)
            count += template->op[i].kind == PROGRAM_OP_COLLECTIVE ||
                     template->op[i].kind == PROGRAM_OP_COPY;
        if (count < most) continue;
        best = template;
        most = count;
    }
    return best;
}

/* Whether some backward pass of a layer gathers weights, or reduces their gradients. */
static bool backward_has(const struct program *program, enum lower_urgency urgency)
{
    bool has = false;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        bool const backward = lower_is(template, MODULE_LAYER, ACT_BACKWARD) ||
                              lower_is(template, MODULE_LAYER, ACT_INPUT) ||
                              lower_is(template, MODULE_LAYER, ACT_WEIGHT);
        for (uint32_t i = 0; backward && i < template->op_count; i++)
            has = has || (template->op[i].kind == PROGRAM_OP_COLLECTIVE &&
                          program->stream[template->op[i].stream].urgency == urgency);
    }
    return has;
}

/* Copies to and from the host's memory, which are no steps of the graph. */
static void copies_add(const struct listing *listing, enum lower_act act)
{
    const struct program_template *template = template_find(listing->program, MODULE_LAYER, act);
    char bytes[QUANTITY_TEXT_BYTES];
    for (uint32_t i = 0; template != NULL && i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->kind != PROGRAM_OP_COPY) continue;
        uint64_t const size_bytes = listing->program->copies[op->index].size_bytes;
        strbuf_add(listing->text, "  in addition: %s, %s (over the link to the host)\n", op->name,
                   quantity_text_bytes(bytes, (double)size_bytes));
    }
}

/* --- A layer --- */

static const char later[] = "  later, in another pass:\n";

static void layer_add(const struct listing *listing)
{
    const struct ranks *ranks = listing->ranks;
    bool const halves = template_find(listing->program, MODULE_LAYER, ACT_BACKWARD) == NULL;
    bool const once = ranks->gradients.once;
    bool const gathers = !once || backward_has(listing->program, LOWER_URGENCY_WEIGHTS);
    bool const reduces = !once || backward_has(listing->program, LOWER_URGENCY_GRADIENTS);
    units_wide const all = ~(units_wide)0;
    struct part layer;
    part_derive(listing, BLOCK_LAYER, /* used_before= */ false, &layer);
    layer.list.weights = (struct graph_list_weights){
        .state = &layer.state,
        .gathers = {all, gathers ? all : 0},
        .again = layer.list.weights.again,
        .reduces = reduces ? all : 0,
        .axis_same = ranks->shards > 1 ? ranks->axes.z : ranks->axes.x,
        .grouped_ranks = ranks->experts.ranks > 1 ? ranks->experts.replicas.count : 0,
        .grouped_scatters = ranks->plan->zero != 0,
    };
    graph_list_forward(&layer.list);
    copies_add(listing, ACT_FORWARD);
    if (ranks_serves(ranks)) return;
    graph_list_backward(&layer.list, halves ? GRAPH_INPUT_HALF : GRAPH_WHOLE);
    if (halves) {
        strbuf_add(listing->text, "%s", later);
        graph_list_backward(&layer.list, GRAPH_WEIGHT_HALF);
    }
    copies_add(listing, ACT_BACKWARD);
    if (ranks->replicas.state_shards == ranks->shards) return;
    strbuf_add(listing->text, "\nUpdate: ZeRO-%u\n", ranks->plan->zero);
    graph_list_update(&layer.list);
}

/* --- A module --- */

/* Parts of a module that are not a layer, in the order of the forward pass. */
enum { OWN, HEAD, END_COUNT };

struct module_pass {
    enum lower_act act; /* The template's. */
    struct graph_request request;
};

/* The number of an op's weights in the collectives that move them (program_op.weights). */
static uint8_t weights_of(const struct ranks *ranks, const struct graph *graph,
                          const struct graph_op *op)
{
    static const enum block_part parts[BLOCK_PLACE_COUNT] = {[BLOCK_LOOKS_UP] = BLOCK_EMBEDDING,
                                                             [BLOCK_GIVES_LOSS] = BLOCK_HEAD,
                                                             [BLOCK_JOINS_EMBEDDING] = BLOCK_MTP};
    return ranks->end[parts[graph->block[op->block].block->place]].read.end;
}

/* Notes that an end's matrix is gathered for a pass, or its gradient reduced. */
static void weight_moved(const struct ranks *ranks, struct part *end, uint8_t weights,
                         bool gradient, bool backward)
{
    struct graph_list_weights *list = &end->list.weights;
    const struct graph *graph = &end->derived->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        units_wide *of = gradient ? &list->reduces : &list->gathers[backward];
        if (op->kind->weights_apart && weights_of(ranks, graph, op) == weights)
            *of |= (units_wide)1 << op->weight[0];
    }
}

/* Collectives of weights and of their gradients. */
static void weights_read(const struct listing *listing, const struct module_pass *pass,
                         struct part end[END_COUNT])
{
    const struct program_template *template =
        template_find(listing->program, MODULE_MTP, pass->act);
    for (uint32_t i = 0; template != NULL && i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        uint8_t const urgency = listing->program->stream[op->stream].urgency;
        if (op->kind != PROGRAM_OP_COLLECTIVE || urgency == LOWER_URGENCY_ACTIVATIONS) continue;
        for (uint32_t e = 0; e < END_COUNT; e++)
            weight_moved(listing->ranks, &end[e], op->weights, urgency == LOWER_URGENCY_GRADIENTS,
                         pass->request.backward);
    }
}

/* Parts in the order of the pass. The layer between the ends is listed above. */
static void module_add(const struct listing *listing, struct graph_request request,
                       struct part end[END_COUNT], uint32_t *line)
{
    for (uint32_t i = 0; i < END_COUNT; i++) {
        uint32_t const e = request.backward ? HEAD - i : i;
        end[e].list.line = *line;
        if (e == OWN || !listing->ranks->mtp.apart) graph_list_end(&end[e].list, request);
        *line = end[e].list.line;
        if (i == 0)
            strbuf_add(listing->text, "  %s\n",
                       request.backward ? "a layer as above: its dX is dOut of what follows"
                                        : "a layer as above: Out is its X");
    }
}

/* Modules that predict further tokens. */
static void modules_add(const struct listing *listing)
{
    bool const halves = template_find(listing->program, MODULE_MTP, ACT_BACKWARD) == NULL;
    struct module_pass const passes[] = {
        {ACT_FORWARD, {.backward = false}},
        {halves ? ACT_INPUT : ACT_BACKWARD,
         {.backward = true, .half = halves ? GRAPH_INPUT_HALF : GRAPH_WHOLE}},
        {ACT_WEIGHT, {.backward = true, .half = GRAPH_WEIGHT_HALF}}};
    struct part end[END_COUNT];
    uint32_t line = 0;
    if (listing->ranks->mtp.modules == 0) return;
    part_derive(listing, BLOCK_MTP, /* used_before= */ false, &end[OWN]);
    part_derive(listing, BLOCK_HEAD, /* used_before= */ true, &end[HEAD]);
    for (uint32_t i = 0; i < 2U + halves; i++) weights_read(listing, &passes[i], end);
    strbuf_add(listing->text,
               "\nMulti-token prediction, each of %s after the last layer: forward\n",
               counted(listing->ranks->mtp.modules, "module").text);
    module_add(listing, passes[0].request, end, &line);
    strbuf_add(listing->text, "\nMulti-token prediction: backward\n");
    line = 0;
    module_add(listing, passes[1].request, end, &line);
    if (!halves) return;
    strbuf_add(listing->text, "%s", later);
    module_add(listing, passes[2].request, end, &line);
}

void listing_passes(struct strbuf *text, const struct ranks *ranks, const struct program *program)
{
    struct listing const listing = {text, ranks, program};
    layer_add(&listing);
    modules_add(&listing);
}
