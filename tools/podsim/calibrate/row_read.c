#include "tools/podsim/calibrate/row_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/parse_uint.h"
#include "sim/base/quantity.h"

enum { PLACE_BYTES = 160, NAMES_MAX = 32, RANKS_MAX = 4096, CORES_MAX = 4096 };
static const uint64_t size_bytes_max = UINT64_C(1) << 40; /* Of a collective. */

enum status line_refuse(const struct line *line, enum status status, struct error *reterr,
                        const char *format, ...)
{
    char message[768], place[PLACE_BYTES + 16];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)snprintf(place, sizeof place, "%.*s:%u", PLACE_BYTES, line->path, line->number);
    return error_set(reterr, status, place, "%s", message);
}

/* What stands for the first `count` numbers of an enum, by their names. */
typedef const char *(*name_of)(uint32_t index);

static const char *format_at(uint32_t index)
{
    return format_name((enum format)index);
}

static const char *layout_at(uint32_t index)
{
    return kernel_layout_name((enum kernel_layout)index);
}

static const char *function_at(uint32_t index)
{
    return work_function_name((enum work_function)index);
}

/* Casts of their own alone have a word. */
static const char *cast_at(uint32_t index)
{
    return work_cast_name((enum work_cast)(WORK_CAST_WITHIN + 1 + index));
}

/* The value of a key, or NULL. */
static const char *field_take(struct line *line, const char *key)
{
    for (uint32_t i = 0; i < line->field_count; i++) {
        if (!name_same(line->field[i].key, key)) continue;
        line->field[i].is_taken = true;
        return line->field[i].value;
    }
    return NULL;
}

static enum status field_need(struct line *line, const char *key, const char **ret_value,
                              struct error *reterr)
{
    *ret_value = field_take(line, key);
    if (*ret_value != NULL) return STATUS_OK;
    return line_refuse(line, STATUS_INVALID, reterr, "\"%s\" lacks %s=...", line->word, key);
}

static enum status value_choose(const struct line *line, const char *key, const char *value,
                                name_of name, uint32_t count, uint32_t *ret_index,
                                struct error *reterr)
{
    const char *names[NAMES_MAX + 1] = {NULL};
    SIM_ASSERT(count <= NAMES_MAX);
    for (uint32_t i = 0; i < count; i++) names[i] = name(i);
    *ret_index = name_find(value, names);
    if (*ret_index < count) return STATUS_OK;
    return line_refuse(line, STATUS_INVALID, reterr, "%s=%.40s is not known%s", key, value,
                       name_offer(value, names, "; the nearest is ", "", NULL).text);
}

static enum status number_read(struct line *line, const char *key, uint64_t most,
                               uint64_t *ret_number, struct error *reterr)
{
    const char *value = NULL;
    STATUS_TRY(field_need(line, key, &value, reterr));
    const char *end = parse_uint(value, most, ret_number);
    if (end != value && *end == '\0' && *ret_number >= 1 && *ret_number <= most) return STATUS_OK;
    return line_refuse(line, STATUS_INVALID, reterr, "%s=%.40s is no whole number from 1 to %llu",
                       key, value, (unsigned long long)most);
}

static enum status time_read(struct line *line, const char *key, int64_t *ret_ps,
                             struct error *reterr)
{
    const char *value = NULL;
    struct error inner = {.status = STATUS_OK};
    uint64_t ps = 0;
    STATUS_TRY(field_need(line, key, &value, reterr));
    if (quantity_read(QUANTITY_DURATION, value, "", &ps, &inner) != STATUS_OK)
        return line_refuse(line, STATUS_INVALID, reterr, "%s=%.40s: %s", key, value, inner.message);
    if (ps == 0 || ps > (uint64_t)INT64_MAX / 4)
        return line_refuse(line, STATUS_INVALID, reterr,
                           "%s=%.40s is no time that a kernel takes, such as 12.5us", key, value);
    *ret_ps = (int64_t)ps;
    return STATUS_OK;
}

static enum status times_read(struct line *line, struct row *row, struct error *reterr)
{
    uint64_t repeats = 0;
    STATUS_TRY(number_read(line, "repeats", UINT32_MAX, &repeats, reterr));
    STATUS_TRY(time_read(line, "median", &row->median_ps, reterr));
    STATUS_TRY(time_read(line, "low", &row->low_ps, reterr));
    STATUS_TRY(time_read(line, "high", &row->high_ps, reterr));
    row->repeats = (uint32_t)repeats;
    if (row->low_ps <= row->median_ps && row->median_ps <= row->high_ps) return STATUS_OK;
    return line_refuse(line, STATUS_INVALID, reterr,
                       "the median does not lie between low and high");
}

