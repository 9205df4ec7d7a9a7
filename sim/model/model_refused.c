/*
 * What is refused of models: types whose layers are known and not modelled, and what the layers of
 * other families alone have.
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/model/model_read_parts.h"

enum status model_refuse(struct json *value, const char *what, struct error *reterr)
{
    return error_set(reterr, STATUS_UNSUPPORTED, json_where(value), "%s is not modelled yet", what);
}

/* --- What other families have --- */

static void type_add(struct strbuf *text, const char *between, const char *type)
{
    if (type != NULL) strbuf_add(text, "%s%s", text->size_bytes == 0 ? "" : between, type);
}

void model_types_write(struct strbuf *text, model_family_has *has, const void *which)
{
    const char *last = NULL;
    for (const struct model_family *family = model_families; family->type != NULL; family++) {
        if (!has(family, which)) continue;
        type_add(text, ", ", last);
        last = family->type;
    }
    type_add(text, " and ", last);
}

enum status model_refuse_of(struct json *value, const char *what, const struct model_family *family,
                            model_family_has *has, const void *which, struct error *reterr)
{
    struct strbuf having = {0};
    model_types_write(&having, has, which);
    enum status status = STATUS_OK;
    if (having.failed)
        status = error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the types of models");
    else if (having.size_bytes == 0)
        status = model_refuse(value, what, reterr);
    else
        status = error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                           "%s is not modelled in models of type %s; it is in those of %s", what,
                           family->type, having.bytes);
    strbuf_free(&having);
    return status;
}

/* --- Types that are not modelled --- */

/* The member of the document, or of the language model inside it. */
static struct json *member_of(struct json *document, const char *key)
{
    struct json *text = model_take_set(document, "text_config");
    struct json *value = model_take_set(document, key);
    return value != NULL || text == NULL ? value : model_take_set(text, key);
}

static enum status refuse_row(const struct model_refused_type *row, struct json *place,
                              struct error *reterr)
{
    return error_set(reterr, STATUS_UNSUPPORTED, json_where(place),
                     "%s is not modelled yet; models of type \"%s\" have it", row->what, row->type);
}

/* First what the file says, then what it leaves to the default. A type whose key is off is refused
 * for no reason of these. */
enum status model_refuse_type(struct json *document, struct json *type, struct error *reterr)
{
    const char *name = NULL;
    const struct model_refused_type *by_default = NULL;
    STATUS_TRY(json_as_string(type, &name, reterr));
    for (const struct model_refused_type *row = model_refused_types; row->type != NULL; row++) {
        if (!name_same(row->type, name)) continue;
        struct json *value = row->key == NULL ? NULL : member_of(document, row->key);
        if (value != NULL && !model_is_off(value)) return refuse_row(row, value, reterr);
        if (value == NULL && by_default == NULL) by_default = row;
    }
    return by_default == NULL ? STATUS_OK : refuse_row(by_default, type, reterr);
}
