#include "sim/collective/choice.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"

/* What is being chosen, and why it cannot be. */
struct chooser {
    const struct plan_request *request;
    struct choice choice;
    struct algorithm_level asked[GROUP_DIMENSIONS_MAX]; /* By dimension. */
    bool strict; /* Every dimension has to have what is asked for it. */
    bool found;  /* Some primitive is of a family that is asked for. */
    bool used;   /* Such a primitive was taken. */
    char reason[CHOICE_VERDICT_BYTES];
};

struct levels levels_of(const struct group *group)
{
    struct levels levels = {.grid_count = 0};
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *at = &group->dimension[d];
        if (!at->switched) {
            levels.grid[levels.grid_count++] = (uint8_t)d;
            continue;
        }
        uint32_t place = levels.outer_count++;
        for (; place > 0; place--) {
            const struct group_dimension *other = &group->dimension[levels.outer[place - 1]];
            if (other->axis > at->axis || (other->axis == at->axis && other->stride > at->stride))
                break;
            levels.outer[place] = levels.outer[place - 1];
        }
        levels.outer[place] = (uint8_t)d;
    }
    return levels;
}

static bool refuse(struct chooser *chooser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct chooser *chooser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(chooser->reason, sizeof chooser->reason, format, arguments);
    va_end(arguments);
    return false;
}

/* Whether the switches along a dimension do what a primitive asks of them. */
static bool network_serves(const struct chooser *chooser, const struct primitive *primitive,
                           uint32_t dimension)
{
    const struct plan_request *request = chooser->request;
    switch (primitive->network) {
    case PRIMITIVE_NETWORK_NONE:
        return true;
    case PRIMITIVE_NETWORK_MULTICAST:
        return request->multicasts[dimension];
    case PRIMITIVE_NETWORK_REDUCE:
        return request->reduces[dimension];
    case PRIMITIVE_NETWORK_ALL_REDUCE:
        return request->multicasts[dimension] && request->reduces[dimension];
    }
    return false;
}

/* A primitive of a family for a dimension, or for all together; NULL if there is none. */
static const struct primitive *find(const struct chooser *chooser, enum collective_kind kind,
                                    uint32_t dimension, enum primitive_family family)
{
    const struct primitive *primitive = NULL;
    if (!chooser->choice.flat && !chooser->request->group.dimension[dimension].switched)
        primitive = primitive_find(kind, family, false);
    return primitive == NULL ? primitive_find(kind, family, true) : primitive;
}

/* The one that is asked for along a dimension; NULL: none is, or there is none. */
static const struct primitive *asked_find(const struct chooser *chooser, enum collective_kind kind,
                                          uint32_t dimension)
{
    const struct algorithm_level *asked = &chooser->asked[dimension];
    return asked->means == ALGORITHM_FAMILY ? find(chooser, kind, dimension, asked->family) : NULL;
}

/* Whether it can run there; else the reason is noted. */
static bool is_applicable(struct chooser *chooser, const struct primitive *primitive,
                          uint32_t dimension)
{
    const struct group *group = &chooser->request->group;
    const struct group_dimension *at = &group->dimension[dimension];
    uint32_t const size = chooser->choice.flat ? (uint32_t)group_rank_count(group) : at->size;
    if (primitive->ring && !at->ring)
        return refuse(chooser,
                      "\"%s\" needs an axis that closes into a ring, and the %u chips along %s do "
                      "not",
                      primitive_algorithm(primitive), at->size, at->name);
    const char *why =
        primitive->routed && primitive->refuses != NULL ? primitive->refuses(size) : NULL;
    if (why != NULL)
        return refuse(chooser, "\"%s\" %s, and there are %u ranks%s%s",
                      primitive_algorithm(primitive), why, size,
                      chooser->choice.flat ? "" : " along ", chooser->choice.flat ? "" : at->name);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        if ((!chooser->choice.flat && d != dimension) || network_serves(chooser, primitive, d))
            continue;
        bool const has_switches = group->dimension[d].switched && !chooser->request->meshed[d];
        return refuse(chooser, "\"%s\" needs switches that %s, and %s along %s%s",
                      primitive_algorithm(primitive),
                      primitive->network == PRIMITIVE_NETWORK_MULTICAST ? "copy" : "add",
                      has_switches ? "those" : "there are none", group->dimension[d].name,
                      has_switches ? " do not" : "");
    }
    return true;
}

