#include <string.h>

#include "tests/tidy/tidy.h"

/* Finds the name in "KIND(name...)" at the beginning of a line; NULL if the line is no entry. */
static const char *entry_name(const char *line, size_t *ret_length)
{
    size_t const kind = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (kind == 0 || line[kind] != '(') return NULL;
    *ret_length = strcspn(line + kind + 1, "),\n");
    return line + kind + 1;
}

void tidy_check_order(struct tidy *tidy, const struct tidy_file *def)
{
    const char *before = "";
    size_t before_length = 0;
    unsigned number = 1;
    for (const char *line = def->text; *line != '\0'; number++) {
        size_t length = 0;
        const char *name = entry_name(line, &length);
        if (name != NULL) {
            size_t const common = length < before_length ? length : before_length;
            int const order = strncmp(before, name, common);
            if (order > 0 || (order == 0 && before_length >= length && before_length > 0))
                tidy_complain(tidy, def->path, number, "%.*s does not come after %.*s", (int)length,
                              name, (int)before_length, before);
            before = name;
            before_length = length;
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}

bool tidy_def_has(const char *def, const char *name, size_t length)
{
    for (const char *line = def; *line != '\0';) {
        size_t entry_length = 0;
        const char *entry = entry_name(line, &entry_length);
        if (entry != NULL && entry_length == length && strncmp(entry, name, length) == 0)
            return true;
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
    return false;
}

void tidy_check_source(struct tidy *tidy, const struct tidy_file *entry)
{
    bool const is_json = tidy_ends_with(entry->path, ".json");
    const char *const key = is_json ? "\"source" : ".source =";
    const char *found = strstr(entry->text, key);
    if (found == NULL) {
        tidy_complain(tidy, entry->path, 1, "does not say where it comes from");
        return;
    }
    found = strchr(found + 1, '"'); /* C: opens the text; JSON: closes the key. */
    if (found != NULL && !is_json && found[1] == '"')
        tidy_complain(tidy, entry->path, 1, "has an empty source");
}
