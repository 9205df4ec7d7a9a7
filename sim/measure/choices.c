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
    if (arena == NULL) return error_no_memory(reterr, "");
    struct contention_kept messages = {.arena = arena};
    choices->known.kept = &messages;
    enum status status = arena_try_unset(arena, 1, sizeof(struct choose_ranking), &memory, reterr);
    struct choose_ranking *ranking = memory;
    if (status == STATUS_OK) status = autotune_choose(arena, &args, where, ranking, reterr);
    if (status == STATUS_OK) *ret_algorithm = ranking->candidate[0].algorithm;
    choices->known.kept = NULL;
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

/* The protocol that has been found to be the fastest so far, of a request's algorithm. */
struct protocol_search {
    struct choices *choices;
    struct protocol_use use;
    const char *where;
    struct plan plan;
    enum protocol fastest;
    enum protocol_stand fastest_stands;
    struct collective_estimate least;
    struct plan_protocol least_of;
};

static double wire_of(const struct plan_protocol *protocol)
{
    return protocol->wire_ppm == 0 ? PPM_ONE : protocol->wire_ppm;
}

static double far_wire_of(const struct plan_protocol *protocol)
{
    return protocol->far_ppm == 0 ? wire_of(protocol) : protocol->far_ppm;
}

/* Bytes on the wires grow with a protocol's flags, so that their time alone may say that another
 * one is faster, and no messages need to be simulated. */
static bool wires_take_longer(const struct protocol_search *search)
{
    double const least = 1 - 1e-6; /* Sums of times may be rounded in another order. */
    const struct plan_protocol *next = &search->plan.protocol, *known = &search->least_of;
    double const near = wire_of(next) / wire_of(known);
    double const far = far_wire_of(next) / far_wire_of(known);
    return search->least.wire_s * least * fmin(near, far) > search->least.time_s;
}

/* Of what takes equally long the first one is taken. */
static enum status protocol_try(struct protocol_search *search, enum protocol protocol,
                                struct error *reterr)
{
    struct collective_estimate estimate;
    if (protocol_refusal(&search->use, protocol) != NULL ||
        !protocol_is_taken(&search->use, protocol))
        return STATUS_OK;
    STATUS_TRY(
        protocol_make(&search->use, protocol, search->where, &search->plan.protocol, reterr));
    if (wires_take_longer(search)) return STATUS_OK;
    collective_estimate(search->choices->machine, &search->plan, &search->choices->known,
                        &estimate);
    if (estimate.time_s > search->least.time_s) return STATUS_OK;
    bool const is_behind =
        protocol > search->fastest || search->use.stands != search->fastest_stands;
    if (estimate.time_s >= search->least.time_s && is_behind) return STATUS_OK;
    search->fastest = protocol;
    search->fastest_stands = search->use.stands;
    search->least = estimate;
    search->least_of = search->plan.protocol;
    return STATUS_OK;
}

/* Tries each protocol: the one without flags first, which is the fastest for long arrays. */
static enum status protocols_try(struct protocol_search *search, struct error *reterr)
{
    STATUS_TRY(protocol_try(search, PROTOCOL_SIMPLE, reterr));
    for (enum protocol p = PROTOCOL_LL; p < PROTOCOL_COUNT; p++)
        if (p != PROTOCOL_SIMPLE) STATUS_TRY(protocol_try(search, p, reterr));
    return STATUS_OK;
}

/* Over nodes a plan that goes by shape stands for each algorithm that NCCL has there; in memory of
 * its own. */
static enum status protocol_find_least(struct choices *choices, const struct plan_request *asked,
                                       const char *where, struct arena *arena,
                                       struct plan_protocol *ret_protocol, struct error *reterr)
{
    struct protocol_search search = {.choices = choices,
                                     .where = where,
                                     .fastest = PROTOCOL_NONE,
                                     .least = {.time_s = INFINITY}};
    struct plan_request request = *asked;
    plan_request_links(choices->machine, &request);
    STATUS_TRY(plan_build(arena, &request, where, &search.plan, reterr));
    search.use = protocol_use_of(choices->machine, asked, search.plan.algorithm, false);
    bool const by_shape = algorithm_is_chosen(&asked->algorithm) && asked->chunk_count == 0;
    for (uint32_t s = PROTOCOL_STANDS_FOR_RING; s < PROTOCOL_STANDS && by_shape; s++) {
        search.use.stands = (enum protocol_stand)s;
        if (protocol_stands(&search.use)) STATUS_TRY(protocols_try(&search, reterr));
    }
    search.use.stands = PROTOCOL_STANDS_ALONE;
    if (search.fastest == PROTOCOL_NONE) STATUS_TRY(protocols_try(&search, reterr));
    if (search.fastest == PROTOCOL_NONE) return STATUS_OK;
    search.use.stands = search.fastest_stands;
    *ret_protocol = search.least_of;
    ret_protocol->cores = asked->chunk_count != 0 ? channels_of_chunks(asked->kind)
                                                  : channels_of(&search.use, search.fastest);
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
        if (arena == NULL) return error_no_memory(reterr, "");
        struct choice_made made = {.asked = *request, .before = choices->conveyed};
        struct contention_kept messages = {.arena = arena};
        choices->known.kept = &messages;
        enum status status =
            protocol_find_least(choices, request, where, arena, &made.protocol, reterr);
        choices->known.kept = NULL;
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
