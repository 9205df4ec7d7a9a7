#include "sim/program/stream_use.h"

#include <stdio.h>

#include "sim/base/units.h"

static const char *const verbs[] = {
#define X(name, text) text,
    STREAM_VERB_TABLE(X)
#undef X
};

static const char *const places[] = {
#define X(name, text) text,
    STREAM_OF_TABLE(X)
#undef X
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
