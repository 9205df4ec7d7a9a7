#include "sim/base/path.h"

#include <string.h>
#include <sys/stat.h>

#include "sim/base/arena.h"

bool path_is_json(const char *text)
{
    static const char end[] = ".json";
    size_t const length = strlen(text), end_length = sizeof end - 1;
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool path_is(const char *text)
{
    return strchr(text, '/') != NULL || path_is_json(text);
}

enum status path_folder(struct arena *arena, const char *path, const char **ret_folder,
                        struct error *reterr)
{
    const char *const slash = strrchr(path, '/');
    *ret_folder = NULL;
    if (slash == NULL) return STATUS_OK;
    *ret_folder = slash == path ? "/" : arena_format(arena, "%.*s", (int)(slash - path), path);
    if (*ret_folder == NULL) return error_set(reterr, STATUS_NO_MEMORY, path, "no memory");
    return STATUS_OK;
}

enum status path_beside(struct arena *arena, const char *folder, const char *path,
                        const char **ret_path, struct error *reterr)
{
    struct stat found;
    *ret_path = path;
    if (folder == NULL || path[0] == '/' || path[0] == '\0') return STATUS_OK;
    const char *const beside = arena_format(arena, "%s/%s", folder, path);
    if (beside == NULL) return error_set(reterr, STATUS_NO_MEMORY, path, "no memory");
    if (stat(beside, &found) == 0) *ret_path = beside;
    return STATUS_OK;
}
