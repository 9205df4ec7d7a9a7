#include "sim/roofline/bisection.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/rate_range.h"

struct search {
    const struct machine *machine;
    const struct group *group;
    const struct collective_query *query;
    double array_bytes, ranks;
    double grid_ranks; /* Of one island of the grid: a slice. */
    bool adds;         /* Some switches can. */
    struct bisection cut;
};

bool collective_on_twisted(const struct machine *machine, const struct group *group)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        axes += machine->axis_level[group->dimension[d].axis] == LEVEL_NONE;
    return axes > 1 && machine_is_twisted(machine);
}

static bool on_grid(const struct search *search, uint32_t index)
{
    return search->machine->axis_level[search->group->dimension[index].axis] == LEVEL_NONE;
}

static void strict(struct search *search, double time_s)
{
    search->cut.strict_s = fmax(search->cut.strict_s, time_s);
}

static bool book(struct search *search, double time_s)
{
    if (time_s <= search->cut.book_s) return false;
    search->cut.book_s = time_s;
    search->cut.axis = search->cut.level = search->cut.tier = -1;
    return true;
}

/* Bytes that must cross the border of `members` of `all` ranks one way, the busier one. A sum of
 * all ranks needs that half of them tell the others at least; if the members are one of equal sets,
 * that each tells its part and hears the result, on average over the sets. */
static double crossing(const struct search *search, double members, double all, bool adds)
{
    double const v = search->array_bytes;
    if (members >= all) return 0;
    switch (search->query->kind) {
    case COLLECTIVE_ALL_REDUCE:
        if (adds || fmod(all, members) != 0) return v;
        return 2 * v * (1 - members / all);
    case COLLECTIVE_ALL_TO_ALL:
        return v * members * (all - members) / (search->ranks * search->ranks);
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
        return v * (1 - members / all);
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
        return v;
    case COLLECTIVE_PERMUTE:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return 0;
}

/* --- Levels --- */

/* Whether an axis is inside what a level joins: a chip's neighbours on the grid, its node. */
static bool is_nearer(const struct machine *machine, uint32_t axis, uint32_t level)
{
    return machine->axis_level[axis] == LEVEL_NONE || machine->axis_level[axis] < level;
}

/* The chips that cannot be told apart by a tier of a level, and what leads up from them. */
struct box {
    double chips;
    double members; /* Of the group. */
    double units;   /* Of the tier below, that they fill. */
    double bytes_per_s;
};

/* Without a switch a chip has a link to each other member in its node, of which a permute uses one.
 */
static double mesh_rate(const struct search *search, uint32_t index)
{
    const struct group_dimension *along = NULL;
    uint32_t members = 1;
    for (uint32_t d = 0; d < search->group->dimension_count; d++) {
        const struct group_dimension *dimension = &search->group->dimension[d];
        if (search->machine->axis_level[dimension->axis] != index) continue;
        along = dimension;
        members *= dimension->size;
    }
    bool const permutes = search->query->kind == COLLECTIVE_PERMUTE;
    if (along == NULL) return INFINITY;
    return level_mesh_rate(search->machine, along, permutes ? 1 : members - 1);
}

static struct box box_of(const struct search *search, uint32_t index, uint32_t tier)
{
    const struct machine *machine = search->machine;
    const struct level *level = &machine->level[index];
    struct box box = {1, 1, 1, 0};
    uint32_t length[MACHINE_AXES_MAX];
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint32_t const side = tier == 0 ? 1 : level->tier[tier - 1].box[axis];
        uint32_t const shape = machine->shape[axis];
        uint32_t const cut = side < shape ? side : shape;
        bool const nearer = is_nearer(machine, axis, index);
        length[axis] = nearer ? shape : machine->axis_level[axis] == index ? cut : 1;
        box.chips *= length[axis];
        box.units *= nearer ? (shape + cut - 1) / cut : 1; /* A last one may be smaller. */
    }
    for (uint32_t i = 0; i < search->group->dimension_count; i++) {
        const struct group_dimension *dimension = &search->group->dimension[i];
        uint32_t const places = (length[dimension->axis] - 1) / dimension->stride + 1;
        box.members *= places < dimension->size ? places : dimension->size;
    }
    box.bytes_per_s = box.units * (double)level_bundle_bytes_per_s(&level->tier[tier]);
    if (tier == 0) box.bytes_per_s = fmin(box.bytes_per_s, mesh_rate(search, index));
    return box;
}

/* What chips have of the levels beyond one, at most: their own cables. */
static double farther_rate(const struct search *search, uint32_t level, double chips)
{
    double rate = 0;
    for (uint32_t far = level; far < search->machine->level_count; far++)
        rate += chips * (double)level_bundle_bytes_per_s(&search->machine->level[far].tier[0]);
    return rate;
}

