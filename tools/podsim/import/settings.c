#include "tools/podsim/import/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"

enum status settings_fail(const struct import_file *file, uint32_t line, enum status status,
                          struct error *reterr, const char *format, ...)
{
    char where[sizeof reterr->where], message[sizeof reterr->message];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (line > 0)
        (void)snprintf(where, sizeof where, "%.160s:%u", file->path, line);
    else
        (void)snprintf(where, sizeof where, "%.180s", file->path);
    return error_set(reterr, status, where, "%s", message);
}

enum status settings_add(struct import_file *file, const struct import_setting *setting,
                         struct error *reterr)
{
    if (file->setting == NULL) {
        void *memory = NULL;
        STATUS_TRY(
            arena_try(file->arena, IMPORT_SETTINGS_MAX, sizeof *file->setting, &memory, reterr));
        file->setting = memory;
    }
    if (file->count == IMPORT_SETTINGS_MAX)
        return settings_fail(file, setting->line, STATUS_LIMIT, reterr, "more than %d settings",
                             IMPORT_SETTINGS_MAX);
    file->setting[file->count] = *setting;
    if (setting->key[0] == '\0') file->setting[file->count].key = "\"\"";
    file->count++;
    return STATUS_OK;
}

struct import_setting *settings_find(const struct import_file *file, const char *key)
{
    for (uint32_t i = file->count; i-- > 0;)
        if (name_same(file->setting[i].key, key)) return &file->setting[i];
    return NULL;
}
