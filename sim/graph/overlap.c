#include "sim/graph/overlap.h"

#include "sim/graph/block.h"
#include "sim/graph/op.h"

/* --- Steps of a pass --- */

static bool reads(const struct graph_step *reader, const struct graph_step *writer)
{
    return graph_step_met(reader, writer) != NULL;
}

static double flop_of(const struct graph *graph, const struct graph_step *step)
{
    bool const product = step->is_compute && graph->op[step->op].kind->weights_apart;
    return product ? (double)work_matmul_flop(&step->work) : 0;
}

static bool is_over_tp(const struct graph_step *step)
{
    return !step->is_compute && step->move.axis == OP_AXIS_TP;
}

/* The first step behind a collective that waits for it. */
static uint32_t reader_of(const struct graph_steps *steps, uint32_t at)
{
    uint32_t reader = at + 1;
    while (reader < steps->count && !reads(&steps->step[reader], &steps->step[at])) reader++;
    return reader;
}

/* Chunk by chunk: products that give what is reduced; that read what is gathered, forward or in the
 * backward pass, as the first of them. */
static double coupled_flop(const struct graph *graph, const struct graph_steps *steps, uint32_t at)
{
    const struct graph_step *move = &steps->step[at];
    uint32_t const reader = reader_of(steps, at);
    double flop = 0;
    if (move->move.kind == COLLECTIVE_REDUCE_SCATTER) {
        for (uint32_t i = 0; i < at; i++)
            if (reads(move, &steps->step[i])) flop += flop_of(graph, &steps->step[i]);
        return flop;
    }
    for (uint32_t i = reader; i < steps->count; i++) {
        const struct graph_step *step = &steps->step[i];
        bool const alike = op_is_forward(step->pass) == op_is_forward(steps->step[reader].pass);
        if (alike && reads(step, move)) flop += flop_of(graph, step);
    }
    return flop;
}

/* The compute whose result a collective moves, be it by way of others; `at`: it was there before.
 */
static uint32_t maker_of(const struct graph_steps *steps, uint32_t at)
{
    for (uint32_t i = at; i-- > 0;)
        if (reads(&steps->step[at], &steps->step[i]))
            return steps->step[i].is_compute ? i : maker_of(steps, i);
    return at;
}

/* From behind the compute that gives the operand, and from the first step that waited for an
 * earlier collective of the kind; to the first step that waits for this one, or for a later one. */
static double between_flop(const struct graph *graph, const struct graph_steps *steps, uint32_t at)
{
    uint32_t first = maker_of(steps, at) + 1, end = reader_of(steps, at);
    double flop = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct graph_step *other = &steps->step[i];
        if (!is_over_tp(other) || other->move.kind != steps->step[at].move.kind) continue;
        uint32_t const reader = reader_of(steps, i);
        if (i < at && reader < at && reader > first) first = reader;
        if (i > at && reader < end) end = reader;
    }
    for (uint32_t i = first; i < end; i++) flop += flop_of(graph, &steps->step[i]);
    return flop;
}

/* --- Rows --- */

static bool of_one_array(const struct graph_overlap *one, const struct graph_overlap *other)
{
    return one->block == other->block && one->of == other->of && one->kind == other->kind &&
           one->gradient == other->gradient;
}

/* The row that an overlap belongs to; the one behind the last: it is new. */
static uint32_t row_of(const struct graph_overlaps *overlaps, const struct graph_overlap *overlap)
{
    bool const many = overlaps->count >= GRAPH_OVERLAPS_SIZES;
    uint32_t row = overlaps->count;
    for (uint32_t i = 0; i < overlaps->count; i++) {
        if (!of_one_array(&overlaps->of[i], overlap)) continue;
        if (overlaps->of[i].bytes == overlap->bytes) return i;
        if (many) row = i;
    }
    return row;
}

void graph_overlap_add(struct graph_overlaps *overlaps, const struct graph_overlap *overlap,
                       uint64_t times)
{
    uint32_t const row = row_of(overlaps, overlap);
    uint64_t const added = times * overlap->count;
    SIM_ASSERT(row < GRAPH_OVERLAPS_MAX);
    struct graph_overlap *of = &overlaps->of[row];
    if (row == overlaps->count) {
        overlaps->count++;
        *of = *overlap;
        of->count = 0;
        of->flop = 0;
    }
    units_wide const bytes = (units_wide)of->bytes * of->count + (units_wide)overlap->bytes * added;
    of->count += added;
    of->bytes = (uint64_t)(bytes / of->count);
    of->flop += (double)times * overlap->flop;
}

void graph_overlaps(const struct graph_sharded *sharded, const struct graph_backward *backward,
                    const struct graph_kept *kept, struct graph_overlaps *ret_overlaps)
{
    const struct graph *graph = sharded->graph;
    static const struct graph_request requests[] = {
        {.backward = false}, {.backward = true}, {.again = true}};
    uint32_t const passes = graph->terms->layer.grouped ? 3 : 2;
    struct graph_steps steps[3];
    ret_overlaps->count = 0;
    for (uint32_t way = 0; way < passes; way++)
        graph_steps(sharded, backward, kept, requests[way], &steps[way]);
    for (uint8_t block = 0; block < graph->block_count; block++)
        for (uint32_t way = 0; way < passes; way++)
            for (uint32_t i = 0; i < steps[way].count; i++) {
                const struct graph_step *step = &steps[way].step[i];
                bool const couples = graph->block[block].block->couples && !step->move.apart;
                if (!is_over_tp(step) || graph->op[step->op].block != block) continue;
                struct graph_overlap const overlap = {
                    .label = graph_step_label(graph, step),
                    .block = graph->block[block].block,
                    .of = step->move.written[0].of,
                    .gradient = !op_is_forward(step->pass),
                    .kind = step->move.kind,
                    .count = 1,
                    .bytes = step->move.bytes,
                    .flop = (couples ? coupled_flop : between_flop)(graph, &steps[way], i)};
                graph_overlap_add(ret_overlaps, &overlap, 1);
            }
}
