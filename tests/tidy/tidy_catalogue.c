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

/* Each line of a chip's file that holds a value holds its source too. */
static void check_values(struct tidy *tidy, const struct tidy_file *entry)
{
    unsigned number = 1, values = 0;
    for (const char *line = entry->text; *line != '\0'; number++) {
        static const char key[] = "\"source\": \"";
        size_t const length = tidy_line_length(line);
        const char *value = strstr(line, "\"value\":");
        const char *source = strstr(line, key);
        if (value != NULL && value < line + length) {
            bool const has_source = source != NULL && source < line + length;
            if (!has_source || source[sizeof key - 1] == '"')
                tidy_complain(tidy, entry->path, number, "a value without its source");
            values++;
        }
        line += length;
        if (*line == '\n') line++;
    }
    if (values == 0) tidy_complain(tidy, entry->path, 1, "does not say where it comes from");
}

void tidy_check_source(struct tidy *tidy, const struct tidy_file *entry)
{
    if (tidy_ends_with(entry->path, ".json")) {
        check_values(tidy, entry);
        return;
    }
    /* What entries share is no entry, and says it in its comment. */
    if (strncmp(entry->text, "/*", 2) == 0 && strstr(entry->text, "\n * Source of ") != NULL)
        return;
    const char *found = strstr(entry->text, ".source =");
    const char *text = found == NULL ? NULL : strchr(found, '"');
    if (text == NULL)
        tidy_complain(tidy, entry->path, 1, "does not say where it comes from");
    else if (text[1] == '"')
        tidy_complain(tidy, entry->path, 1, "has an empty source");
}
