#include "sim/roofline/link_bound.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/rate_range.h"

enum { TRAFFICS_MAX = 16, NOT_CUT = -1 };

/* An axis is severed at the links of chips, or of a level at the cables that lead up to a tier. */
struct cut {
    int32_t tier[MACHINE_AXES_MAX];
};

/* How the members of a group along one dimension lie in boxes, on the mean of its groups. */
struct boxes {
    double count;
    double whole;    /* The share of groups that lie in one box. */
    double together; /* The share of pairs of members, each with itself too, in the same box. */
};

struct search {
    const struct machine *machine;
    const struct workload_traffic *traffic[TRAFFICS_MAX]; /* Those of several ranks. */
    struct boxes boxes[TRAFFICS_MAX][GROUP_DIMENSIONS_MAX][LEVEL_TIERS_MAX];
    uint32_t count;
    struct cut fixed; /* What is decided: those links carry what they must, and no more. */
    struct cut cut;   /* What is looked at besides. */
};

/* Bytes that cross a cut, for each chip of the machine. */
struct need {
    double all; /* Where whoever gets something gets it from another. */
    double in,
        out; /* Where what is for all leaves a box once, and what is added comes to it once. */
};

static bool is_grid(const struct machine *machine, uint32_t axis)
{
    return machine->axis_level[axis] == LEVEL_NONE;
}

/* --- Boxes --- */

/* The members of one group: where the first is, and those after it. */
static void boxes_add(const struct group_dimension *dimension, uint32_t box, uint32_t first,
                      struct boxes *boxes)
{
    uint32_t const size = dimension->size;
    double count = 0;
    for (uint32_t i = 0, last; i < size; i = last) {
        uint32_t const at = (first + i * dimension->stride) / box;
        for (last = i + 1; last < size; last++)
            if ((first + last * dimension->stride) / box != at) break;
        double const share = (double)(last - i) / size;
        boxes->together += share * share;
        count++;
    }
    boxes->count += count;
    boxes->whole += count == 1;
}

static struct boxes boxes_of(const struct machine *machine, const struct group_dimension *dimension,
                             uint32_t box)
{
    uint32_t const stride = dimension->stride, length = machine->shape[dimension->axis];
    double const groups = (double)length / dimension->size;
    struct boxes boxes = {0, 0, 0};
    for (uint32_t at = 0; at < length; at += dimension->size * stride)
        for (uint32_t i = 0; i < stride; i++) boxes_add(dimension, box, at + i, &boxes);
    return (struct boxes){boxes.count / groups, boxes.whole / groups, boxes.together / groups};
}

static void boxes_build(struct search *search, uint32_t t)
{
    const struct machine *machine = search->machine;
    const struct group *group = &search->traffic[t]->group;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        uint32_t const axis = dimension->axis;
        struct boxes *boxes = search->boxes[t][d];
        boxes[0] = (struct boxes){dimension->size, 0, 1.0 / dimension->size};
        if (is_grid(machine, axis)) continue;
        const struct level *level = &machine->level[machine->axis_level[axis]];
        for (uint32_t tier = 1; tier < level->tier_count; tier++)
            boxes[tier] = boxes_of(machine, dimension,
                                   level_box_length(machine, level, (int32_t)tier - 1, axis));
    }
}

/* --- What crosses --- */

static struct cut joined(const struct cut *a, const struct cut *b)
{
    struct cut cut = *a;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        if (b->tier[axis] != NOT_CUT) cut.tier[axis] = b->tier[axis];
    return cut;
}

/* The dimensions along which a cut tells members apart, as bits. A message between two that differ
 * along several takes the farthest level, so the nearer ones count only where that is severed chip
 * by chip. On a twisted torus a link along one axis may lead along another. */