enum primitive_family choice_suited(const struct plan_request *request, enum collective_kind kind,
                                    uint32_t dimension, const struct choice *choice)
{
    const struct group_dimension *at = &request->group.dimension[dimension];
    if (kind == COLLECTIVE_PERMUTE) return PRIMITIVE_SHIFT;
    if (collective_is_rooted(kind)) {
        bool const single = request->group.dimension_count == 1;
        bool const spreads = kind == COLLECTIVE_SCATTER || kind == COLLECTIVE_GATHER;
        /* Without a switch the root has a link to each, of which a tree uses one at a time. */
        if (single && spreads && request->meshed[dimension]) return PRIMITIVE_DIRECT;
        if (!choice->by_axis) return PRIMITIVE_TREE;
        if (at->ring) return PRIMITIVE_RING;
        return spreads ? PRIMITIVE_DIRECT : PRIMITIVE_CHAIN;
    }
    if (choice->flat || at->switched) return PRIMITIVE_DIRECT;
    return at->ring ? PRIMITIVE_RING : PRIMITIVE_LINE;
}

/* The primitive of a dimension that is asked for; that of `auto` where none can run and that is
 * allowed. */
static bool choose(struct chooser *chooser, enum collective_kind kind, uint32_t dimension,
                   const struct primitive **ret_primitive)
{
    const struct algorithm_level *asked = &chooser->asked[dimension];
    const struct primitive *primitive = asked_find(chooser, kind, dimension);
    if (primitive != NULL) {
        chooser->found = true;
        *ret_primitive = primitive;
        if (is_applicable(chooser, primitive, dimension)) return chooser->used = true;
        if (chooser->strict) return false;
    } else if (asked->means != ALGORITHM_AUTO && chooser->strict) {
        return refuse(chooser, "there is no \"%s\" along %s", algorithm_level_text(asked).text,
                      chooser->request->group.dimension[dimension].name);
    }
    primitive = find(chooser, kind, dimension,
                     choice_suited(chooser->request, kind, dimension, &chooser->choice));
    SIM_ASSERT(primitive != NULL);
    *ret_primitive = primitive;
    return true;
}

/* An AllReduce on one dimension: as a whole if there is such a primitive and it is the last of a
 * chain, else in two. */
static bool choose_all_reduce(struct chooser *chooser, uint32_t dimension)
{
    struct choice *choice = &chooser->choice;
    const struct levels *levels = &choice->levels;
    bool const last = choice->flat || levels->outer_count == 0 || levels->outer[0] == dimension;
    bool const strict = chooser->strict;
    const struct primitive *whole =
        last ? asked_find(chooser, COLLECTIVE_ALL_REDUCE, dimension) : NULL;
    if (whole != NULL) {
        chooser->found = true;
        if (is_applicable(chooser, whole, dimension)) {
            chooser->used = true;
            choice->whole[dimension] = whole;
            /* Alone it has nobody to scatter to. */
            if (choice->flat || chooser->request->group.dimension_count == 1) return true;
            chooser->strict = false;
        } else if (strict) {
            return false;
        }
    }
    bool const done =
        choose(chooser, COLLECTIVE_REDUCE_SCATTER, dimension, &choice->once[dimension]) &&
        choose(chooser, COLLECTIVE_ALL_GATHER, dimension, &choice->gather[dimension]);
    chooser->strict = strict;
    return done;
}

/* What goes between the root's box of a level and the others, and what goes within these. */
static bool choose_by_axis(struct chooser *chooser)
{
    struct choice *choice = &chooser->choice;
    enum collective_kind const kind = chooser->request->kind;
    bool const strict = chooser->strict;
    for (uint32_t d = 0; d < chooser->request->group.dimension_count; d++) {
        if (!choose(chooser, kind, d, &choice->once[d])) return false;
        if (kind == COLLECTIVE_GATHER || kind == COLLECTIVE_SCATTER) continue;
        chooser->strict = false;
        (void)choose(chooser,
                     kind == COLLECTIVE_BROADCAST ? COLLECTIVE_ALL_GATHER
                                                  : COLLECTIVE_REDUCE_SCATTER,
                     d, &choice->gather[d]);
        chooser->strict = strict;
    }
    chooser->used = chooser->used || strict;
    return true;
}

static bool choose_all(struct chooser *chooser)
{
    struct choice *choice = &chooser->choice;
    enum collective_kind const kind = chooser->request->kind;
    if (choice->by_axis) return choose_by_axis(chooser);
    uint32_t const count = choice->flat ? 1 : chooser->request->group.dimension_count;
    for (uint32_t d = 0; d < count; d++) {
        if (kind == COLLECTIVE_ALL_REDUCE ? !choose_all_reduce(chooser, d)
                                          : !choose(chooser, kind, d, &choice->once[d]))
            return false;
    }
    return true;
}

static bool ask_all(struct chooser *chooser, struct algorithm_level asked)
{
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) chooser->asked[d] = asked;
    return choose_all(chooser);
}

/* Whether some axes of the grid close into rings and others do not, so that `auto` plays each by
 * what it is. From and to a root all ranks are taken together, or their boxes by axis. */