/* Refuses the first field that no reader of the row took. */
static enum status fields_end(const struct line *line, const char *const *known,
                              struct error *reterr)
{
    for (uint32_t i = 0; i < line->field_count; i++)
        if (!line->field[i].is_taken)
            return line_refuse(
                line, STATUS_INVALID, reterr, "\"%s\" has no \"%.40s\"%s", line->word,
                line->field[i].key,
                name_offer(line->field[i].key, known, "; the nearest is ", "", NULL).text);
    return STATUS_OK;
}

static enum status matmul_read(struct line *line, struct row *row, struct error *reterr)
{
    const char *value = NULL;
    uint32_t index = 0;
    STATUS_TRY(field_need(line, "layout", &value, reterr));
    STATUS_TRY(value_choose(line, "layout", value, layout_at, KERNEL_LAYOUTS, &index, reterr));
    row->layout = (enum kernel_layout)index;
    row->result = FORMAT_BF16;
    if ((value = field_take(line, "result")) != NULL) {
        STATUS_TRY(value_choose(line, "result", value, format_at, FORMAT_COUNT, &index, reterr));
        row->result = (enum format)index;
    }
    if ((value = field_take(line, "cast")) != NULL) {
        STATUS_TRY(value_choose(line, "cast", value, cast_at,
                                WORK_CAST_COUNT - WORK_CAST_WITHIN - 1, &index, reterr));
        row->cast = (enum work_cast)(WORK_CAST_WITHIN + 1 + index);
    }
    return STATUS_OK;
}

static enum status kernel_read(struct line *line, enum kernel_family family, struct row *row,
                               struct error *reterr)
{
    const char *known[KERNEL_SIDES_MAX + 9] = {"format", "repeats", "median", "low", "high"};
    uint32_t known_count = 5, index = 0;
    const char *value = NULL;
    *row = (struct row){.what = ROW_KERNEL, .family = family, .cast = WORK_CAST_WITHIN};
    STATUS_TRY(field_need(line, "format", &value, reterr));
    STATUS_TRY(value_choose(line, "format", value, format_at, FORMAT_COUNT, &index, reterr));
    row->format = (enum format)index;
    if (family == KERNEL_MATMUL) {
        STATUS_TRY(matmul_read(line, row, reterr));
        known[known_count++] = "layout";
        known[known_count++] = "result";
        known[known_count++] = "cast";
    }
    for (uint32_t s = 0; s < kernel_side_count(family); s++) {
        uint64_t side = 0;
        known[known_count++] = kernel_side_name(family, s);
        STATUS_TRY(number_read(line, kernel_side_name(family, s), INT32_MAX, &side, reterr));
        row->side[s] = (uint32_t)side;
    }
    STATUS_TRY(times_read(line, row, reterr));
    return fields_end(line, known, reterr);
}

static enum status between_read(struct line *line, struct row *row, struct error *reterr)
{
    static const char *const known[] = {"kernel", "bytes", "repeats", "median",
                                        "low",    "high",  NULL};
    const char *value = NULL;
    uint32_t index = 0;
    *row = (struct row){.what = ROW_BETWEEN};
    STATUS_TRY(field_need(line, "kernel", &value, reterr));
    STATUS_TRY(
        value_choose(line, "kernel", value, function_at, WORK_FUNCTION_COUNT, &index, reterr));
    row->function = (enum work_function)index;
    STATUS_TRY(number_read(line, "bytes", INT64_MAX, &row->moved_bytes, reterr));
    STATUS_TRY(times_read(line, row, reterr));
    return fields_end(line, known, reterr);
}

static enum status launch_read(struct line *line, struct row *row, struct error *reterr)
{
    static const char *const known[] = {"repeats", "median", "low", "high", NULL};
    *row = (struct row){.what = ROW_LAUNCH};
    STATUS_TRY(times_read(line, row, reterr));
    return fields_end(line, known, reterr);
}

/* Collectives whose constants are learned. */
static const enum measure_op collectives[] = {MEASURE_ALL_REDUCE, MEASURE_ALL_GATHER,
                                              MEASURE_REDUCE_SCATTER, MEASURE_ALL_TO_ALL};
enum { COLLECTIVES = sizeof collectives / sizeof *collectives };

static const char *collective_at(uint32_t index)
{
    return measure_op_name(collectives[index]);
}

