#include "sim/collective/spanning.h"

#include "sim/base/units.h"
#include "sim/collective/compose_build.h"

/* All ranks together send no more messages: playing more takes longer than they bring. */
enum { SPANNING_MESSAGES_MAX = 5 << 19 };

/* Links from position 0 to another along a lane that leads away from it: lane 0 goes up. */
static uint32_t links_from(uint32_t size, uint32_t lane, uint32_t position)
{
    return lane == 0 || position == 0 ? position : size - position;
}

/* And along one that leads to it. */
static uint32_t links_to(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_from(size, 1 - lane, position);
}

/* --- Lines from or to a position 0, both ways round, all of a piece in one message --- */

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)position;
    (void)step;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = move,
                                   .halves =
                                       lane == 0 ? PRIMITIVE_HALF_FIRST : PRIMITIVE_HALF_SECOND};
}

static struct primitive_step step_after(uint32_t size, uint32_t arrivals)
{
    return (struct primitive_step){.units = size, .arrivals = arrivals, .move_count = size};
}

static uint32_t from_sends(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_from(size, lane, position) + 1 < size ? 1 : 0;
}

static uint32_t from_arrivals(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static struct primitive_step from_step(uint32_t size, uint32_t lane, uint32_t position,
                                       uint32_t step)
{
    (void)step;
    return step_after(size, from_arrivals(size, lane, position));
}

static uint32_t to_sends(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static uint32_t to_arrivals(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_to(size, lane, position) + 1 < size ? 1 : 0;
}

static struct primitive_step to_step(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)step;
    return step_after(size, to_arrivals(size, lane, position));
}

/* --- The same by the shorter way: both halves one way round, as far as it is no longer --- */

/* Links from position 0 to the farthest that a lane which leads away from it reaches. */
static uint32_t reach(uint32_t size, uint32_t lane)
{
    return lane == 0 ? size / 2 : (size - 1) / 2;
}

static struct primitive_move whole_move(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step, uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = primitive_any, .destination = move, .halves = PRIMITIVE_HALVES};
}

static struct primitive_step whole_step_after(uint32_t size, uint32_t arrivals)
{
    return (struct primitive_step){.units = 2 * size, .arrivals = arrivals, .move_count = size};
}

static uint32_t near_from_sends(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_from(size, lane, position) < reach(size, lane) ? 1 : 0;
}

static uint32_t near_from_arrivals(uint32_t size, uint32_t lane, uint32_t position)
{
    return position > 0 && links_from(size, lane, position) <= reach(size, lane) ? 1 : 0;
}

static struct primitive_step near_from_step(uint32_t size, uint32_t lane, uint32_t position,
                                            uint32_t step)
{
    (void)step;
    return whole_step_after(size, near_from_arrivals(size, lane, position));
}

static uint32_t near_to_sends(uint32_t size, uint32_t lane, uint32_t position)
{
    return near_from_arrivals(size, 1 - lane, position);
}

static uint32_t near_to_arrivals(uint32_t size, uint32_t lane, uint32_t position)
{
    return near_from_sends(size, 1 - lane, position);
}

static struct primitive_step near_to_step(uint32_t size, uint32_t lane, uint32_t position,
                                          uint32_t step)
{
    (void)step;
    return whole_step_after(size, near_to_arrivals(size, lane, position));
}

/* --- The link that closes a ring: to position 0, or from it --- */

static uint32_t closes(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_from(size, lane, position) + 1 == size ? 1 : 0;
}

static uint32_t begins(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position == 0 ? 1 : 0;
}

static uint32_t follows(uint32_t size, uint32_t lane, uint32_t position)
{
    return links_to(size, lane, position) + 1 == size ? 1 : 0;
}

static struct primitive_step close_step(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step)
{
    (void)lane;
    (void)position;
    (void)step;
    return step_after(size, 0);
}

/* --- What they cost: each message is all of a piece, or half of it --- */

static struct primitive_cost line_cost(uint32_t size)
{
    return (struct primitive_cost){
        .depth = size - 1, .units = (uint64_t)size * (size - 1), .port_units = size};
}

static struct primitive_cost near_line_cost(uint32_t size)
{
    return (struct primitive_cost){.depth = size / 2,
                                   .units = 2 * (uint64_t)size * (size / 2),
                                   .port_units = 2 * (uint64_t)size};
}

static struct primitive_cost close_cost(uint32_t size)
{
    return (struct primitive_cost){.depth = 1, .units = size, .port_units = size};
}

/* By the shorter ways what closes a ring has come sooner than what goes to the middle of it, but on
 * a ring of 3. */
static struct primitive_cost near_close_cost(uint32_t size)
{
    if (size / 2 == 1) return close_cost(size);
    return (struct primitive_cost){.depth = 0};
}

/* Of a ring's two ways, each a lane. */
#define PART(part_name, part_kind, sends, arrivals, part_step, part_move, part_cost)               \
    {                                                                                              \
        .name = part_name, .kind = part_kind, .family = PRIMITIVE_RING, .ring = true,              \
        .lane_count = 2, .send_count = sends, .arrival_count = arrivals, .step = part_step,        \
        .move = part_move, .cost = part_cost,                                                      \
    }

