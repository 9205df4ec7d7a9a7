/* report.c: what happened to each setting, for people. */
#include <string.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/import/import.h"

enum { VALUE_LETTERS_MAX = 28, KEY_LETTERS_MAX = 48 }; /* Of a column; keys are never cut. */

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
    for (size_t i = 0; i < letters; i++) {
        bool const is_shown = (unsigned char)column[i] >= ' ' && column[i] != 0x7f;
        strbuf_add_bytes(text, is_shown ? &column[i] : " ", 1);
    }
    strbuf_add(text, "%*s", letters < width ? (int)(width - letters) : 0, "");
}

static void add_setting(struct strbuf *text, const struct import_setting *setting, uint32_t key,
                        uint32_t value)
{
    if (setting->line > 0)
        strbuf_add(text, "%6u  ", setting->line);
    else
        strbuf_add(text, "     -  ");
    add_column(text, setting->key, strlen(setting->key), key);
    size_t const letters = strlen(setting->value);
    bool const is_cut = letters > value && setting->outcome == IMPORT_WITHOUT_INFLUENCE;
    strbuf_add(text, "  ");
    add_column(text, setting->value, is_cut ? value - 2 : letters, is_cut ? 0 : value);
    strbuf_add(text, is_cut ? "..  " : "  ");
    strbuf_add(text, "%s\n", setting->because == NULL ? "" : setting->because);
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
    uint32_t const key = longest(file, /* of_keys= */ true, KEY_LETTERS_MAX);
    uint32_t const value = longest(file, /* of_keys= */ false, VALUE_LETTERS_MAX);
    strbuf_add(text, "podsim import: %s, %s on %s\n", framework, file->path, import->machine_text);
    for (uint32_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < file->count; i++)
            count += file->setting[i].outcome == parts[p].outcome;
        if (count == 0 && parts[p].none != NULL) strbuf_add(text, "%s\n", parts[p].none);
        if (count == 0) continue;
        strbuf_add(text, "%s: %u\n", parts[p].heading, count);
        for (uint32_t i = 0; i < file->count; i++)
            if (sorted[i]->outcome == parts[p].outcome) add_setting(text, sorted[i], key, value);
    }
}
