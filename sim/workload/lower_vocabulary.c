/*
 * The embedding before the layers, and the final norm, the head and the loss after them.
 *
 * Both matrices lie as [V_Y, D_X], so that tied ones are the same array. A rank of tp looks up the
 * tokens of its part of the vocabulary; the rows of the others are zero, so the lookup ends in a
 * ReduceScatter like a block, and the head begins with an AllGather. What the loss needs of the
 * other ranks, a maximum and a sum for each token, travels with the next collective.
 *
 * The head is not recomputed: its backward pass follows at once, with weights and logits still
 * there. Gradients of one matrix that is used several times, tied or looked up and multiplied by
 * modules that predict further tokens too, are summed on the chip and reduced once, after the last
 * use of the backward pass. Where two stages of a rank share an embedding, each pass reduces as it
 * would by itself: what is accumulated whole, once.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"
#include "sim/workload/overheads.h"

struct local_unit lower_embedding_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_embedding",
                               .elements = local->vocabulary_elements + local->position_elements +
                                           (local->tied ? local->norm_elements : 0)};
}

struct local_unit lower_head_unit(const struct local *local)
{
    if (local->tied) return lower_embedding_unit(local);
    return (struct local_unit){.name = "W_head",
                               .elements = local->vocabulary_elements + local->norm_elements};
}

/* Of these, what a lookup reads: the final norm is the head's, */
static struct local_unit lookup_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_embedding",
                               .elements = local->vocabulary_elements + local->position_elements};
}

/* and what the head reads: rows by position are the embedding's. */
static struct local_unit head_read_unit(const struct local *local)
{
    return (struct local_unit){.name = lower_head_unit(local).name,
                               .elements = local->vocabulary_elements + local->norm_elements};
}

uint64_t lower_embedding_gathered(const struct local *local)
{
    return lookup_unit(local).elements;
}

uint64_t lower_head_gathered(const struct local *local)
{
    return head_read_unit(local).elements;
}

/* A collective of the whole [B_X, D] over tp. */
static uint32_t tp_plan(struct lower *lower, enum collective_kind kind, bool chunked)
{
    return lower_plan(lower, kind, &lower->local->mesh->axis[MESH_TP].group,
                      lower->local->block_full, lower->local->plan->formats.activations,
                      chunked && lower->local->plan->collective_matmul);
}

uint32_t lower_unit_gather(struct lower *lower, const struct local_unit *unit)
{
    uint32_t const before = lower->build.op_count;
    lower_units_gather(lower, unit, 1, false);
    return lower->build.op_count > before ? before : LOWER_NONE;
}

/* What autograd makes of the matrix' gradient before it is added to the main one. */
static void autograd_pass(struct lower *lower, uint32_t op)
{
    uint64_t const bytes =
        overheads_autograd_bytes(lower->local, lower->local->vocabulary_elements);
    lower_take(lower, op, PROGRAM_MEMORY_AUTOGRAD, bytes);
    lower_give(lower, op, PROGRAM_MEMORY_AUTOGRAD, bytes);
}

/* One of the uses of the embedding, or of the head. */
struct use {
    const char *prefix; /* "", "mtp." */
    bool gathers;       /* The first of a pass to read the matrix, */
    bool gives;         /* and the last. */
    bool opens;         /* The first of a backward pass to add to the gradient, */
    bool closes;        /* and the last, behind which it is reduced. */
    bool takes_input;   /* Nothing else holds what comes to the head. */
};