static uint32_t severed(const struct machine *machine, const struct group *group,
                        const struct cut *cut)
{
    uint32_t bits = 0, grid = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        uint32_t const axis = group->dimension[d].axis;
        if (is_grid(machine, axis)) grid |= 1u << d;
        if (cut->tier[axis] != NOT_CUT) bits |= 1u << d;
    }
    if (machine_is_twisted(machine) && (bits & grid) != grid) bits &= ~grid;
    for (uint32_t far = 0; far < group->dimension_count; far++) {
        uint32_t const axis = group->dimension[far].axis;
        if (is_grid(machine, axis) || cut->tier[axis] == 0) continue;
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            uint32_t const nearer = group->dimension[d].axis;
            if (is_grid(machine, nearer) || machine->axis_level[nearer] < machine->axis_level[axis])
                bits &= ~(1u << d);
        }
    }
    return bits;
}

/* Tokens that go once to each unit of a level cross each by a count of its own. */
static double exchanged(const struct search *search, uint32_t t, const struct cut *cut,
                        uint32_t bits)
{
    const struct workload_traffic *traffic = search->traffic[t];
    double together = 1, most = 0;
    for (uint32_t d = 0; d < traffic->group.dimension_count; d++) {
        if ((bits >> d & 1) == 0) continue;
        double const same =
            search->boxes[t][d][cut->tier[traffic->group.dimension[d].axis]].together;
        most = fmax(most, traffic->crossing_bytes[d] * (1 - same));
        together *= same;
    }
    return traffic_crosses(traffic) ? most : traffic->all_to_all_bytes * (1 - together);
}

/* Of the whole cut. What goes along the grid alone takes as many links as it has to go, and is
 * counted there. */
static struct need need_of(const struct search *search, uint32_t t, const struct cut *cut)
{
    const struct workload_traffic *traffic = search->traffic[t];
    const struct group *group = &traffic->group;
    uint32_t const bits = severed(search->machine, group, cut);
    double count = 1, whole = 1;
    bool grid = true;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        grid = grid && is_grid(search->machine, group->dimension[d].axis);
        if ((bits >> d & 1) == 0) continue;
        const struct boxes *boxes = &search->boxes[t][d][cut->tier[group->dimension[d].axis]];
        count *= boxes->count;
        whole *= boxes->whole;
    }
    if (bits == 0) whole = 1;
    double const ranks = (double)group_rank_count(group), others = count - 1, once = 1 - whole;
    double const gathered = traffic->gather_bytes, scattered = traffic->scatter_bytes;
    double const summed = traffic->all_reduce_bytes;
    double moved = grid ? 0 : exchanged(search, t, cut, bits);
    if (!grid && group->dimension_count == 1) moved += traffic->permute_bytes * (others + once);
    return (struct need){
        .all = ((gathered + scattered + 2 * summed) * others + moved) / ranks,
        .in = (gathered * others + scattered * once + summed * (others + once) + moved) / ranks,
        .out = (scattered * others + gathered * once + summed * (others + once) + moved) / ranks,
    };
}

/* What the cut adds to what is decided. */
static struct need need_beyond(const struct search *search, uint32_t t)
{
    struct cut const both = joined(&search->fixed, &search->cut);
    struct need const all = need_of(search, t, &both), known = need_of(search, t, &search->fixed);
    return (struct need){all.all - known.all, all.in - known.in, all.out - known.out};
}

/* --- What there is to carry it --- */

static bool tier_copies(const struct level *level, uint32_t tier)
{
    for (uint32_t above = tier; above < level->tier_count; above++)
        if (level->tier[above].multicasts || level->tier[above].reduce_flop_per_s > 0) return true;
    return false;
}

/* Whether the dimensions along which a group is cut have switches that do. */
static bool copies(const struct machine *machine, const struct group *group, const struct cut *cut)
{
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        uint32_t const axis = group->dimension[d].axis;
        if (cut->tier[axis] != NOT_CUT && !is_grid(machine, axis) &&
            tier_copies(&machine->level[machine->axis_level[axis]], (uint32_t)cut->tier[axis]))
            return true;
    }
    return false;
}

bool link_bound_copies(const struct machine *machine, const struct group *group)
{
    struct cut const chips = {.tier = {0}};
    return copies(machine, group, &chips);
}