static bool is_mixed(const struct plan_request *request, const struct levels *levels)
{
    uint32_t rings = 0;
    for (uint32_t i = 0; i < levels->grid_count; i++)
        rings += request->group.dimension[levels->grid[i]].ring;
    return rings > 0 && rings < levels->grid_count && !collective_is_rooted(request->kind) &&
           request->kind != COLLECTIVE_PERMUTE;
}

struct algorithm choice_mixed(void)
{
    return (struct algorithm){.means = ALGORITHM_LEVELS,
                              .level_count = 2,
                              .level = {{ALGORITHM_FAMILY, PRIMITIVE_RING, NULL},
                                        {ALGORITHM_FAMILY, PRIMITIVE_LINE, NULL}}};
}

/* How many levels of an algorithm stand for a grid whose axes differ. */
static uint32_t mixed_count(const struct chooser *chooser, const struct algorithm *algorithm)
{
    struct algorithm const mixed = choice_mixed();
    if (!is_mixed(chooser->request, &chooser->choice.levels)) return 0;
    for (uint32_t i = 0; i < mixed.level_count; i++)
        if (i == algorithm->level_count || algorithm->level[i].means != ALGORITHM_FAMILY ||
            algorithm->level[i].family != mixed.level[i].family)
            return 0;
    return mixed.level_count;
}

/* "A+B", the innermost level first. */
static bool ask_levels(struct chooser *chooser, const struct algorithm *algorithm)
{
    const struct levels *levels = &chooser->choice.levels;
    uint32_t const count = levels_count(levels);
    uint32_t const mixed = mixed_count(chooser, algorithm);
    /* The levels behind the grid's, which `auto` plays as it is. */
    const struct algorithm_level *inner = algorithm->level;
    struct algorithm_level const suited = {.means = ALGORITHM_AUTO};
    uint32_t const used = algorithm->level_count - (mixed > 0 ? mixed - 1 : 0);
    if (used != count)
        return refuse(chooser, "\"+\" joins one name for each of the group's %u levels", count);
    chooser->strict = true;
    for (uint32_t i = 0; i < levels->grid_count; i++)
        chooser->asked[levels->grid[i]] = mixed > 0 ? suited : *inner;
    for (uint32_t i = 0; i < levels->outer_count; i++)
        chooser->asked[levels->outer[i]] = algorithm->level[algorithm->level_count - 1 - i];
    return choose_all(chooser);
}

/* Over all dimensions a broadcast scatters, and then gathers as an AllGather does; a reduce
 * scatters sums as a ReduceScatter does, and then gathers over all dimensions. */
static bool scatter_gather(struct chooser *chooser)
{
    struct choice *choice = &chooser->choice;
    bool const spreads = chooser->request->kind == COLLECTIVE_BROADCAST;
    choice->flat = true;
    if (!choose(chooser, spreads ? COLLECTIVE_SCATTER : COLLECTIVE_GATHER, 0, &choice->rooted))
        return false;
    choice->flat = false;
    for (uint32_t d = 0; d < chooser->request->group.dimension_count; d++)
        if (!choose(chooser, spreads ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER, d,
                    &choice->once[d]))
            return false;
    chooser->used = true;
    return true;
}

/* Whether an exchange goes by one message a pair, by an algorithm of one family. */
static bool is_by_pairs(const struct algorithm *algorithm)
{
    const struct primitive *primitive =
        primitive_find(COLLECTIVE_ALL_TO_ALL, algorithm_family(algorithm), true);
    return primitive != NULL && primitive_is_pairwise(primitive, 2);
}

/* Whether an algorithm has a ragged exchange go over one level after the other. */
static bool chains_ragged(struct chooser *chooser, const struct algorithm *algorithm)
{
    const struct group *group = &chooser->request->group;
    if (levels_count(&chooser->choice.levels) < 2) return false;
    if (algorithm->means == ALGORITHM_HIERARCHICAL) return true;
    if (is_by_pairs(algorithm)) return !algorithm->flat;
    if (algorithm->means != ALGORITHM_LEVELS || !ask_levels(chooser, algorithm)) return false;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (!primitive_is_pairwise(chooser->choice.once[d], group->dimension[d].size)) return false;
    return true;
}

/* A ragged exchange has one message a pair: of all ranks, or of those along each dimension. */
static bool choose_ragged(struct chooser *chooser, const struct algorithm *algorithm)
{
    struct algorithm const pairs = algorithm_by_pairs(&chooser->request->group);
    const struct primitive *pairwise = primitive_find(COLLECTIVE_ALL_TO_ALL, pairs.family, true);
    struct choice *choice = &chooser->choice;
    uint32_t const count = chooser->request->group.dimension_count;
    bool const at_once = algorithm_is_chosen(algorithm) ||
                         (is_by_pairs(algorithm) && algorithm->flat == (count > 1));
    choice->flat = false;
    if (!at_once && !chains_ragged(chooser, algorithm))
        return chooser->reason[0] != '\0'
                   ? false
                   : refuse(chooser, "a ragged AllToAll is exchanged directly");
    choice->flat = at_once && count > 1;
    for (uint32_t d = 0; d < count; d++) choice->once[d] = pairwise;
    return chooser->used = true;
}