/* Looks tokens up; returns the op after which their rows are there. */
static uint32_t lookup(struct lower *lower, const char *prefix)
{
    const struct local *local = lower->local;
    /* The update is of the whole unit, and modules find it gathered where they share it. */
    struct local_unit const unit =
        lower->updated ? lower_embedding_unit(local) : lookup_unit(local);
    bool const is_there = lower->updated && prefix[0] != '\0' && !local->twin_reads;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint32_t const gather = is_there ? LOWER_NONE : lower_unit_gather(lower, &unit);
    struct work const work = {
        .math_format = local->plan->formats.activations,
        .hbm_read_bytes = /* The rows it has, and those by position. */
        lower_weight_bytes(lower, local->block_shard + local->position_elements),
        .hbm_write_bytes = full_bytes,
    };
    uint32_t const op =
        lower_compute(lower, builder_format(&lower->build, "%sembedding.lookup", prefix), &work, 1);
    lower_need_done(lower, op, gather);
    if (gather != LOWER_NONE && local->shards > 1 && lower->keeping == LOWER_GATHERS) {
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, lower_weight_bytes(lower, unit.elements));
    }
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, false);
    uint32_t const scatter =
        lower_collective(lower, LOWER_REDUCE_TP,
                         builder_format(&lower->build, "%sembedding.Out", prefix), "tp", plan);
    uint32_t const done = scatter != LOWER_NONE ? scatter : op;
    lower_need_done(lower, scatter, op);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, done, PROGRAM_MEMORY_BUFFERS, full_bytes);
    return done;
}

void lower_embedding_forward(struct lower *lower)
{
    lower->output = lookup(lower, "");
}

uint32_t lower_predictor_lookup(struct lower *lower)
{
    return lookup(lower, "mtp.");
}

/* A scatter-add: the rows of this part of the vocabulary are read and written where they lie, in an
 * array that is first set to zero, unless another use or a microbatch has left its own. */
static struct work rows_work(const struct lower *lower, bool opens)
{
    const struct local *local = lower->local;
    uint64_t const rows_bytes = lower_gradient_bytes(lower, local->block_shard);
    bool const adds = !opens || lower_gradient_adds(lower);
    uint64_t const zero_bytes = adds ? 0 : lower_gradient_bytes(lower, local->vocabulary_elements);
    uint64_t const position_bytes = lower_gradient_bytes(lower, local->position_elements);
    uint64_t const kept_bytes = lower_gradient_adds(lower) ? position_bytes : 0;
    return (struct work){
        .math_format = local->plan->formats.activations,
        .vector_flop = local->block_shard,
        .hbm_read_bytes =
            lower_activation_bytes(lower, local->block_shard) + rows_bytes + kept_bytes,
        .hbm_write_bytes = rows_bytes + zero_bytes + position_bytes,
    };
}

/* Whether modules look up what the first stage, of other passes on the same rank, does too. */
static bool shares_embedding(const struct local *local)
{
    return local->predictors != 0 && local->pp > 1 && local->ends_meet;
}

/* `source` LOWER_NONE: the running gradient. */
static uint32_t lookup_backward(struct lower *lower, const struct use *use, uint32_t source)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_embedding_unit(local), read = lookup_unit(local);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, false);
    uint32_t const gather = lower_collective(
        lower, LOWER_GATHER_TP, builder_format(&lower->build, "%sembedding.dOut", use->prefix),
        "tp", plan);
    struct work const work = rows_work(lower, use->opens);
    /* Not read here; but later passes do not gather it again. */
    uint32_t const weights =
        lower->keeping == LOWER_TAKES ? lower_unit_gather(lower, &read) : LOWER_NONE;
    uint32_t const op = lower_compute(
        lower, builder_format(&lower->build, "%sembedding.dW", use->prefix), &work, 1);
    uint32_t const begin = gather != LOWER_NONE ? gather : op;
    lower_need_done(lower, op, gather);
    if (source != LOWER_NONE)
        lower_need_done(lower, begin, source);
    else
        lower_need_output(lower, begin);
    lower_need_done(lower, op, weights);
    lower_take(lower, begin, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    autograd_pass(lower, op);
    if (use->opens) lower_gradient_take(lower, op, unit.elements);
    bool const last = lower->last_microbatch;
    if (shares_embedding(local)) lower->last_microbatch = lower->last_lookup;
    if (use->closes) lower_unit_reduce(lower, &unit, op);
    lower->last_microbatch = last;
    return op;
}

void lower_embedding_backward(struct lower *lower, const struct lower_behind *update)
{
    const struct local *local = lower->local;
    bool const again = local->tied || (local->predictors != 0 && local->pp == 1);
    struct use const use = {.prefix = "", .opens = !again, .closes = true};
    (void)lookup_backward(lower, &use, LOWER_NONE);
    lower_update_behind(lower, update);
}

