#include <string.h>

#include "tests/tidy/tidy.h"

enum { PATH_BYTES = 256 };

/* Whether `path` lies in the folder, at any depth. */
static bool lies_in(const char *path, const char *folder, size_t folder_length)
{
    return strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/';
}

/* Returns the line of layers.txt for the deepest listed folder that holds `path`, or NULL. */
static const char *layer_find(const char *layers, const char *path, size_t *ret_length)
{
    const char *found = NULL;
    *ret_length = 0;
    for (const char *line = layers; *line != '\0';) {
        size_t const length = strcspn(line, ":\n");
        if (line[0] != '#' && line[length] == ':' && length > *ret_length &&
            lies_in(path, line, length)) {
            found = line;
            *ret_length = length;
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
    return found;
}

/* Whether the line "folder: a b c" names the folder, or all of a folder that it lies in, or all. */
static bool layer_allows(const char *line, const char *folder, size_t folder_length)
{
    const char *end = line + tidy_line_length(line);
    for (const char *at = strchr(line, ':') + 1; at < end;) {
        at += strspn(at, " ");
        size_t const length = strcspn(at, " \n");
        if (length == 1 && *at == '*') return true;
        if (length == folder_length && strncmp(at, folder, length) == 0) return true;
        bool const is_group = length > 2 && strncmp(at + length - 2, "/*", 2) == 0;
        if (is_group && lies_in(folder, at, length - 2)) return true;
        at += length;
    }
    return false;
}

static void check_own(struct tidy *tidy, const char *path, unsigned number, const char *included,
                      const char *layers)
{
    if (strchr(included, '/') == NULL) {
        tidy_complain(tidy, path, number, "%s is not included by its path from the root", included);
        return;
    }
    size_t length = 0, included_length = 0;
    const char *layer = layer_find(layers, path, &length);
    const char *other = layer_find(layers, included, &included_length);
    /* A table of names is no interface: sim/collective lists the entries of its catalogue. */
    if (tidy_ends_with(included, ".def")) return;
    if (layer == NULL) {
        tidy_complain(tidy, path, number, "tools/layers.txt has no line for this folder");
        return;
    }
    bool const same = other == layer;
    bool const base = lies_in(included, "sim/base", strlen("sim/base"));
    if (same || base || (other != NULL && layer_allows(layer, other, included_length)) ||
        layer_allows(layer, "*", 1))
        return;
    tidy_complain(tidy, path, number, "%.*s may not include %s", (int)length, layer, included);
}

/* Libraries that have one user. */
static void check_library(struct tidy *tidy, const char *path, unsigned number,
                          const char *included)
{
    static const struct {
        const char *header;
        const char *user;
    } libraries[] = {
        {"uv.h", "tools/podsim/"},
        {"jansson.h", "sim/base/json"},
        {"expat.h", "sim/collective/msccl_read.c"},
        {"cmocka.h", "tests/"},
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(included, libraries[i].header) == 0 &&
            strncmp(path, libraries[i].user, strlen(libraries[i].user)) != 0)
            tidy_complain(tidy, path, number, "only %s may include %s", libraries[i].user,
                          included);
}

void tidy_check_includes(struct tidy *tidy, const struct tidy_file *file, const char *layers)
{
    static const char include[] = "#include ";
    unsigned number = 1;
    for (const char *line = file->text; *line != '\0'; number++) {
        if (strncmp(line, include, sizeof include - 1) == 0) {
            const char *name = line + sizeof include;
            size_t const length = strcspn(name, "\">\n");
            char included[PATH_BYTES] = "";
            if (length < sizeof included) memcpy(included, name, length);
            if (name[-1] == '"')
                check_own(tidy, file->path, number, included, layers);
            else
                check_library(tidy, file->path, number, included);
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}