/* A permute's ranks all send at once, by the farthest level that they cross: of a box, those at
 * its end by as many places as the shift. */
static double shifted(const struct search *search, uint32_t index, uint32_t tier,
                      const struct box *box)
{
    const struct group *group = search->group;
    const struct level *level = &search->machine->level[index];
    double leaving = 0;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        int32_t const offset = search->query->offset[i];
        uint32_t const axis = group->dimension[i].axis;
        if (offset == 0 || on_grid(search, i)) continue;
        if (search->machine->axis_level[axis] > index) return 0;
        if (search->machine->axis_level[axis] < index) continue;
        uint32_t const side = tier == 0 ? 1 : level->tier[tier - 1].box[axis];
        double const places = (side - 1) / group->dimension[i].stride + 1;
        double const share = (offset < 0 ? -offset : offset) / places;
        if (places < group->dimension[i].size) leaving = fmax(leaving, fmin(share, 1));
    }
    return search->array_bytes * box->members * leaving;
}

/* Time of the adders: the units above a box's siblings add what these send up. Whoever gets a sum
 * can add its own part itself, so n siblings need n - 2 additions. */
static double adding_s(const struct search *search, uint32_t index, uint32_t tier,
                       const struct box *below, const struct box *above)
{
    const struct level_tier *own = &search->machine->level[index].tier[tier];
    if (search->query->element_bits == 0 || above->members <= below->members) return 0;
    double units = 1;
    for (uint32_t axis = 0; axis < search->machine->axis_count; axis++) {
        uint32_t const shape = search->machine->shape[axis];
        if (is_nearer(search->machine, axis, index))
            units *= (shape + own->box[axis] - 1) / own->box[axis];
    }
    double const additions = fmax(above->members / below->members - 2, 0);
    double const groups = above->chips / above->members;
    return groups * additions * search->array_bytes * 8 / search->query->element_bits /
           (units * (double)own->reduce_flop_per_s);
}

static struct box whole_island(const struct search *search, uint32_t index)
{
    const struct machine *machine = search->machine;
    struct box island = {1, 1, 1, 0};
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (is_nearer(machine, axis, index + 1)) island.chips *= machine->shape[axis];
    for (uint32_t i = 0; i < search->group->dimension_count; i++)
        if (is_nearer(machine, search->group->dimension[i].axis, index + 1))
            island.members *= search->group->dimension[i].size;
    return island;
}

static bool can_add(const struct search *search, uint32_t index)
{
    const struct level *level = &search->machine->level[index];
    bool can = search->query->kind == COLLECTIVE_ALL_REDUCE;
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        bool const used =
            tier == 0 || box_of(search, index, tier).members < whole_island(search, index).members;
        can = can &&
              (!used || (level->tier[tier].multicasts && level->tier[tier].reduce_flop_per_s > 0));
    }
    return can;
}

/* By a level's switches that add, or without. */
static void cut_tiers(struct search *search, uint32_t index, bool adds)
{
    const struct level *level = &search->machine->level[index];
    struct box const island = whole_island(search, index);
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        struct box const box = box_of(search, index, tier);
        bool const top = tier + 1 == level->tier_count;
        struct box const above = top ? island : box_of(search, index, tier + 1);
        double const share = box.members / box.chips;
        bool const permutes = search->query->kind == COLLECTIVE_PERMUTE;
        double const inside = permutes ? shifted(search, index, tier, &box)
                                       : crossing(search, box.members, island.members, adds);
        double const outside =
            permutes ? inside : crossing(search, box.members, search->ranks, search->adds);
        strict(search,
               outside / share / (box.bytes_per_s + farther_rate(search, index + 1, box.chips)));
        bool const wider = book(search, inside / share / box.bytes_per_s);
        bool const slow = adds && book(search, adding_s(search, index, tier, &box, &above));
        if (!wider && !slow) continue;
        search->cut.bound_by = tier == 0 && !slow ? "port" : "switch";
        search->cut.where = slow ? level->tier[tier].name : level->tier[tier].cable_name;
        search->cut.level = (int32_t)index;
        search->cut.tier = (int32_t)tier;
    }
}

/* Adders that are slower than what they save are left idle. */
static void cut_level(struct search *search, uint32_t index)
{
    struct search plain = *search;
    bool const adds = can_add(search, index);
    cut_tiers(search, index, adds);
    if (!adds) return;
    cut_tiers(&plain, index, false);
    if (plain.cut.book_s < search->cut.book_s) search->cut = plain.cut;
}

/* --- The grid --- */

/* Whether links lead on from the end of a dimension. The book's rates are those of the algorithms
 * that treat a line as a line; `routed`: of messages that find their way. */
static bool closes(const struct search *search, uint32_t index, bool routed)
{
    const struct group_dimension *dimension = &search->group->dimension[index];
    if (dimension->ring) return true;
    return routed && (search->machine->wrap[dimension->axis] ||
                      machine_twists(search->machine, dimension->axis));
}

