#include "sim/report/rows.h"

#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/analysis.h"
#include "sim/report/column_table.h"
#include "sim/report/notes.h"
#include "sim/report/table_fit.h"
#include "sim/report/words.h"

#define RANKS(X)                                                                                   \
    X(RANK, "rank", WHOLE(row), SHOWN("", "pipeline rank", -14, column_plain))                     \
    X(RANK_CHIP, "chip", WHOLE(role->chip), HIDDEN)                                                \
    X(RANK_BEGIN, "begin_s", SECONDS(role->first_begin_ps), SHOWN("", "from", 12, column_seconds)) \
    X(RANK_END, "end_s", SECONDS(role->last_end_ps), HIDDEN)                                       \
    X(RANK_FINISH, "finish_s", SECONDS(role->finished_ps), SHOWN("", "ends", 11, column_seconds))  \
    X(RANK_COMPUTE, "compute_s", SECONDS(role->compute_ps),                                        \
      SHOWN("", "compute", 11, column_seconds))                                                    \
    X(RANK_EXPOSED, "exposed_communication_s", SECONDS(role->exposed_ps),                          \
      SHOWN("", "exposed", 11, column_seconds))                                                    \
    X(RANK_WAITING, "waiting_s", SECONDS(role->waiting_ps),                                        \
      SHOWN("", "waiting", 10, column_seconds))                                                    \
    X(RANK_BUBBLE, "bubble_s", SECONDS(role->bubble_ps), SHOWN("", "bubble", 10, column_seconds))  \
    X(RANK_SENT, "sent_bytes", WHOLE(role->sent_bytes), HIDDEN)                                    \
    X(RANK_MEMORY, "memory_peak_bytes", WHOLE(role->memory.peak_bytes),                            \
      SHOWN("", "memory", 11, column_bytes))

#define PHASES(X)                                                                                  \
    X(PHASE, "name", WORDS(phase->name), NAMED("phase", column_words))                             \
    X(PHASE_BEGIN, "begin_s", REAL(phase->begin_s), SHOWN("", "from", 26, column_seconds))         \
    X(PHASE_END, "end_s", REAL(phase->end_s), SHOWN("", "to", 14, column_seconds))                 \
    X(PHASE_COMPUTE, "compute_s", REAL(phase->compute_s),                                          \
      SHOWN("", "compute", 14, column_seconds))                                                    \
    X(PHASE_EXPOSED, "exposed_communication_s", REAL(phase->exposed_s),                            \
      SHOWN("", "exposed", 14, column_seconds))                                                    \
    X(PHASE_IDLE, "idle_s", REAL(phase->idle_s), SHOWN("", "idle", 10, column_seconds))            \
    X(PHASE_BOUND, "bound_by", SAID(phase->bound_by, words_resource(machine, phase->bound_by)),    \
      NAMED("bound by", column_words))                                                             \
    X(PHASE_BOUND_NAME, "bound_name", WORDS(words_resource(machine, phase->bound_by)), HIDDEN)

enum { NAME_COLUMNS = 36, NAME_COLUMNS_MAX = 60 }; /* Of a collective. */

#define COLLECTIVES(X)                                                                             \
    X(COLLECTIVE, "name", WORDS(of->name), NAMED("collective", column_words))                      \
    X(COLLECTIVE_KIND, "kind", WORDS(of->kind), HIDDEN)                                            \
    X(COLLECTIVE_AXIS, "axis", OR_NULL(of->of != 0, WORDS(of->axis)), HIDDEN)                      \
    X(COLLECTIVE_MACHINE_AXES, "machine_axes", WORDS(of->machine_axes), HIDDEN)                    \
    X(COLLECTIVE_RANKS, "ranks", WHOLE(of->rank_count), SHOWN("", "ranks", 43, column_count))      \
    X(COLLECTIVE_ALGORITHM, "algorithm", WORDS(of->algorithm), HIDDEN)                             \
    X(COLLECTIVE_BYTES, "bytes", WHOLE(of->bytes + 0.5), HIDDEN)                                   \
    X(COLLECTIVE_COUNT, "count", WHOLE(of->count), SHOWN("", "count", 7, column_count))            \
    X(COLLECTIVE_EACH, NULL, REAL(of->bytes / (double)of->count),                                  \
      SHOWN("", "each", 11, column_bytes))                                                         \
    X(COLLECTIVE_TIME, "time_s", REAL(of->time_s), SHOWN("", "time", 11, column_seconds))          \
    X(COLLECTIVE_EXPOSED, "exposed_s", REAL(of->exposed_s),                                        \
      SHOWN("", "exposed", 11, column_seconds))                                                    \
    X(COLLECTIVE_IDLE, "idle_overlap_s", REAL(of->idle_s), HIDDEN)                                 \
    X(COLLECTIVE_BUSBW, "busbw_bytes_per_s", REAL(of->busbw_bytes_per_s),                          \
      SHOWN("", "busbw", 12, column_rate))

