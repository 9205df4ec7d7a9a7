#include <string.h>

#include "tests/tidy/tidy.h"

static unsigned column_count(const char *line, size_t length)
{
    unsigned columns = 0;
    for (size_t i = 0; i < length; i++) /* Bytes that continue a UTF-8 character take no column. */
        if (((unsigned char)line[i] & 0xc0) != 0x80) columns++;
    return columns;
}

static bool width_matters(const char *path)
{
    static const char *const endings[] = {".c", ".h", ".def", ".build", ".sh"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tidy_ends_with(path, endings[i])) return true;
    return strncmp(path, "tools/", 6) == 0 && strchr(path, '.') == NULL;
}

static void check_line(struct tidy *tidy, const char *path, unsigned number, const char *line,
                       size_t length)
{
    unsigned const columns = column_count(line, length);
    if (width_matters(path) && columns > TIDY_COLUMNS_MAX)
        tidy_complain(tidy, path, number, "%u columns are more than %d", columns, TIDY_COLUMNS_MAX);
    if (memchr(line, '\t', length) != NULL) tidy_complain(tidy, path, number, "tab");
    if (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\r'))
        tidy_complain(tidy, path, number, "trailing blank");
}

/* Whether a line of code may belong to the signature above a function's brace. */
static bool is_signature(const char *line, size_t length)
{
    while (length > 0 && line[length - 1] == ' ') length--;
    if (length == 0 || line[0] == '#') return false;
    return line[length - 1] != ';' && line[length - 1] != '}';
}

/* Functions open with a brace alone in column 1 and close with one in column 1. */
static void check_functions(struct tidy *tidy, const struct tidy_file *file)
{
    unsigned number = 1, first = 0, signature = 0;
    for (const char *line = file->code; *line != '\0'; number++) {
        size_t const length = tidy_line_length(line);
        if (line[0] == '{' && first == 0) first = signature != 0 ? signature : number;
        if (line[0] == '}' && first != 0) {
            unsigned const lines = number - first + 1;
            if (lines > TIDY_FUNCTION_LINES_MAX)
                tidy_complain(tidy, file->path, first, "function of %u lines is longer than %d",
                              lines, TIDY_FUNCTION_LINES_MAX);
            first = 0;
        }
        if (!is_signature(line, length))
            signature = 0;
        else if (signature == 0)
            signature = number;
        line += length;
        if (*line == '\n') line++;
    }
}

void tidy_check_layout(struct tidy *tidy, const struct tidy_file *file)
{
    unsigned number = 0;
    for (const char *line = file->text; *line != '\0';) {
        size_t const length = tidy_line_length(line);
        check_line(tidy, file->path, ++number, line, length);
        line += length;
        if (*line == '\0')
            tidy_complain(tidy, file->path, number, "no newline at the end");
        else
            line++;
    }
    if (file->code == NULL) return;
    if (number > TIDY_FILE_LINES_MAX)
        tidy_complain(tidy, file->path, number, "file of %u lines is longer than %d", number,
                      TIDY_FILE_LINES_MAX);
    check_functions(tidy, file);
}