static enum status collective_read(struct line *line, struct row *row, struct error *reterr)
{
    static const char *const known[] = {"kind",   "ranks", "bytes", "repeats",
                                        "median", "low",   "high",  NULL};
    const char *value = NULL;
    uint32_t index = 0;
    uint64_t ranks = 0;
    *row = (struct row){.what = ROW_COLLECTIVE};
    STATUS_TRY(field_need(line, "kind", &value, reterr));
    STATUS_TRY(value_choose(line, "kind", value, collective_at, COLLECTIVES, &index, reterr));
    row->operation = collectives[index];
    STATUS_TRY(number_read(line, "ranks", RANKS_MAX, &ranks, reterr));
    if (ranks < 2)
        return line_refuse(line, STATUS_INVALID, reterr, "ranks=1: one GPU has no collective");
    row->ranks = (uint32_t)ranks;
    STATUS_TRY(number_read(line, "bytes", size_bytes_max, &row->size_bytes, reterr));
    STATUS_TRY(times_read(line, row, reterr));
    return fields_end(line, known, reterr);
}

/* A matmul at the same time as a copy: as a row of a matmul, with cores that the copy holds and the
 * bytes that it moves. */
static enum status overlap_read(struct line *line, struct row *row, struct error *reterr)
{
    const char *value = field_take(line, "cores");
    struct error inner = {.status = STATUS_OK};
    uint64_t cores = 0, rate = 0;
    if (value == NULL) return field_need(line, "cores", &value, reterr);
    if (!name_same(value, "0")) STATUS_TRY(number_read(line, "cores", CORES_MAX, &cores, reterr));
    const char *copied = field_take(line, "copied");
    if ((copied != NULL) != (cores > 0))
        return line_refuse(line, STATUS_INVALID, reterr,
                           cores > 0 ? "\"overlap\" lacks copied=..., what the copy moves in HBM, "
                                       "such as 800GB/s"
                                     : "cores=0: there is no copy that copied=... could be of");
    if (copied != NULL && quantity_read(QUANTITY_RATE, copied, "", &rate, &inner) != STATUS_OK)
        return line_refuse(line, STATUS_INVALID, reterr, "copied=%.40s: %s", copied, inner.message);
    STATUS_TRY(kernel_read(line, KERNEL_MATMUL, row, reterr));
    row->what = ROW_OVERLAP;
    row->cores = (uint32_t)cores;
    row->copied_bytes_per_s = rate;
    return STATUS_OK;
}

/* Cuts what follows the word into KEY=VALUE. */
static enum status fields_cut(struct line *line, struct error *reterr)
{
    line->field_count = 0;
    for (char *at = line->text + (line->rest - line->text); *at != '\0';) {
        char *end = at + strcspn(at, " ");
        char *equals = memchr(at, '=', (size_t)(end - at));
        bool const is_last = *end == '\0';
        *end = '\0';
        if (equals == NULL || equals == at)
            return line_refuse(line, STATUS_INVALID, reterr, "\"%.40s\" is not KEY=VALUE", at);
        if (line->field_count == LINE_FIELDS_MAX)
            return line_refuse(line, STATUS_INVALID, reterr, "more than %d values",
                               LINE_FIELDS_MAX);
        *equals = '\0';
        for (uint32_t i = 0; i < line->field_count; i++)
            if (name_same(line->field[i].key, at))
                return line_refuse(line, STATUS_INVALID, reterr, "%.40s=... stands here twice", at);
        line->field[line->field_count++] = (struct field){.key = at, .value = equals + 1};
        at = is_last ? end : end + 1;
        at += strspn(at, " ");
    }
    return STATUS_OK;
}

enum status row_read(struct line *line, enum row_word word, struct row *row, struct error *reterr)
{
    enum kernel_family const family = word == WORD_MATMUL      ? KERNEL_MATMUL
                                      : word == WORD_ATTENTION ? KERNEL_ATTENTION
                                                               : KERNEL_ATTENTION_BACKWARD;
    STATUS_TRY(fields_cut(line, reterr));
    STATUS_TRY(word == WORD_BETWEEN      ? between_read(line, row, reterr)
               : word == WORD_LAUNCH     ? launch_read(line, row, reterr)
               : word == WORD_COLLECTIVE ? collective_read(line, row, reterr)
               : word == WORD_OVERLAP    ? overlap_read(line, row, reterr)
                                         : kernel_read(line, family, row, reterr));
    row->line = line->number;
    return STATUS_OK;
}