#define COMPUTES(X)                                                                                \
    X(COMPUTE, "name", WORDS(of->name), HIDDEN)                                                    \
    X(COMPUTE_COUNT, "count", WHOLE(of->count), HIDDEN)                                            \
    X(COMPUTE_TIME, "time_s", REAL(of->time_s), HIDDEN)                                            \
    X(COMPUTE_MATH, "math_s", REAL(of->math_s), HIDDEN)

/* Between the lower bound and the step. A part may be negative: what the bound's resource did
 * during an exposed collective. */
#define PARTS(X)                                                                                   \
    X(PART, "name", WORDS(part->name), SHOWN("", "", -14, column_words))                           \
    X(PART_SECONDS, "seconds", REAL(part->seconds), SHOWN("", "", -14, with_sign))

static struct table_figure with_sign(struct column_value value)
{
    struct table_figure figure;
    struct table_figure const size = table_seconds(value.real < 0 ? -value.real : value.real);
    (void)snprintf(figure.text, sizeof figure.text, "%c %.40s", value.real < 0 ? '-' : '+',
                   size.text);
    return figure;
}

enum { RANKS(COLUMN_NAME) RANKS_TOTAL };
enum { PHASES(COLUMN_NAME) PHASES_TOTAL };
enum { COLLECTIVES(COLUMN_NAME) COLLECTIVES_TOTAL };
enum { COMPUTES(COLUMN_NAME) COMPUTES_TOTAL };
enum { PARTS(COLUMN_NAME) PARTS_TOTAL };

static const struct column ranks[] = {RANKS(COLUMN_ENTRY)};
static const struct column phases[] = {PHASES(COLUMN_ENTRY)};
static const struct column collectives[] = {COLLECTIVES(COLUMN_ENTRY)};
static const struct column computes[] = {COMPUTES(COLUMN_ENTRY)};
static const struct column parts[] = {PARTS(COLUMN_ENTRY)};

static void find_rank(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct trace *trace = owner;
    const struct trace_role *role = &trace->roles[row];
    RANKS(COLUMN_FIND)
}

struct phases_of {
    const struct machine *machine;
    const struct analysis *analysis;
};

static void find_phase(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct phases_of *of = owner;
    const struct machine *machine = of->machine;
    const struct analysis_phase *phase = &of->analysis->phase[row];
    PHASES(COLUMN_FIND)
}

static void find_collective(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct analysis *analysis = owner;
    const struct analysis_class *of = &analysis->classes[row];
    COLLECTIVES(COLUMN_FIND)
}

static void find_compute(const struct analysis_class *of, struct column_value *ret_values)
{
    COMPUTES(COLUMN_FIND)
}

static void find_part(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct notes_part *part = (const struct notes_part *)owner + row;
    PARTS(COLUMN_FIND)
}

static const uint8_t ranks_screen[] = {RANK,         RANK_BEGIN,   RANK_FINISH, RANK_COMPUTE,
                                       RANK_EXPOSED, RANK_WAITING, RANK_BUBBLE, RANK_MEMORY};
static const uint8_t phases_screen[] = {PHASE_BEGIN, PHASE_END, PHASE_COMPUTE, PHASE_EXPOSED,
                                        PHASE_IDLE};
static const uint8_t collectives_screen[] = {COLLECTIVE_RANKS,   COLLECTIVE_COUNT,
                                             COLLECTIVE_EACH,    COLLECTIVE_TIME,
                                             COLLECTIVE_EXPOSED, COLLECTIVE_BUSBW};
static const uint8_t parts_screen[] = {PART_SECONDS, PART};

const struct column_table rows_ranks = {ranks, RANKS_TOTAL, COLUMN_LINE(ranks, ranks_screen),
                                        find_rank};
static const struct column_line phases_line = COLUMN_LINE(phases, phases_screen);
static const struct column_line collectives_line = COLUMN_LINE(collectives, collectives_screen);
static const struct column_table parts_table = {parts, PARTS_TOTAL,
                                                COLUMN_LINE(parts, parts_screen), find_part};
/* What several collectives together have of theirs. */
static void collectives_add_rest(const struct analysis *analysis, const uint32_t *index,
                                 uint32_t count, uint32_t at, struct strbuf *text)
{
    double time_s = 0, exposed_s = 0;
    for (uint32_t i = 0; i < count; i++) {
        time_s += analysis->classes[index[i]].time_s;
        exposed_s += analysis->classes[index[i]].exposed_s;
    }
    struct column_value values[COLLECTIVES_TOTAL] = {
        [COLLECTIVE_TIME] = REAL(time_s), [COLLECTIVE_EXPOSED] = REAL(exposed_s)};
    strbuf_add(text, "and %u more", count);
    column_add_figures(&collectives_line, values, at, false, text);
    strbuf_add(text, "\n");
}

/* Columns of the names: as wide as the longest needs. */
static uint32_t collectives_name_columns(const struct analysis *analysis, const uint32_t *index,
                                         uint32_t count)
{
    uint32_t columns = NAME_COLUMNS;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const needed = table_columns(analysis->classes[index[i]].name);
        if (needed > columns) columns = needed;
    }
    return columns < NAME_COLUMNS_MAX ? columns : NAME_COLUMNS_MAX;
}

