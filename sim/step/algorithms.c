#include "sim/step/algorithms.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/choice.h"

/* Whether a collective of the step goes by the name that the scenario has: not a message, nor what
 * goes round a ring whatever the name. */
static bool is_named(const struct plan_request *request)
{
    return request->kind != COLLECTIVE_PERMUTE &&
           (algorithm_of(request->algorithm).means == ALGORITHM_AUTO ||
            request->ragged.expert_count > 0);
}

/* Those of the first collective that all others have too; none of a step without any. */
static struct plan_algorithms common_names(const struct program *automatic)
{
    struct plan_algorithms names = {.count = 0};
    bool any = false;
    for (uint32_t p = 0; p < automatic->plan_count; p++) {
        const struct plan_request *request = &automatic->requests[p];
        uint32_t kept = 0;
        struct choice unused;
        if (!is_named(request)) continue;
        if (!any) names = plan_algorithm_names(request->kind);
        any = true;
        for (uint32_t i = 0; i < names.count; i++)
            if (choice_find(request, names.name[i], &unused) && kept++ != i)
                memcpy(names.name[kept - 1], names.name[i], sizeof names.name[i]);
        names.count = kept;
    }
    return names;
}

/* Why the first that cannot go by a synonym cannot. False: all can, or there is no synonym. */
static bool synonym_reason(const struct program *automatic, const char *synonym, char *ret_text,
                           size_t size)
{
    for (uint32_t p = 0; p < automatic->plan_count; p++)
        if (is_named(&automatic->requests[p]) &&
            choice_synonym_reason(&automatic->requests[p], synonym, ret_text, size))
            return true;
    return false;
}

enum status algorithms_refuse(const struct program *automatic, const char *name,
                              const struct plan_request *refused, struct error *reterr)
{
    struct plan_algorithms const common = common_names(automatic);
    const char *names[PLAN_ALGORITHMS_MAX + 1] = {NULL};
    static const char where[] = "/run/algorithm";
    char reason[CHOICE_REASON_BYTES], list[PLAN_ALGORITHMS_MAX * (PLAN_ALGORITHM_SIZE + 2)];
    uint32_t used = 0;
    list[0] = '\0';
    for (uint32_t i = 0; i < common.count; i++) {
        names[i] = common.name[i];
        used += (uint32_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ",
                                   names[i]);
    }
    if (refused != NULL) {
        choice_reason(refused, reason, sizeof reason);
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s; every collective of this step can go by %s", reason, list);
    }
    if (common.count == 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "no algorithm \"%.64s\"; this step has no collective that could go by one",
                         name);
    const char *synonym = choice_synonym(name);
    if (synonym_reason(automatic, synonym, reason, sizeof reason))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "no algorithm \"%.64s\"; it is \"%s\" here, which cannot run: %s; every "
                         "collective of this step can go by %s",
                         name, synonym, reason, list);
    return error_set(
        reterr, STATUS_NOT_FOUND, where,
        "no algorithm \"%.64s\"%s; every collective of this step can go by %s", name,
        name_offer(synonym != NULL ? synonym : name, names, "; the nearest is \"", "\"", "").text,
        list);
}