uint32_t lower_predictor_lookup_backward(struct lower *lower, struct lower_place place,
                                         uint32_t source)
{
    struct use const use = {
        .prefix = "mtp.", .opens = place.last, .closes = place.first && lower->local->pp > 1};
    return lookup_backward(lower, &use, source);
}

static struct work head_work(const struct lower *lower)
{
    const struct local *local = lower->local;
    struct work work = {
        .matmul = {{local->rows, local->width, local->vocabulary, 1}},
        .matmul_count = 1,
        .math_format = local->plan->formats.activations,
    };
    work.useful_flop = 2 * local->rows * local->width * local->plan->model.vocabulary / local->tp;
    return work;
}

/* The head's backward pass follows its forward pass at once, unless a pipeline's schedule has other
 * passes between them. */
static bool head_keeps_weights(const struct lower *lower)
{
    return lower->local->shards == 1 || lower->local->pp == 1 || lower->head_stays;
}

/* The model's own head is the last of the forward pass, and the first of the backward pass. */
static struct use head_use(const struct lower *lower, bool forward)
{
    const struct local *local = lower->local;
    bool const alone = local->predictors == 0;
    bool const keeps = head_keeps_weights(lower);
    return (struct use){.prefix = "",
                        .gathers = forward ? alone : !keeps,
                        .gives = forward ? !keeps : alone,
                        .opens = true,
                        .closes = alone && !local->tied,
                        .takes_input = alone || local->predictors_apart};
}

static struct use predictor_head_use(const struct local *local, struct lower_place place,
                                     bool forward)
{
    return (struct use){.prefix = "mtp.",
                        .gathers = forward && place.first,
                        .gives = !forward && place.first,
                        .closes = place.first,
                        .takes_input = place.last || local->predictors_apart};
}

static void head_forward(struct lower *lower, const struct use *use)
{
    const struct local *local = lower->local;
    struct local_unit const unit = head_read_unit(local);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logits = local->rows * local->vocabulary;
    uint64_t const logit_bytes = lower_activation_bytes(lower, logits);
    /* Tied, what was updated is gathered with the lookup. */
    bool const gathers = use->gathers && !(lower->updated && local->tied);
    uint32_t const weights = gathers ? lower_unit_gather(lower, &unit) : LOWER_NONE;
    uint32_t const norm =
        lower_norm(lower, builder_format(&lower->build, "%shead.norm", use->prefix),
                   local->plan->formats.activations);
    lower_need_output(lower, norm);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, true);
    uint32_t const gather =
        lower_collective(lower, LOWER_GATHER_TP,
                         builder_format(&lower->build, "%shead.In", use->prefix), "tp", plan);
    lower_need_done(lower, gather, norm);
    struct work work = head_work(lower);
    work.hbm_read_bytes = full_bytes + lower_weight_bytes(lower, local->vocabulary_elements);
    work.hbm_write_bytes = logit_bytes;
    uint32_t const matmul =
        lower_compute(lower, builder_format(&lower->build, "%shead.Logits", use->prefix), &work,
                      lower_plan_chunks(lower, plan));
    lower_need_chunks(lower, matmul, gather);
    lower_need_done(lower, matmul, weights);
    struct work const loss_work = {
        .math_format = local->plan->formats.activations,
        .vector_flop = VECTOR_LOSS * logits,
        .hbm_read_bytes = logit_bytes,
        .hbm_write_bytes = logit_bytes, /* dLogits in their place. */
    };
    uint32_t const loss = lower_compute(
        lower, builder_format(&lower->build, "%shead.Loss", use->prefix), &loss_work, 1);
    lower_take(lower, loss, PROGRAM_MEMORY_LOSS, overheads_loss_bytes(local));
    if (use->takes_input)
        lower_take(lower, norm, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->block_shard));
    lower_take(lower, gather != LOWER_NONE ? gather : norm, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_take(lower, matmul, PROGRAM_MEMORY_BUFFERS, logit_bytes);
    if (use->gives && lower->keeping == LOWER_GATHERS)
        lower_give(lower, matmul, PROGRAM_MEMORY_GATHERED,
                   lower_weight_bytes(lower, unit.elements));
}

