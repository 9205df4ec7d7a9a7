#include "sim/collective/choice.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"

enum { NAME_SIZE = PLAN_ALGORITHM_SIZE };

const char choice_mixed_name[] = "ring+line";

/* What is being chosen, and why it cannot be. */
struct chooser {
    const struct plan_request *request;
    struct choice choice;
    const char *name[GROUP_DIMENSIONS_MAX]; /* By dimension; NULL: auto. */
    bool strict;                            /* Every dimension has to have what it names. */
    bool found;                             /* Some primitive has that name, */
    bool used;                              /* and was taken. */
    char reason[160];
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

/* A primitive of this name for a dimension, or for all together; NULL if there is none. */
static const struct primitive *find(const struct chooser *chooser, enum collective_kind kind,
                                    uint32_t dimension, const char *name)
{
    const struct primitive *primitive = NULL;
    if (!chooser->choice.flat && !chooser->request->group.dimension[dimension].switched)
        primitive = primitive_find(kind, name, false);
    return primitive == NULL ? primitive_find(kind, name, true) : primitive;
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

static const char *auto_name(const struct chooser *chooser, enum collective_kind kind,
                             uint32_t dimension)
{
    const struct group_dimension *at = &chooser->request->group.dimension[dimension];
    if (kind == COLLECTIVE_PERMUTE) return "shift";
    if (collective_is_rooted(kind)) {
        bool const single = chooser->request->group.dimension_count == 1;
        bool const spreads = kind == COLLECTIVE_SCATTER || kind == COLLECTIVE_GATHER;
        /* Without a switch the root has a link to each, of which a tree uses one at a time. */
        if (single && spreads && chooser->request->meshed[dimension]) return "direct";
        if (!chooser->choice.by_axis) return "tree";
        if (at->ring) return "ring";
        return kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE ? "chain" : "direct";
    }
    if (chooser->choice.flat || at->switched) return "direct";
    return at->ring ? "ring" : "line";
}

/* The primitive of a dimension by its name; by `auto` where none can run and that is allowed. */
static bool choose(struct chooser *chooser, enum collective_kind kind, uint32_t dimension,
                   const struct primitive **ret_primitive)
{
    const char *name = chooser->name[dimension];
    const struct primitive *primitive = name == NULL ? NULL : find(chooser, kind, dimension, name);
    if (primitive != NULL) {
        chooser->found = true;
        *ret_primitive = primitive;
        if (is_applicable(chooser, primitive, dimension)) return chooser->used = true;
        if (chooser->strict) return false;
    } else if (name != NULL && chooser->strict) {
        return refuse(chooser, "there is no \"%s\" along %s", name,
                      chooser->request->group.dimension[dimension].name);
    }
    primitive = find(chooser, kind, dimension, auto_name(chooser, kind, dimension));
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
    const char *name = chooser->name[dimension];
    bool const last = choice->flat || levels->outer_count == 0 || levels->outer[0] == dimension;
    bool const strict = chooser->strict;
    const struct primitive *whole =
        last && name != NULL ? find(chooser, COLLECTIVE_ALL_REDUCE, dimension, name) : NULL;
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

static bool name_all(struct chooser *chooser, const char *name)
{
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) chooser->name[d] = name;
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

/* What comes behind "ring+line" in the name of a grid whose axes differ; else NULL. */
static const char *mixed_end(const struct chooser *chooser, const char *text)
{
    if (!is_mixed(chooser->request, &chooser->choice.levels)) return NULL;
    const char *end = name_after(text, choice_mixed_name);
    return end != NULL && (*end == '\0' || *end == '+') ? end : NULL;
}

/* "A+B", the innermost level first. `parts` is where the names are kept. */
static bool name_levels(struct chooser *chooser, const char *text, char parts[][NAME_SIZE])
{
    const struct levels *levels = &chooser->choice.levels;
    uint32_t const count = levels_count(levels);
    uint32_t used = 0;
    const char *mixed = mixed_end(chooser, text);
    if (mixed != NULL) {
        memcpy(parts[used++], "auto", sizeof "auto");
        text = *mixed == '\0' ? NULL : mixed + 1;
    }
    for (; text != NULL; used++) {
        const char *end = strchr(text, '+');
        size_t const length = end == NULL ? strlen(text) : (size_t)(end - text);
        if (used == count || length >= NAME_SIZE) break;
        memcpy(parts[used], text, length);
        parts[used][length] = '\0';
        text = end == NULL ? NULL : end + 1;
    }
    if (text != NULL || used != count)
        return refuse(chooser, "\"+\" joins one name for each of the group's %u levels", count);
    chooser->strict = true;
    for (uint32_t i = 0; i < levels->grid_count; i++) chooser->name[levels->grid[i]] = parts[0];
    for (uint32_t i = 0; i < levels->outer_count; i++)
        chooser->name[levels->outer[i]] = parts[count - 1 - i];
    for (uint32_t d = 0; d < chooser->request->group.dimension_count; d++)
        if (algorithm_of(chooser->name[d]).means == ALGORITHM_AUTO) chooser->name[d] = NULL;
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

/* Whether a name has a ragged exchange go over one level after the other. */
static bool chains_ragged(struct chooser *chooser, const char *name, const struct primitive *direct,
                          char parts[][NAME_SIZE])
{
    if (levels_count(&chooser->choice.levels) < 2) return false;
    struct algorithm const algorithm = algorithm_of(name);
    if (algorithm.means == ALGORITHM_HIERARCHICAL || algorithm_is(&algorithm, PRIMITIVE_DIRECT))
        return true;
    if (algorithm.means != ALGORITHM_LEVELS || !name_levels(chooser, name, parts)) return false;
    for (uint32_t d = 0; d < chooser->request->group.dimension_count; d++)
        if (chooser->choice.once[d] != direct) return false;
    return true;
}

/* A ragged exchange has one message a pair: of all ranks, or of those along each dimension. */
static bool choose_ragged(struct chooser *chooser, const char *name, bool automatic,
                          char parts[][NAME_SIZE])
{
    const struct primitive *direct = primitive_find(COLLECTIVE_ALL_TO_ALL, "direct", true);
    struct choice *choice = &chooser->choice;
    uint32_t const count = chooser->request->group.dimension_count;
    struct algorithm const algorithm = algorithm_of(name);
    bool const at_once =
        automatic || (algorithm.family == PRIMITIVE_DIRECT && algorithm.flat == (count > 1));
    choice->flat = false;
    if (!at_once && !chains_ragged(chooser, name, direct, parts))
        return chooser->reason[0] != '\0'
                   ? false
                   : refuse(chooser, "a ragged AllToAll is exchanged directly");
    choice->flat = at_once && count > 1;
    for (uint32_t d = 0; d < count; d++) choice->once[d] = direct;
    return chooser->used = true;
}

/* Whether a rooted kind's name asks for switches that copy or add, and not all levels have them. */
static bool is_of_some_levels(const struct chooser *chooser, const char *name)
{
    enum collective_kind const kind = chooser->request->kind;
    const struct primitive *primitive =
        name != NULL && collective_is_rooted(kind) ? primitive_find(kind, name, true) : NULL;
    for (uint32_t d = 0; primitive != NULL && d < chooser->request->group.dimension_count; d++)
        if (!network_serves(chooser, primitive, d)) return true;
    return false;
}

/* Whether a name means something that can run; else why not. `known`: some primitive has it. */
static bool resolve(struct chooser *chooser, const char *name, char parts[][NAME_SIZE],
                    bool *ret_known)
{
    const struct group *group = &chooser->request->group;
    enum collective_kind const kind = chooser->request->kind;
    struct choice *choice = &chooser->choice;
    struct algorithm const algorithm = algorithm_of(name);
    bool const automatic = algorithm.means == ALGORITHM_AUTO;
    bool const several = levels_count(&choice->levels) > 1;
    bool const hierarchical = algorithm.means == ALGORITHM_HIERARCHICAL;
    bool const grid = choice->levels.outer_count == 0;
    *ret_known = true;
    chooser->used = automatic || hierarchical;
    bool const rooted = collective_is_rooted(kind);
    if (hierarchical && !several && !(rooted && group->dimension_count > 1))
        return refuse(chooser, "\"hierarchical\" needs ranks on several levels%s",
                      rooted ? " or axes" : "");
    choice->named = rooted && several && algorithm.means == ALGORITHM_LEVELS;
    choice->by_axis = (rooted && hierarchical) || choice->named;
    bool const spread = kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE;
    if (spread && algorithm.means == ALGORITHM_SCATTER_GATHER) return scatter_gather(chooser);
    if (several && !choice->by_axis && is_of_some_levels(chooser, name))
        choice->by_axis = choice->named = true;
    choice->flat = rooted && group->dimension_count > 1 && !choice->by_axis;
    if (automatic && kind == COLLECTIVE_ALL_TO_ALL && !grid && group->dimension_count > 1)
        choice->flat = chooser->request->exchange_bytes[0] == 0;
    if (chooser->request->ragged.expert_count > 0)
        return choose_ragged(chooser, name, automatic, parts);
    if (automatic || hierarchical) return name_all(chooser, NULL);
    if (!choice->flat && plan_flat_base(name) != NULL) {
        if (group->dimension_count < 2)
            return refuse(chooser, "\"%s\" needs ranks along several axes", name);
        choice->flat = chooser->strict = true;
        name = plan_flat_base(name);
    } else if (algorithm.means == ALGORITHM_LEVELS) {
        return name_levels(chooser, name, parts);
    }
    chooser->strict = chooser->strict || !several;
    bool const done = name_all(chooser, name);
    *ret_known = chooser->found;
    return done && chooser->used;
}

bool choice_find(const struct plan_request *request, const char *name, struct choice *ret_choice)
{
    char parts[GROUP_DIMENSIONS_MAX][NAME_SIZE];
    struct chooser chooser = {.request = request};
    chooser.choice.levels = levels_of(&request->group);
    bool known = false;
    bool const done = resolve(&chooser, name, parts, &known);
    *ret_choice = chooser.choice;
    return done;
}

/* Why the request's algorithm cannot run; known: as what it is, but not here. */
static void why_not(const struct chooser *chooser, bool known, char *ret_text, size_t size)
{
    const struct plan_request *request = chooser->request;
    struct plan_algorithms const all = plan_algorithm_names(request->kind);
    const char *names[PLAN_ALGORITHMS_MAX + 1] = {NULL};
    for (uint32_t i = 0; i < all.count; i++) names[i] = all.name[i];
    ret_text[0] = '\0';
    if (known && chooser->reason[0] != '\0')
        (void)snprintf(ret_text, size, "%s", chooser->reason);
    else if (names[name_find(request->algorithm, names)] == NULL)
        return;
    else if (collective_is_rooted(request->kind))
        (void)snprintf(ret_text, size,
                       "\"%s\" goes round one ring of neighbours, and these ranks are not on one",
                       request->algorithm);
    else
        (void)snprintf(ret_text, size,
                       "\"%s\" goes from neighbour to neighbour along an axis, and these ranks lie "
                       "along none",
                       request->algorithm);
}

void choice_reason(const struct plan_request *request, char *ret_text, size_t size)
{
    char parts[GROUP_DIMENSIONS_MAX][NAME_SIZE], why[CHOICE_REASON_BYTES - 64];
    struct chooser chooser = {.request = request};
    chooser.choice.levels = levels_of(&request->group);
    bool known = false;
    (void)resolve(&chooser, request->algorithm, parts, &known);
    why_not(&chooser, known, why, sizeof why);
    const char *kind = collective_kind_name(request->kind);
    if (why[0] == '\0')
        (void)snprintf(why, sizeof why, "there is no \"%.64s\" for it", request->algorithm);
    (void)snprintf(ret_text, size, "%s over %u ranks: %s", kind,
                   (unsigned)group_rank_count(&request->group), why);
}

bool choice_synonym_reason(const struct plan_request *request, const char *synonym, char *ret_text,
                           size_t size)
{
    struct plan_request named = *request;
    struct choice unused;
    if (synonym == NULL || choice_find(request, synonym, &unused)) return false;
    named.algorithm = synonym;
    choice_reason(&named, ret_text, size);
    return true;
}

enum status choice_make(const struct plan_request *request, const char *where,
                        struct choice *ret_choice, struct error *reterr)
{
    char parts[GROUP_DIMENSIONS_MAX][NAME_SIZE];
    struct chooser chooser = {.request = request};
    chooser.choice.levels = levels_of(&request->group);
    bool known = false;
    if (resolve(&chooser, request->algorithm, parts, &known)) {
        *ret_choice = chooser.choice;
        return STATUS_OK;
    }
    char list[320], why[CHOICE_REASON_BYTES];
    choice_list(request, list, sizeof list);
    why_not(&chooser, known, why, sizeof why);
    if (why[0] != '\0')
        return error_set(reterr, STATUS_UNSUPPORTED, where, "%s; these can run here: %s", why,
                         list);
    struct plan_algorithms const all = plan_algorithm_names(request->kind);
    const char *names[PLAN_ALGORITHMS_MAX + 1] = {NULL};
    for (uint32_t i = 0; i < all.count; i++) names[i] = all.name[i];
    const char *synonym = choice_synonym(request->algorithm);
    if (name_find(synonym, names) == all.count) synonym = NULL;
    if (choice_synonym_reason(request, synonym, why, sizeof why))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "no algorithm \"%.64s\" for %s; it is \"%s\" here, which cannot run: %s; "
                         "these can: %s",
                         request->algorithm, collective_kind_name(request->kind), synonym, why,
                         list);
    return error_set(reterr, STATUS_NOT_FOUND, where, "no algorithm \"%.64s\" for %s%s (%s)",
                     request->algorithm, collective_kind_name(request->kind),
                     name_offer(synonym != NULL ? synonym : request->algorithm, names,
                                "; did you mean \"", "\"?", "")
                         .text,
                     list);
}
