/*
 * Rooted collectives, dimension by dimension. A box of a level is what levels inside it join: a
 * node, a slice; on a grid the lines along an axis, the planes, in the cyclic order of the chain.
 *
 * A broadcast goes through the root's own box first, so that the root sends every byte into it
 * once; then each rank of the box passes its own part on to the ranks that stand as it does in the
 * other boxes, over its own cables; and these boxes gather. The root's box has all by then, and
 * takes no part. A reduction is its mirror. A scatter spreads in the root's box what each rank's
 * own cables take on, and a gather comes back that way.
 */
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/collective/compose_build.h"

/* Of all ranks together; fewer where every piece brings little. */
enum { ALL_MESSAGES_MAX = 1 << 24, SPREAD_MESSAGES_MAX = 1 << 22 };

/* Along axes that are alike a gather's orders keep all of the root's links busy, and its parts come
 * in one after the other whatever the pieces: more of these than a few only add up their ways. */
enum { ALIKE_PIECES_MAX = 4 };

/* How many pieces a reduction's boxes may be ahead of the chains that another order runs over the
 * same links. With fewer a small array's chains wait for boxes, with more the boxes take too much
 * of the links from a large one's (docs/collectives.md). */
enum { TURN_LEAD = 4 };

/* Bits: the dimensions of a chain from one place in it to before another. */
static uint8_t dimensions_of(const struct chain *chain, uint32_t begin, uint32_t end)
{
    uint32_t bits = 0;
    for (uint32_t i = begin; i < end; i++) bits |= 1u << chain->dimension[i];
    return (uint8_t)bits;
}

/* Around the root: only ranks that stand where it does along all outer dimensions take part. */
static enum status root_add(const struct build *build, uint32_t order, const struct chain *chain,
                            uint32_t level, uint8_t *after)
{
    struct plan *plan = build->plan;
    STATUS_TRY(
        item_add(build, build->choice->once[chain->dimension[level]], order, chain, level, after));
    struct plan_item *item = &plan->item[*after];
    item->at_root = dimensions_of(chain, 0, level);
    if (plan->kind == COLLECTIVE_BROADCAST)
        item->parted = dimensions_of(chain, level + 1, chain->count);
    return STATUS_OK;
}

/* In all boxes but the root's. */
static enum status others_add(const struct build *build, uint32_t order, const struct chain *chain,
                              uint32_t level, uint8_t *after)
{
    struct plan *plan = build->plan;
    STATUS_TRY(item_add(build, build->choice->gather[chain->dimension[level]], order, chain, level,
                        after));
    struct plan_item *item = &plan->item[*after];
    item->off_root = dimensions_of(chain, 0, level);
    if (plan->kind == COLLECTIVE_BROADCAST)
        item->parted = dimensions_of(chain, level + 1, chain->count);
    return STATUS_OK;
}

enum status rooted_add(const struct build *build, uint32_t order, const struct chain *chain,
                       uint8_t *after)
{
    enum collective_kind const kind = build->plan->kind;
    bool const outwards = kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_SCATTER;
    for (uint32_t level = chain->count; kind == COLLECTIVE_REDUCE && level-- > 1;)
        STATUS_TRY(others_add(build, order, chain, level, after));
    for (uint32_t i = 0; i < chain->count; i++)
        STATUS_TRY(root_add(build, order, chain, outwards ? chain->count - 1 - i : i, after));
    for (uint32_t level = 1; kind == COLLECTIVE_BROADCAST && level < chain->count; level++)
        STATUS_TRY(others_add(build, order, chain, level, after));
    return STATUS_OK;
}

/* The chain on a dimension in which most ranks take part, of another order than this. */
static uint8_t chain_beside(const struct plan *plan, const struct plan_item *item)
{
    uint8_t best = PLAN_NO_ITEM;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *at = &plan->item[i];
        if (at->dimension != item->dimension || at->order == item->order) continue;
        if (at->primitive->kind != COLLECTIVE_REDUCE) continue;
        if (best == PLAN_NO_ITEM || __builtin_popcount((uint32_t)at->at_root) <
                                        __builtin_popcount((uint32_t)plan->item[best].at_root))
            best = (uint8_t)i;
    }
    return best;
}

