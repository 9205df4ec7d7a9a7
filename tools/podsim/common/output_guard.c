#define _XOPEN_SOURCE 700 /* lstat(), readlink() */

#include "tools/podsim/common/output_guard.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"

enum { LINKS_MAX = 40 };

/* A file that is only looked at, and so not listed as read. NULL: it cannot be. */
static char *content_of(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "rb");
    char *const content = file == NULL ? NULL : malloc(JSON_FILE_BYTES_MAX + 1);
    if (content != NULL) {
        *ret_bytes = fread(content, 1, JSON_FILE_BYTES_MAX, file);
        content[*ret_bytes] = '\0';
    }
    if (file != NULL) (void)fclose(file);
    return content;
}

static bool has_kind(struct json *document, const char *key, enum json_kind kind)
{
    struct json *const value = json_take(document, key);
    return value != NULL && json_kind(value) == kind;
}

static const char *kind_of_object(struct json *document)
{
    if (json_take(document, "podsim") != NULL)
        return has_kind(document, "machine", JSON_OBJECT) ? "a scenario" : NULL;
    if (json_take(document, "podsim_preset") != NULL) return "a preset";
    if (has_kind(document, "model_type", JSON_STRING)) return "a model's config.json";
    bool const of_chip = has_kind(document, "kind", JSON_STRING);
    return of_chip && json_take(document, "hbm_capacity") != NULL ? "a chip" : NULL;
}

static const char *kind_of_json(const char *path, const char *content, size_t bytes)
{
    struct error ignored;
    struct json *document = NULL;
    struct arena *arena = arena_create(0);
    const char *kind = NULL;
    if (arena != NULL &&
        json_read_text(arena, path, content, bytes, &document, &ignored) == STATUS_OK &&
        json_kind(document) == JSON_OBJECT)
        kind = kind_of_object(document);
    if (document != NULL) json_free(document);
    arena_destroy(arena);
    return kind;
}

/* A schedule in PyTorch's CSV begins with a cell such as 0F0, of a stage, letters and a microbatch;
 * cells before it may be empty. */
static bool is_schedule(const char *text)
{
    static const char digits[] = "0123456789", letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    text += strspn(text, ", ");
    size_t const stage = strspn(text, digits), action = strspn(text + stage, letters);
    size_t const batch = strspn(text + stage + action, digits);
    const char *const end = text + stage + action + batch;
    return stage > 0 && action > 0 && batch > 0 && strchr(",\r\n", *end) != NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *output_guard_kind(const char *path)
{
    size_t bytes = 0;
    char *const content = content_of(path, &bytes);
    const char *kind = NULL;
    if (content == NULL) return NULL;
    const char *const text = content + strspn(content, " \t\r\n");
    if (*text == '{')
        kind = kind_of_json(path, content, bytes);
    else if (begins(text, "podsim program"))
        kind = "a program";
    else if (begins(text, "<algo"))
        kind = "an algorithm";
    else if (is_schedule(text))
        kind = "a schedule";
    free(content);
    return kind;
}

bool output_guard_target(const char *path, char *ret_target, size_t size)
{
    char found[PATH_MAX];
    struct stat status;
    int length = snprintf(ret_target, size, "%s", path);
    for (uint32_t links = 0; length >= 0 && (size_t)length < size; links++) {
        if (lstat(ret_target, &status) != 0 || !S_ISLNK(status.st_mode)) return true;
        ssize_t const bytes = readlink(ret_target, found, sizeof found - 1);
        errno = links == LINKS_MAX ? ELOOP : errno;
        if (bytes < 0 || links == LINKS_MAX) return false;
        found[bytes] = '\0';
        const char *const slash = strrchr(ret_target, '/');
        size_t const folder =
            found[0] == '/' || slash == NULL ? 0 : (size_t)(slash - ret_target) + 1;
        length = snprintf(ret_target + folder, size - folder, "%s", found);
        if (length >= 0) length += (int)folder;
    }
    errno = ENAMETOOLONG;
    return false;
}
