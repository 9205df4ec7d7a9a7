#include "sim/measure/sizes.h"

#include <stddef.h>

#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/parse_uint.h"
#include "sim/base/scaled.h"

enum { FACTOR_MAX = 1 << 20 };

static const uint64_t bytes_most = UINT64_C(1) << 63;
static const uint64_t bytes_default = UINT64_C(32) << 20;

static enum status refuse(const char *text, const char *where, struct error *reterr)
{
    return error_set(reterr, STATUS_INVALID, where,
                     "\"%.40s\" is not a size; write bytes, or K, M, G, T or P for powers of 1024: "
                     "8, 64K, 1.5M, 8G",
                     text);
}

enum status sizes_parse(const char *text, const char *where, uint64_t *ret_bytes,
                        struct error *reterr)
{
    static const char *const plain[] = {"B", "b", NULL};
    static const char *const binary[] = {"", "i", "iB", NULL}; /* K, Ki, KiB. */
    uint64_t bytes = 0;
    const char *unit = "";
    enum scaled const found = scaled_read(text, bytes_most, &bytes, &unit);
    if (found == SCALED_NO_NUMBER) return refuse(text, where, reterr);
    if (plain[name_find(unit, plain)] != NULL)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.40s\" may mean powers of 1000 or of 1024; write %c (or %ciB) for "
                         "powers of 1024, or the bytes",
                         text, unit[-1], unit[-1]);
    if (binary[name_find(unit, binary)] == NULL) return refuse(text, where, reterr);
    if (found == SCALED_TOO_LARGE)
        return error_set(reterr, STATUS_LIMIT, where, "\"%.40s\" is more than 2^63 bytes", text);
    if (found == SCALED_NOT_WHOLE)
        return error_set(reterr, STATUS_INVALID, where, "\"%.40s\" is not a whole number of bytes",
                         text);
    if (bytes == 0)
        return error_set(reterr, STATUS_INVALID, where,
                         "a collective of no bytes takes no time; the least size is 1");
    *ret_bytes = bytes;
    return STATUS_OK;
}

static enum status factor_read(const char *text, uint32_t *ret_factor, struct error *reterr)
{
    uint64_t value = 0;
    const char *end = parse_uint(text, FACTOR_MAX, &value);
    if (end == text || *end != '\0' || value < 2 || value > FACTOR_MAX)
        return error_set(reterr, STATUS_INVALID, "-f",
                         "\"%.40s\" is not a factor between 2 and %d; sizes are multiplied by it",
                         text, FACTOR_MAX);
    *ret_factor = (uint32_t)value;
    return STATUS_OK;
}

enum status sizes_read(const char *begin, const char *end, const char *factor, const char *step,
                       struct sizes *ret_sizes, struct error *reterr)
{
    struct sizes sizes = {.begin_bytes = bytes_default, .factor = 2};
    if (begin != NULL) STATUS_TRY(sizes_parse(begin, "-b", &sizes.begin_bytes, reterr));
    if (end != NULL) STATUS_TRY(sizes_parse(end, "-e", &sizes.end_bytes, reterr));
    if (end == NULL) sizes.end_bytes = sizes.begin_bytes;
    if (begin == NULL) sizes.begin_bytes = sizes.end_bytes;
    if (factor != NULL && step != NULL)
        return error_set(reterr, STATUS_INVALID, "-i",
                         "sizes grow by a factor or by a step; -f is given too");
    if (factor != NULL) STATUS_TRY(factor_read(factor, &sizes.factor, reterr));
    if (step != NULL && step[0] == '0' && step[1] == '\0')
        return error_set(reterr, STATUS_INVALID, "-i",
                         "steps of no bytes come to no end; the least is 1");
    if (step != NULL) STATUS_TRY(sizes_parse(step, "-i", &sizes.step_bytes, reterr));
    if (sizes.begin_bytes > sizes.end_bytes)
        return error_set(
            reterr, STATUS_INVALID, "-b", "the least size, %s, is above the greatest, %llu (-e)",
            counted(sizes.begin_bytes, "byte").text, (unsigned long long)sizes.end_bytes);
    uint64_t const steps =
        step == NULL ? 0 : (sizes.end_bytes - sizes.begin_bytes) / sizes.step_bytes;
    if (steps >= SIZES_COUNT_MAX)
        return error_set(reterr, STATUS_LIMIT, "-i",
                         "steps of %s make more than %d sizes; take a larger one, or -f",
                         counted(sizes.step_bytes, "byte").text, SIZES_COUNT_MAX);
    *ret_sizes = sizes;
    return STATUS_OK;
}

bool sizes_next(const struct sizes *sizes, uint64_t *bytes)
{
    uint64_t next = sizes->begin_bytes;
    if (*bytes != 0 && sizes->step_bytes != 0) {
        if (sizes->end_bytes - *bytes < sizes->step_bytes) return false;
        next = *bytes + sizes->step_bytes;
    } else if (*bytes != 0) {
        if (*bytes > sizes->end_bytes / sizes->factor) return false;
        next = *bytes * sizes->factor;
    }
    *bytes = next;
    return true;
}

uint32_t sizes_count(const struct sizes *sizes)
{
    uint32_t count = 0;
    for (uint64_t bytes = 0; sizes_next(sizes, &bytes);) count++;
    return count;
}