/* Whether a rooted kind's algorithm asks for switches that copy or add, and not all levels have
 * them. */
static bool is_of_some_levels(const struct chooser *chooser, const struct algorithm *algorithm)
{
    enum collective_kind const kind = chooser->request->kind;
    const struct primitive *primitive =
        collective_is_rooted(kind) && !algorithm->flat
            ? primitive_find(kind, algorithm_family(algorithm), true)
            : NULL;
    for (uint32_t d = 0; primitive != NULL && d < chooser->request->group.dimension_count; d++)
        if (!network_serves(chooser, primitive, d)) return true;
    return false;
}

/* How the group's dimensions are gone over: at once, by axis, or each by itself. */
static void ways_set(struct chooser *chooser, const struct algorithm *algorithm)
{
    const struct group *group = &chooser->request->group;
    enum collective_kind const kind = chooser->request->kind;
    struct choice *choice = &chooser->choice;
    bool const several = levels_count(&choice->levels) > 1, rooted = collective_is_rooted(kind);
    bool const grid = choice->levels.outer_count == 0;
    choice->named = rooted && several && algorithm->means == ALGORITHM_LEVELS;
    choice->by_axis = (rooted && algorithm->means == ALGORITHM_HIERARCHICAL) || choice->named;
    if (several && !choice->by_axis && is_of_some_levels(chooser, algorithm))
        choice->by_axis = choice->named = true;
    choice->flat = rooted && group->dimension_count > 1 && !choice->by_axis;
    if (algorithm_is_chosen(algorithm) && kind == COLLECTIVE_ALL_TO_ALL && !grid &&
        group->dimension_count > 1)
        choice->flat = chooser->request->exchange_bytes[0] == 0;
}

/* Whether an algorithm is something that can run; else why not. `known`: some primitive has it. */
static bool resolve(struct chooser *chooser, const struct algorithm *algorithm, bool *ret_known)
{
    const struct group *group = &chooser->request->group;
    enum collective_kind const kind = chooser->request->kind;
    struct choice *choice = &chooser->choice;
    struct algorithm_level const suited = {.means = ALGORITHM_AUTO};
    struct algorithm_level asked = {algorithm->means, algorithm->family, algorithm->asked};
    bool const several = levels_count(&choice->levels) > 1, rooted = collective_is_rooted(kind);
    *ret_known = true;
    chooser->used = algorithm_is_automatic(algorithm);
    if (algorithm->means == ALGORITHM_HIERARCHICAL && !several &&
        !(rooted && group->dimension_count > 1))
        return refuse(chooser, "\"hierarchical\" needs ranks on several levels%s",
                      rooted ? " or axes" : "");
    bool const spread = kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE;
    if (spread && algorithm->means == ALGORITHM_SCATTER_GATHER) return scatter_gather(chooser);
    ways_set(chooser, algorithm);
    if (chooser->request->ragged.expert_count > 0) return choose_ragged(chooser, algorithm);
    if (algorithm_is_automatic(algorithm)) return ask_all(chooser, suited);
    if (!choice->flat && algorithm->flat) {
        if (group->dimension_count < 2)
            return refuse(chooser, "\"%s\" needs ranks along several axes",
                          algorithm_text(algorithm).text);
        choice->flat = chooser->strict = true;
    } else if (algorithm->flat) {
        asked = (struct algorithm_level){ALGORITHM_OTHER, 0, algorithm->asked};
    } else if (algorithm->means == ALGORITHM_LEVELS) {
        return ask_levels(chooser, algorithm);
    }
    chooser->strict = chooser->strict || !several;
    bool const done = ask_all(chooser, asked);
    *ret_known = chooser->found;
    return done && chooser->used;
}

bool choice_judge(const struct plan_request *request, const struct algorithm *algorithm,
                  struct choice *ret_choice, struct choice_verdict *ret_verdict)
{
    struct chooser chooser = {.request = request};
    chooser.choice.levels = levels_of(&request->group);
    bool const done = resolve(&chooser, algorithm, &ret_verdict->known);
    memcpy(ret_verdict->reason, chooser.reason, sizeof ret_verdict->reason);
    *ret_choice = chooser.choice;
    return done;
}

bool choice_find(const struct plan_request *request, const struct algorithm *algorithm,
                 struct choice *ret_choice)
{
    struct choice_verdict unused;
    return choice_judge(request, algorithm, ret_choice, &unused);
}
