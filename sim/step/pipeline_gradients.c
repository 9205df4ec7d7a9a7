/*
 * Gradients that two ranks of a pipeline give to one another, each to add the other's to its own:
 * of a stage that two ranks hold, and of an embedding that two stages hold.
 */
#include "sim/base/units.h"
#include "sim/step/pipeline.h"

/* What two ranks swap: each op, its stream, and what goes. */
struct gradient_swap {
    const char *send, *receive, *sum; /* Ops. */
    enum lower_stream send_stream, receive_stream;
    bool layers; /* Gradients of layers, or else of the vocabulary only, which fewer streams reduce.
                  */
    uint64_t elements;
};

/* The reductions of the rank's own gradients, and all that they were computed by. */
static void own_need(struct lower *lower, uint32_t op, bool layers, const char *array)
{
    static const enum lower_stream streams[] = {LOWER_COMPUTE,   LOWER_REDUCE_WEIGHTS,
                                                LOWER_REDUCE_DP, LOWER_REDUCE_EXPERTS,
                                                LOWER_SUM_KV,    LOWER_SUM_ROWS};
    uint32_t const all = sizeof streams / sizeof *streams, of_vocabulary = 3;
    for (uint32_t i = 0; i < (layers ? all : of_vocabulary); i++)
        lower_need_before(lower, op, streams[i], array);
}

/* Ops of the template under construction. The request is of the message, less its size. */
static void swap_send(struct lower *lower, const struct gradient_swap *swap,
                      const struct plan_request *request)
{
    uint32_t const plan =
        lower_plan_request(lower, request, swap->elements, lower->ranks->plan->formats.gradients);
    if (lower->build.status != STATUS_OK) return;
    SIM_ASSERT(plan != LOWER_NONE); /* Its group is pp, which has several ranks. */
    uint32_t const sent =
        lower_op_add(lower, (struct program_op){.name = swap->send,
                                                .class_name = swap->send,
                                                .kind = PROGRAM_OP_SEND,
                                                .stream = lower->stream[swap->send_stream],
                                                .parts = 1,
                                                .index = (uint16_t)plan});
    own_need(lower, sent, swap->layers, lower_weight_gradient);
}

static uint32_t swap_receive(struct lower *lower, const struct gradient_swap *swap)
{
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    uint32_t const received =
        lower_op_add(lower, (struct program_op){.name = swap->receive,
                                                .class_name = swap->receive,
                                                .kind = PROGRAM_OP_RECEIVE,
                                                .stream = lower->stream[swap->receive_stream],
                                                .parts = 1});
    own_need(lower, received, swap->layers, NULL);
    lower_take(lower, received, PROGRAM_MEMORY_BUFFERS,
               lower_gradient_bytes(lower, swap->elements));
    return received;
}

/* `received` LOWER_NONE: in a slot before. */
static void swap_add(struct lower *lower, const struct gradient_swap *swap, uint32_t received)
{
    uint64_t const bytes = lower_gradient_bytes(lower, swap->elements);
    struct work const work = {
        .math_format = lower->ranks->plan->formats.gradients,
        .vector_flop = swap->elements,
        .hbm_read_bytes = 2 * bytes,
        .hbm_write_bytes = bytes,
    };
    if (lower->build.status != STATUS_OK) return;
    uint32_t const sum = lower_compute(lower, swap->sum, &work, 1);
    if (received == LOWER_NONE)
        lower_need_before(lower, sum, swap->receive_stream, "copy");
    else
        lower_need_done(lower, sum, received, "copy");
    lower_give(lower, sum, PROGRAM_MEMORY_BUFFERS, bytes);
}

static void swap_sum(struct lower *lower, const struct gradient_swap *swap)
{
    uint32_t const received = swap_receive(lower, swap);
    swap_add(lower, swap, received);
}

/* --- Copies ---
 *
 * Two copies of a model over the ranks of a pipeline: each stage lies on two ranks, i and p-1-i,
 * and each of these has gradients of half of the microbatches. Once they are reduced over the data
 * ranks, a stage's modules go to the other rank, as soon as its last backward pass has ended;
 * before the update the other's come, and both are added up, so that the copies stay equal. Two
 * ranks that add up by an AllReduce would send as many bytes, by halves and a message later.
 *
 * A message is all of a module, and they come in the order of the other rank's list, which is this
 * one's with the two halves of the microbatches exchanged.
 */

