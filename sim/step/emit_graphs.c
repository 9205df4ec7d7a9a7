/* Graphs of a model's parts, and their passes: each once, when a template asks for it. */
#include "sim/base/arena.h"
#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"

/* Of a pass whose graphs are not kept with its ranks, the program's arena has them. */
static const struct graph_derived *graph_find(struct lower *lower, const struct step_part *part)
{
    const struct graph_derived *kept = step_graph_kept(lower->ranks, part);
    void *memory = NULL;
    if (kept != NULL) return kept;
    lower->build.status = arena_try_unset(lower->build.arena, 1, sizeof(struct step_graph), &memory,
                                          lower->build.error);
    if (lower->build.status != STATUS_OK) return NULL;
    struct step_graph *graph = memory;
    step_graph_derive(lower->ranks, part, graph);
    return &graph->derived;
}

struct lower_graph *emit_graph(struct lower *lower, const struct step_part *part)
{
    struct lower_graph **at =
        &lower->shape
             ->graph[part->part][part->part == BLOCK_LAYER ? part->kind : part->used_before];
    void *memory = NULL;
    uint8_t place = 0;
    if (*at != NULL) return *at;
    if (lower->build.status == STATUS_OK)
        lower->build.status = arena_try(lower->build.arena, 1, sizeof(struct lower_graph), &memory,
                                        lower->build.error);
    if (lower->build.status != STATUS_OK) return NULL;
    struct lower_graph *of = memory;
    of->derived = graph_find(lower, part);
    if (of->derived == NULL) return NULL;
    *at = of;
    for (uint8_t i = 0; i < of->derived->graph.op_count; i++) {
        bool const has = of->derived->graph.op[i].kind->weights_apart;
        SIM_ASSERT(!has || place < MATRICES_MAX);
        of->place[i] = has ? place++ : MATRICES_MAX;
    }
    return of;
}

struct lower_graph *emit_layer_graph(struct lower *lower)
{
    return emit_graph(lower, &(struct step_part){.part = BLOCK_LAYER, .kind = lower->kind});
}

uint64_t emit_offloaded_bytes(struct lower *lower)
{
    const struct lower_graph *of = emit_layer_graph(lower);
    if (of == NULL) return 0;
    return (ranks_offloads_kept(lower->ranks) ? graph_kept_bytes : graph_offloaded_bytes)(
        &of->derived->sharded, &of->derived->kept);
}

/* What a layer of a group keeps of its first forward pass: its input, or nothing. */
static struct graph_kept kept_of_group(const struct graph_derived *derived, enum ranks_group group)
{
    const struct graph *graph = &derived->graph;
    struct graph_kept kept = derived->kept;
    for (uint8_t t = 0; t < graph->tensor_count; t++)
        if (group == RANKS_GROUP_LATER || !emit_is_input(graph, t)) kept.kept[t] = GRAPH_NOTHING;
    return kept;
}

const struct lower_pass *emit_pass_of(struct lower *lower, struct lower_graph *of,
                                      struct graph_request request)
{
    struct graph_request const second = {.backward = true, .half = GRAPH_WEIGHT_HALF};
    const struct graph_derived *derived = of->derived;
    const struct graph_steps *later = NULL;
    enum ranks_group const group =
        request.backward || request.again ? RANKS_GROUP_NONE : (enum ranks_group)lower->part.group;
    bool const held = request.weights_held, stay = request.gradients_stay;
    struct lower_pass **at = request.backward
                                 ? &of->backward[request.half][request.sums_partial][held][stay]
                                 : &of->forward[group][request.again][held];
    void *memory = NULL;
    if (*at != NULL) return *at;
    if (request.half == GRAPH_INPUT_HALF) {
        const struct lower_pass *pass = emit_pass_of(lower, of, second);
        if (pass != NULL) later = &pass->steps;
    }
    if (lower->build.status == STATUS_OK)
        lower->build.status = arena_try_unset(lower->build.arena, 1, sizeof(struct lower_pass),
                                              &memory, lower->build.error);
    if (lower->build.status != STATUS_OK) return NULL;
    *at = memory;
    graph_steps(&derived->sharded, &derived->backward, &derived->kept, request, &(*at)->steps);
    struct graph_kept const kept =
        group == RANKS_GROUP_NONE ? derived->kept : kept_of_group(derived, group);
    graph_live(&derived->sharded, &kept, &(*at)->steps, later, &(*at)->live);
    return *at;
}