/* What boxes add up the chains of the same order wait for; but it would all be added up first, for
 * nobody holds it up, while the chains of other orders had to share the links with it, and those of
 * the root were idle: a third more for 4 GiB on a line of 8 by a ring of 16. */
void rooted_turns_set(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++) {
        struct plan_item *item = &plan->item[i];
        if (item->primitive->kind != COLLECTIVE_REDUCE_SCATTER) continue;
        item->turn = chain_beside(plan, item);
        item->turn_lead = TURN_LEAD;
    }
}

/* In a piece, of the position that sends most. */
static uint32_t messages_most(const struct primitive *primitive, uint32_t size)
{
    uint32_t most = 0;
    for (uint32_t at = 0; at < size; at++) {
        uint32_t count = 0;
        for (uint32_t l = 0; l < primitive->lane_count; l++)
            count += primitive->send_count(size, l, at);
        most = count > most ? count : most;
    }
    return most;
}

static bool is_chain(const struct primitive *primitive, uint32_t size)
{
    return primitive->cost(size).relay == PRIMITIVE_RELAY_CHUNKS;
}

/* What an item asks of a rank's links along its dimension; `array_bytes`: what its ranks hold
 * together. */
static struct pieces_level level_of(const struct build *build, const struct primitive *primitive,
                                    uint32_t dimension, uint64_t array_bytes)
{
    const struct plan_request *request = build->request;
    const struct group_dimension *at = &request->group.dimension[dimension];
    uint64_t const known = request->bytes_per_s[dimension];
    uint64_t const hop_bytes = request->hop_bytes[dimension];
    uint64_t const rate = (known == 0 ? (uint64_t)TIME_PS_PER_S : known) / at->stride;
    bool const whole =
        primitive->kind == COLLECTIVE_BROADCAST || primitive->kind == COLLECTIVE_REDUCE;
    /* What pieces save of a chain's fill need not be far less than its whole way. */
    uint32_t const steps = is_chain(primitive, at->size) ? at->size / 16 : 1;
    uint32_t const series = primitive_series(primitive, at->size);
    /* Of several orders the others fill the links while the rings of one go round: half the time
     * that these have for their bytes can be spent on it. */
    bool const beside = build->choice->levels.grid_count > 1;
    return (struct pieces_level){
        .bytes = whole ? array_bytes : array_bytes / at->size * (at->size - 1),
        .bytes_per_s = primitive->routed ? rate : primitive->lane_count * rate,
        .hop_bytes = (hop_bytes == 0 ? 65536 : hop_bytes) * (steps > 1 ? steps : 1),
        .messages = messages_most(primitive, at->size),
        .again_ps = (beside ? 2 : 1) * series *
                    (uint64_t)(units_duration_ps(hop_bytes, rate) +
                               request->protocol.message_ps[request->way[dimension]]),
        .series = beside ? PIECES_FILLED : PIECES_RING,
    };
}

/* Messages of a piece. */
struct messages {
    uint64_t root, other; /* Of the root, and of a rank far from it, in one order; */
    uint64_t all;         /* of all ranks, in all orders. */
};

static bool axes_are_alike(const struct group *group)
{
    for (uint32_t d = 1; d < group->dimension_count; d++)
        if (group->dimension[d].size != group->dimension[0].size) return false;
    return true;
}

/* As many pieces as pay. A rank's messages in an order are bounded; and so are all messages, by
 * what can be replayed in minutes, or in seconds for what a grid gains by them. */