/* dW of the head, and the end of what it reads. */
static uint32_t head_weight(struct lower *lower, const struct use *use)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_head_unit(local), read = head_read_unit(local);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logit_bytes = lower_activation_bytes(lower, local->rows * local->vocabulary);
    uint64_t const gradient_bytes = lower_gradient_bytes(lower, local->vocabulary_elements);
    bool const adds = !use->opens || lower_gradient_adds(lower);
    struct work work = head_work(lower);
    work.hbm_read_bytes = full_bytes + logit_bytes + (adds ? gradient_bytes : 0);
    work.hbm_write_bytes = gradient_bytes;
    bool const takes = lower->half == LOWER_WEIGHT && lower->keeping == LOWER_TAKES;
    uint32_t const weights = takes ? lower_unit_gather(lower, &read) : LOWER_NONE;
    uint32_t const op =
        lower_compute(lower, builder_format(&lower->build, "%shead.dW", use->prefix), &work, 1);
    lower_need_done(lower, op, weights);
    autograd_pass(lower, op);
    if (use->opens) lower_gradient_take(lower, op, unit.elements);
    if (use->closes) lower_unit_reduce(lower, &unit, op);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes); /* In */
    return op;
}

/* dIn of the head, with its ReduceScatter. */
static uint32_t head_input(struct lower *lower, const struct use *use)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logit_bytes = lower_activation_bytes(lower, local->rows * local->vocabulary);
    struct local_unit const read = head_read_unit(local);
    uint32_t const weights = use->gathers ? lower_unit_gather(lower, &read) : LOWER_NONE;
    struct work work = head_work(lower);
    work.hbm_read_bytes = logit_bytes + lower_weight_bytes(lower, local->vocabulary_elements);
    work.hbm_write_bytes = full_bytes;
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, true);
    uint32_t const op =
        lower_compute(lower, builder_format(&lower->build, "%shead.dIn", use->prefix), &work,
                      lower_plan_chunks(lower, plan));
    lower_need_done(lower, op, weights);
    uint32_t const scatter =
        lower_collective(lower, LOWER_REDUCE_TP,
                         builder_format(&lower->build, "%shead.dIn", use->prefix), "tp", plan);
    lower_operand(lower, scatter, op);
    lower->output = scatter != LOWER_NONE ? scatter : op;
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, full_bytes);
    if (use->gives && local->shards > 1 && lower->keeping == LOWER_GATHERS)
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, lower_weight_bytes(lower, read.elements));
    return op;
}

static void head_backward(struct lower *lower, const struct use *use)
{
    const struct local *local = lower->local;
    bool const dx_first = local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t op = LOWER_NONE, first = LOWER_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        op = (is_weight ? head_weight : head_input)(lower, use);
        if (i == 0 || lower->half == LOWER_INPUT) first = op;
    }
    if (lower_has_input(lower))
        lower_give(lower, first, PROGRAM_MEMORY_LOSS, overheads_loss_bytes(local));
    if (lower_has_weight(lower))
        lower_give(lower, op, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->rows * local->vocabulary));
    if (!lower_has_input(lower)) return;
    uint32_t const norm =
        lower_norm_backward(lower, builder_format(&lower->build, "%shead.dNorm", use->prefix));
    lower_need_done(lower, norm, lower->output);
    lower->output = norm;
    if (use->takes_input)
        lower_give(lower, norm, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->block_shard));
}

void lower_head_forward(struct lower *lower)
{
    struct use const use = head_use(lower, /* forward= */ true);
    head_forward(lower, &use);
}

void lower_head_backward(struct lower *lower)
{
    struct use const use = head_use(lower, /* forward= */ false);
    head_backward(lower, &use);
}

void lower_predictor_head_forward(struct lower *lower, struct lower_place place)
{
    struct use const use = predictor_head_use(lower->local, place, /* forward= */ true);
    head_forward(lower, &use);
}

void lower_predictor_head_backward(struct lower *lower, struct lower_place place)
{
    struct use const use = predictor_head_use(lower->local, place, /* forward= */ false);
    head_backward(lower, &use);
}
