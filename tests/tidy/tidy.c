#include "tests/tidy/tidy.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tidy_complain(struct tidy *tidy, const char *path, unsigned line, const char *format, ...)
{
    char message[512];
    char where[288];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    int const where_length = snprintf(where, sizeof where, "%s:%u: ", path, line);
    size_t const added = (size_t)where_length + strlen(message) + 1;
    char *text = realloc(tidy->text, tidy->size + added + 1);
    if (text == NULL) abort();
    (void)snprintf(text + tidy->size, added + 1, "%s%s\n", where, message);
    tidy->text = text;
    tidy->size += added;
    tidy->count++;
}

void tidy_free(struct tidy *tidy)
{
    free(tidy->text);
    *tidy = (struct tidy){0};
}

bool tidy_ends_with(const char *text, const char *end)
{
    size_t const length = strlen(text);
    size_t const end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

size_t tidy_line_length(const char *text)
{
    return strcspn(text, "\n");
}

bool tidy_token_begins(const char *at)
{
    return (at[0] == '/' && (at[1] == '*' || at[1] == '/')) || at[0] == '"' || at[0] == '\'';
}

const char *tidy_token_end(const char *at)
{
    if (at[0] == '/' && at[1] == '/') return at + tidy_line_length(at);
    if (at[0] == '/') {
        const char *end = strstr(at + 2, "*/");
        return end == NULL ? at + strlen(at) : end + 2;
    }
    char const quote = *at++;
    while (*at != '\0' && *at != quote && *at != '\n') at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

char *tidy_blank(const char *text)
{
    size_t const length = strlen(text);
    char *code = malloc(length + 1);
    if (code == NULL) abort();
    memcpy(code, text, length + 1);
    for (const char *at = text; *at != '\0';) {
        if (!tidy_token_begins(at)) {
            at++;
            continue;
        }
        for (const char *end = tidy_token_end(at); at < end; at++)
            if (*at != '\n') code[at - text] = ' ';
    }
    return code;
}

bool tidy_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

unsigned tidy_line_of(const char *text, const char *at)
{
    unsigned line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

const char *tidy_excuse(const char *list, const char *path, bool by_name)
{
    for (const char *line = list; *line != '\0';) {
        size_t const length = strcspn(line, ":\n");
        bool const is_folder = length > 0 && line[length - 1] == '/';
        bool const has_reason = line[length] == ':' && line[length + 1] == ' ';
        if (has_reason && strncmp(path, line, length) == 0 &&
            (is_folder ? !by_name : path[length] == '\0'))
            return line + length + 2;
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
    return NULL;
}

bool tidy_is_excused(const char *list, const char *path, bool by_name)
{
    return tidy_excuse(list, path, by_name) != NULL;
}
