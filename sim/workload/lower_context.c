/*
 * Attention of ranks that share sequences, three ways.
 *
 * all_gather  K and V of the whole sequence are gathered, then attended to; dK and dV are reduced.
 *
 * ring        Liu et al., Ring Attention with Blockwise Transformers (2023). Attention is as many
 *             parts as there are ranks: each takes in the keys and values of one rank, its own
 *             first, while those of the next are on their way. Passing all blocks on to the next
 *             rank n-1 times is an AllGather one way round, of which part k needs the k-th arrival;
 *             nothing is kept but the block that is read and the one that arrives. The backward
 *             pass sends the blocks round again, and sums dK and dV as they go after them: partial
 *             sum k leaves after part k, a ReduceScatter of n-1 hops, and a last hop takes it home
 *             to the rank whose keys they are. Between parts what has been summed of the output (of
 *             dQ, backward) lies in HBM in fp32.
 *
 * ulysses     Jacobs et al., DeepSpeed Ulysses (2023). AllToAlls of Q, K and V turn a part of each
 *             sequence with all heads into whole sequences with a part of the heads; one of the
 *             output turns it back, and the backward pass mirrors them. With fewer KV heads than
 *             ranks each goes to as many ranks as share it.
 */
#include "sim/workload/lower.h"

/* K and V of whole sequences, of the heads that lie here. */
static uint64_t key_elements(const struct local *local)
{
    return 2 * local->sequences * local->keys * local->kv_heads * local->head_width;
}

/* Of one rank. */
static uint64_t block_elements(const struct local *local)
{
    return key_elements(local) / local->sequence_parts;
}

static uint32_t key_plan(struct lower *lower, enum collective_kind kind)
{
    const struct local *local = lower->local;
    struct plan_request request = {
        .kind = kind,
        .algorithm = local->plan->algorithm,
        .group = local->sequence_group,
    };
    if (local_rings(local)) {
        request.algorithm = local->ring_name;
        request.chunk_count = local->cp;
    }
    return lower_plan_request(lower, &request, key_elements(local),
                              local->plan->formats.activations);
}

static uint32_t keys_move(struct lower *lower, enum collective_kind kind)
{
    bool const gather = kind == COLLECTIVE_ALL_GATHER;
    return lower_collective(lower, gather ? LOWER_GATHER_SEQUENCE : LOWER_REDUCE_SEQUENCE,
                            gather ? "K V" : "dK dV", "sequence", key_plan(lower, kind));
}

/* An AllToAll of the part of a sequence that each rank has of `heads`. */
static uint32_t turn(struct lower *lower, const char *what, uint64_t heads)
{
    const struct local *local = lower->local;
    uint64_t const elements = local->rows * heads * local->head_width * local->cp;
    uint32_t const plan = lower_plan(lower, COLLECTIVE_ALL_TO_ALL, &local->sequence_group, elements,
                                     local->plan->formats.activations, false);
    return lower_collective(lower, LOWER_GATHER_SEQUENCE, what, "sequence", plan);
}

/* Keys and values, in this order as they are needed. Returns the last op; all may begin when the
 * first does. */
static uint32_t turn_inputs(struct lower *lower, const char *const names[3], uint32_t *ret_first)
{
    const struct local *local = lower->local;
    uint64_t const shared = local->attention_kv_heads * local->cp;
    *ret_first = turn(lower, names[0], local->heads);
    (void)turn(lower, names[1], shared);
    return turn(lower, names[2], shared);
}

/* The op needs what `after` gives, or what comes from earlier slots. */
static void need_input(struct lower *lower, uint32_t op, uint32_t after)
{
    if (after != LOWER_NONE)
        lower_need_done(lower, op, after);
    else
        lower_need_output(lower, op);
}

