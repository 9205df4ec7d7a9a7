#include <string.h>

#include "sim/graph/parameters.h"
#include "tests/tidy/tidy.h"

/* Counts of a model whose products with a width are elements of a tensor. */
static const char *const sizes[] = {"heads", "kv_heads", "head_width", "vocabulary"};
/* Whose members of these names are counts of ranks. */
static const char *const ranks[] = {"sequences", "ways"};
/* The graph alone. */
static const char *const may[] = {"sim/graph/"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

/* Whether a word ends at `end`. */
static bool ends_word(const char *code, const char *end, const char *word)
{
    size_t const length = strlen(word);
    if (end - code < (ptrdiff_t)length || strncmp(end - length, word, length) != 0) return false;
    return end - length == code || !tidy_is_word(end[-(ptrdiff_t)length - 1]);
}

/* Whether a word is a number that a model has, "plan->model.heads" or "m->heads": not what ranks
 * have of it. */
static bool is_of_model(const char *code, const char *at, size_t length)
{
    size_t const sign = at > code && at[-1] == '.' ? 1 : 2;
    if (at - code < (ptrdiff_t)sign || (sign == 2 && strncmp(at - 2, "->", 2) != 0)) return false;
    if (at[length] == '.' || strncmp(at + length, "->", 2) == 0) return false;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (ends_word(code, at - sign, ranks[i])) return false;
    return true;
}

/* The first character of "plan->model.heads", whose last word is at `at`. */
static const char *begin_of(const char *code, const char *at)
{
    while (at > code && (tidy_is_word(at[-1]) || strchr(".->", at[-1]) != NULL)) at--;
    return at;
}

static bool is_factor(const char *code, const char *at, size_t length)
{
    const char *behind = at + length, *before = begin_of(code, at);
    while (is_blank(*behind)) behind++;
    while (before > code && is_blank(before[-1])) before--;
    return *behind == '*' || (before > code && before[-1] == '*');
}

void tidy_check_products(struct tidy *tidy, const struct tidy_file *file)
{
    if (file->code == NULL || strncmp(file->path, "tests/", 6) == 0) return;
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        if (strncmp(file->path, may[i], strlen(may[i])) == 0) return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *at = file->code;
        while ((at = tidy_word_find(file->code, at, sizes[i])) != NULL) {
            size_t const length = strlen(sizes[i]);
            if (is_of_model(file->code, at, length) && is_factor(file->code, at, length))
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "a model's %s is multiplied here: sizes of tensors come from the "
                              "graph, or from model_count()",
                              sizes[i]);
            at += length;
        }
    }
}
