/*
 * The repetition of a layer's forward pass before its backward pass.
 *
 * layer  all of it, in order: the gradient from above waits for its end. So does Megatron's own
 *        checkpoint, and any that reruns the module and then asks for its gradients.
 *
 * block  what the backward pass reads, and what that reads: jax.checkpoint removes dead code, and
 *        torch's checkpoint stops once it has the last tensor that was saved. It begins when the
 *        gradient from above is there, as behind the barrier that keeps compilers from merging it
 *        with the forward pass; the gradient itself waits for none of it. The layer's input is the
 *        running sum, so the first norm adds nothing.
 *
 * Which ops are dead is not listed: the layer is lowered once with all of them, and from the last
 * op back those are found whose arrays are read by no later op that stays (reads.h).
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/workload/lower.h"
#include "sim/workload/reads.h"

static const struct lower_dead *dead_of(const struct lower *lower)
{
    return &lower->dead[lower->layer - lower->local->layer];
}

bool lower_is_dead(const struct lower *lower, const char *name)
{
    const struct lower_dead *dead = dead_of(lower);
    if (!lower->repeating || !dead->known) return false;
    for (uint32_t i = 0; i < dead->count; i++)
        if (strcmp(dead->name[i], name) == 0) return true;
    return false;
}

/* Whether an op from `from` on that stays reads what another writes. */
static bool is_read(const struct lower *lower, const struct program_op *op, uint32_t from,
                    const bool *dead)
{
    char array[READS_ARRAY_BYTES];
    for (uint32_t i = from; i < lower->build.op_count; i++)
        if (!dead[i] && reads_meet(lower->build.op[i].reads, op->writes, array)) return true;
    return false;
}

/* Of ops that stand from `first` on, those up to `end` are the repetition. */
static struct lower_dead dead_among(const struct lower *lower, uint32_t first, uint32_t end)
{
    bool dead[PROGRAM_OPS_MAX] = {false};
    struct lower_dead found = {.known = true};
    for (uint32_t i = end; i-- > first;) {
        dead[i] = !is_read(lower, &lower->build.op[i], i + 1, dead);
        if (!dead[i]) continue;
        SIM_ASSERT(found.count < LOWER_DEAD_MAX);
        found.name[found.count++] = lower->build.op[i].name;
    }
    return found;
}

/* Lowers the layer's repetition and both gradients, and takes it all back but for plans, which the
 * ops that stay find again. */
static void dead_find(struct lower *lower, const struct lower_block *blocks, uint32_t count)
{
    struct builder_mark const mark = builder_mark(&lower->build);
    struct lower const before = *lower;
    lower->half = LOWER_WHOLE;
    lower_layer_repeat(lower, blocks, count);
    uint32_t const end = lower->build.op_count;
    lower_layer_gradients(lower, blocks, count);
    if (lower->build.status != STATUS_OK) return;
    struct lower_dead const dead = dead_among(lower, mark.op_count, end);
    builder_rewind(&lower->build, &mark);
    struct builder const build = lower->build;
    *lower = before;
    lower->build = build;
    lower->dead[lower->layer - lower->local->layer] = dead;
}

void lower_layer_again(struct lower *lower, const struct lower_block *blocks, uint32_t count)
{
    uint32_t const above = lower->output;
    bool const whole = lower->local->plan->remat == WORKLOAD_REMAT_LAYER;
    if (!whole && !dead_of(lower)->known && lower->build.status == STATUS_OK)
        dead_find(lower, blocks, count);
    lower_layer_repeat(lower, blocks, count);
    if (!whole) lower->output = above;
}
