/*
 * format.h: number formats, and how many bits an element takes.
 */
#ifndef SIM_BASE_FORMAT_H
#define SIM_BASE_FORMAT_H

#include <stdint.h>

/* Names here and in nccl-tests' tables, which has none for four bits; bits. */
#define FORMAT_TABLE(X)                                                                            \
    X(BF16, "bf16", "bfloat16", 16)                                                                \
    X(FP16, "fp16", "half", 16)                                                                    \
    X(FP32, "fp32", "float", 32)                                                                   \
    X(FP8, "fp8", "f8e4m3", 8)                                                                     \
    X(INT8, "int8", "int8", 8)                                                                     \
    X(INT4, "int4", "int4", 4)                                                                     \
    X(FP4, "fp4", "fp4", 4)

enum format {
#define X(name, text, nccl, bits) FORMAT_##name,
    FORMAT_TABLE(X)
#undef X
        FORMAT_COUNT,
};

const char *format_name(enum format format);
const char *format_nccl_name(enum format format);
uint32_t format_bits(enum format format);

/* Bytes of `elements` elements, rounded up to a whole byte. */
static inline uint64_t format_bytes(enum format format, uint64_t elements)
{
    return (elements * format_bits(format) + 7) / 8;
}

/* Finds a format by name; returns FORMAT_COUNT if there is none. */
enum format format_find(const char *name);

#endif