enum status rows_add_collectives(struct arena *arena, const struct analysis *analysis,
                                 uint32_t shown_max, struct strbuf *text, struct error *reterr)
{
    uint32_t *index;
    uint32_t count;
    struct column_value values[COLLECTIVES_TOTAL];
    STATUS_TRY(analysis_collectives(arena, analysis, &index, &count, reterr));
    if (count == 0) return STATUS_OK;
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    uint32_t const shown = count < shown_max ? count : shown_max;
    uint32_t const columns = collectives_name_columns(analysis, index, shown);
    uint32_t const at = columns - NAME_COLUMNS;
    strbuf_add(text, "%s", collectives[COLLECTIVE].heading[1]);
    column_add_headings(&collectives_line, 1, at, text);
    strbuf_add(text, "\n");
    bool of_rank = false;
    for (uint32_t i = 0; i < shown; i++) {
        of_rank = of_rank || analysis->classes[index[i]].of_rank;
        find_collective(analysis, index[i], values);
        table_name(text, CELL(collectives, values, COLLECTIVE), columns);
        column_add_figures(&collectives_line, values, at, false, text);
        strbuf_add(text, "\n");
    }
    if (count > shown) collectives_add_rest(analysis, index + shown, count - shown, at, text);
    table_close(text, table, columns);
    if (of_rank) strbuf_add(text, "each: of a Permute what one rank sends, else the whole array\n");
    return STATUS_OK;
}

enum status rows_put_classes(struct arena *arena, const struct analysis *analysis,
                             struct json_writer *json, struct error *reterr)
{
    uint32_t *index;
    uint32_t count;
    struct column_value values[COLUMNS_MAX];
    STATUS_TRY(analysis_collectives(arena, analysis, &index, &count, reterr));
    json_put_array(json, "collectives");
    for (uint32_t i = 0; i < count; i++) {
        find_collective(analysis, index[i], values);
        json_write_object(json);
        column_put(collectives, values, 0, COLLECTIVES_TOTAL - 1, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_put_array(json, "compute");
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *of = &analysis->classes[i];
        if (of->collective || of->receives) continue;
        find_compute(of, values);
        json_write_object(json);
        column_put(computes, values, 0, COMPUTES_TOTAL - 1, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    return STATUS_OK;
}

void rows_add_phases(const struct machine *machine, const struct analysis *analysis,
                     struct strbuf *text)
{
    struct phases_of const owner = {machine, analysis};
    struct column_value values[PHASES_TOTAL];
    uint32_t wider = 0; /* For "forward and backward". */
    for (uint32_t i = 0; i < analysis->phase_count; i++) {
        uint32_t const width = table_columns(analysis->phase[i].name);
        if (width > 18 && width - 18 > wider) wider = width - 18;
    }
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    strbuf_add(text, "%s", phases[PHASE].heading[1]);
    column_add_headings(&phases_line, 1, wider, text);
    strbuf_add(text, "  %s\n", phases[PHASE_BOUND].heading[1]);
    for (uint32_t i = 0; i < analysis->phase_count; i++) {
        find_phase(&owner, i, values);
        strbuf_add(text, "%s", CELL(phases, values, PHASE));
        column_add_figures(&phases_line, values, wider, false, text);
        strbuf_add(text, "  %s\n", CELL(phases, values, PHASE_BOUND));
    }
    table_close(text, table, wider + 18);
}

void rows_put_phases(const struct machine *machine, const struct analysis *analysis,
                     struct json_writer *json)
{
    struct phases_of const owner = {machine, analysis};
    struct column_value values[PHASES_TOTAL];
    json_put_array(json, "phases");
    for (uint32_t i = 0; i < analysis->phase_count; i++) {
        find_phase(&owner, i, values);
        json_write_object(json);
        column_put(phases, values, PHASE, PHASE_IDLE, json);
        json_put_object(json, "ici_s");
        for (uint32_t a = 0; a < machine->axis_count; a++)
            json_put_real(json, machine_axis_name(machine, a), analysis->phase[i].ici_s[a]);
        json_write_object_end(json);
        column_put(phases, values, PHASE_BOUND, PHASE_BOUND_NAME, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void rows_add_parts(const struct notes *notes, uint32_t shown_max, struct strbuf *text)
{
    struct notes_part rest = {.seconds = 0};
    for (uint32_t i = 0; i < notes->part_count; i++) {
        if (i >= shown_max) {
            rest.seconds += notes->part[i].seconds;
            continue;
        }
        column_add_row(&parts_table, notes->part, i, TABLE_LINE_COLUMNS - 1, text);
        strbuf_add(text, "\n");
    }
    if (rest.seconds == 0) return;
    rest.name = rest.seconds < 0 ? "less the rest" : "the rest";
    column_add_row(&parts_table, &rest, 0, TABLE_LINE_COLUMNS - 1, text);
    strbuf_add(text, "\n");
}

void rows_put_parts(const struct notes *notes, struct json_writer *json)
{
    json_write_key(json, "above_lower");
    column_put_rows(&parts_table, notes->part, notes->part_count, json);
}