/* Not of the catalogue: by itself a closing link is no collective. */
static const struct primitive parts[2][SPANNING_NONE] = {
    {
        PART("broadcast_tree_line", COLLECTIVE_BROADCAST, from_sends, from_arrivals, from_step,
             move_of, line_cost),
        PART("broadcast_tree_close", COLLECTIVE_BROADCAST, closes, begins, close_step, move_of,
             close_cost),
        PART("broadcast_tree_near_line", COLLECTIVE_BROADCAST, near_from_sends, near_from_arrivals,
             near_from_step, whole_move, near_line_cost),
        PART("broadcast_tree_near_close", COLLECTIVE_BROADCAST, closes, begins, close_step, move_of,
             near_close_cost),
    },
    {
        PART("reduce_tree_line", COLLECTIVE_REDUCE, to_sends, to_arrivals, to_step, move_of,
             line_cost),
        PART("reduce_tree_close", COLLECTIVE_REDUCE, begins, follows, close_step, move_of,
             close_cost),
        PART("reduce_tree_near_line", COLLECTIVE_REDUCE, near_to_sends, near_to_arrivals,
             near_to_step, whole_move, near_line_cost),
        PART("reduce_tree_near_close", COLLECTIVE_REDUCE, begins, follows, close_step, move_of,
             near_close_cost),
    },
};
#undef PART

enum spanning_part spanning_part(const struct primitive *primitive)
{
    for (uint32_t part = 0; part < SPANNING_NONE; part++)
        if (primitive == &parts[0][part] || primitive == &parts[1][part])
            return (enum spanning_part)part;
    return SPANNING_NONE;
}

bool spanning_applies(const struct choice *choice, const struct group *group,
                      enum collective_kind kind)
{
    bool const whole = kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE;
    if (!whole || !choice->by_axis || choice->levels.outer_count > 0 || group->dimension_count < 2)
        return false;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *at = &group->dimension[d];
        if (!at->ring || at->size < 3 || at->stride != 1) return false;
    }
    return true;
}

static uint8_t bits_of(const struct chain *chain, uint32_t begin, uint32_t end)
{
    uint32_t bits = 0;
    for (uint32_t i = begin; i < end; i++) bits |= 1u << chain->dimension[i];
    return (uint8_t)bits;
}

static enum status part_add(const struct build *build, uint32_t order, const struct chain *chain,
                            enum spanning_part part, uint32_t level, uint8_t *after)
{
    struct plan *plan = build->plan;
    STATUS_TRY(
        item_add(build, &parts[plan->kind == COLLECTIVE_REDUCE][part], order, chain, level, after));
    struct plan_item *item = &plan->item[*after];
    /* Each carries all of a piece: its chunk is what ranks hold that stand alike along its axis. */
    for (uint32_t i = level + 1; i < chain->count; i++)
        item->unit_bytes *= plan->group.dimension[chain->dimension[i]].size;
    if (part == SPANNING_CLOSE || part == SPANNING_NEAR_CLOSE) {
        item->off_root = bits_of(chain, 1, chain->count);
        return STATUS_OK;
    }
    item->at_root = bits_of(chain, level + 1, chain->count);
    item->off_root = level > 0 ? bits_of(chain, 0, 1) : 0;
    return STATUS_OK;
}

/* How the array is cut, and what a link could carry until the last piece has come everywhere. */
struct cut {
    uint64_t pieces;
    units_wide bytes;
};

/* With P pieces a tree of h links in series takes (1 + (h-1)/P) times what its part takes a link,
 * and what a rank's part of a piece is rounded up by, and h hops: the least of it all, up to the
 * limits. `near`: by trees that go the shorter ways, half as many, each with twice as much. */
static struct cut cut_of(const struct build *build, bool near)
{
    const struct plan_request *request = build->request;
    const struct group *group = &request->group;
    uint64_t const rank_count = group_rank_count(group), orders = group->dimension_count;
    uint64_t const halves = 2 * orders * rank_count, trees = near ? orders : 2 * orders;
    uint64_t const by_rank = ROOTED_MESSAGES_MAX / trees;
    uint64_t const by_all = SPANNING_MESSAGES_MAX / (trees * rank_count);
    uint64_t const most = by_all < by_rank ? by_all : by_rank, given = request->piece_count;
    uint64_t series = near ? 0 : 1, hop_bytes = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        uint64_t const hop = request->hop_bytes[d] == 0 ? 65536 : request->hop_bytes[d];
        series += near ? group->dimension[d].size / 2 : group->dimension[d].size - 1;
        if (hop > hop_bytes) hop_bytes = hop;
    }
    struct cut best = {1, 0};
    for (uint64_t count = given == 0 ? 1 : given; count <= (given == 0 ? most : given); count++) {
        uint64_t const part = units_ceil_divide(request->size_bytes, halves * count);
        units_wide const bytes = (units_wide)part * rank_count * (near ? 2 : 1);
        units_wide const cost = bytes * (count + series - 1) + series * hop_bytes;
        if (best.bytes > 0 && cost >= best.bytes) continue;
        best = (struct cut){count, cost};
    }
    return best;
}

static bool is_near(const struct build *build)
{
    return cut_of(build, true).bytes < cut_of(build, false).bytes;
}

enum status spanning_add(const struct build *build, uint32_t order, const struct chain *chain,
                         uint8_t *after)
{
    bool const reduces = build->plan->kind == COLLECTIVE_REDUCE;
    bool const near = is_near(build);
    enum spanning_part const line = near ? SPANNING_NEAR_LINE : SPANNING_LINE;
    enum spanning_part const close = near ? SPANNING_NEAR_CLOSE : SPANNING_CLOSE;
    if (reduces) STATUS_TRY(part_add(build, order, chain, close, 0, after));
    for (uint32_t i = 0; i < chain->count; i++)
        STATUS_TRY(part_add(build, order, chain, line, reduces ? chain->count - 1 - i : i, after));
    return reduces ? STATUS_OK : part_add(build, order, chain, close, 0, after);
}

uint32_t spanning_pieces(const struct build *build)
{
    return (uint32_t)cut_of(build, is_near(build)).pieces;
}
