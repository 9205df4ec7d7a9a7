/* What is constant about messages that switches copy or add. */
#include "sim/base/arena.h"
#include "sim/replay/tree.h"

static uint32_t end_of(const struct routed_lane *routed, uint32_t axis, uint32_t at)
{
    return routed->end[axis][at];
}

/* Members along an axis that one unit holds, by the units below. */
static enum status children_build(struct arena *arena, const struct replay *replay,
                                  struct lane_table *lane, uint32_t t, uint32_t axis,
                                  struct error *reterr)
{
    const struct routed_lane *routed = lane->routed;
    struct tree *tree = routed->tree;
    const struct level *level = tree->level->level;
    struct tree_tier *tier = &tree->tier[t];
    uint32_t const period = replay->fold->period[axis], length = replay->machine->shape[axis];
    uint32_t const box = level->tier[t].box[axis] < length ? level->tier[t].box[axis] : length;
    uint32_t const below = t == 0 ? 1 : level->tier[t - 1].box[axis];
    uint32_t const stride = routed->stride[axis], extent = routed->extent[axis];
    bool const spanned = routed->axes >> axis & 1;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, period, sizeof *tier->children[axis], &memory, reterr));
    tier->children[axis] = memory;
    STATUS_TRY(arena_try(arena, period, sizeof *tier->outside[axis], &memory, reterr));
    tier->outside[axis] = memory;
    tier->folds[axis] = box > period;
    for (uint32_t at = 0; at < period; at++) {
        struct tree_children *own = &tier->children[axis][at];
        uint32_t const unit = at / box * box;
        uint32_t const begin = spanned ? at / extent * extent + at % stride : at;
        uint32_t const end = spanned ? end_of(routed, axis, at) : at + 1;
        uint32_t first = begin;
        while (first < unit) first += stride;
        uint32_t const last = unit + box < end ? unit + box : end;
        /* The last member, and not the end of the extent: a unit that ends within the last stride
         * holds some of the interleaved groups whole. */
        uint32_t const farthest = begin + (end - 1 - begin) / stride * stride;
        tier->outside[axis][at] = first > begin || farthest >= last;
        if (spanned && at >= stride && at - stride >= first) {
            *own = tier->children[axis][at - stride];
            continue;
        }
        STATUS_TRY(arena_try(arena, (last - first + stride - 1) / stride, sizeof(uint32_t), &memory,
                             reterr));
        uint32_t *list = memory;
        own->at = list;
        for (uint32_t member = first; member < last; member += stride) {
            if (own->count > 0 && member / below == list[own->count - 1] / below) continue;
            own->folded += member < first + period;
            list[own->count++] = member;
        }
    }
    return STATUS_OK;
}

/* Groups that have members in one unit of a tier, along an axis: in the unit with the most. */
static uint32_t groups_in_unit(const struct routed_lane *routed, uint32_t axis, uint32_t box,
                               uint32_t length)
{
    if (!(routed->axes >> axis & 1)) return box < length ? box : length;
    uint32_t most = 0;
    for (uint32_t unit = 0; unit < length; unit += box) {
        uint32_t const end = box < length - unit ? unit + box : length;
        uint32_t groups = 0, at = unit;
        while (at < end) {
            uint32_t next = (at / routed->extent[axis] + 1) * routed->extent[axis];
            next = next < end ? next : end;
            groups += next - at < routed->stride[axis] ? next - at : routed->stride[axis];
            at = next;
        }
        most = groups > most ? groups : most;
    }
    return most;
}

