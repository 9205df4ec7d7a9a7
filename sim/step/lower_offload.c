/*
 * What is kept in the host's memory rather than in HBM, and the copies that bring it there and
 * back while other layers are computed.
 *
 * Activations: what a layer saves is stored once its forward pass is done, and loaded before its
 * backward pass. The last layer keeps its own: its backward pass follows at once. A layer's forward
 * pass begins when the stores of all layers but the one before are done, so a link that is too slow
 * holds the step up rather than filling HBM.
 *
 * Optimizer: the moments of a layer are loaded before its update and stored after it. Updates are
 * part of the backward pass then, one slot behind it, or nothing would be left to hide the copies
 * behind; so gradients are given back early, too.
 *
 * Loads run ahead as gathers of weights do (prefetch_layers).
 */
#include "sim/step/emit.h"
#include "sim/step/lower.h"

static const char activations[] = "activations";

static uint32_t copy_add(struct lower *lower, enum lower_stream stream, const char *what,
                         bool to_host, uint64_t bytes)
{
    if (lower->build.status != STATUS_OK || bytes == 0) return LOWER_NONE;
    SIM_ASSERT(lower->stream[stream] < PROGRAM_STREAMS_MAX);
    const char *verb = to_host ? "store" : "load";
    return lower_op_add(
        lower,
        (struct program_op){.name = builder_format(&lower->build, "%s %s", verb, what),
                            .class_name = builder_format(&lower->build, "%s %s (host)", verb, what),
                            .kind = PROGRAM_OP_COPY,
                            .stream = lower->stream[stream],
                            .parts = 1,
                            .index = (uint16_t)builder_copy(&lower->build, to_host, bytes)});
}

/* All of a stream up to `slots` slots before this one is done. */
static void need_behind(struct lower *lower, uint32_t op, enum lower_stream stream, uint32_t slots,
                        enum program_reason reason)
{
    builder_need(&lower->build, op,
                 (struct program_need){
                     .stream = lower->stream[stream],
                     .slot = (int16_t) - (int32_t)slots,
                     .reason = reason,
                     .array = reason == PROGRAM_REASON_DATA ? activations : NULL,
                 });
}

/* What an op stores, or has loaded for it, is of several arrays. Collectives of a backward pass
 * wait as the compute ops do that read them. */
static void need_saved(struct lower *lower, uint32_t op, uint32_t target)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE || target == LOWER_NONE) return;
    const struct program_op *on = &lower->build.op[target];
    bool const reads = lower->build.op[op].kind != PROGRAM_OP_COLLECTIVE;
    builder_need(&lower->build, op,
                 (struct program_need){
                     .stream = on->stream,
                     .part = on->part_first + on->parts,
                     .reason = reads ? PROGRAM_REASON_DATA : PROGRAM_REASON_ORDER,
                     .array = reads ? activations : NULL,
                 });
}

/* The first op of the template on a stream, or LOWER_NONE. */
static uint32_t first_of(const struct lower *lower, enum lower_stream stream)
{
    for (uint32_t op = 0; op < lower->build.op_count; op++)
        if (lower->build.op[op].stream == lower->stream[stream]) return op;
    return LOWER_NONE;
}

/* The last one. */
static uint32_t last_of(const struct lower *lower, enum lower_stream stream)
{
    uint32_t last = LOWER_NONE;
    for (uint32_t op = 0; op < lower->build.op_count; op++)
        if (lower->build.op[op].stream == lower->stream[stream]) last = op;
    return last;
}

void lower_offload_forward(struct lower *lower)
{
    uint64_t const bytes = emit_offloaded_bytes(lower);
    if (lower->build.status != STATUS_OK) return;
    uint32_t const first = first_of(lower, LOWER_COMPUTE);
    uint32_t const last = last_of(lower, LOWER_COMPUTE);
    uint32_t const store =
        copy_add(lower, LOWER_STORE_ACTIVATIONS, "activations", /* to_host= */ true, bytes);
    need_saved(lower, store, last);
    lower_give(lower, store, PROGRAM_MEMORY_ACTIVATIONS, bytes);
    need_behind(lower, first, LOWER_STORE_ACTIVATIONS, 1, PROGRAM_REASON_WINDOW);
}

void lower_offload_backward(struct lower *lower)
{
    static const enum lower_stream readers[] = {LOWER_COMPUTE, LOWER_GATHER_TP,
                                                LOWER_GATHER_SEQUENCE};
    uint64_t const bytes = emit_offloaded_bytes(lower);
    uint32_t const load =
        copy_add(lower, LOWER_LOAD_ACTIVATIONS, "activations", /* to_host= */ false, bytes);
    lower_prefetch_need(lower, load);
    need_behind(lower, load, LOWER_STORE_ACTIVATIONS, 0, PROGRAM_REASON_DATA);
    lower_take(lower, load, PROGRAM_MEMORY_ACTIVATIONS, bytes);
    for (uint32_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        uint8_t const stream = lower->stream[readers[i]];
        if (stream == PROGRAM_STREAMS_MAX) continue;
        need_saved(lower, first_of(lower, readers[i]), load);
        lower->kept_reader[stream] = LOWER_NONE;
    }
    /* Ops before it on these streams read gradients alone. */
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++)
        need_saved(lower, lower->kept_reader[s], load);
}

void lower_offload_update(struct lower *lower, uint32_t update, uint64_t moments_bytes)
{
    uint32_t const ahead = lower->ranks->plan->prefetch_layers;
    if (!ranks_offloads_optimizer(lower->ranks)) return;
    uint32_t const load =
        copy_add(lower, LOWER_LOAD_OPTIMIZER, "optimizer", /* to_host= */ false, moments_bytes);
    lower_prefetch_need(lower, load);
    need_behind(lower, load, LOWER_STORE_OPTIMIZER, ahead + 1, PROGRAM_REASON_WINDOW);
    lower_need_done(lower, update, load, "moments");
    lower_take(lower, load, PROGRAM_MEMORY_OPTIMIZER, moments_bytes);
    uint32_t const store =
        copy_add(lower, LOWER_STORE_OPTIMIZER, "optimizer", /* to_host= */ true, moments_bytes);
    lower_need_done(lower, store, update, "moments");
    lower_give(lower, store, PROGRAM_MEMORY_OPTIMIZER, moments_bytes);
}