/* Links' rates of a dimension into a member. Strided members share theirs with the groups they are
 * interleaved with. At the end of a line there is one, where nothing wraps around behind it. */
static double dimension_rate(const struct search *search, uint32_t index, bool ends, bool as_book)
{
    const struct group_dimension *dimension = &search->group->dimension[index];
    double const link = rate_range_fastest_link(search->machine, dimension->axis);
    double const size = dimension->size;
    double const links = closes(search, index, !as_book) ? 2 : ends ? 1 : 2 * (size - 1) / size;
    return links * link / dimension->stride;
}

/* The members that agree in the dimensions of a subset, at a corner of all of them. */
static void cut_subset(struct search *search, uint32_t subset)
{
    double size = 1, corner = 0, corner_strict = 0, average_strict = 0;
    int32_t axis = -1;
    for (uint32_t i = 0; i < search->group->dimension_count; i++) {
        if ((subset >> i & 1) == 0) continue;
        size *= search->group->dimension[i].size;
        corner += dimension_rate(search, i, true, true);
        corner_strict += dimension_rate(search, i, true, false);
        average_strict += dimension_rate(search, i, false, false);
        axis = axis < 0 ? (int32_t)search->group->dimension[i].axis : INT32_MAX;
    }
    double const members = search->grid_ranks / size;
    double const far = farther_rate(search, 0, members);
    double const need = crossing(search, members, search->grid_ranks, false);
    if (search->query->kind == COLLECTIVE_ALL_REDUCE) {
        double const v = search->array_bytes;
        strict(search, v / (members * corner_strict + far));
        strict(search, 2 * v * (1 - members / search->ranks) / (members * average_strict + far));
    } else {
        strict(search,
               crossing(search, members, search->ranks, false) / (members * corner_strict + far));
    }
    if (!book(search, need / (members * corner))) return;
    search->cut.bound_by = "wire";
    search->cut.axis = axis == INT32_MAX ? -1 : axis;
    search->cut.where = axis == INT32_MAX ? "grid" : search->machine->axis_name[axis];
}

/* A dimension cut through its middle: half of an exchange crosses. */
static void cut_middle(struct search *search, uint32_t index)
{
    const struct group_dimension *dimension = &search->group->dimension[index];
    double const size = dimension->size, half = dimension->size / 2, n = search->ranks;
    double const island = search->grid_ranks / n;
    double const crossed =
        search->array_bytes * island * island * half * (size - half) / (size * size);
    double const lines = search->grid_ranks / size / dimension->stride *
                         rate_range_fastest_link(search->machine, dimension->axis);
    double const far = farther_rate(search, 0, search->grid_ranks / 2);
    bool const twisted = collective_on_twisted(search->machine, search->group);
    double shifted = 0; /* Links around another axis that come out on the other side. */
    for (uint32_t other = 0; other < search->machine->grid_axis_count; other++)
        if (search->machine->twist[other][dimension->axis] != 0)
            shifted += search->grid_ranks / search->machine->shape[other] *
                       rate_range_fastest_link(search->machine, other);
    strict(search, crossed / ((closes(search, index, true) ? 2 : 1) * lines + shifted + far));
    double const rate = (closes(search, index, twisted) ? 2 : 1) * lines + (twisted ? shifted : 0);
    if (!book(search, crossed / rate)) return;
    search->cut.bound_by = "wire";
    search->cut.axis = (int32_t)dimension->axis;
    search->cut.where = search->machine->axis_name[dimension->axis];
}

/* An exchange of all pairs of a whole twisted torus: each needs as many links as its ends are
 * apart, over all links there are. Every chip sees the same distances. */
static void cut_distances(struct search *search)
{
    const struct machine *machine = search->machine;
    uint32_t const from[MACHINE_AXES_MAX] = {0};
    double links = 0, rate = 0, chips = 1;
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        rate += 2 * rate_range_fastest_link(machine, axis);
        chips *= machine->shape[axis];
    }
    if (machine->level_count > 0 || search->grid_ranks < chips || !machine_is_twisted(machine))
        return;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t to[MACHINE_AXES_MAX];
        int32_t hops[CHIP_AXES_MAX];
        machine_coordinates(machine, chip, to);
        machine_hops(machine, from, to, hops);
        links += abs(hops[0]) + abs(hops[1]) + abs(hops[2]);
    }
    double const time_s = search->array_bytes / search->ranks / search->ranks * links / rate;
    strict(search, time_s);
    if (!book(search, time_s)) return;
    search->cut.bound_by = "wire";
    search->cut.where = "grid";
}

