#include "tools/podsim/common/counts.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/scaled.h"

enum { NUMBER_BYTES = 41, RANGE_PARTS = 3, SHOWN_MAX = 40 };

/* A piece of the text between two signs. */
struct piece {
    const char *begin;
    size_t length;
};

/* A list while it is read. */
struct list {
    const char *where;
    uint32_t most;
    uint32_t *counts;
    uint32_t counts_max;
    uint32_t *count;
};

static int shown(struct piece piece)
{
    return piece.length < SHOWN_MAX ? (int)piece.length : SHOWN_MAX;
}

static enum status number_read(struct piece piece, const char *where, uint32_t most,
                               uint32_t *ret_count, struct error *reterr)
{
    char text[NUMBER_BYTES] = "";
    uint64_t number = 0;
    const char *unit = "";
    if (piece.length < NUMBER_BYTES) memcpy(text, piece.begin, piece.length);
    bool const good = scaled_read(text, most, &number, &unit) == SCALED_READ && *unit == '\0';
    if (!good || number == 0)
        return error_set(reterr, STATUS_INVALID, where, "\"%.*s\" is no whole number from 1 to %u",
                         shown(piece), piece.begin, most);
    *ret_count = (uint32_t)number;
    return STATUS_OK;
}

static enum status count_add(const struct list *list, uint32_t number, struct error *reterr)
{
    if (*list->count == list->counts_max)
        return error_set(reterr, STATUS_LIMIT, list->where, "more than %u numbers",
                         list->counts_max);
    list->counts[(*list->count)++] = number;
    return STATUS_OK;
}

/* From one number to the next: by a factor, or by a difference. */
struct stride {
    bool multiplies;
    uint32_t by;
};

static enum status stride_read(const struct list *list, struct piece range, struct piece piece,
                               struct stride *ret_stride, struct error *reterr)
{
    bool const multiplies = piece.length > 0 && piece.begin[0] == 'x';
    if (piece.length == 0 || (!multiplies && piece.begin[0] != '+'))
        return error_set(reterr, STATUS_INVALID, list->where,
                         "\"%.*s\" has no step; 1:512:x2 doubles, 64:512:+64 adds", shown(range),
                         range.begin);
    struct piece const number = {piece.begin + 1, piece.length - 1};
    STATUS_TRY(number_read(number, list->where, list->most, &ret_stride->by, reterr));
    ret_stride->multiplies = multiplies;
    if (multiplies && ret_stride->by == 1)
        return error_set(reterr, STATUS_INVALID, list->where,
                         "\"%.*s\" comes to no end; the least factor is x2", shown(range),
                         range.begin);
    return STATUS_OK;
}

static enum status range_read(const struct list *list, struct piece range,
                              const struct piece piece[RANGE_PARTS], struct error *reterr)
{
    uint32_t first = 0, last = 0;
    struct stride stride = {0};
    STATUS_TRY(number_read(piece[0], list->where, list->most, &first, reterr));
    STATUS_TRY(number_read(piece[1], list->where, list->most, &last, reterr));
    STATUS_TRY(stride_read(list, range, piece[2], &stride, reterr));
    if (first > last)
        return error_set(reterr, STATUS_INVALID, list->where,
                         "\"%.*s\" begins above its end; %u:%u:%.*s does not", shown(range),
                         range.begin, last, first, shown(piece[2]), piece[2].begin);
    for (uint64_t at = first; at <= last; at = stride.multiplies ? at * stride.by : at + stride.by)
        STATUS_TRY(count_add(list, (uint32_t)at, reterr));
    return STATUS_OK;
}

/* A number, or a range: "FIRST:LAST:xFACTOR", "FIRST:LAST:+STEP". */
static enum status item_read(const struct list *list, struct piece item, struct error *reterr)
{
    struct piece piece[RANGE_PARTS] = {{item.begin, item.length}};
    uint32_t parts = 1, number = 0;
    for (size_t i = 0; i < item.length; i++) {
        if (item.begin[i] != ':') continue;
        if (parts == RANGE_PARTS)
            return error_set(reterr, STATUS_INVALID, list->where,
                             "\"%.*s\" has more than a first number, a last one and a step",
                             shown(item), item.begin);
        size_t const before = (size_t)(item.begin + i - piece[parts - 1].begin);
        piece[parts] = (struct piece){item.begin + i + 1, item.length - i - 1};
        piece[parts - 1].length = before;
        parts++;
    }
    if (parts > 1) return range_read(list, item, piece, reterr);
    STATUS_TRY(number_read(item, list->where, list->most, &number, reterr));
    return count_add(list, number, reterr);
}

enum status counts_one(const char *text, const char *where, uint32_t most, uint32_t *ret_count,
                       struct error *reterr)
{
    return number_read((struct piece){text, strlen(text)}, where, most, ret_count, reterr);
}

enum status counts_list(const char *text, const char *where, uint32_t most, uint32_t *counts,
                        uint32_t counts_max, uint32_t *count, struct error *reterr)
{
    struct list const list = {where, most, counts, counts_max, count};
    for (const char *at = text;; at++) {
        size_t const length = strcspn(at, ",");
        STATUS_TRY(item_read(&list, (struct piece){at, length}, reterr));
        at += length;
        if (*at == '\0') return STATUS_OK;
    }
}
