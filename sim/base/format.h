/*
 * format.h: number formats, and how much room they take: the bits of a number, and where numbers of
 * a block share a scale, the scale's.
 */
#ifndef SIM_BASE_FORMAT_H
#define SIM_BASE_FORMAT_H

#include <stdint.h>

/* Of numbers that matrix units multiply: names here and in nccl-tests' tables, which has none for
 * four bits; bits. */
#define FORMAT_MATH_TABLE(X)                                                                       \
    X(BF16, "bf16", "bfloat16", 16)                                                                \
    X(FP16, "fp16", "half", 16)                                                                    \
    X(FP32, "fp32", "float", 32)                                                                   \
    X(FP8, "fp8", "f8e4m3", 8)                                                                     \
    X(INT8, "int8", "int8", 8)                                                                     \
    X(INT4, "int4", "int4", 4)                                                                     \
    X(FP4, "fp4", "fp4", 4)

/* The formats of chips, and formats that are multiplied as `fp4` and differ from it by scales. */
#define FORMAT_TABLE(X)                                                                            \
    FORMAT_MATH_TABLE(X)                                                                           \
    X(MXFP4, "mxfp4", "mxfp4", 4)                                                                  \
    X(NVFP4, "nvfp4", "nvfp4", 4)

enum format {
#define X(name, text, nccl, bits) FORMAT_##name,
    FORMAT_TABLE(X)
#undef X
        FORMAT_COUNT,
};

const char *format_name(enum format format);
const char *format_nccl_name(enum format format);
/* Of a number, without its part of a scale. */
uint32_t format_bits(enum format format);

/* The scale that `elements` numbers in a row share. */
struct format_scale {
    uint32_t elements; /* 0: none. */
    uint32_t bits;
    const char *source;
};
struct format_scale format_scale(enum format format);

/* The format that a matrix unit multiplies such numbers in. */
enum format format_math(enum format format);

/* Bytes of `elements` numbers, rounded up to a whole byte. */
static inline uint64_t format_bytes(enum format format, uint64_t elements)
{
    return (elements * format_bits(format) + 7) / 8;
}

/* Bytes of `elements` numbers with their scales: of weights, and of keys and values in a cache. */
uint64_t format_stored_bytes(enum format format, uint64_t elements);
enum { FORMAT_BLOCK = 128 }; /* Numbers of whole blocks, whatever the format. */

/* Bytes of one number of many, with its part of a scale. */
static inline double format_stored_number_bytes(enum format format)
{
    return (double)format_stored_bytes(format, FORMAT_BLOCK) / FORMAT_BLOCK;
}

/* Finds a format by name; returns FORMAT_COUNT if there is none. */
enum format format_find(const char *name);

#endif
