#include "sim/measure/choices.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/choose/contention.h"
#include "sim/measure/autotune.h"

struct choice_made {
    struct plan_request asked;
    char algorithm[PLAN_ALGORITHM_SIZE];
    const struct choice_made *before;
};

struct choices {
    struct arena *arena;
    const struct machine *machine;
    struct contentions known;
    const struct choice_made *last;
};

/* In memory of its own: the plans of all candidates. */
static enum status find(struct choices *choices, const struct plan_request *asked,
                        const char *where, char ret_algorithm[PLAN_ALGORITHM_SIZE],
                        struct error *reterr)
{
    struct choose_question const question = {
        .machine = choices->machine, .request = *asked, .known = &choices->known};
    void *memory = NULL;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status status = arena_try(arena, 1, sizeof(struct choose_ranking), &memory, reterr);
    struct choose_ranking *ranking = memory;
    if (status == STATUS_OK) status = autotune_choose(arena, &question, where, ranking, reterr);
    if (status == STATUS_OK)
        memcpy(ret_algorithm, ranking->candidate[0].algorithm, PLAN_ALGORITHM_SIZE);
    arena_destroy(arena);
    return status;
}

static enum status choose(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr)
{
    struct choices *choices = owner;
    const struct choice_made *at = choices->last;
    void *memory = NULL;
    request->algorithm = NULL;
    while (at != NULL && !plan_request_equal(&at->asked, request)) at = at->before;
    if (at == NULL) {
        STATUS_TRY(arena_try(choices->arena, 1, sizeof(struct choice_made), &memory, reterr));
        struct choice_made *made = memory;
        STATUS_TRY(find(choices, request, where, made->algorithm, reterr));
        made->asked = *request;
        made->before = choices->last;
        choices->last = at = made;
    }
    request->algorithm = at->algorithm;
    return STATUS_OK;
}

enum status choices_create(struct arena *arena, const struct machine *machine,
                           struct plan_chooser *ret_chooser, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct choices), &memory, reterr));
    struct choices *choices = memory;
    choices->arena = arena;
    choices->machine = machine;
    *ret_chooser = (struct plan_chooser){choose, choices};
    return STATUS_OK;
}
