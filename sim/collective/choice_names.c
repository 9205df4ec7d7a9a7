/* Algorithms: all of a kind, and those that can run on a group. */
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/choice.h"

bool plan_algorithms_have(const struct plan_algorithms *algorithms,
                          const struct algorithm *algorithm)
{
    for (uint32_t i = 0; i < algorithms->count; i++)
        if (algorithm_equal(&algorithms->of[i], algorithm)) return true;
    return false;
}

void plan_algorithms_name(const struct plan_algorithms *algorithms,
                          struct plan_algorithm_names *ret_names)
{
    for (uint32_t i = 0; i < algorithms->count; i++) {
        ret_names->text[i] = algorithm_text(&algorithms->of[i]);
        ret_names->name[i] = ret_names->text[i].text;
    }
    ret_names->name[algorithms->count] = NULL;
}

static void add(struct plan_algorithms *algorithms, struct algorithm algorithm)
{
    if (plan_algorithms_have(algorithms, &algorithm)) return;
    SIM_ASSERT(algorithms->count < PLAN_ALGORITHMS_MAX);
    algorithms->of[algorithms->count++] = algorithm;
}

static void add_word(struct plan_algorithms *algorithms, enum algorithm_means means)
{
    add(algorithms, (struct algorithm){.means = means});
}

struct plan_algorithms plan_algorithms_of(enum collective_kind asked)
{
    struct plan_algorithms all = {.count = 0};
    add_word(&all, ALGORITHM_AUTO);
    bool const levels = !collective_is_rooted(asked) && asked != COLLECTIVE_PERMUTE;
    if (asked != COLLECTIVE_PERMUTE) add_word(&all, ALGORITHM_HIERARCHICAL);
    if (asked == COLLECTIVE_BROADCAST || asked == COLLECTIVE_REDUCE)
        add_word(&all, ALGORITHM_SCATTER_GATHER);
    if (levels) add(&all, choice_mixed());
    for (uint32_t i = 0; i < primitive_count; i++) {
        enum collective_kind const kind = primitive_table[i]->kind;
        bool const part = asked == COLLECTIVE_ALL_REDUCE &&
                          (kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_ALL_GATHER);
        if (kind != asked && !part) continue;
        struct algorithm algorithm = algorithm_by(primitive_table[i]->family);
        add(&all, algorithm);
        algorithm.flat = true;
        if (primitive_table[i]->routed && levels) add(&all, algorithm);
    }
    return all;
}

enum primitive_family choice_synonym(const struct algorithm *algorithm)
{
    static const struct {
        const char *name[7];
        enum primitive_family ours;
    } synonyms[] = {
        {{"nvls", "nvlstree", "nvls-tree", "collnet", "collnetdirect", "collnetchain", NULL},
         PRIMITIVE_SHARP},
        {{"pat", NULL}, PRIMITIVE_BRUCK},
        {{"rhd", NULL}, PRIMITIVE_RECURSIVE},
    };
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (synonyms[i].name[name_find_any_case(algorithm->asked, synonyms[i].name)] != NULL)
            return synonyms[i].ours;
    return PRIMITIVE_FAMILY_COUNT;
}

bool choice_is_known(const struct algorithm *algorithm)
{
    for (uint32_t i = 0; i < algorithm->level_count; i++)
        if (algorithm->level[i].means != ALGORITHM_FAMILY &&
            algorithm->level[i].means > ALGORITHM_HIERARCHICAL)
            return false;
    return algorithm->means != ALGORITHM_OTHER && algorithm->means != ALGORITHM_SCATTER_GATHER;
}

/* Algorithms that are the same on every level. */
static struct plan_algorithms singles_of(const struct plan_request *request)
{
    struct plan_algorithms const all = plan_algorithms_of(request->kind);
    struct plan_algorithms singles = {.count = 0};
    struct choice unused;
    for (uint32_t i = 0; i < all.count; i++)
        if (choice_find(request, &all.of[i], &unused)) add(&singles, all.of[i]);
    return singles;
}

/* What a level may go by, `auto` the first. */
static struct plan_algorithms of_level(enum collective_kind kind)
{
    struct plan_algorithms algorithms = {.count = 0};
    add_word(&algorithms, ALGORITHM_AUTO);
    for (uint32_t i = 0; i < primitive_count; i++)
        if (primitive_table[i]->kind == kind)
            add(&algorithms, algorithm_by(primitive_table[i]->family));
    return algorithms;
}

static struct algorithm pair_of(const struct algorithm *inner, const struct algorithm *outer)
{
    return (struct algorithm){
        .means = ALGORITHM_LEVELS,
        .level_count = 2,
        .level = {{inner->means, inner->family, NULL}, {outer->means, outer->family, NULL}}};
}

/* From or to a root a single algorithm goes over all ranks at once, so each level's own is given by
 * pairs alone. Where both are what `auto` takes, they are "hierarchical". Names are short. */
static void pairs_add(const struct plan_request *request, struct plan_algorithms *algorithms)
{
    struct levels const levels = levels_of(&request->group);
    if (!collective_is_rooted(request->kind) || levels_count(&levels) != 2) return;
    struct plan_algorithms const each = of_level(request->kind);
    struct algorithm const hierarchical = {.means = ALGORITHM_HIERARCHICAL};
    struct choice usual, choice;
    if (!choice_find(request, &hierarchical, &usual)) return;
    /* Axes of a grid may differ, and have no other name in common. */
    for (uint32_t inner = levels.grid_count > 0 ? 0 : 1; inner < each.count; inner++)
        for (uint32_t outer = 1; outer < each.count; outer++) {
            struct algorithm const pair = pair_of(&each.of[inner], &each.of[outer]);
            if (strlen(algorithm_text(&pair).text) < PLAN_ALGORITHM_SIZE &&
                choice_find(request, &pair, &choice) &&
                memcmp(choice.once, usual.once, sizeof usual.once) != 0)
                add(algorithms, pair);
        }
}

struct plan_algorithms plan_algorithms(const struct plan_request *request)
{
    struct plan_algorithms algorithms = singles_of(request);
    pairs_add(request, &algorithms);
    return algorithms;
}

void choice_list(const struct plan_request *request, char *ret_text, size_t size)
{
    struct plan_algorithms const singles = singles_of(request);
    size_t used = 0;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < singles.count && used + PLAN_ALGORITHM_SIZE + 3 < size; i++)
        used += (size_t)snprintf(ret_text + used, size - used, "%s%s", i == 0 ? "" : ", ",
                                 algorithm_text(&singles.of[i]).text);
}
