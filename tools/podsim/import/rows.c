/* rows.c: settings by the table of a framework. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/import/import.h"

enum { ROWS_MAX = 1024 };

static const uint64_t count_most = UINT64_C(999999999999999999);

_Static_assert(sizeof(uint64_t) == sizeof(const char *), "a fact is a count or a text");

/* "profiling.*" is for all keys that begin with "profiling.", "ici_*" for those with "ici_",
 * "*_for_vit" for those that end so. */
static bool is_for(const struct import_row *row, const char *key)
{
    size_t const length = strlen(row->key);
    if (length > 1 && row->key[length - 1] == '*') return strncmp(row->key, key, length - 1) == 0;
    size_t const letters = strlen(key);
    if (row->key[0] == '*' && letters >= length - 1)
        return name_same(row->key + 1, key + letters - (length - 1));
    return name_same(row->key, key);
}

static const struct import_row *row_find(const struct import_framework *framework, const char *key)
{
    for (const struct import_row *const *table = framework->rows; *table != NULL; table++)
        for (const struct import_row *row = *table; row->key != NULL; row++)
            if (is_for(row, key)) return row;
    return NULL;
}

/* Keys of the framework that begin with so many letters of a key, without these. */
static uint32_t names_below(const struct import_framework *framework, const char *key,
                            size_t length, const char **ret_names)
{
    uint32_t count = 0;
    for (const struct import_row *const *table = framework->rows; *table != NULL; table++)
        for (const struct import_row *row = *table; row->key != NULL; row++) {
            SIM_ASSERT(count < ROWS_MAX);
            if (strncmp(row->key, key, length) == 0) ret_names[count++] = row->key + length;
        }
    ret_names[count] = NULL;
    return count;
}

