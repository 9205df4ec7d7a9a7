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

/* int4 is symmetric, without zero points. */
static const struct format_scale scales[FORMAT_COUNT] = {
    [FORMAT_INT4] = {128, 16,
                     "groups of 128 with a scale of fp16: GPTQ, arXiv 2210.17323, 5; AWQ, arXiv "
                     "2306.00978, 5.1"},
    [FORMAT_FP4] = {32, 8, "as mxfp4"},
    [FORMAT_MXFP4] = {32, 8,
                      "blocks of 32 with a scale of E8M0: OCP Microscaling Formats (MX) "
                      "Specification 1.0, table 1"},
    [FORMAT_NVFP4] = {16, 8,
                      "blocks of 16 with a scale of E4M3, and one of fp32 for a tensor, which is "
                      "not counted: NVIDIA, Introducing NVFP4 for Efficient and Accurate "
                      "Low-Precision Inference; cuDNN, block scaling"},
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

struct format_scale format_scale(enum format format)
{
    return scales[format];
}

enum format format_math(enum format format)
{
    return format == FORMAT_MXFP4 || format == FORMAT_NVFP4 ? FORMAT_FP4 : format;
}

uint64_t format_stored_bytes(enum format format, uint64_t elements)
{
    struct format_scale const scale = scales[format];
    uint64_t const numbers = format_bytes(format, elements);
    if (scale.elements == 0) return numbers;
    return numbers + (elements + scale.elements - 1) / scale.elements * scale.bits / 8;
}

enum format format_find(const char *name)
{
    for (uint32_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(name, formats[i].name) == 0) return (enum format)i;
    return FORMAT_COUNT;
}
