/*
 * list_text.c: what catalogues of named entries share.
 */
#include "tools/podsim/list/list_text.h"

#include <stdio.h>

#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"

enum { NAMES_MAX = 256, NAMES_WIDTH = 90, NAME_BYTES = 64 };

void list_entries_add(const struct list_entries *entries, struct strbuf *text)
{
    int width = entries->name_columns;
    struct list_entry entry;
    char name[NAME_BYTES];
    struct column_value values[] = {WORDS(name), WORDS(NULL)};
    for (uint32_t i = 0; entries->at(i, &entry); i++) {
        int const columns = (int)table_columns(entry.name) + 2;
        if (columns > width) width = columns;
    }
    struct column const columns[] = {{.width = 1 - width}, {.width = -1}};
    struct column_line const line = COLUMN_ALL(columns);
    for (uint32_t i = 0; entries->at(i, &entry); i++) {
        (void)snprintf(name, sizeof name, "%s%s", entry.name,
                       entry.behind == NULL ? "" : entry.behind);
        values[1] = WORDS(entry.help);
        column_add_figure_line(&line, values, text);
    }
}

enum status list_entry_find(const struct list_entries *entries, const char *name,
                            uint32_t *ret_index, struct error *reterr)
{
    const char *names[NAMES_MAX + 1] = {0};
    struct list_entry entry;
    char otherwise[64];
    for (uint32_t i = 0; i < NAMES_MAX && entries->at(i, &entry); i++) names[i] = entry.name;
    *ret_index = name_find_any_case(name, names);
    if (names[*ret_index] != NULL) return STATUS_OK;
    (void)snprintf(otherwise, sizeof otherwise, "; `podsim list %ss` has the names", entries->noun);
    return error_set(reterr, STATUS_NOT_FOUND, name, "no such %s%s", entries->noun,
                     name_offer(name, names, "; the nearest is ", "", otherwise).text);
}

enum status list_entry_add(struct arena *arena, const struct list_entries *entries,
                           const char *name, struct strbuf *text, struct error *reterr)
{
    struct list_entry entry;
    uint32_t index = 0;
    STATUS_TRY(list_entry_find(entries, name, &index, reterr));
    (void)entries->at(index, &entry);
    strbuf_add(text, "%s\n\n%s.\n\n", entry.name, entry.help);
    if (entries->facts_add != NULL) STATUS_TRY(entries->facts_add(arena, index, text, reterr));
    list_fact_add(text, "source", entry.source);
    return STATUS_OK;
}

void list_fact_add(struct strbuf *text, const char *label, const char *fact)
{
    strbuf_add(text, "%s", label);
    strbuf_pad(text, LIST_FACT_COLUMN);
    strbuf_add(text, "%s\n", fact);
}

void list_name_add(const char *name, bool is_first, uint32_t at, struct strbuf *text)
{
    bool const has_room = strbuf_column(text) + table_columns(name) + 4 <= NAMES_WIDTH;
    if (!is_first) strbuf_add(text, has_room ? ", " : ",\n");
    if (is_first || !has_room) strbuf_pad(text, at);
    strbuf_add(text, "%s", name);
}
