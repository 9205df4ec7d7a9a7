/* Refusals of algorithms: why one cannot run on a group, and which can. */
#include <stdio.h>

#include "sim/base/name.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/choice.h"

/* Why the request's algorithm cannot run here; "" where no collective of the kind has it. */
static void why_not(const struct plan_request *request, const struct choice_verdict *verdict,
                    char *ret_text, size_t size)
{
    struct plan_algorithms const all = plan_algorithms_of(request->kind);
    struct algorithm_text const name = algorithm_text(&request->algorithm);
    ret_text[0] = '\0';
    if (verdict->known && verdict->reason[0] != '\0')
        (void)snprintf(ret_text, size, "%s", verdict->reason);
    else if (!plan_algorithms_have(&all, &request->algorithm))
        return;
    else if (collective_is_rooted(request->kind))
        (void)snprintf(ret_text, size,
                       "\"%s\" goes round one ring of neighbours, and these ranks are not on one",
                       name.text);
    else
        (void)snprintf(ret_text, size,
                       "\"%s\" goes from neighbour to neighbour along an axis, and these ranks lie "
                       "along none",
                       name.text);
}

void choice_reason(const struct plan_request *request, char *ret_text, size_t size)
{
    char why[CHOICE_REASON_BYTES - 64];
    struct choice_verdict verdict;
    struct choice unused;
    (void)choice_judge(request, &request->algorithm, &unused, &verdict);
    why_not(request, &verdict, why, sizeof why);
    const char *kind = collective_kind_name(request->kind);
    if (why[0] == '\0')
        (void)snprintf(why, sizeof why, "there is no \"%.64s\" for it",
                       algorithm_text(&request->algorithm).text);
    (void)snprintf(ret_text, size, "%s over %u ranks: %s", kind,
                   (unsigned)group_rank_count(&request->group), why);
}

bool choice_synonym_reason(const struct plan_request *request, enum primitive_family synonym,
                           char *ret_text, size_t size)
{
    struct plan_request named = *request;
    struct choice unused;
    named.algorithm = algorithm_by(synonym);
    if (algorithm_is_chosen(&named.algorithm) || choice_find(request, &named.algorithm, &unused))
        return false;
    choice_reason(&named, ret_text, size);
    return true;
}

/* Refuses an algorithm that no collective of the kind has, and offers the nearest. */
static enum status unknown_refuse(const struct plan_request *request, const char *list,
                                  const char *where, struct error *reterr)
{
    struct plan_algorithms const all = plan_algorithms_of(request->kind);
    struct algorithm_text const asked = algorithm_text(&request->algorithm);
    struct plan_algorithm_names names;
    char why[CHOICE_REASON_BYTES];
    enum primitive_family const synonym = choice_synonym(&request->algorithm);
    struct algorithm const ours = algorithm_by(synonym);
    bool const has_synonym = plan_algorithms_have(&all, &ours) && !algorithm_is_chosen(&ours);
    struct algorithm_text const own = algorithm_text(&ours);
    plan_algorithms_name(&all, &names);
    if (has_synonym && choice_synonym_reason(request, synonym, why, sizeof why))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "no algorithm \"%.64s\" for %s; it is \"%s\" here, which cannot run: %s; "
                         "these can: %s",
                         asked.text, collective_kind_name(request->kind), own.text, why, list);
    return error_set(
        reterr, STATUS_NOT_FOUND, where, "no algorithm \"%.64s\" for %s%s (%s)", asked.text,
        collective_kind_name(request->kind),
        name_offer(has_synonym ? own.text : asked.text, names.name, "; did you mean \"", "\"?", "")
            .text,
        list);
}

enum status choice_make(const struct plan_request *request, const char *where,
                        struct choice *ret_choice, struct error *reterr)
{
    struct choice_verdict verdict;
    if (choice_judge(request, &request->algorithm, ret_choice, &verdict)) return STATUS_OK;
    char list[320], why[CHOICE_REASON_BYTES];
    choice_list(request, list, sizeof list);
    why_not(request, &verdict, why, sizeof why);
    if (why[0] != '\0')
        return error_set(reterr, STATUS_UNSUPPORTED, where, "%s; these can run here: %s", why,
                         list);
    return unknown_refuse(request, list, where, reterr);
}