/* Links into a chip of the grid along an axis, on average. */
static double grid_links(const struct machine *machine, uint32_t axis)
{
    double const length = machine->shape[axis];
    bool const closes = machine->wrap[axis] || machine_twists(machine, axis);
    return closes ? 2 : 2 * (length - 1) / length;
}

/* Bytes a second, one way, that the severed links of an axis have for each chip. */
static double axis_rate(const struct search *search, uint32_t axis)
{
    const struct machine *machine = search->machine;
    if (is_grid(machine, axis))
        return grid_links(machine, axis) * rate_range_mean_link(machine, axis);
    const struct level *level = &machine->level[machine->axis_level[axis]];
    int32_t const tier = search->cut.tier[axis];
    return level_unit_count(machine, level, tier - 1) *
           (double)level_bundle_bytes_per_s(&level->tier[tier]) / machine->chip_count;
}

/* An exchange crosses the middle of each axis that it spans: half of a ring's links carry a quarter
 * of it. Bytes on a link, or on both links of a ring together. */
static double exchanged_along(const struct search *search, uint32_t t, uint32_t d)
{
    const struct machine *machine = search->machine;
    const struct workload_traffic *traffic = search->traffic[t];
    const struct group *group = &traffic->group;
    double const size = group->dimension[d].size, ranks = (double)group_rank_count(group);
    for (uint32_t i = 0; i < group->dimension_count; i++)
        if (!is_grid(machine, group->dimension[i].axis)) return 0;
    if (group->dimension_count > 1 && machine_is_twisted(machine)) return 0;
    double const bytes =
        traffic_crosses(traffic) ? traffic->crossing_bytes[d] : traffic->all_to_all_bytes;
    return bytes / ranks * floor(size * size / 4) / size * group->dimension[d].stride;
}

/* --- Bounds of a cut --- */

/* Links that a byte takes at least along the axes that are cut. */
static double least_stride(const struct search *search, const struct group *group)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        uint32_t const links = dimension->switched ? 1 : dimension->stride;
        if (search->cut.tier[dimension->axis] != NOT_CUT && links < least) least = links;
    }
    return least == UINT32_MAX ? 0 : least;
}

/* All groups together, on all severed links. */
static double together_s(const struct search *search)
{
    double in = 0, out = 0, along = 0, rate = 0;
    for (uint32_t t = 0; t < search->count; t++) {
        const struct group *group = &search->traffic[t]->group;
        struct need const need = need_beyond(search, t);
        double const links = least_stride(search, group);
        bool const once = copies(search->machine, group, &search->cut);
        in += links * (once ? need.in : need.all);
        out += links * (once ? need.out : need.all);
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            bool const cut = search->cut.tier[group->dimension[d].axis] != NOT_CUT;
            if (cut && group->dimension[d].ring) along += exchanged_along(search, t, d);
        }
    }
    for (uint32_t axis = 0; axis < search->machine->axis_count; axis++)
        if (search->cut.tier[axis] != NOT_CUT) rate += axis_rate(search, axis);
    return (fmax(in, out) + along) / rate;
}

/* Links of a group's own, those that lead to its other members. */
struct own_links {
    double rate; /* Bytes a second of all, for each member; rings of all groups take all links. */
    double ends_rate; /* At the ends of lines, which meet at a corner. */
    double least_s;   /* What goes along one dimension, were it for itself. */
};

static void own_links_add(const struct search *search, uint32_t t, uint32_t d,
                          struct own_links *own)
{
    const struct machine *machine = search->machine;
    const struct workload_traffic *traffic = search->traffic[t];
    const struct group_dimension *at = &traffic->group.dimension[d];
    bool const single = traffic->group.dimension_count == 1;
    if (!is_grid(machine, at->axis)) {
        double const rate =
            fmin(axis_rate(search, at->axis), level_mesh_rate(machine, at, at->size - 1));
        own->rate += rate;
        own->ends_rate += rate;
        if (single) own->least_s = traffic->permute_bytes / level_mesh_rate(machine, at, 1);
        return;
    }
    bool const closes = at->ring || (!single && machine_is_twisted(machine));
    double const fastest = rate_range_fastest_link(machine, at->axis) / at->stride;
    double const mean = rate_range_mean_link(machine, at->axis) / at->stride;
    own->rate += closes ? 2 * mean : 2 * (at->size - 1.0) / at->size * fastest;
    own->ends_rate += (closes ? 2 : 1) * fastest;
    own->least_s = exchanged_along(search, t, d) / at->stride / (closes ? 2 : 1) / fastest;
    if (single) own->least_s += traffic->permute_bytes / fastest;
}

