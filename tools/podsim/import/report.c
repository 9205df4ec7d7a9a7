/* report.c: what happened to each setting, for people. */
#include <stdbool.h>
#include <string.h>

#include "sim/base/letter.h"
#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "tools/podsim/import/import.h"

enum {
    VALUE_LETTERS_MAX = 28, /* Of a column; keys are never cut. */
    KEY_LETTERS_MAX = 48,
    LINE_COLUMNS = 8, /* The number of a setting's line, and the gap behind it. */
    GAP = 2,
    BECAUSE_COLUMNS = 28, /* What a narrow terminal leaves the last column at least. */
    VALUE_NARROW = 12
};

struct layout {
    uint32_t key, value; /* Columns. */
    bool is_narrow;      /* The last column is wrapped. */
};

struct part {
    enum import_outcome outcome;
    const char *heading, *none;
};

static const struct part parts[] = {
    {IMPORT_EXPRESSED, "expressed", NULL},
    {IMPORT_WITHOUT_INFLUENCE, "without influence on the time of a step", NULL},
    {IMPORT_NOT_EXPRESSED, "not expressed", "not expressed: nothing"},
    {IMPORT_UNKNOWN, "not known, and so not expressed", NULL},
};

static uint32_t longest(const struct import_file *file, bool of_keys, uint32_t most)
{
    size_t length = 3;
    for (uint32_t i = 0; i < file->count; i++) {
        size_t const letters = strlen(of_keys ? file->setting[i].key : file->setting[i].value);
        if (letters > length) length = letters;
    }
    return length < most ? (uint32_t)length : most;
}

/* At least so wide, on one line: what no terminal shows is a blank. */
static void add_column(struct strbuf *text, const char *column, size_t letters, uint32_t width)
{
    for (size_t i = 0, taken = 0; i < letters; i += taken) {
        uint32_t bytes = 0;
        bool const is_shown = letter_at(column + i, &bytes) == LETTER_SEEN && bytes <= letters - i;
        taken = is_shown ? bytes : 1;
        strbuf_add_bytes(text, is_shown ? column + i : " ", taken);
    }
    strbuf_add(text, "%*s", letters < width ? (int)(width - letters) : 0, "");
}

static const char *because_of(const struct import_setting *setting)
{
    return setting->because == NULL ? "" : setting->because;
}

static void add_setting(struct strbuf *text, const struct import_setting *setting,
                        const struct layout *layout)
{
    uint32_t const because = LINE_COLUMNS + layout->key + GAP + layout->value + GAP;
    if (setting->line > 0)
        strbuf_add(text, "%6u  ", setting->line);
    else
        strbuf_add(text, "     -  ");
    add_column(text, setting->key, strlen(setting->key), layout->key);
    size_t const letters = strlen(setting->value);
    bool const is_cut = letters > layout->value && setting->outcome == IMPORT_WITHOUT_INFLUENCE;
    if (letters > 0 || !layout->is_narrow) strbuf_add(text, "%*s", GAP, "");
    add_column(text, setting->value, is_cut ? layout->value - 2 : letters,
               is_cut || layout->is_narrow ? 0 : layout->value);
    if (is_cut) strbuf_add(text, "..");
    if (!layout->is_narrow) {
        strbuf_add(text, "%*s%s\n", GAP, "", because_of(setting));
        return;
    }
    if (strbuf_column(text) + GAP > because) strbuf_add(text, "\n");
    if (strbuf_column(text) < because)
        strbuf_add(text, "%*s", (int)(because - strbuf_column(text)), "");
    table_wrap(text, because, because_of(setting));
}

/* On a terminal that the longest line does not fit, keys and values have less room: a longer one
 * goes on into the next column, and the last column begins on the next line where it has to. */
static struct layout layout_of(const struct import_file *file, uint32_t columns)
{
    struct layout layout = {.key = longest(file, /* of_keys= */ true, KEY_LETTERS_MAX),
                            .value = longest(file, /* of_keys= */ false, VALUE_LETTERS_MAX)};
    uint32_t because = 0;
    for (uint32_t i = 0; i < file->count; i++) {
        uint32_t const letters = table_columns(because_of(&file->setting[i]));
        if (letters > because) because = letters;
    }
    uint32_t const around = LINE_COLUMNS + GAP + GAP;
    if (columns == 0 || around + layout.key + layout.value + because <= columns) return layout;
    layout.is_narrow = true;
    if (layout.value > VALUE_NARROW) layout.value = VALUE_NARROW;
    uint32_t const taken = around + layout.value + BECAUSE_COLUMNS;
    uint32_t const left = columns > taken + VALUE_NARROW ? columns - taken : VALUE_NARROW;
    if (layout.key > left) layout.key = left;
    return layout;
}

/* By line; settings that stand in none come last, as they were given. */
static void sort(const struct import_file *file, const struct import_setting **ret_sorted)
{
    for (uint32_t i = 0; i < file->count; i++) {
        uint32_t at = i;
        while (at > 0 && ret_sorted[at - 1]->line - 1 > file->setting[i].line - 1) {
            ret_sorted[at] = ret_sorted[at - 1];
            at--;
        }
        ret_sorted[at] = &file->setting[i];
    }
}

void import_report(struct strbuf *text, const struct import *import, const char *framework)
{
    const struct import_file *file = import->file;
    static const struct import_setting *sorted[IMPORT_SETTINGS_MAX];
    sort(file, sorted);
    struct layout const layout = layout_of(file, text->columns);
    strbuf_add(text, "podsim import: %s, %s on %s\n", framework, file->path, import->machine_text);
    for (uint32_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < file->count; i++)
            count += file->setting[i].outcome == parts[p].outcome;
        if (count == 0 && parts[p].none != NULL) strbuf_add(text, "%s\n", parts[p].none);
        if (count == 0) continue;
        strbuf_add(text, "%s: %u\n", parts[p].heading, count);
        for (uint32_t i = 0; i < file->count; i++)
            if (sorted[i]->outcome == parts[p].outcome) add_setting(text, sorted[i], &layout);
    }
}