/* The root's own links: those of a line's end are fewer. On a line also the longer side of it. */
static void cut_root(struct search *search)
{
    double rate = farther_rate(search, 0, 1), v = search->array_bytes;
    for (uint32_t i = 0; i < search->group->dimension_count; i++) {
        if (!on_grid(search, i)) continue;
        const struct group_dimension *dimension = &search->group->dimension[i];
        uint32_t const digit = group_digit(search->group, search->query->root, i);
        uint32_t const last = dimension->size - 1;
        bool const leads_on = closes(search, i, true);
        double const link = rate_range_fastest_link(search->machine, dimension->axis);
        rate += (leads_on || (digit > 0 && digit < last) ? 2 : 1) * link / dimension->stride;
        double const side = digit > last - digit ? digit : last - digit;
        double const lines = search->grid_ranks / dimension->size / dimension->stride * link;
        if (leads_on || search->machine->level_count > 0) continue;
        strict(search, v * side / dimension->size / lines);
        if (!book(search, v * side / dimension->size / lines)) continue;
        search->cut.bound_by = "wire";
        search->cut.axis = (int32_t)dimension->axis;
        search->cut.where = search->machine->axis_name[dimension->axis];
    }
    double const time_s = v * (1 - 1 / search->ranks) / rate;
    strict(search, time_s);
    if (!book(search, time_s)) return;
    bool const wired = search->grid_ranks > 1;
    search->cut.bound_by = wired ? "wire" : "port";
    search->cut.where = wired ? "grid" : search->machine->level[0].tier[0].cable_name;
}

/* A shift along the grid. Each message needs as many links as its ends are apart, over all links
 * that chips have in the group's dimensions; in the catalogue it goes one way, and as many messages
 * share a link. */
static void cut_shift(struct search *search)
{
    double rate = farther_rate(search, 0, 1), links = 0, v = search->array_bytes;
    bool unknown = true;
    for (uint32_t i = 0; i < search->group->dimension_count; i++) {
        const struct group_dimension *dimension = &search->group->dimension[i];
        int32_t const offset = search->query->offset[i];
        uint32_t const up = (uint32_t)(offset < 0 ? -offset : offset) % dimension->size;
        uint32_t const down = dimension->size - up;
        uint32_t const apart = up < down || !dimension->ring ? up : down;
        unknown = unknown && offset == 0;
        if (!on_grid(search, i)) continue;
        double const link = rate_range_fastest_link(search->machine, dimension->axis);
        links += apart;
        rate += 2 * link / dimension->stride;
        if (!book(search, v * apart * dimension->stride / link)) continue;
        search->cut.bound_by = "wire";
        search->cut.axis = (int32_t)dimension->axis;
        search->cut.where = search->machine->axis_name[dimension->axis];
    }
    bool const shorter =
        search->machine->level_count > 0 || collective_on_twisted(search->machine, search->group);
    strict(search, v * (shorter ? 1 : fmax(links, 1)) / rate);
    if (!unknown || !book(search, search->cut.strict_s)) return;
    bool const wired = search->grid_ranks > 1;
    search->cut.bound_by = wired ? "wire" : "port";
    search->cut.where = wired ? "grid" : search->machine->level[0].tier[0].cable_name;
}

struct bisection bisection_tightest(const struct machine *machine, const struct group *group,
                                    const struct collective_query *query)
{
    struct search search = {
        .machine = machine,
        .group = group,
        .query = query,
        .array_bytes = (double)query->array_bytes,
        .ranks = (double)group_rank_count(group),
        .grid_ranks = 1,
        .cut = {.bound_by = "", .where = "", .axis = -1, .level = -1, .tier = -1},
    };
    enum collective_kind const kind = query->kind;
    uint32_t grid = 0;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        if (!on_grid(&search, i)) continue;
        grid |= 1u << i;
        search.grid_ranks *= group->dimension[i].size;
    }
    for (uint32_t level = 0; level < machine->level_count; level++)
        search.adds = search.adds || can_add(&search, level);
    for (uint32_t level = 0; level < machine->level_count; level++) cut_level(&search, level);
    if (kind == COLLECTIVE_PERMUTE) cut_shift(&search);
    if (kind == COLLECTIVE_GATHER || kind == COLLECTIVE_SCATTER) cut_root(&search);
    for (uint32_t subset = 1; subset <= grid; subset++)
        if ((subset & ~grid) == 0 && kind != COLLECTIVE_PERMUTE && kind != COLLECTIVE_GATHER &&
            kind != COLLECTIVE_SCATTER && kind != COLLECTIVE_ALL_TO_ALL)
            cut_subset(&search, subset);
    for (uint32_t i = 0; i < group->dimension_count; i++)
        if (kind == COLLECTIVE_ALL_TO_ALL && on_grid(&search, i)) cut_middle(&search, i);
    if (kind == COLLECTIVE_ALL_TO_ALL) cut_distances(&search);
    return search.cut;
}
