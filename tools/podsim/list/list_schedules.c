/* list_schedules.c: pipeline schedules. */
#include "sim/base/strbuf.h"
#include "sim/schedule/schedule.h"
#include "tools/podsim/list/list_text.h"

static bool form_at(uint32_t index, struct list_entry *ret_entry)
{
    if (index >= schedule_form_count) return false;
    const struct schedule_form *form = schedule_form_at(index);
    *ret_entry =
        (struct list_entry){form->name, form->help, form->source, form->chunks == 0 ? ":V" : NULL};
    return true;
}

const struct list_entries list_forms = {"schedule", 16, form_at, NULL};

enum status list_schedule(struct arena *arena, const char *name, struct strbuf *text,
                          struct error *reterr)
{
    const struct schedule_form *form = NULL;
    struct schedule_request request = {
        .rank_count = 8,
        .microbatch_count = 32,
        .times = {.forward = 1, .input = 1, .weight = 1},
    };
    (void)arena;
    STATUS_TRY(schedule_form_parse(name, "list schedules", &form, &request.chunk_count, reterr));
    struct schedule_formula const formula = form->formula(&request);
    strbuf_add(text, "%s\n\n%s.\n\nbubble   %s", form->name, form->help, formula.text);
    if (formula.holds != NULL) strbuf_add(text, ", for %s", formula.holds);
    strbuf_add(text, "\nstages   ");
    if (form->chunks == 0)
        strbuf_add(text, "v of a rank, as in %s:2", form->name);
    else
        strbuf_add(text, "%u of a rank", form->chunks);
    strbuf_add(text, "\nweights  %s\nsource   %s\n",
               form->model_replicas == 1 ? "one copy of the model" : "two copies of the model",
               form->source);
    if (form->pytorch != NULL) strbuf_add(text, "PyTorch  %s\n", form->pytorch);
    return STATUS_OK;
}