/* The nearest level whose highest units hold whole groups. */
static enum status level_choose(const struct replay *replay, struct lane_table *lane,
                                struct error *reterr)
{
    const struct routed_lane *routed = lane->routed;
    struct tree *tree = routed->tree;
    for (uint32_t index = 0; index < replay->routes->level_count; index++) {
        struct level_links *links = &replay->routes->level[index];
        for (uint32_t t = 0; t < links->level->tier_count; t++) {
            bool joins = true;
            for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
                for (uint32_t at = 0; routed->axes >> axis & 1 && at < replay->machine->shape[axis];
                     at += routed->extent[axis])
                    joins = joins &&
                            links->path->tier[t].unit_at[axis][at] ==
                                links->path->tier[t].unit_at[axis][end_of(routed, axis, at) - 1];
            if (!joins) continue;
            tree->level = links;
            tree->level_index = index;
            tree->tier_count = t + 1;
            return STATUS_OK;
        }
    }
    return error_set(reterr, STATUS_UNSUPPORTED, "/mesh",
                     "%s \"%s\" is made by switches, and no level of the machine joins all %u "
                     "members of a group",
                     collective_kind_name(lane->primitive->kind),
                     primitive_algorithm(lane->primitive), lane->size);
}

static enum status abilities_check(const struct tree *tree, const struct lane_table *lane,
                                   struct error *reterr)
{
    enum primitive_network const network = lane->primitive->network;
    for (uint32_t t = 0; t < tree->tier_count; t++) {
        const struct level_tier *tier = &tree->level->level->tier[t];
        if (network != PRIMITIVE_NETWORK_REDUCE && !tier->multicasts)
            return error_set(reterr, STATUS_UNSUPPORTED, "/machine",
                             "\"%s\" needs switches that copy messages, and a %s of %s does not",
                             primitive_algorithm(lane->primitive), tier->name,
                             tree->level->level->name);
        if (network != PRIMITIVE_NETWORK_MULTICAST && tier->reduce_flop_per_s == 0)
            return error_set(reterr, STATUS_UNSUPPORTED, "/machine",
                             "\"%s\" needs switches that add messages, and a %s of %s does not",
                             primitive_algorithm(lane->primitive), tier->name,
                             tree->level->level->name);
    }
    return STATUS_OK;
}

enum status tree_build(struct arena *arena, struct replay *replay, struct lane_table *lane,
                       struct error *reterr)
{
    struct routed_lane *routed = lane->routed;
    enum primitive_network const network = lane->primitive->network;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *routed->tree, &memory, reterr));
    struct tree *tree = routed->tree = memory;
    uint32_t sender = 0;
    while (!lane->ring && lane->steps.send_count[sender] == 0) sender++;
    routed->tree_units = plan_step(routed->plan, routed->item, lane->lane, sender, 0).units;
    STATUS_TRY(level_choose(replay, lane, reterr));
    STATUS_TRY(abilities_check(tree, lane, reterr));
    tree->slots = lane->piece_count * TREE_EPOCHS;
    tree->receivers = 1;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        tree->sum_first[axis] = tree->receivers;
        if (network == PRIMITIVE_NETWORK_REDUCE) tree->receivers *= routed->extent[axis];
    }
    for (uint32_t t = 0; t < tree->tier_count; t++) {
        struct tree_tier *tier = &tree->tier[t];
        tier->reduce_flop_per_s = tree->level->level->tier[t].reduce_flop_per_s;
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
            STATUS_TRY(children_build(arena, replay, lane, t, axis, reterr));
            tier->reduce_flop_per_s /= groups_in_unit(
                routed, axis, tree->level->level->tier[t].box[axis], replay->machine->shape[axis]);
        }
        /* A scatter has sums for all members under way at once, a rooted one for the root. */
        if (network == PRIMITIVE_NETWORK_REDUCE &&
            lane->primitive->kind == COLLECTIVE_REDUCE_SCATTER)
            tier->reduce_flop_per_s /= lane->size;
        if (tier->reduce_flop_per_s == 0) tier->reduce_flop_per_s = 1;
        if (network == PRIMITIVE_NETWORK_MULTICAST) continue;
        uint64_t const joins = (uint64_t)replay->chip_count * tree->receivers;
        STATUS_TRY(arena_try(arena, joins, tree->slots * sizeof *tier->sums, &memory, reterr));
        tier->sums = memory;
        STATUS_TRY(arena_try(arena, joins, sizeof *tier->adders_ps, &memory, reterr));
        tier->adders_ps = memory;
    }
    return STATUS_OK;
}
