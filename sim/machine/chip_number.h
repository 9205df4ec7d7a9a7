/*
 * chip_number.h: the numbers of a chip's file, each an object of a value and its source.
 *
 * What lies outside the bounds below is refused, so that a slip in a unit is found where it was
 * written and no sum over a machine overflows.
 */
#ifndef SIM_MACHINE_CHIP_NUMBER_H
#define SIM_MACHINE_CHIP_NUMBER_H

#include <stdint.h>

#include "sim/base/status.h"

struct json;
struct shape;

/* The value of a member, once its source is found to be there. */
enum status chip_number(struct json *object, const char *key, struct json **ret_value,
                        const char **ret_source, struct error *reterr);

/* From 1 on, or from `least`. */
enum status chip_count(struct json *object, const char *key, uint32_t most, uint32_t *ret_count,
                       struct error *reterr);
enum status chip_count_from(struct json *object, const char *key, uint32_t least, uint32_t most,
                            uint32_t *ret_count, struct error *reterr);

/* From 1KiB to 1024TiB. */
enum status chip_bytes(struct json *object, const char *key, uint64_t *ret_bytes,
                       struct error *reterr);
/* From 1MB/s to 1PB/s, one way. */
enum status chip_rate(struct json *object, const char *key, uint64_t *ret_bytes_per_s,
                      struct error *reterr);
/* "459TFLOP/s"; from 1GFLOP/s to 1EFLOP/s. */
enum status chip_flop_rate(struct json *object, const char *key, uint64_t *ret_flop_per_s,
                           struct error *reterr);
/* From 1ps to 1s. */
enum status chip_duration(struct json *object, const char *key, int64_t *ret_ps,
                          struct error *reterr);
/* To 1s; may be none. */
enum status chip_overhead(struct json *object, const char *key, int64_t *ret_ps,
                          struct error *reterr);
enum status chip_shape(struct json *object, const char *key, struct shape *ret_shape,
                       struct error *reterr);

#endif