static enum status unknown_say(struct import *import, const struct import_framework *framework,
                               struct import_setting *setting, struct error *reterr)
{
    const char *names[ROWS_MAX + 1];
    const char *const dot = strrchr(setting->key, '.');
    /* A key's table, which names of all of its keys have in common, makes none of them near. */
    size_t length = dot == NULL ? 0 : (size_t)(dot + 1 - setting->key);
    if (names_below(framework, setting->key, length, names) == 0) length = 0;
    (void)names_below(framework, setting->key, length, names);
    const char *const before =
        arena_format(import->arena, "; the nearest it knows is %.*s", (int)length, setting->key);
    if (before == NULL) return error_no_memory(reterr, "");
    setting->because = arena_format(import->arena, "podsim does not know the key%s",
                                    name_offer(setting->key + length, names, before, "", "").text);
    if (setting->because == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

/* Digits, with "_" between them as TOML and YAML have it. Beyond count_most: one more. */
static bool count_read(const char *text, uint64_t *ret_count)
{
    bool is_count = false;
    *ret_count = 0;
    for (; *text != '\0'; text++) {
        if (*text == '_' && is_count && text[1] != '\0') continue;
        if (*text < '0' || *text > '9') return false;
        is_count = true;
        *ret_count = *ret_count * 10 + (uint64_t)(*text - '0');
        if (*ret_count > count_most) *ret_count = count_most + 1;
    }
    return is_count;
}

static enum status value_refuse(const struct import *import, const struct import_setting *setting,
                                const char *wanted, struct error *reterr)
{
    bool const is_open = strchr(setting->value, '$') != NULL;
    const char *const hint =
        is_open ? "; what the file does not assign or export is given by --with NAME=VALUE, "
                  "which words in single quotes do not take"
        : name_same(setting->value, "auto")
            ? "; what the file leaves open is given by --with KEY=VALUE"
            : "";
    return settings_fail(import->file, setting->line, STATUS_INVALID, reterr,
                         "%s: \"%.80s\" is not %s%s", setting->key, setting->value, wanted, hint);
}

/* Words of frameworks for on and off. */
static bool boolean_read(const struct import_setting *setting, bool *ret_is_on)
{
    static const char *const ons[] = {"true", "yes", "on", "1", NULL};
    static const char *const offs[] = {"false", "no", "off", "0", NULL};
    bool const is_on = ons[name_find_any_case(setting->value, ons)] != NULL;
    bool const is_open = setting->value[0] == '$'; /* A variable, empty where nothing assigns it. */
    *ret_is_on = setting->form == IMPORT_FLAG || is_open || is_on;
    return *ret_is_on || offs[name_find_any_case(setting->value, offs)] != NULL;
}

static bool is_plain(const char *value, const char *plain)
{
    size_t const length = strlen(value);
    for (const char *at = plain; at != NULL;) {
        size_t const part = strcspn(at, "|");
        if (part == length && strncmp(at, value, length) == 0) return true;
        at = at[part] == '|' ? at + part + 1 : NULL;
    }
    return false;
}

static enum status open_say(struct import *import, struct import_setting *setting,
                            struct error *reterr)
{
    struct import_setting const open = {.key = setting->value,
                                        .value = "",
                                        .line = setting->line,
                                        .outcome = IMPORT_NOT_EXPRESSED,
                                        .because = IMPORT_OPEN};
    setting->value = "";
    return settings_add(import->file, &open, reterr);
}

static enum status fact_read(struct import *import, const struct import_row *row,
                             struct import_setting *setting, struct error *reterr)
{
    char *const fact = (char *)&import->facts + row->at;
    uint64_t count = 0;
    bool is_on = false;
    setting->outcome = IMPORT_EXPRESSED;
    if (setting->form == IMPORT_NULL) return STATUS_OK; /* As if it were not there. */
    struct import_setting **said = &import->said[row->at / sizeof(uint64_t)];
    if (*said != NULL) {
        (*said)->outcome = IMPORT_WITHOUT_INFLUENCE;
        (*said)->because = "another key says it again, which counts";
    }
    *said = setting;
    if (row->how == IMPORT_WORD) {
        memcpy(fact, &setting->value, sizeof setting->value);
        return STATUS_OK;
    }
    bool const is_least_1 = row->how == IMPORT_COUNT || row->how == IMPORT_LEFT;
    bool const may_be_rest = row->how == IMPORT_REST || row->how == IMPORT_LEFT;
    if (may_be_rest && name_same(setting->value, "-1")) return STATUS_OK;
    if (is_least_1 || may_be_rest || row->how == IMPORT_AMOUNT) {
        const char *const least = row->how == IMPORT_LEFT ? "a whole number of 1 or more, or -1"
                                                          : "a whole number of 1 or more";
        if (!count_read(setting->value, &count))
            return value_refuse(import, setting, row->how == IMPORT_LEFT ? least : "a whole number",
                                reterr);
        if (count > count_most)
            return settings_fail(import->file, setting->line, STATUS_INVALID, reterr,
                                 "%s: %.80s is above the maximum %" PRIu64, setting->key,
                                 setting->value, count_most);
        if (count == 0 && is_least_1) return value_refuse(import, setting, least, reterr);
    } else {
        if (!boolean_read(setting, &is_on))
            return value_refuse(import, setting, "true or false", reterr);
        count = row->how == IMPORT_ON ? is_on : !is_on;
        if (setting->value[0] == '$') /* Behind a flag: it may have any arguments, or none. */
            STATUS_TRY(open_say(import, setting, reterr));
    }
    memcpy(fact, &count, sizeof count);
    return STATUS_OK;
}

enum status import_rows(struct import *import, const struct import_framework *framework,
                        struct error *reterr)
{
    import->rows = framework->rows;
    for (uint32_t i = 0; i < import->file->count; i++) {
        struct import_setting *setting = &import->file->setting[i];
        const struct import_row *row = row_find(framework, setting->key);
        if (setting->outcome != IMPORT_UNKNOWN) continue;
        if (row == NULL) {
            STATUS_TRY(unknown_say(import, framework, setting, reterr));
            continue;
        }
        setting->because = row->text;
        if (settings_find(import->file, setting->key) != setting) {
            setting->outcome = IMPORT_WITHOUT_INFLUENCE;
            setting->because = "the key is given again, which counts";
            continue;
        }
        if (row->how == IMPORT_NOTHING)
            setting->outcome = IMPORT_WITHOUT_INFLUENCE;
        else if (row->how == IMPORT_LACKS)
            setting->outcome = setting->form == IMPORT_NULL || is_plain(setting->value, row->plain)
                                   ? IMPORT_WITHOUT_INFLUENCE
                                   : IMPORT_NOT_EXPRESSED;
        else
            STATUS_TRY(fact_read(import, row, setting, reterr));
        if (row->how == IMPORT_LACKS && setting->outcome == IMPORT_WITHOUT_INFLUENCE)
            setting->because = "this value changes nothing";
    }
    return STATUS_OK;
}

enum status import_set(struct import *import, struct error *reterr, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum status const status = json_set_list(import->scenario, reterr, format, arguments);
    va_end(arguments);
    return status;
}

enum status import_set_text(struct import *import, const char *key, const char *value,
                            struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    struct json_writer json;
    json_write_start(&json, &text);
    json_write_string(&json, value);
    enum status const status = text.failed ? error_no_memory(reterr, "")
                                           : import_set(import, reterr, "%s=%s", key, text.bytes);
    strbuf_free(&text);
    return status;
}

enum status import_choice(const struct import *import, const char *const *fact,
                          const char *const *choices, struct error *reterr)
{
    if (*fact == NULL || choices[name_find(*fact, choices)] != NULL) return STATUS_OK;
    return import_refuse(import, fact, reterr, "\"%.40s\" is no value of it that podsim knows%s",
                         *fact, name_offer(*fact, choices, "; the nearest is ", "", NULL).text);
}

struct import_setting *import_said(const struct import *import, const void *fact)
{
    size_t const at = (size_t)((const char *)fact - (const char *)&import->facts);
    SIM_ASSERT(at < sizeof import->facts);
    return import->said[at / sizeof(uint64_t)];
}

static void outcome_set(struct import *import, const void *fact, enum import_outcome outcome,
                        const char *because)
{
    struct import_setting *setting = import_said(import, fact);
    if (setting == NULL) return;
    setting->outcome = outcome;
    setting->because = because;
}

const char *import_key(const struct import *import, const void *fact)
{
    size_t const at = (size_t)((const char *)fact - (const char *)&import->facts);
    for (uint32_t t = 0; import->rows[t] != NULL; t++)
        for (const struct import_row *row = import->rows[t]; row->key != NULL; row++)
            if (row->how < IMPORT_NOTHING && row->at == at) return row->key;
    return "";
}

void import_at(struct import *import, const void *fact, const char *place)
{
    outcome_set(import, fact, IMPORT_EXPRESSED, place);
}

void import_lacks(struct import *import, const void *fact, const char *what)
{
    outcome_set(import, fact, IMPORT_NOT_EXPRESSED, what);
}

void import_plain(struct import *import, const void *fact, const char *why)
{
    outcome_set(import, fact, IMPORT_WITHOUT_INFLUENCE, why);
}

enum status import_remark(struct import *import, const char *key, const char *what,
                          struct error *reterr)
{
    struct import_setting const setting = {
        .key = key, .value = "", .line = 0, .outcome = IMPORT_NOT_EXPRESSED, .because = what};
    return settings_add(import->file, &setting, reterr);
}

enum status import_refuse(const struct import *import, const void *fact, struct error *reterr,
                          const char *format, ...)
{
    char message[sizeof reterr->message];
    const struct import_setting *setting = import_said(import, fact);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return settings_fail(import->file, setting == NULL ? 0 : setting->line, STATUS_UNSUPPORTED,
                         reterr, "%s%s%s", setting == NULL ? "" : setting->key,
                         setting == NULL ? "" : ": ", message);
}