static uint32_t pieces_allowed(const struct build *build, uint64_t wanted,
                               const struct messages *messages)
{
    enum collective_kind const kind = build->plan->kind;
    bool const spread = (kind == COLLECTIVE_GATHER || kind == COLLECTIVE_SCATTER) &&
                        build->choice->levels.outer_count == 0;
    uint64_t const each = messages->root > messages->other ? messages->root : messages->other;
    uint64_t const all = spread ? SPREAD_MESSAGES_MAX : ALL_MESSAGES_MAX;
    uint64_t const by_rank = ROOTED_MESSAGES_MAX / each, by_all = all / messages->all;
    uint64_t const most = by_rank < by_all ? by_rank : by_all;
    if (wanted > most) wanted = most;
    if (spread && kind == COLLECTIVE_GATHER && axes_are_alike(&build->request->group) &&
        wanted > ALIKE_PIECES_MAX)
        wanted = ALIKE_PIECES_MAX;
    return wanted < 1 ? 1 : (uint32_t)wanted;
}

bool rooted_is_cut(const struct build *build)
{
    const struct choice *choice = build->choice;
    const struct group *group = &build->plan->group;
    bool const alone = group->dimension_count == 1 && choice->rooted == NULL;
    bool const rooted = collective_is_rooted(build->plan->kind);
    return choice->by_axis ||
           (rooted && alone && is_chain(choice->once[0], group->dimension[0].size));
}

uint32_t rooted_pieces(const struct build *build)
{
    const struct choice *choice = build->choice;
    const struct levels *levels = &choice->levels;
    const struct group *group = &build->request->group;
    struct pieces_level each[3 * GROUP_DIMENSIONS_MAX];
    struct messages messages = {0, 0, 0};
    uint64_t array_bytes = build->request->size_bytes, boxes = group_rank_count(group);
    uint64_t const rank_count = boxes, orders = levels->grid_count > 1 ? levels->grid_count : 1;
    uint32_t count = 0;
    array_bytes /= orders;
    for (uint32_t i = levels->grid_count + levels->outer_count; i-- > 0;) {
        bool const outer = i < levels->outer_count;
        uint32_t const d = outer ? levels->outer[i] : levels->grid[i - levels->outer_count];
        boxes /= group->dimension[d].size;
        each[count++] = level_of(build, choice->once[d], d, array_bytes);
        messages.root += each[count - 1].messages;
        messages.all += orders * each[count - 1].messages * (rank_count / boxes);
        if (i == 0) messages.other += each[count - 1].messages;
        if (is_chain(choice->once[d],
                     group->dimension[d].size)) { /* Its last member begins so much later. */
            each[count] = each[count - 1];
            each[count].bytes -= 2 * (each[count].bytes / group->dimension[d].size);
            each[count++].hop_bytes = 0;
        }
        if (i > 0 && choice->gather[d] != NULL) {
            each[count++] = level_of(build, choice->gather[d], d, array_bytes);
            messages.other += each[count - 1].messages;
            messages.all += orders * each[count - 1].messages * rank_count;
            /* Further out rings carry less, and go round meanwhile. */
            if (i + 1 < levels->grid_count + levels->outer_count) each[count - 1].again_ps = 0;
        }
        array_bytes /= group->dimension[d].size;
    }
    return pieces_allowed(build, pieces_wanted(each, count), &messages);
}

static struct algorithm_level family_level(const struct primitive *primitive)
{
    return (struct algorithm_level){ALGORITHM_FAMILY, primitive->family, NULL};
}

struct algorithm rooted_algorithm(const struct build *build)
{
    const struct choice *choice = build->choice;
    const struct levels *levels = &choice->levels;
    struct algorithm algorithm = {.means = ALGORITHM_LEVELS};
    bool alike = true;
    if (!choice->named) return (struct algorithm){.means = ALGORITHM_HIERARCHICAL};
    for (uint32_t i = 0; i < levels->grid_count; i++)
        alike =
            alike && choice->once[levels->grid[i]]->family == choice->once[levels->grid[0]]->family;
    /* Where the axes of the grid differ, `auto` had them differ. */
    if (levels->grid_count > 0)
        algorithm.level[algorithm.level_count++] =
            alike ? family_level(choice->once[levels->grid[0]])
                  : (struct algorithm_level){.means = ALGORITHM_AUTO};
    for (uint32_t i = levels->outer_count; i-- > 0;)
        algorithm.level[algorithm.level_count++] = family_level(choice->once[levels->outer[i]]);
    return algorithm;
}
