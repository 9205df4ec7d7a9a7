/*
 * Headers with a wide struct that many files see: a struct of many fields in the hands of many
 * files is a drawer for everything. Fields are counted as they are written: those of a struct
 * inside a struct belong to the outer one too, while a part with a definition of its own is one
 * field. A row of a table that a struct is made of is one field. A file sees a header that it
 * includes, itself or by other headers; tests may look into any struct.
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

static bool has_word_of(const char *from, const char *to, const char *word, size_t length)
{
    for (const char *at = from; at + length <= to; at++)
        if (strncmp(at, word, length) == 0 && (at == from || !tidy_is_word(at[-1])) &&
            !tidy_is_word(at[length]))
            return true;
    return false;
}

static bool has_word(const char *from, const char *to, const char *word)
{
    return has_word_of(from, to, word, strlen(word));
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (tidy_is_word(at[length])) length++;
    return length;
}

/* Where the arguments of the macro that a definition is of begin: "#define NAME(ROW, at)"; NULL:
 * the line defines no macro of this name. */
static const char *definition_of(const char *line, const char *name, size_t length)
{
    static const char define[] = "#define ";
    if (strncmp(line, define, sizeof define - 1) != 0) return NULL;
    line += sizeof define - 1;
    size_t const own = word_length(line);
    if (own != length || strncmp(line, name, length) != 0 || line[own] != '(') return NULL;
    return line + own;
}

static bool goes_on(const char *line)
{
    size_t const length = tidy_line_length(line);
    return length > 0 && line[length - 1] == '\\' && line[length] == '\n';
}

static const char *line_after(const char *line)
{
    line += tidy_line_length(line);
    return *line == '\n' ? line + 1 : line;
}

/* The definition of a macro in a header, from its bracket on; NULL: none has it. */
static const char *macro_find(const struct tidy_headers *headers, const char *name, size_t length)
{
    for (size_t i = 0; i < headers->count; i++)
        for (const char *line = headers->header[i].code; line != NULL && *line != '\0';
             line = line_after(line)) {
            const char *const found = definition_of(line, name, length);
            if (found != NULL) return found;
        }
    return NULL;
}

/* Rows of the table that a macro's name, which `at` begins with, may be of: each use of a parameter
 * as a macro is one, and tables in a table have theirs. 0: it is no table. */
static unsigned table_rows(const struct tidy_headers *headers, const char *at, unsigned depth)
{
    size_t const length = word_length(at);
    const char *const macro = at[length] == '(' ? macro_find(headers, at, length) : NULL;
    if (macro == NULL || depth == TIDY_TABLE_DEPTH_MAX) return 0;
    const char *end = macro;
    while (goes_on(end)) end = line_after(end);
    end += tidy_line_length(end);
    const char *const body = strchr(macro, ')');
    unsigned rows = 0;
    for (const char *word = body; word != NULL && word < end; word++) {
        size_t const own = word_length(word);
        if (own == 0) continue;
        if (word[own] == '(')
            rows += has_word_of(macro, body, word, own) ? 1 : table_rows(headers, word, depth + 1);
        word += own - 1;
    }
    return rows;
}

/* The fields of a struct whose body begins at `body`, after the brace: each name before a comma or
 * a semicolon, and each row of a table. Values of an enum in it are none, nor are parameters of a
 * pointer to a function. */
static unsigned count_fields(const struct tidy_headers *headers, const char *body)
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
        if (parentheses == 0 && enum_at == 0 && !tidy_is_word(at[-1]))
            fields += table_rows(headers, at, 0);
        if (*at == ';' || *at == '{') begin = at + 1;
    }
    return fields;
}

/* Lines of the preprocessor become blanks: the body of a macro is no struct. */
static void blank_macros(char *code)
{
    for (char *line = code; *line != '\0';) {
        bool const is_macro = line[strspn(line, " ")] == '#';
        for (bool more = is_macro; more;) {
            size_t const length = tidy_line_length(line);
            more = goes_on(line);
            memset(line, ' ', length);
            line += length + (more ? 1 : 0);
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (copy == NULL) abort();
    memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static void count_structs(const struct tidy_headers *headers, struct tidy_header *header)
{
    char *code = copy_of(header->code);
    blank_macros(code);
    for (const char *at = code; (at = strstr(at, "struct ")) != NULL; at++) {
        if (at > code && tidy_is_word(at[-1])) continue;
        const char *name = at + strlen("struct ");
        size_t const length = word_length(name);
        const char *brace = name + length + strspn(name + length, " \n");
        unsigned const fields = *brace == '{' ? count_fields(headers, brace + 1) : 0;
        if (fields <= header->fields) continue;
        header->fields = fields;
        header->line = tidy_line_of(code, at);
    }
    free(code);
}

void tidy_note_header(struct tidy_headers *headers, const struct tidy_file *file)
{
    static const char include[] = "#include \"";
    size_t const by = header_of(headers, file->path, strlen(file->path));
    if (tidy_ends_with(file->path, ".h")) headers->header[by].code = copy_of(file->code);
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
        struct tidy_header *header = &headers->header[i];
        if (header->code != NULL) count_structs(headers, header);
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
    for (size_t i = 0; i < headers->count; i++) {
        free(headers->header[i].path);
        free(headers->header[i].code);
    }
    free(headers->header);
    free(headers->include);
    *headers = (struct tidy_headers){0};
}