struct lower_keys lower_keys_forward(struct lower *lower, const struct lower_block *block,
                                     enum lower_pass pass, uint32_t after)
{
    static const char *const names[3] = {"Q", "K", "V"};
    const struct local *local = lower->local;
    struct lower_keys keys = {.op = LOWER_NONE, .parts = 1};
    if (local_turns(local)) {
        uint32_t first = LOWER_NONE;
        keys.op = turn_inputs(lower, names, &first);
        need_input(lower, first, after);
        uint64_t const bytes = lower_activation_bytes(lower, local->rows * block->in_columns);
        lower_take(lower, first, PROGRAM_MEMORY_BUFFERS, bytes);
        lower_give(lower, keys.op, PROGRAM_MEMORY_BUFFERS, bytes);
    } else {
        keys.op = keys_move(lower, COLLECTIVE_ALL_GATHER);
        need_input(lower, keys.op, after);
    }
    if (local_rings(local)) {
        keys.parts = local->cp;
        keys.moving_bytes = 2 * lower_activation_bytes(lower, block_elements(local));
        lower_take(lower, keys.op, PROGRAM_MEMORY_BUFFERS, keys.moving_bytes);
    }
    lower_tensor_take(lower, block, LOWER_KV, pass, keys.op);
    return keys;
}

uint32_t lower_keys_forward_done(struct lower *lower, const struct lower_keys *keys, uint32_t op)
{
    const struct local *local = lower->local;
    lower_need_chunks(lower, op, keys->op);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, keys->moving_bytes);
    if (!local_turns(local)) return op;
    uint32_t const back = turn(lower, "A", local->heads);
    lower_need_done(lower, back, op);
    return back;
}

struct lower_keys lower_keys_backward(struct lower *lower, uint32_t d_middle)
{
    const struct local *local = lower->local;
    struct lower_keys keys = {.op = LOWER_NONE, .parts = 1};
    if (local_turns(local)) {
        keys.op = turn(lower, "dA", local->heads);
        lower_need_done(lower, keys.op, d_middle);
    } else if (local_rings(local)) {
        keys.op = keys_move(lower, COLLECTIVE_ALL_GATHER);
        keys.parts = local->cp;
        keys.moving_bytes = 4 * lower_activation_bytes(lower, block_elements(local));
        lower_need_done(lower, keys.op, d_middle);
        lower_take(lower, keys.op, PROGRAM_MEMORY_BUFFERS, keys.moving_bytes);
    }
    return keys;
}

/* The last hop of the sums of dK and dV. Two ranks on a line close their ring over the one cable
 * between them: each is the next of the other, and both send. */
static uint32_t keys_home(struct lower *lower)
{
    const struct local *local = lower->local;
    const struct group *group = &local->sequence_group;
    bool const line = !group->dimension[0].ring && !group->dimension[0].switched;
    struct plan_request const request = {
        .kind = COLLECTIVE_PERMUTE, .group = *group, .mirrors = line, .offset = {line ? 0 : 1}};
    uint32_t const plan = lower_plan_request(lower, &request, block_elements(local),
                                             local->plan->formats.activations);
    return lower_collective(lower, LOWER_HOME_SEQUENCE, "dK dV", "sequence", plan);
}

uint32_t lower_keys_backward_done(struct lower *lower, const struct lower_block *block,
                                  const struct lower_keys *keys, uint32_t op)
{
    static const char *const names[3] = {"dQ", "dK", "dV"};
    const struct local *local = lower->local;
    uint32_t last = LOWER_NONE;
    lower_need_chunks(lower, op, keys->op);
    if (local_turns(local)) {
        uint32_t first = LOWER_NONE;
        last = turn_inputs(lower, names, &first);
        lower_need_done(lower, first, op);
    } else {
        last = keys_move(lower, COLLECTIVE_REDUCE_SCATTER);
        lower_operand(lower, last, op);
    }
    if (local_rings(local)) {
        uint32_t const home = keys_home(lower);
        lower_need_done(lower, home, last);
        lower_need_done(lower, home, op);
        last = home;
    }
    lower_give(lower, last, PROGRAM_MEMORY_BUFFERS, keys->moving_bytes);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS,
               lower_tensor_bytes(local, block, LOWER_KV)); /* dK and dV of the other ranks */
    lower_give(lower, last, PROGRAM_MEMORY_BUFFERS, lower_tensor_bytes(local, block, LOWER_KV));
    return last != LOWER_NONE ? last : op;
}
