#include "sim/base/embed.h"

#include <stddef.h>

#include "sim/base/name.h"

const struct embed_file *embed_find(const struct embed_file *files, unsigned count,
                                    const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (name_same(files[i].name, name)) return &files[i];
    return NULL;
}
