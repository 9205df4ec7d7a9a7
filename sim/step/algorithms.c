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
           (algorithm_is_chosen(&request->algorithm) || request->ragged.expert_count > 0);
}

/* Those of the first collective that all others have too; none of a step without any. */
static struct plan_algorithms common_find(const struct program *automatic)
{
    struct plan_algorithms common = {.count = 0};
    bool any = false;
    for (uint32_t p = 0; p < automatic->plan_count; p++) {
        const struct plan_request *request = &automatic->requests[p];
        uint32_t kept = 0;
        struct choice unused;
        if (!is_named(request)) continue;
        if (!any) common = plan_algorithms_of(request->kind);
        any = true;
        for (uint32_t i = 0; i < common.count; i++)
            if (choice_find(request, &common.of[i], &unused)) common.of[kept++] = common.of[i];
        common.count = kept;
    }
    return common;
}

/* Why the first that cannot go by a synonym cannot. False: all can, or there is no synonym. */
static bool synonym_reason(const struct program *automatic, enum primitive_family synonym,
                           char *ret_text, size_t size)
{
    for (uint32_t p = 0; p < automatic->plan_count; p++)
        if (is_named(&automatic->requests[p]) &&
            choice_synonym_reason(&automatic->requests[p], synonym, ret_text, size))
            return true;
    return false;
}

enum status algorithms_refuse(const struct program *automatic, const struct algorithm *asked,
                              const struct plan_request *refused, struct error *reterr)
{
    struct plan_algorithms const common = common_find(automatic);
    struct algorithm_text const name = algorithm_text(asked);
    struct plan_algorithm_names names;
    static const char where[] = "/run/algorithm";
    char reason[CHOICE_REASON_BYTES], list[PLAN_ALGORITHMS_MAX * (PLAN_ALGORITHM_SIZE + 2)];
    uint32_t used = 0;
    list[0] = '\0';
    plan_algorithms_name(&common, &names);
    for (uint32_t i = 0; i < common.count; i++)
        used += (uint32_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ",
                                   names.name[i]);
    if (refused != NULL) {
        choice_reason(refused, reason, sizeof reason);
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s; every collective of this step can go by %s", reason, list);
    }
    if (common.count == 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "no algorithm \"%.64s\"; this step has no collective that could go by one",
                         name.text);
    enum primitive_family const synonym = choice_synonym(asked);
    struct algorithm const ours = algorithm_by(synonym);
    struct algorithm_text const own = algorithm_text(&ours);
    if (synonym_reason(automatic, synonym, reason, sizeof reason))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "no algorithm \"%.64s\"; it is \"%s\" here, which cannot run: %s; every "
                         "collective of this step can go by %s",
                         name.text, own.text, reason, list);
    return error_set(reterr, STATUS_NOT_FOUND, where,
                     "no algorithm \"%.64s\"%s; every collective of this step can go by %s",
                     name.text,
                     name_offer(algorithm_is_chosen(&ours) ? name.text : own.text, names.name,
                                "; the nearest is \"", "\"", "")
                         .text,
                     list);
}
