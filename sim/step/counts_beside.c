/* Collectives over tp of layers, and the products that may run chunk by chunk with each. */
#include <stdio.h>

#include "sim/base/name.h"
#include "sim/graph/steps.h"
#include "sim/step/counts_parts.h"

/* "mlp.dOut" */
static void name_of(const struct graph *graph, const struct graph_step *step,
                    char ret_name[WORKLOAD_BESIDE_BYTES])
{
    const struct graph_tensor *of = &graph->tensor[step->of];
    const struct block *block = graph->block[graph->op[step->op].block].block;
    (void)snprintf(ret_name, WORKLOAD_BESIDE_BYTES, "%s%s%s", block->prefix,
                   op_is_forward(step->pass) ? "" : "d",
                   of->moved_as != NULL ? of->moved_as : of->at.name);
}

static bool reads(const struct graph_step *step, tensor of)
{
    for (uint8_t i = 0; i < step->read_count; i++)
        if (step->read[i].of == of && step->read[i].full && !step->read[i].gradient) return true;
    return false;
}

/* What is gathered feeds the first op that reads it, and gradients of an op's result both of its
 * own; what is reduced comes from its op. */
static bool is_beside(const struct graph_step *move, const struct graph_step *compute)
{
    bool const forward = op_is_forward(move->pass),
               gathers = move->move.kind == COLLECTIVE_ALL_GATHER;
    if (!compute->is_compute || op_is_forward(compute->pass) != forward) return false;
    if (forward && gathers) return reads(compute, move->of);
    return compute->op == move->op && (forward || gathers || op_gives_input(compute->pass));
}

static double flop_of(const struct graph_steps *steps, const struct graph_step *move)
{
    bool const first = op_is_forward(move->pass);
    double flop = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        if (!is_beside(move, &steps->step[i])) continue;
        flop += (double)work_matmul_flop(&steps->step[i].work);
        if (first) break;
    }
    return flop;
}

static void beside_add(const struct graph *graph, const struct graph_steps *steps,
                       const struct graph_step *move, uint64_t times,
                       struct workload_counts *counts)
{
    struct workload_beside beside = {
        .kind = move->move.kind, .bytes = (double)move->move.bytes, .flop = flop_of(steps, move)};
    uint32_t i = 0;
    name_of(graph, move, beside.name);
    while (i < counts->beside_count && (counts->beside[i].kind != beside.kind ||
                                        !name_same(counts->beside[i].name, beside.name)))
        i++;
    SIM_ASSERT(i < WORKLOAD_BESIDE_MAX);
    if (i == counts->beside_count) counts->beside[counts->beside_count++] = beside;
    counts->beside[i].count += times;
}

void counts_beside(const struct graph_derived *layer, uint64_t times,
                   struct workload_counts *counts)
{
    const struct graph *graph = &layer->graph;
    counts->tp_forward_moves = 0;
    for (uint8_t block = 0; block < graph->block_count; block++)
        for (uint32_t way = 0; way < 2; way++) {
            struct graph_request const request = {.backward = way == 1};
            struct graph_steps steps;
            graph_steps(&layer->sharded, &layer->backward, &layer->kept, request, &steps);
            for (uint32_t i = 0; i < steps.count; i++) {
                const struct graph_step *step = &steps.step[i];
                if (step->is_compute || step->move.axis != OP_AXIS_TP ||
                    graph->op[step->op].block != block)
                    continue;
                counts->tp_forward_moves += way == 0;
                if (graph->block[block].block->couples)
                    beside_add(graph, &steps, step, times, counts);
            }
        }
}
