/* list_schedules.c: pipeline schedules. */
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/text.h"
#include "sim/schedule/schedule.h"
#include "tools/podsim/list_text.h"

enum { NAMES_MAX = 64, HELP_COLUMN = 16 };

enum status list_schedules(struct arena *arena, struct text *text, struct error *reterr)
{
    (void)arena;
    (void)reterr;
    for (uint32_t i = 0; i < schedule_form_count; i++) {
        text_add(text, "%s%s", schedule_form_table[i]->name,
                 schedule_form_table[i]->chunks == 0 ? ":V" : "");
        text_pad(text, HELP_COLUMN);
        text_add(text, "%s\n", schedule_form_table[i]->help);
    }
    return STATUS_OK;
}

enum status list_schedule(struct arena *arena, const char *name, struct text *text,
                          struct error *reterr)
{
    const char *names[NAMES_MAX + 1] = {0};
    (void)arena;
    for (uint32_t i = 0; i < schedule_form_count && i < NAMES_MAX; i++) {
        const struct schedule_form *form = schedule_form_table[i];
        struct schedule_request const request = {
            .rank_count = 8,
            .microbatch_count = 32,
            .chunk_count = form->chunks == 0 ? 2 : form->chunks,
            .times = {.forward = 1, .input = 1, .weight = 1},
        };
        names[i] = form->name;
        if (strcmp(name, names[i]) != 0) continue;
        struct schedule_formula const formula = form->formula(&request);
        text_add(text, "%s\n\n%s.\n\nbubble   %s", name, form->help, formula.text);
        if (formula.holds != NULL) text_add(text, ", for %s", formula.holds);
        text_add(text, "\nstages   ");
        if (form->chunks == 0)
            text_add(text, "v of a rank, as in %s:2", form->name);
        else
            text_add(text, "%u of a rank", form->chunks);
        text_add(text, "\nweights  %s\nsource   %s\n",
                 form->copies == 1 ? "one copy of the model" : "two copies of the model",
                 form->source);
        if (form->pytorch != NULL) text_add(text, "PyTorch  %s\n", form->pytorch);
        return STATUS_OK;
    }
    return error_set(reterr, STATUS_NOT_FOUND, name, "no such schedule; the nearest is %s",
                     name_nearest(name, names));
}
