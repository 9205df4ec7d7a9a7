#include "tools/podsim/column.h"

#include "sim/base/json.h"
#include "sim/base/text.h"

void column_put(const struct column *columns, const struct column_value *values, uint32_t first,
                uint32_t last, struct json_writer *json)
{
    for (uint32_t c = first; c <= last; c++) {
        const char *key = columns[c].key;
        struct column_value const value = values[c];
        if (value.kind == COLUMN_WORDS || value.kind == COLUMN_LIST)
            json_put_string(json, key, value.words);
        else if (value.kind == COLUMN_WHOLE)
            json_put_unsigned(json, key, value.whole);
        else if (value.kind == COLUMN_REAL)
            json_put_real(json, key, value.real);
        else if (value.kind == COLUMN_BOOL)
            json_put_boolean(json, key, value.boolean);
    }
}

void column_write_keys(const struct column *columns, const uint8_t *order, uint32_t count,
                       struct text *text)
{
    for (uint32_t i = 0; i < count; i++)
        text_add(text, "%s%s", i == 0 ? "" : ",", columns[order[i]].key);
    text_add(text, "\n");
}

void column_write_cells(const struct column_value *values, const uint8_t *order, uint32_t count,
                        struct text *text)
{
    for (uint32_t i = 0; i < count; i++) {
        struct column_value const value = values[order[i]];
        if (i > 0) text_add(text, ",");
        if (value.kind == COLUMN_WORDS)
            text_add(text, "%s", value.words);
        else if (value.kind == COLUMN_LIST)
            text_add(text, "\"%s\"", value.words);
        else if (value.kind == COLUMN_WHOLE)
            text_add(text, "%llu", (unsigned long long)value.whole);
        else if (value.kind == COLUMN_REAL)
            text_add(text, "%.9g", value.real);
        else if (value.kind == COLUMN_BOOL)
            text_add(text, "%s", value.boolean ? "true" : "false");
    }
    text_add(text, "\n");
}
