#include "sim/collective/level_overlap.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

/* Between the halves of an AllReduce one piece has the links while another waits for its last
 * message, so there are two at least where rounds are not so long that it would not be noticed. */
enum { PIECES_LEAST = 2 };

/* Portions follow one another without waiting for the way: what is won is worth ever less, not
 * lost again, below a quarter of it. */
enum { PORTIONS_A_WAY = 4 };

/* Whether an item of the level inside can go along with one of the level outside. */
static bool is_cut(const struct primitive *outer, uint32_t outer_size,
                   const struct primitive *inner)
{
    return outer->cost(outer_size).reach == PRIMITIVE_REACH_ALL && inner->routed &&
           inner->network == PRIMITIVE_NETWORK_NONE;
}

bool level_overlap_applies(const struct plan_request *request, const struct choice *choice)
{
    const struct levels *levels = &choice->levels;
    enum collective_kind const kind = request->kind;
    if (choice->flat || levels->grid_count != 0 || levels->outer_count != 2) return false;
    if (kind != COLLECTIVE_ALL_GATHER && kind != COLLECTIVE_REDUCE_SCATTER &&
        kind != COLLECTIVE_ALL_REDUCE)
        return false;
    uint32_t const outer = levels->outer[0], inner = levels->outer[1];
    if (request->portion_count == 1 || choice->whole[outer] != NULL) return false;
    uint32_t const size = request->group.dimension[outer].size;
    return is_cut(choice->once[outer], size, choice->once[inner]) &&
           (kind != COLLECTIVE_ALL_REDUCE ||
            is_cut(choice->gather[outer], size, choice->gather[inner]));
}

/* The ends of portions from the shortest on. The next is as long as the faster level can be with it
 * in the time that the slower one has for this, and in what was left over before. Returns how many
 * there are; one more than PORTIONS_MAX if they are too many. */
static uint32_t ends_find(const struct level_overlap_choice *choice, uint32_t nodes, uint32_t *end)
{
    units_wide size = choice->shortest, left_ps = 0;
    uint32_t count = 0, reached = 0;
    while (reached < nodes && count <= PORTIONS_MAX) {
        reached = size < nodes - reached ? reached + (uint32_t)size : nodes;
        if (end != NULL) end[count] = reached;
        count++;
        left_ps += size * choice->longer_ps;
        size = left_ps / choice->shorter_ps;
        left_ps %= choice->shorter_ps;
    }
    return count;
}

struct level_overlap_choice level_overlap_choose(const struct pieces_level levels[2],
                                                 uint32_t nodes, uint32_t pieces, uint32_t portions)
{
    uint64_t const wanted = pieces_wanted(levels, 2);
    struct level_overlap_choice choice = {
        .pieces = pieces, .portions = 1, .longer_ps = 1, .shorter_ps = 1};
    if (pieces == 0) {
        uint32_t const least =
            wanted >= PIECES_LEAST && nodes <= PIECES_LEVELS_MAX ? PIECES_LEAST : 1;
        choice.pieces = (uint32_t)units_ceil_divide(wanted, nodes);
        if (choice.pieces < least) choice.pieces = least;
    }
    if (portions != 0) {
        uint32_t const most = portions < PORTIONS_MAX ? portions : PORTIONS_MAX;
        choice.shortest = (uint32_t)units_ceil_divide(nodes, most);
        choice.portions = ends_find(&choice, nodes, NULL);
        return choice;
    }
    if (wanted < PIECES_LEAST) return choice;
    units_wide const outer_ps = (units_wide)pieces_level_ps(&levels[0], levels[0].bytes) * nodes;
    units_wide const inner_ps =
        (units_wide)pieces_level_ps(&levels[1], levels[1].bytes) * (nodes - 1);
    choice.grows = inner_ps > outer_ps;
    choice.longer_ps = choice.grows ? inner_ps : outer_ps;
    choice.shorter_ps = choice.grows ? outer_ps : inner_ps;
    if (choice.shorter_ps == 0) choice.shorter_ps = 1;
    choice.shortest =
        (uint32_t)units_ceil_divide((uint64_t)nodes * choice.pieces, PORTIONS_A_WAY * wanted);
    while (ends_find(&choice, nodes, NULL) > PORTIONS_MAX) choice.shortest++;
    choice.portions = ends_find(&choice, nodes, NULL);
    uint64_t const messages = levels[0].messages + (uint64_t)choice.portions * levels[1].messages;
    if (pieces == 0 && choice.pieces * messages > PIECES_MESSAGES_MAX)
        choice.pieces =
            messages < PIECES_MESSAGES_MAX ? (uint32_t)(PIECES_MESSAGES_MAX / messages) : 1;
    return choice;
}

enum status level_overlap_build(struct arena *arena, const struct level_overlap_choice *choice,
                                uint32_t nodes, struct level_overlap *ret_overlap,
                                struct error *reterr)
{
    uint32_t end[PORTIONS_MAX + 1], count = choice->portions;
    *ret_overlap = (struct level_overlap){.count = 0};
    if (count < 2) return STATUS_OK;
    SIM_ASSERT(count <= PORTIONS_MAX);
    uint32_t const found = ends_find(choice, nodes, end);
    SIM_ASSERT(found == count);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 3 * (uint64_t)count + nodes, sizeof(uint32_t), &memory, reterr));
    uint32_t *rising = memory, *falling = rising + count, *wait = falling + count;
    uint32_t *message_wait = wait + count;
    for (uint32_t k = 0; k < count; k++) {
        rising[k] = end[k];
        falling[k] = k + 1 < count ? nodes - end[count - 2 - k] : nodes;
    }
    const uint32_t *gather = choice->grows ? rising : falling;
    const uint32_t *reduce = choice->grows ? falling : rising;
    for (uint32_t k = 0; k < count; k++) wait[k] = gather[k] - 1; /* The own shard is there. */
    for (uint32_t m = 0, k = 0; m < nodes - 1; m++) {
        while (m >= reduce[k]) k++;
        message_wait[m] = k + 1;
    }
    *ret_overlap = (struct level_overlap){count, nodes, gather, wait, reduce, message_wait};
    return STATUS_OK;
}
