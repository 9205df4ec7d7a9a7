/* The passes of one layer: its blocks one after another. */
#include "sim/workload/emit.h"
#include "sim/workload/lower.h"

/* In a layer with experts they stand in the MLP's place. */
static bool is_experts(const struct lower *lower, const struct lower_block *block)
{
    return lower->layer->experts && !block->attention;
}

static void blocks_forward(struct lower *lower, const struct lower_block *block, uint32_t count,
                           enum lower_pass pass)
{
    for (uint32_t b = 0; b < count; b++) {
        if (is_experts(lower, &block[b]))
            lower_experts_forward(lower, pass);
        else
            lower_block_forward(lower, &block[b], pass);
    }
}

void lower_layer_repeat(struct lower *lower, const struct lower_block *blocks, uint32_t count)
{
    lower->repeating = true;
    blocks_forward(lower, blocks, count, LOWER_RECOMPUTE);
    lower->repeating = false;
}

void lower_layer_gradients(struct lower *lower, const struct lower_block *blocks, uint32_t count)
{
    for (uint32_t b = count; b-- > 0;) {
        if (is_experts(lower, &blocks[b]))
            lower_experts_backward(lower);
        else
            lower_block_backward(lower, &blocks[b]);
    }
}

void lower_layer_forward(struct lower *lower, bool top)
{
    struct lower_block block[2];
    uint32_t const count = lower_blocks(lower->local, block);
    lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, false);
    if (emit_describes(lower))
        emit_forward(lower);
    else
        blocks_forward(lower, block, count, LOWER_FORWARD);
    if (!top && local_offloads_activations(lower->local)) lower_offload_forward(lower);
}

/* One gather of the weights serves the repetition and the gradients. */
void lower_layer_backward(struct lower *lower, bool top, const struct lower_behind *update)
{
    struct lower_block block[2];
    uint32_t const count = lower_blocks(lower->local, block);
    bool const reads = lower_has_input(lower);
    bool const again = reads && workload_remat_repeats(lower->local->plan->remat);
    bool const gathers = reads || lower->keeping == LOWER_TAKES;
    if (gathers) lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, !again);
    if (emit_describes(lower)) {
        emit_backward(lower);
    } else {
        if (again) lower_layer_again(lower, block, count);
        lower_layer_gradients(lower, block, count);
    }
    if (!top && local_offloads_activations(lower->local)) lower_offload_backward(lower);
    lower_update_behind(lower, update);
}
