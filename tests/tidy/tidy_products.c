#include <string.h>

#include "sim/graph/parameters.h"
#include "tests/tidy/tidy.h"

/* Counts of a model whose products with a width are elements of a tensor. */
static const char *const sizes[] = {"heads", "kv_heads", "vocabulary"};
/* The graph alone. */
static const char *const may[] = {"sim/graph/"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

/* Whether the expression that ends before `at` is a member of a model: "plan->model.heads". */
static bool is_of_model(const char *code, const char *at)
{
    static const char model[] = "model";
    size_t const length = sizeof model - 1;
    size_t const sign = at > code && at[-1] == '.' ? 1 : 2;
    if (at - code < (ptrdiff_t)(sign + length)) return false;
    if (sign == 2 && strncmp(at - 2, "->", 2) != 0) return false;
    const char *const name = at - sign - length;
    return strncmp(name, model, length) == 0 && (name == code || !tidy_is_word(name[-1]));
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
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0) return;
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        if (strncmp(file->path, may[i], strlen(may[i])) == 0) return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *at = file->code;
        while ((at = tidy_word_find(file->code, at, sizes[i])) != NULL) {
            size_t const length = strlen(sizes[i]);
            if (is_of_model(file->code, at) && is_factor(file->code, at, length))
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "a model's %s is multiplied here: sizes of tensors come from the "
                              "graph, or from model_count()",
                              sizes[i]);
            at += length;
        }
    }
}
