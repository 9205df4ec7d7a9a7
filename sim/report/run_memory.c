#include "sim/report/run_memory.h"

#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/analysis.h"
#include "sim/report/column_table.h"
#include "sim/report/words.h"

/* Of one chip: a peak that was seen, or what it holds at least. */
struct held {
    const struct report_input *input;
    const struct trace_memory *peak; /* NULL: not seen. */
    const uint64_t *bytes;           /* By kind. */
    uint64_t total_bytes;
};

/* Keys of a result, blanks as "_". */
static const char *const part_keys[] = {
#define X(name, text) text,
    PROGRAM_MEMORY_TABLE(X)
#undef X
};

#define SEEN(value) WHERE(held->peak != NULL, value)

#define TABLE(X)                                                                                   \
    X(CAPACITY, "capacity_bytes", WHOLE(capacity_of(held)), IN_WORDS(column_bytes))                \
    X(PEAK, "peak_bytes", SEEN(WHOLE(held->total_bytes)), HIDDEN)                                  \
    X(LEAST, "least_bytes", WHERE(held->peak == NULL, WHOLE(held->total_bytes)), HIDDEN)           \
    X(PEAK_AT, "peak_at_s", SEEN(SECONDS(held->peak->peak_at_ps)), IN_WORDS(column_seconds))

/* Kinds of memory, and all together. */
#define PARTS(X)                                                                                   \
    X(PART, NULL, WORDS(part_words(held, row)), SHOWN("", "", -20, column_words))                  \
    X(BYTES, NULL, WHOLE(part_bytes(held, row)), SHOWN("", "", 11, column_bytes))                  \
    X(SHARE, NULL, REAL((double)part_bytes(held, row) / (double)capacity_of(held)),                \
      SHOWN("", "", 9, column_share))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
enum { PARTS(COLUMN_NAME) PARTS_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const struct column parts[] = {PARTS(COLUMN_ENTRY)};

static uint64_t capacity_of(const struct held *held)
{
    return held->input->machine->chip.hbm_capacity_bytes;
}

static const char *part_words(const struct held *held, uint32_t part)
{
    if (part >= PROGRAM_MEMORY_COUNT) return "in all";
    return words_memory(held->input->machine, (enum program_memory)part);
}

static uint64_t part_bytes(const struct held *held, uint32_t part)
{
    return part < PROGRAM_MEMORY_COUNT ? held->bytes[part] : held->total_bytes;
}

static void find(const struct held *held, struct column_value *ret_values)
{
    TABLE(COLUMN_FIND)
}

static void find_part(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct held *held = owner;
    PARTS(COLUMN_FIND)
}

static const struct column_table parts_table = {parts, PARTS_TOTAL, COLUMN_ALL(parts), find_part};

static struct held held_at_peak(const struct report_input *input)
{
    const struct trace_memory *peak = &input->trace->memory;
    return (struct held){input, peak, peak->at_peak_bytes, peak->peak_bytes};
}

static struct held held_at_least(const struct report_input *input, const struct least_memory *least)
{
    return (struct held){input, NULL, least->bytes, least->total_bytes};
}

bool run_memory_fits(const struct report_input *input)
{
    return input->trace->memory.peak_bytes <= input->machine->chip.hbm_capacity_bytes;
}

static void write_parts(const struct held *held, struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    find(held, values);
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) {
        if (held->bytes[i] == 0) continue;
        column_add_row(&parts_table, held, i, 1, text);
        table_bar(text, (double)held->bytes[i], (double)capacity_of(held), TABLE_BAR_COLUMNS);
        strbuf_add(text, "\n");
    }
    column_add_row(&parts_table, held, PROGRAM_MEMORY_COUNT, 1, text);
    strbuf_add(text, "  of %s HBM%s\n", CELL(columns, values, CAPACITY),
               held->total_bytes <= capacity_of(held) ? "" : ": it does not fit");
}

void run_memory_write(const struct report_input *input, struct strbuf *text)
{
    const struct trace_memory *peak = &input->trace->memory;
    struct held const held = held_at_peak(input);
    struct column_value values[COLUMN_TOTAL];
    char slot[96], name[32];
    uint32_t const role = analysis_role(input, peak->peak_chip);
    program_slot_name(&input->program->roles[role], peak->peak_slot, slot, sizeof slot);
    program_role_name(input->program, role, name, sizeof name);
    find(&held, values);
    strbuf_add(text, "memory of a chip%s%s at its peak, %s into the step (%s)\n",
               name[0] != '\0' ? " of " : "", name, CELL(columns, values, PEAK_AT), slot);
    write_parts(&held, text);
}

void run_memory_write_least(const struct report_input *input, const struct least_memory *least,
                            struct strbuf *text)
{
    struct held const held = held_at_least(input, least);
    char name[32];
    program_role_name(input->program, least->role, name, sizeof name);
    strbuf_add(text,
               "memory of a chip%s%s, what it holds at least (too many events for its peak)\n",
               name[0] != '\0' ? " of " : "", name);
    write_parts(&held, text);
}

void run_memory_put_parts(const char *key, const uint64_t bytes[PROGRAM_MEMORY_COUNT],
                          struct json_writer *json)
{
    json_put_object(json, key);
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) {
        char part[64];
        if (bytes[i] == 0 && i >= PROGRAM_OVERHEAD_FIRST) continue;
        (void)snprintf(part, sizeof part, "%s", part_keys[i]);
        for (char *c = part; *c != '\0'; c++)
            if (*c == ' ') *c = '_';
        json_put_unsigned(json, part, bytes[i]);
    }
    json_write_object_end(json);
}

static void put(const struct held *held, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    find(held, values);
    json_put_object(json, "memory");
    column_put(columns, values, 0, COLUMN_TOTAL - 1, json);
    run_memory_put_parts("parts", held->bytes, json);
    if (held->peak != NULL) run_memory_put_parts("parts_peak", held->peak->each_peak_bytes, json);
    json_write_object_end(json);
}

void run_memory_put(const struct report_input *input, struct json_writer *json)
{
    struct held const held = held_at_peak(input);
    put(&held, json);
}

void run_memory_put_least(const struct report_input *input, const struct least_memory *least,
                          struct json_writer *json)
{
    struct held const held = held_at_least(input, least);
    put(&held, json);
}
