#include <ctype.h>
#include <string.h>

#include "tests/tidy/tidy.h"

enum { DEPTH_MAX = 64 };

/* How tests draw. Compilers evaluate the arguments of a call, and the members of an initializer, in
 * an order of their own. */
static const char *const draws[] = {"CASE_PICK",    "PICK",        "among",        "below",
                                    "case_pick",    "case_random", "draw",         "pick",
                                    "random_below", "random_size", "random_bytes", "request_draw"};

/* What stands between brackets: elements with commas between them, or statements. */
struct list {
    bool states, draws; /* It has a semicolon; the element at hand draws. */
    unsigned drawn;     /* Elements that do. */
};

static bool is_draw(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++)
        if (strlen(draws[i]) == length && memcmp(word, draws[i], length) == 0) return true;
    return false;
}

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

void tidy_check_draws(struct tidy *tidy, const struct tidy_file *file)
{
    struct list stack[DEPTH_MAX] = {{0}};
    unsigned depth = 0, line = 1;
    if (file->code == NULL || strncmp(file->path, "tests/", 6) != 0) return;
    for (const char *at = file->code; *at != '\0'; at++) {
        struct list *list = &stack[depth];
        size_t const length = word_length(at);
        if (length > 0) {
            if (at[length] == '(' && is_draw(at, length)) list->draws = true;
            at += length - 1;
        } else if (strchr("([{", *at) != NULL && depth + 1 < DEPTH_MAX) {
            stack[++depth] = (struct list){0};
        } else if (strchr(")]}", *at) != NULL && depth > 0) {
            list->drawn += list->draws;
            if (list->drawn > 1 && !list->states)
                tidy_complain(tidy, file->path, line,
                              "%u draws in one list, in an order that is each compiler's own",
                              list->drawn);
            depth--;
            stack[depth].draws = stack[depth].draws || list->drawn > 0;
        } else if (*at == ',') {
            list->drawn += list->draws;
            list->draws = false;
        } else if (*at == ';') {
            list->states = true;
            list->draws = false;
        } else if (*at == '\n') {
            line++;
        }
    }
}
