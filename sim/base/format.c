#include "sim/base/format.h"

#include <string.h>

static const struct {
    const char *name, *nccl;
    uint32_t bits;
} formats[] = {
#define X(name, text, nccl, bits) {text, nccl, bits},
    FORMAT_TABLE(X)
#undef X
};

const char *format_name(enum format format)
{
    return formats[format].name;
}

const char *format_nccl_name(enum format format)
{
    return formats[format].nccl;
}

uint32_t format_bits(enum format format)
{
    return formats[format].bits;
}

enum format format_find(const char *name)
{
    for (uint32_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(name, formats[i].name) == 0) return (enum format)i;
    return FORMAT_COUNT;
}