static struct gradient_swap copy_of(const struct lower *lower, enum lower_module module)
{
    struct gradient_swap swap = {.send = "send copy's gradients",
                                 .receive = "receive copy's gradients",
                                 .sum = "copy's gradients.sum",
                                 .send_stream = LOWER_SEND_COPY,
                                 .receive_stream = LOWER_RECEIVE_COPY,
                                 .layers = true};
    struct bucket buckets[LOWER_BUCKETS_MAX];
    uint32_t const count = lower_buckets_of(lower->ranks, module, buckets);
    /* As the data ranks share them: what each of them has the sum of. */
    for (uint32_t u = 0; u < count; u++)
        swap.elements += units_ceil_divide(
            buckets[u].elements, ranks_replicas(lower->ranks, buckets[u].experts)->state_shards);
    return swap;
}

void lower_copy_send(struct lower *lower, enum lower_module module)
{
    struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                         .group = lower->ranks->mesh->axis[MESH_PP].group,
                                         .mirrors = true};
    struct gradient_swap const swap = copy_of(lower, module);
    swap_send(lower, &swap, &request);
}

void lower_copies_sum(struct lower *lower, enum lower_module module)
{
    struct gradient_swap const swap = copy_of(lower, module);
    swap_sum(lower, &swap);
}

/* --- Tied ---
 *
 * An embedding that is tied to the head, or that modules of a later stage look up too, lies on the
 * first and on that stage. Each has a gradient of its own: once they are reduced over the data
 * ranks, the two stages give them to one another and both update by the sum, so that the two stay
 * equal. Two ranks that add up by an AllReduce would send as many bytes, by halves and a message
 * later.
 *
 * The last rank is the one before the first, around: such messages go where gradients go to the
 * rank before, and activations to the next, and are the last of their streams. A rank between them,
 * where modules have a stage of their own, is no neighbour and has streams of its own.
 */

static struct gradient_swap tie_of(const struct lower *lower, bool head)
{
    const struct ranks *ranks = lower->ranks;
    uint64_t const elements =
        units_ceil_divide(ranks->end[BLOCK_EMBEDDING].matrix, ranks->replicas.state_shards);
    bool const own = ranks->mtp.apart;
    enum lower_stream const send_streams[] = {own ? LOWER_SEND_TIED : LOWER_SEND_PREVIOUS,
                                              own ? LOWER_SEND_FIRST : LOWER_SEND_NEXT};
    enum lower_stream const streams[] = {own ? LOWER_RECEIVE_TIED : LOWER_RECEIVE_PREVIOUS,
                                         own ? LOWER_RECEIVE_FIRST : LOWER_RECEIVE_NEXT};
    return (struct gradient_swap){.send = "send tied gradients",
                                  .receive = "receive tied gradients",
                                  .sum = "tied gradients.sum",
                                  .send_stream = send_streams[head],
                                  .receive_stream = streams[head],
                                  .elements = elements};
}

static void tie_send(struct lower *lower, const struct gradient_swap *swap, uint32_t other,
                     bool head)
{
    int32_t const apart = (int32_t)other;
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = lower->ranks->mesh->axis[MESH_PP].group};
    *pipeline_distance(&request) = head ? -apart : apart;
    swap_send(lower, swap, &request);
}

void lower_tie(struct lower *lower, uint32_t other, bool head)
{
    struct gradient_swap const swap = tie_of(lower, head);
    tie_send(lower, &swap, other, head);
    swap_sum(lower, &swap);
}

void lower_tie_swap(struct lower *lower, uint32_t other, bool head)
{
    struct gradient_swap const swap = tie_of(lower, head);
    tie_send(lower, &swap, other, head);
    (void)swap_receive(lower, &swap);
}

void lower_tie_sum(struct lower *lower, bool head)
{
    struct gradient_swap const swap = tie_of(lower, head);
    swap_add(lower, &swap, LOWER_NONE);
}
