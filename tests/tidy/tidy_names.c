#include <string.h>

#include "sim/collective/collective.h"
#include "tests/tidy/tidy.h"

/* Calls that compare text. */
static const char *const compares[] = {"strcmp", "strncmp", "strcasecmp", "strncasecmp", "strstr"};
/* What sim/base has for two names that were read or made: neither of them is written there. */
static const char same[] = "name_same";

/* Finds a call of a function from `from` on: where its arguments begin; NULL if there is none. */
static const char *call_find(const char *code, const char *from, const char *name)
{
    size_t const length = strlen(name);
    for (const char *at = from; (at = strstr(at, name)) != NULL; at += length)
        if ((at == code || !tidy_is_word(at[-1])) && at[length] == '(') return at + length;
    return NULL;
}

/* Whether the arguments that begin at a bracket have a string among them. */
static bool has_string(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') return true;
        depth += (*at == '(') - (*at == ')');
    } while (depth > 0 && *++at != '\0');
    return false;
}

void tidy_check_names(struct tidy *tidy, const struct tidy_file *file, const char *names)
{
    unsigned count = 0;
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0 ||
        strncmp(file->path, "sim/base/", 9) == 0)
        return;
    bool const excused = tidy_is_excused(names, file->path, false);
    for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
        for (const char *at = file->code; (at = call_find(file->code, at, compares[i])) != NULL;
             count++)
            if (!excused)
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "%s() is not used here: a name is looked up where it is read "
                              "(sim/base/name.h), or tests/tidy/names.txt says why not",
                              compares[i]);
    for (const char *at = file->code; (at = call_find(file->code, at, same)) != NULL;)
        if (has_string(file->text + (at - file->code)) && !excused)
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s() has a name among its arguments: name_find() says which it is",
                          same);
    if (count == 0 && tidy_is_excused(names, file->path, true))
        tidy_complain(tidy, file->path, 1, "compares no text, but tests/tidy/names.txt excuses it");
}

void tidy_check_families(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const families[] = {
#define X(name, text) "PRIMITIVE_" #name,
        PRIMITIVE_FAMILY_TABLE(X)
#undef X
    };
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0 ||
        strncmp(file->path, "sim/collective/", 15) == 0 ||
        strncmp(file->path, "sim/choose/", 11) == 0)
        return;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *const at = tidy_word_find(file->code, file->code, families[i]);
        if (at != NULL)
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s is not told apart here: what an algorithm takes is asked of its "
                          "entry (primitive.cost)",
                          families[i]);
    }
}
