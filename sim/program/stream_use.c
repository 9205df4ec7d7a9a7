#include "sim/program/stream_use.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"

static const char *const verbs[] = {
#define X(name, text) text,
    STREAM_VERB_TABLE(X)
#undef X
        NULL,
};

static const char *const places[] = {
#define X(name, text) text,
    STREAM_OF_TABLE(X)
#undef X
        NULL,
};

const char *stream_of_text(uint32_t of, char buffer[STREAM_USE_BYTES])
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < STREAM_PLACE_COUNT; i++)
        if ((of >> i & 1) != 0)
            used += (size_t)snprintf(buffer + used, STREAM_USE_BYTES - used, "%s%s",
                                     used == 0 ? "" : ",", places[i]);
    SIM_ASSERT(used < STREAM_USE_BYTES);
    return buffer;
}

const char *stream_use_text(struct stream_use use, char buffer[STREAM_USE_BYTES])
{
    char of[STREAM_USE_BYTES];
    (void)snprintf(buffer, STREAM_USE_BYTES, "%s%s%.100s",
                   use.verb == STREAM_NO_VERB ? "" : verbs[use.verb - 1],
                   use.verb == STREAM_NO_VERB || use.of == 0 ? "" : " ",
                   stream_of_text(use.of, of));
    return buffer;
}

/* The bits of "dp,ep"; 0 where a word of it is not known. */
static uint32_t of_read(const char *text)
{
    uint32_t of = 0;
    for (const char *at = text; at != NULL;) {
        char word[STREAM_USE_BYTES];
        const char *end = strchr(at, ',');
        size_t const length = end == NULL ? strlen(at) : (size_t)(end - at);
        if (length >= sizeof word) return 0;
        memcpy(word, at, length);
        word[length] = '\0';
        uint32_t const place = name_find(word, places);
        if (place == STREAM_PLACE_COUNT) return 0;
        of |= 1u << place;
        at = end == NULL ? NULL : end + 1;
    }
    return of;
}

struct stream_use stream_use_read(const char *name)
{
    struct stream_use use = {STREAM_NO_VERB, 0};
    char text[STREAM_USE_BYTES];
    if (name == NULL) return use;
    const char *space = strchr(name, ' ');
    for (uint32_t verb = 0; space != NULL && verbs[verb] != NULL; verb++) {
        const char *rest = name_after(name, verbs[verb]);
        if (rest == space) use.verb = (enum stream_verb)(verb + 1);
    }
    use.of = of_read(space == NULL ? name : space + 1);
    if (name_same(stream_use_text(use, text), name)) return use;
    return (struct stream_use){STREAM_NO_VERB, 0};
}
