#include "sim/measure/choices.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/choose/channels.h"
#include "sim/choose/choose.h"
#include "sim/choose/contention.h"
#include "sim/choose/one_shot.h"
#include "sim/measure/autotune.h"

struct choice_made {
    struct plan_request asked;
    struct algorithm algorithm;
    struct plan_protocol protocol;
    const struct choice_made *before;
};

struct choices {
    struct arena *arena;
    const struct machine *machine;
    bool protocols;
    enum all_reduce_kernels all_reduce;
    struct contention_cache known;
    const struct choice_made *last;     /* Of algorithms. */
    const struct choice_made *conveyed; /* Of protocols. */
};

/* In memory of its own: the plans of all candidates. */
static enum status find(struct choices *choices, const struct plan_request *asked,
                        const char *where, struct algorithm *ret_algorithm, struct error *reterr)
{
    struct choose_args const args = {.machine = choices->machine,
                                     .request = *asked,
                                     .protocols = choices->protocols,
                                     .known = &choices->known};
    void *memory = NULL;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status status = arena_try(arena, 1, sizeof(struct choose_ranking), &memory, reterr);
    struct choose_ranking *ranking = memory;
    if (status == STATUS_OK) status = autotune_choose(arena, &args, where, ranking, reterr);
    if (status == STATUS_OK) *ret_algorithm = ranking->candidate[0].algorithm;
    arena_destroy(arena);
    return status;
}

static enum status choose(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr)
{
    struct choices *choices = owner;
    const struct choice_made *at = choices->last;
    void *memory = NULL;
    struct plan_protocol protocol;
    request->algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    if (choices->protocols && one_shot_make(choices->all_reduce, choices->machine, request,
                                            &request->algorithm, &protocol))
        return STATUS_OK;
    while (at != NULL && !plan_request_equal(&at->asked, request)) at = at->before;
    if (at == NULL) {
        STATUS_TRY(arena_try(choices->arena, 1, sizeof(struct choice_made), &memory, reterr));
        struct choice_made *made = memory;
        STATUS_TRY(find(choices, request, where, &made->algorithm, reterr));
        made->asked = *request;
        made->before = choices->last;
        choices->last = at = made;
    }
    request->algorithm = at->algorithm;
    return STATUS_OK;
}

/* Tries each protocol with the request's algorithm, in memory of its own. */
static enum status protocol_find_least(struct choices *choices, const struct plan_request *asked,
                                       const char *where, struct arena *arena,
                                       struct plan_protocol *ret_protocol, struct error *reterr)
{
    struct plan_request request = *asked;
    struct plan plan;
    double least_s = INFINITY;
    plan_request_links(choices->machine, &request);
    STATUS_TRY(plan_build(arena, &request, where, &plan, reterr));
    struct protocol_use const use = {choices->machine, &asked->group, asked->kind, plan.algorithm,
                                     asked->size_bytes};
    for (enum protocol p = PROTOCOL_LL; p < PROTOCOL_COUNT; p++) {
        struct collective_estimate estimate;
        if (protocol_refusal(&use, p) != NULL || !protocol_is_taken(&use, p)) continue;
        STATUS_TRY(protocol_make(&use, p, where, &plan.protocol, reterr));
        collective_estimate(choices->machine, &plan, &choices->known, &estimate);
        if (estimate.time_s >= least_s) continue;
        least_s = estimate.time_s;
        *ret_protocol = plan.protocol;
        ret_protocol->cores =
            asked->chunk_count != 0 ? channels_of_chunks(asked->kind) : channels_of(&use, p);
    }
    return STATUS_OK;
}

static enum status convey(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr)
{
    struct choices *choices = owner;
    const struct choice_made *at = choices->conveyed;
    struct algorithm algorithm;
    struct plan_protocol protocol;
    void *memory = NULL;
    if (one_shot_make(choices->all_reduce, choices->machine, request, &algorithm, &protocol)) {
        request->protocol = protocol;
        return STATUS_OK;
    }
    while (at != NULL && !plan_request_equal(&at->asked, request)) at = at->before;
    if (at == NULL) {
        struct arena *arena = arena_create(0);
        if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
        struct choice_made made = {.asked = *request, .before = choices->conveyed};
        enum status status =
            protocol_find_least(choices, request, where, arena, &made.protocol, reterr);
        arena_destroy(arena);
        STATUS_TRY(status);
        STATUS_TRY(arena_try(choices->arena, 1, sizeof(struct choice_made), &memory, reterr));
        struct choice_made *kept = memory;
        *kept = made;
        choices->conveyed = at = kept;
    }
    request->protocol = at->protocol;
    return STATUS_OK;
}

enum status choices_create(struct arena *arena, const struct choices_args *args,
                           struct plan_chooser *ret_chooser, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct choices), &memory, reterr));
    struct choices *choices = memory;
    choices->arena = arena;
    choices->machine = args->machine;
    choices->protocols = args->protocols && choose_by_protocols(args->machine);
    choices->all_reduce = args->all_reduce;
    *ret_chooser = (struct plan_chooser){choose, choices->protocols ? convey : NULL, choices};
    return STATUS_OK;
}
