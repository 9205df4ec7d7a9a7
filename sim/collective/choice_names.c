/* The names of algorithms: all of a kind, and those that can run on a group. */
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/choice.h"

enum { NAME_SIZE = PLAN_ALGORITHM_SIZE };

static void name_add(struct plan_algorithms *names, const char *prefix, const char *name)
{
    char text[NAME_SIZE];
    size_t const before = strlen(prefix), length = strlen(name);
    SIM_ASSERT(before + length < sizeof text);
    memcpy(text, prefix, before);
    memcpy(text + before, name, length + 1);
    for (uint32_t i = 0; i < names->count; i++)
        if (name_same(names->name[i], text)) return;
    SIM_ASSERT(names->count < PLAN_ALGORITHMS_MAX);
    memcpy(names->name[names->count++], text, sizeof text);
}

struct plan_algorithms plan_algorithm_names(enum collective_kind asked)
{
    struct plan_algorithms all = {.count = 0};
    name_add(&all, "", "auto");
    bool const levels = !collective_is_rooted(asked) && asked != COLLECTIVE_PERMUTE;
    if (asked != COLLECTIVE_PERMUTE) name_add(&all, "", "hierarchical");
    if (asked == COLLECTIVE_BROADCAST || asked == COLLECTIVE_REDUCE)
        name_add(&all, "", "scatter-gather");
    if (levels) name_add(&all, "", choice_mixed_name);
    for (uint32_t i = 0; i < primitive_count; i++) {
        enum collective_kind const kind = primitive_table[i]->kind;
        bool const part = asked == COLLECTIVE_ALL_REDUCE &&
                          (kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_ALL_GATHER);
        if (kind != asked && !part) continue;
        name_add(&all, "", primitive_algorithm(primitive_table[i]));
        if (primitive_table[i]->routed && levels)
            name_add(&all, "flat-", primitive_algorithm(primitive_table[i]));
    }
    return all;
}

const char *choice_synonym(const char *name)
{
    static const char *const sharp[] = {"nvls",          "nvlstree",     "nvls-tree", "collnet",
                                        "collnetdirect", "collnetchain", NULL};
    static const char *const others[] = {"pat", "rhd", NULL};
    static const char *const ours[] = {"bruck", "recursive", NULL};
    if (sharp[name_find_any_case(name, sharp)] != NULL) return "sharp";
    return ours[name_find_any_case(name, others)];
}

bool choice_is_known(const char *name)
{
    const char *end = name;
    for (const char *part = name; end != NULL;) {
        char text[NAME_SIZE];
        end = strchr(part, '+');
        size_t const length = end == NULL ? strlen(part) : (size_t)(end - part);
        if (length >= sizeof text) return false;
        memcpy(text, part, length);
        text[length] = '\0';
        struct algorithm const algorithm = algorithm_of(text);
        bool const joins = part != name || end != NULL;
        if (algorithm.means == ALGORITHM_OTHER || algorithm.means == ALGORITHM_SCATTER_GATHER ||
            (joins && algorithm.flat))
            return false;
        if (end != NULL) part = end + 1;
    }
    return true;
}

/* Names that stand alone. */
static struct plan_algorithms singles_of(const struct plan_request *request)
{
    struct plan_algorithms const all = plan_algorithm_names(request->kind);
    struct plan_algorithms names = {.count = 0};
    struct choice unused;
    for (uint32_t i = 0; i < all.count; i++)
        if (choice_find(request, all.name[i], &unused)) name_add(&names, "", all.name[i]);
    return names;
}

/* The names that a kind may have on a level, "auto" the first. */
static struct plan_algorithms level_names(enum collective_kind kind)
{
    struct plan_algorithms names = {.count = 0};
    name_add(&names, "", "auto");
    for (uint32_t i = 0; i < primitive_count; i++)
        if (primitive_table[i]->kind == kind)
            name_add(&names, "", primitive_algorithm(primitive_table[i]));
    return names;
}

/* From or to a root a single name goes over all ranks at once, so each level's own is given by
 * pairs alone. Where both are what `auto` takes, they are "hierarchical". */
static void pairs_add(const struct plan_request *request, struct plan_algorithms *names)
{
    struct levels const levels = levels_of(&request->group);
    if (!collective_is_rooted(request->kind) || levels_count(&levels) != 2) return;
    struct plan_algorithms const each = level_names(request->kind);
    struct choice usual, choice;
    if (!choice_find(request, "hierarchical", &usual)) return;
    /* Axes of a grid may differ, and have no other name in common. */
    for (uint32_t inner = levels.grid_count > 0 ? 0 : 1; inner < each.count; inner++)
        for (uint32_t outer = 1; outer < each.count; outer++) {
            char text[2 * NAME_SIZE];
            (void)snprintf(text, sizeof text, "%s+%s", each.name[inner], each.name[outer]);
            if (strlen(text) < NAME_SIZE && choice_find(request, text, &choice) &&
                memcmp(choice.once, usual.once, sizeof usual.once) != 0)
                name_add(names, "", text);
        }
}

struct plan_algorithms plan_algorithms(const struct plan_request *request)
{
    struct plan_algorithms names = singles_of(request);
    pairs_add(request, &names);
    return names;
}

void choice_list(const struct plan_request *request, char *ret_text, size_t size)
{
    struct plan_algorithms const names = singles_of(request);
    size_t used = 0;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < names.count && used + NAME_SIZE + 3 < size; i++)
        used += (size_t)snprintf(ret_text + used, size - used, "%s%s", i == 0 ? "" : ", ",
                                 names.name[i]);
}
