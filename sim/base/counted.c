#include "sim/base/counted.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NOUN_BYTES_MAX = 32 };

static bool ends_in(const char *noun, const char *end)
{
    size_t const length = strlen(noun), bytes = strlen(end);
    return length >= bytes && strcmp(noun + length - bytes, end) == 0;
}

struct counted counted_noun(uint64_t count, const char *noun)
{
    struct counted words;
    if (count != 1 && ends_in(noun, "xis")) {
        (void)snprintf(words.text, sizeof words.text, "%.*ses",
                       (int)strnlen(noun, NOUN_BYTES_MAX) - 2, noun);
        return words;
    }
    bool const hisses =
        ends_in(noun, "s") || ends_in(noun, "x") || ends_in(noun, "ch") || ends_in(noun, "sh");
    (void)snprintf(words.text, sizeof words.text, "%.*s%s", NOUN_BYTES_MAX, noun,
                   count == 1 ? ""
                   : hisses   ? "es"
                              : "s");
    return words;
}

struct counted counted(uint64_t count, const char *noun)
{
    struct counted words;
    (void)snprintf(words.text, sizeof words.text, "%" PRIu64 " %.*s", count, NOUN_BYTES_MAX + 2,
                   counted_noun(count, noun).text);
    return words;
}