/* A group for itself, on the links between its members. */
static double alone_s(const struct search *search, uint32_t t)
{
    const struct group *group = &search->traffic[t]->group;
    struct need const need = need_beyond(search, t);
    struct own_links own = {0, 0, 0};
    uint32_t along = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        if (search->cut.tier[group->dimension[d].axis] == NOT_CUT) continue;
        own_links_add(search, t, d, &own);
        along++;
    }
    if (along == 0) return 0;
    double const all =
        copies(search->machine, group, &search->cut) ? fmax(need.in, need.out) : need.all;
    double const ends_s = fmax(need.in, need.out) / own.ends_rate;
    return fmax(all / own.rate, fmax(ends_s, along == 1 ? own.least_s : 0));
}

static double cut_s(const struct search *search)
{
    double longest_s = together_s(search);
    for (uint32_t t = 0; t < search->count; t++) longest_s = fmax(longest_s, alone_s(search, t));
    return longest_s;
}

/* --- All cuts --- */

static int32_t tier_count(const struct machine *machine, uint32_t axis)
{
    if (machine->shape[axis] == 1) return 0;
    if (is_grid(machine, axis)) return 1;
    return (int32_t)machine->level[machine->axis_level[axis]].tier_count;
}

static struct cut cut_none(void)
{
    struct cut cut;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) cut.tier[axis] = NOT_CUT;
    return cut;
}

/* The next of all cuts: of axes that nothing is decided of, and closer to the chips of others. */
static bool cut_next(struct search *search)
{
    for (uint32_t axis = 0; axis < search->machine->axis_count; axis++) {
        int32_t const fixed = search->fixed.tier[axis];
        if (++search->cut.tier[axis] <
            (fixed == NOT_CUT ? tier_count(search->machine, axis) : fixed))
            return true;
        search->cut.tier[axis] = NOT_CUT;
    }
    return false;
}

void link_bound(const struct machine *machine, const struct workload_traffic *const *traffic,
                uint32_t count, double ret_busy_s[MACHINE_AXES_MAX])
{
    struct search search = {.machine = machine, .fixed = cut_none()};
    double most_s = INFINITY;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) ret_busy_s[axis] = 0;
    for (uint32_t t = 0; t < count; t++) {
        if (traffic[t]->group.dimension_count == 0) continue;
        SIM_ASSERT(search.count < TRAFFICS_MAX);
        search.traffic[search.count] = traffic[t];
        boxes_build(&search, search.count++);
    }
    /* The busiest axes first. What they have to carry is theirs, the others have the rest. */
    while (most_s > 0) {
        struct cut tightest = search.cut = cut_none();
        double longest_s = 0;
        while (cut_next(&search)) {
            bool decided = true;
            for (uint32_t axis = 0; axis < machine->axis_count; axis++)
                decided = decided &&
                          (search.cut.tier[axis] == NOT_CUT || search.fixed.tier[axis] != NOT_CUT);
            double const time_s = decided ? 0 : cut_s(&search);
            if (time_s <= longest_s) continue;
            longest_s = time_s;
            tightest = search.cut;
        }
        most_s = fmin(most_s, longest_s);
        for (uint32_t axis = 0; axis < machine->axis_count; axis++)
            if (tightest.tier[axis] != NOT_CUT && search.fixed.tier[axis] == NOT_CUT)
                ret_busy_s[axis] = most_s;
        search.fixed = joined(&search.fixed, &tightest);
    }
}
