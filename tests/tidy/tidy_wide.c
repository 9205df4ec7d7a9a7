/*
 * Headers with a wide struct that many files see: a struct of many fields in the hands of many
 * files is a drawer for everything. Fields are counted as they are written: those of a struct
 * inside a struct belong to the outer one too, while a part with a definition of its own is one
 * field. A file sees a header that it includes, itself or by other headers; tests may look into any
 * struct.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/tidy/tidy.h"

/* The index of a file's entry, which is made if need be. */
static size_t header_of(struct tidy_headers *headers, const char *path, size_t length)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strncmp(headers->header[i].path, path, length) == 0 &&
            headers->header[i].path[length] == '\0')
            return i;
    struct tidy_header *grown =
        realloc(headers->header, (headers->count + 1) * sizeof *headers->header);
    char *name = malloc(length + 1);
    if (grown == NULL || name == NULL) abort();
    memcpy(name, path, length);
    name[length] = '\0';
    headers->header = grown;
    grown[headers->count] = (struct tidy_header){.path = name};
    return headers->count++;
}

static void include_add(struct tidy_headers *headers, size_t by, size_t of)
{
    struct tidy_include *grown =
        realloc(headers->include, (headers->includes + 1) * sizeof *headers->include);
    if (grown == NULL) abort();
    headers->include = grown;
    grown[headers->includes++] = (struct tidy_include){by, of};
}

/* Files that see a header: those that include it, and those that include one of them. */
static unsigned seen_by(struct tidy_headers *headers, size_t of)
{
    unsigned files = 0;
    for (size_t i = 0; i < headers->count; i++) headers->header[i].sees = i == of;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < headers->includes; i++) {
            const struct tidy_include *include = &headers->include[i];
            struct tidy_header *by = &headers->header[include->by];
            if (by->sees || !headers->header[include->of].sees) continue;
            by->sees = more = true;
            files++;
        }
    }
    return files;
}

static bool has_word(const char *from, const char *to, const char *word)
{
    size_t const length = strlen(word);
    for (const char *at = from; at + length <= to; at++)
        if (strncmp(at, word, length) == 0 && (at == from || !tidy_is_word(at[-1])) &&
            !tidy_is_word(at[length]))
            return true;
    return false;
}

/* The fields of a struct whose body begins at `body`, after the brace: each name before a comma or
 * a semicolon. Values of an enum in it are none, nor are parameters of a pointer to a function. */
static unsigned count_fields(const char *body)
{
    unsigned fields = 0, braces = 1, parentheses = 0, enum_at = 0;
    const char *begin = body; /* Of the declaration. */
    for (const char *at = body; *at != '\0' && braces > 0; at++) {
        if (*at == '(' || *at == '[') parentheses++;
        if (*at == ')' || *at == ']') parentheses--;
        if (*at == '{') {
            braces++;
            if (has_word(begin, at, "enum")) enum_at = braces;
        }
        if (*at == '}') {
            if (enum_at == braces) enum_at = 0;
            braces--;
        }
        if ((*at == ';' || *at == ',') && parentheses == 0 && enum_at == 0) fields++;
        if (*at == ';' || *at == '{') begin = at + 1;
    }
    return fields;
}

/* Lines of the preprocessor become blanks: the body of a macro is no struct. */
static void blank_macros(char *code)
{
    for (char *line = code; *line != '\0';) {
        bool const is_macro = line[strspn(line, " ")] == '#';
        bool goes_on = is_macro;
        while (goes_on) {
            size_t const length = tidy_line_length(line);
            goes_on = length > 0 && line[length - 1] == '\\' && line[length] == '\n';
            memset(line, ' ', length);
            line += length + (goes_on ? 1 : 0);
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}

static void note_structs(struct tidy_headers *headers, const struct tidy_file *file)
{
    char *code = malloc(strlen(file->code) + 1);
    if (code == NULL) abort();
    memcpy(code, file->code, strlen(file->code) + 1);
    blank_macros(code);
    size_t const index = header_of(headers, file->path, strlen(file->path));
    struct tidy_header *header = &headers->header[index];
    for (const char *at = code; (at = strstr(at, "struct ")) != NULL; at++) {
        if (at > code && tidy_is_word(at[-1])) continue;
        const char *name = at + strlen("struct ");
        size_t length = 0;
        while (tidy_is_word(name[length])) length++;
        const char *brace = name + length + strspn(name + length, " \n");
        unsigned const fields = *brace == '{' ? count_fields(brace + 1) : 0;
        if (fields <= header->fields) continue;
        header->fields = fields;
        header->line = tidy_line_of(code, at);
    }
    free(code);
}

void tidy_note_header(struct tidy_headers *headers, const struct tidy_file *file)
{
    static const char include[] = "#include \"";
    if (tidy_ends_with(file->path, ".h")) note_structs(headers, file);
    if (strncmp(file->path, "tests/", strlen("tests/")) == 0) return;
    size_t const by = header_of(headers, file->path, strlen(file->path));
    for (const char *line = file->text; *line != '\0';) {
        if (strncmp(line, include, sizeof include - 1) == 0) {
            const char *path = line + sizeof include - 1;
            include_add(headers, by, header_of(headers, path, strcspn(path, "\"\n")));
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}

void tidy_check_headers(struct tidy *tidy, struct tidy_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        const struct tidy_header *header = &headers->header[i];
        bool const wide = header->fields > TIDY_FIELDS_MAX;
        unsigned const seen = wide ? seen_by(headers, i) : 0;
        if (seen > TIDY_INCLUDERS_MAX)
            tidy_complain(tidy, header->path, header->line,
                          "a struct of %u fields in a header that %u files see: divide it by what "
                          "belongs together",
                          header->fields, seen);
    }
}

void tidy_headers_free(struct tidy_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) free(headers->header[i].path);
    free(headers->header);
    free(headers->include);
    *headers = (struct tidy_headers){0};
}
