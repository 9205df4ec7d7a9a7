#include "sim/graph/count.h"

#include "sim/kernels/kernel_of_work.h"

static struct graph_compute_sum *compute_sum(struct graph_count *count, enum op_pass pass,
                                             const struct op_kind *kind, enum format format)
{
    for (uint32_t i = 0; i < count->compute_count; i++) {
        struct graph_compute_sum *sum = &count->compute[i];
        if (sum->pass == pass && sum->kind == kind && sum->format == format) return sum;
    }
    SIM_ASSERT(count->compute_count < GRAPH_SUMS_MAX);
    struct graph_compute_sum *sum = &count->compute[count->compute_count++];
    *sum = (struct graph_compute_sum){.pass = pass, .kind = kind, .format = format};
    return sum;
}

static struct graph_move_sum *move_sum(struct graph_count *count, enum op_pass pass,
                                       const struct op_kind *kind, const struct op_move *move)
{
    for (uint32_t i = 0; i < count->move_count; i++) {
        struct graph_move_sum *sum = &count->move[i];
        if (sum->pass == pass && sum->kind == kind && sum->collective == move->kind &&
            sum->axis == move->axis)
            return sum;
    }
    SIM_ASSERT(count->move_count < GRAPH_SUMS_MAX);
    struct graph_move_sum *sum = &count->move[count->move_count++];
    *sum = (struct graph_move_sum){.pass = pass,
                                   .kind = kind,
                                   .collective = move->kind,
                                   .axis = move->axis,
                                   .widest = move->format};
    return sum;
}

units_wide graph_moved_meanwhile(const struct graph_units *units, uint64_t flop,
                                 uint64_t flop_per_s)
{
    return flop == 0 ? 0 : (units_wide)flop * units->vmem_bytes_per_s / flop_per_s;
}

static void scarce_add(const struct work *work, const struct graph_units *units,
                       struct graph_scarce *scarce)
{
    uint64_t const idle = work->idle_core_ppm, busy = PPM_ONE - idle;
    uint64_t const padded_flop = work_padded_flop(work, units->edges);
    units_wide const bytes =
        (units_wide)work->hbm_read_bytes + work->hbm_write_bytes + work->vmem_read_bytes;
    units_wide const meanwhile =
        graph_moved_meanwhile(units, padded_flop, units->math_flop_per_s[work->math_format]) +
        graph_moved_meanwhile(units, work->vector_flop, units->vector_flop_per_s);
    scarce->padded_flop += (units_wide)padded_flop * idle / busy;
    scarce->vector_flop += (units_wide)work->vector_flop * idle / busy;
    scarce->vmem_bytes += bytes * PPM_ONE / busy;
    if (bytes > meanwhile) scarce->vmem_longer_bytes += (bytes - meanwhile) * PPM_ONE / busy;
}

static void compute_add(const struct graph_sharded *sharded, const struct graph_step *step,
                        const struct graph_units *units, struct graph_count *count)
{
    const struct graph_op *op = &sharded->graph->op[step->op];
    const struct work *work = &step->work;
    struct graph_compute_sum *sum = compute_sum(count, step->pass, op->kind, work->math_format);
    struct op_spare spare = {0};
    if (op->kind->spare != NULL && step->of == GRAPH_NONE && !op_is_aside(step->pass))
        op->kind->spare(sharded, op, step->pass, &spare);
    sum->count++;
    sum->measured += kernel_is_measured(units->stack, work);
    sum->flop += work_matmul_flop(work);
    if (step->pass == OP_FORWARD) {
        struct graph_block_sum *block = &count->block[op->block];
        block->flop += work_matmul_flop(work);
        if (op->kind->weights_apart) block->linear_flop += work_matmul_flop(work);
    }
    sum->padded_flop += work_padded_flop(work, units->edges);
    sum->useful_flop += work->useful_flop;
    sum->spare.duplicated += spare.duplicated;
    sum->spare.padding += spare.padding;
    sum->spare.rows += spare.rows;
    sum->spare.waiting += spare.waiting;
    sum->spare.again += spare.again;
    sum->vector_flop += work->vector_flop;
    sum->hbm_bytes += work->hbm_read_bytes + work->hbm_write_bytes;
    scarce_add(work, units, &sum->scarce);
}

static void move_add(const struct graph_op *op, const struct graph_step *step,
                     struct graph_count *count)
{
    struct graph_move_sum *sum = move_sum(count, step->pass, op->kind, &step->move);
    sum->count++;
    sum->bytes += step->move.bytes;
    if (format_bits(step->move.format) > format_bits(sum->widest)) sum->widest = step->move.format;
    if (step->pass == OP_FORWARD && step->move.axis == OP_AXIS_TP && !step->move.apart)
        count->block[op->block].tp_moves++;
}

static void steps_add(const struct graph_sharded *sharded, const struct graph_steps *steps,
                      const struct graph_units *units, struct graph_count *count)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct graph_step *step = &steps->step[i];
        if (step->is_compute) {
            compute_add(sharded, step, units, count);
            continue;
        }
        move_add(&sharded->graph->op[step->op], step, count);
    }
}

void graph_count(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 const struct graph_kept *kept, const struct graph_units *units,
                 struct graph_count *ret_count)
{
    const struct graph_copying *copying = &sharded->graph->terms->policy.copying;
    struct graph_steps steps;
    *ret_count = (struct graph_count){.kept_bytes = graph_kept_bytes(sharded, kept),
                                      .framework_bytes = graph_framework_bytes(sharded->graph)};
    struct graph_request const requests[] = {
        {.sums_partial = true},
        {.backward = true, .sums_partial = true, .weights_held = copying->once},
        {.again = true},
    };
    for (uint32_t i = 0; i < (sharded->graph->terms->layer.grouped ? 3 : 2); i++) {
        graph_steps(sharded, backward, kept, requests[i], &steps);
        steps_add(sharded, &steps, units, ret_count);
    }
}
