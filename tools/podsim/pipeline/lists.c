#include "tools/podsim/pipeline/lists.h"

#include <string.h>

#include "sim/base/arena.h"

const char *lists_part_end(const char *text)
{
    const char *comma = strchr(text, ',');
    return comma == NULL ? text + strlen(text) : comma;
}

static enum status form_add(struct lists_forms *forms, const struct schedule_form *form,
                            uint32_t chunk_count, const char *where, struct error *reterr)
{
    if (forms->count == LISTS_FORMS_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "more than %d schedules", LISTS_FORMS_MAX);
    forms->form[forms->count++] = (struct lists_form){form, chunk_count};
    return STATUS_OK;
}

enum status lists_forms(struct arena *arena, const char *text, const char *where,
                        struct lists_forms *ret_forms, struct error *reterr)
{
    *ret_forms = (struct lists_forms){.all = text == NULL || strcmp(text, "all") == 0};
    for (uint32_t i = 0; ret_forms->all && i < schedule_form_count; i++) {
        const struct schedule_form *form = schedule_form_at(i);
        if (form->is_baseline) continue;
        STATUS_TRY(form_add(ret_forms, form, form->chunks == 0 ? 2 : form->chunks, where, reterr));
    }
    for (const char *at = text; !ret_forms->all; at++) {
        const char *end = lists_part_end(at);
        const struct schedule_form *form = NULL;
        uint32_t chunks = 0;
        const char *name = arena_format(arena, "%.*s", (int)(end - at), at);
        if (name == NULL) return error_no_memory(reterr, where);
        if (strcmp(name, "all") == 0)
            return error_set(reterr, STATUS_INVALID, where, "all takes no other names");
        STATUS_TRY(schedule_form_parse(name, where, &form, &chunks, reterr));
        STATUS_TRY(form_add(ret_forms, form, chunks, where, reterr));
        if (*end == '\0') break;
        at = end;
    }
    return STATUS_OK;
}
