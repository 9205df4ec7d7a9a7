#include "sim/machine/chip_number.h"

#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/quantity.h"
#include "sim/base/units.h"
#include "sim/machine/shape.h"

static const uint64_t bytes_least = UINT64_C(1) << 10, bytes_most = UINT64_C(1) << 50;
static const uint64_t rate_least = 1000000, rate_most = UINT64_C(1000000000000000);
static const uint64_t flop_least = 1000000000, flop_most = UINT64_C(1000000000000000000);

enum status chip_number(struct json *object, const char *key, struct json **ret_value,
                        const char **ret_source, struct error *reterr)
{
    static const char *const known[] = {"value", "source", NULL};
    struct json *number = NULL;
    struct json *source = NULL;
    STATUS_TRY(json_need(object, key, &number, reterr));
    STATUS_TRY(json_as_object(number, reterr));
    STATUS_TRY(json_need(number, "value", ret_value, reterr));
    STATUS_TRY(json_need(number, "source", &source, reterr));
    STATUS_TRY(json_as_string(source, ret_source, reterr));
    if ((*ret_source)[0] == '\0')
        return error_set(reterr, STATUS_INVALID, json_where(source), "a number has no source");
    return json_end(number, known, reterr);
}

static enum status value_read(struct json *object, const char *key, struct json **ret_value,
                              struct error *reterr)
{
    const char *source = NULL;
    return chip_number(object, key, ret_value, &source, reterr);
}

enum status chip_count_from(struct json *object, const char *key, uint32_t least, uint32_t most,
                            uint32_t *ret_count, struct error *reterr)
{
    struct json *value = NULL;
    int64_t count = 0;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_integer(value, least, most, &count, reterr));
    *ret_count = (uint32_t)count;
    return STATUS_OK;
}

enum status chip_count(struct json *object, const char *key, uint32_t most, uint32_t *ret_count,
                       struct error *reterr)
{
    return chip_count_from(object, key, 1, most, ret_count, reterr);
}

/* `bounds` says both in words. */
static enum status check_bounds(struct json *value, uint64_t amount, uint64_t least, uint64_t most,
                                const char *bounds, struct error *reterr)
{
    const char *text = NULL;
    if (amount >= least && amount <= most) return STATUS_OK;
    STATUS_TRY(json_as_string(value, &text, reterr));
    return error_set(reterr, STATUS_INVALID, json_where(value), "%.40s is not what a chip has: %s",
                     text, bounds);
}

enum status chip_bytes(struct json *object, const char *key, uint64_t *ret_bytes,
                       struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_BYTES, ret_bytes, reterr));
    return check_bounds(value, *ret_bytes, bytes_least, bytes_most, "from 1KiB to 1024TiB", reterr);
}

enum status chip_rate(struct json *object, const char *key, uint64_t *ret_bytes_per_s,
                      struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_RATE, ret_bytes_per_s, reterr));
    return check_bounds(value, *ret_bytes_per_s, rate_least, rate_most, "from 1MB/s to 1PB/s",
                        reterr);
}

enum status chip_flop_rate(struct json *object, const char *key, uint64_t *ret_flop_per_s,
                           struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_FLOP_RATE, ret_flop_per_s, reterr));
    return check_bounds(value, *ret_flop_per_s, flop_least, flop_most,
                        "from 1GFLOP/s to 1000PFLOP/s", reterr);
}

enum status chip_overhead(struct json *object, const char *key, int64_t *ret_ps,
                          struct error *reterr)
{
    struct json *value = NULL;
    uint64_t ps = 0;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_DURATION, &ps, reterr));
    *ret_ps = (int64_t)ps;
    return check_bounds(value, ps, 0, TIME_PS_PER_S, "up to 1s", reterr);
}

enum status chip_duration(struct json *object, const char *key, int64_t *ret_ps,
                          struct error *reterr)
{
    STATUS_TRY(chip_overhead(object, key, ret_ps, reterr));
    return check_bounds(json_take(json_take(object, key), "value"), (uint64_t)*ret_ps, 1,
                        TIME_PS_PER_S, "from 1ps to 1s", reterr);
}

enum status chip_shape(struct json *object, const char *key, struct shape *ret_shape,
                       struct error *reterr)
{
    struct json *value = NULL;
    const char *text = NULL;
    STATUS_TRY(value_read(object, key, &value, reterr));
    STATUS_TRY(json_as_string(value, &text, reterr));
    return shape_parse(text, json_where(value), ret_shape, reterr);
}
