#include "sim/report/rows.h"

#include <stdio.h>

#include "sim/report/analysis.h"
#include "sim/report/column_table.h"
#include "sim/roofline/roofline.h"

#define RANKS(X)                                                                                   \
    X(RANK, "rank", WHOLE(row), SHOWN("", "pipeline rank", -14, column_plain))                     \
    X(RANK_CHIP, "chip", WHOLE(role->chip), HIDDEN)                                                \
    X(RANK_BEGIN, "begin_s", SECONDS(role->first_begin_ps), SHOWN("", "from", 12, column_seconds)) \
    X(RANK_END, "end_s", SECONDS(role->last_end_ps), SHOWN("", "to", 11, column_seconds))          \
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
    X(PHASE, "name", WORDS(phase->name), HIDDEN)                                                   \
    X(PHASE_BEGIN, "begin_s", REAL(phase->begin_s), SHOWN("", "from", 26, column_seconds))         \
    X(PHASE_END, "end_s", REAL(phase->end_s), SHOWN("", "to", 14, column_seconds))                 \
    X(PHASE_COMPUTE, "compute_s", REAL(phase->compute_s),                                          \
      SHOWN("", "compute", 14, column_seconds))                                                    \
    X(PHASE_EXPOSED, "exposed_communication_s", REAL(phase->exposed_s),                            \
      SHOWN("", "exposed", 14, column_seconds))                                                    \
    X(PHASE_IDLE, "idle_s", REAL(phase->idle_s), SHOWN("", "idle", 10, column_seconds))

#define COLLECTIVES(X)                                                                             \
    X(COLLECTIVE, "name", WORDS(of->name), HIDDEN)                                                 \
    X(COLLECTIVE_KIND, "kind", WORDS(of->kind), HIDDEN)                                            \
    X(COLLECTIVE_AXIS, "axis", WORDS(of->axis), HIDDEN)                                            \
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

#define GROUPS(X)                                                                                  \
    X(GROUP, "axis", WORDS(group->name), SHOWN("", "collectives", -16, column_words))              \
    X(GROUP_RANKS, "ranks", WHOLE(group->rank_count), SHOWN("", "ranks", 8, column_count))         \
    X(GROUP_COUNT, "count", WHOLE(group->count), SHOWN("", "count", 8, column_count))              \
    X(GROUP_SENT, "sent_bytes", REAL(group->sent_bytes),                                           \
      SHOWN("", "sent a chip", 14, column_bytes))                                                  \
    X(GROUP_TIME, "time_s", REAL(group->time_s), SHOWN("", "bytes' time", 12, column_seconds))     \
    X(GROUP_HOPS, "hops_s", REAL(group->hops_total_s),                                             \
      SHOWN("", "hops' time", 12, column_seconds))                                                 \
    X(GROUP_AXES, NULL, REAL(group->axes), SHOWN("", "axes' worth", 14, three_digits))

#define OVERLAP(X)                                                                                 \
    X(OVERLAP_NAME, "name", WORDS(overlap->name), HIDDEN)                                          \
    X(OVERLAP_KIND, "kind", WORDS(collective_kind_name(overlap->kind)), HIDDEN)                    \
    X(OVERLAP_COUNT, "count", WHOLE(overlap->count), HIDDEN)                                       \
    X(OVERLAP_BYTES, "bytes", REAL(overlap->bytes), HIDDEN)                                        \
    X(OVERLAP_WIDTH, "width", REAL(overlap->width), HIDDEN)                                        \
    X(OVERLAP_LINK, "link_s", REAL(overlap->link_s), HIDDEN)                                       \
    X(OVERLAP_MATH, "math_s", REAL(overlap->math_s), HIDDEN)

static struct table_figure three_digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.3g", value.real);
    return figure;
}

enum { RANKS(COLUMN_NAME) RANKS_TOTAL };
enum { PHASES(COLUMN_NAME) PHASES_TOTAL };
enum { COLLECTIVES(COLUMN_NAME) COLLECTIVES_TOTAL };
enum { GROUPS(COLUMN_NAME) GROUPS_TOTAL };
enum { OVERLAP(COLUMN_NAME) OVERLAP_TOTAL };

static const struct column ranks[] = {RANKS(COLUMN_ENTRY)};
static const struct column phases[] = {PHASES(COLUMN_ENTRY)};
static const struct column collectives[] = {COLLECTIVES(COLUMN_ENTRY)};
static const struct column groups[] = {GROUPS(COLUMN_ENTRY)};
static const struct column besides[] = {OVERLAP(COLUMN_ENTRY)};

static void find_rank(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct trace *trace = owner;
    const struct trace_role *role = &trace->roles[row];
    RANKS(COLUMN_FIND)
}

static void find_phase(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct analysis *facts = owner;
    const struct analysis_phase *phase = &facts->phase[row];
    PHASES(COLUMN_FIND)
}

static void find_collective(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct analysis *facts = owner;
    const struct analysis_class *of = &facts->classes[row];
    COLLECTIVES(COLUMN_FIND)
}

static void find_group(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct roofline *roofline = owner;
    const struct roofline_group *group = &roofline->group[row];
    GROUPS(COLUMN_FIND)
}

static void find_overlap(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct roofline *roofline = owner;
    const struct roofline_overlap *overlap = &roofline->overlap[row];
    OVERLAP(COLUMN_FIND)
}

static const uint8_t ranks_screen[] = {RANK,         RANK_BEGIN,   RANK_END,    RANK_COMPUTE,
                                       RANK_EXPOSED, RANK_WAITING, RANK_BUBBLE, RANK_MEMORY};
static const uint8_t phases_screen[] = {PHASE_BEGIN, PHASE_END, PHASE_COMPUTE, PHASE_EXPOSED,
                                        PHASE_IDLE};
static const uint8_t collectives_screen[] = {COLLECTIVE_RANKS,   COLLECTIVE_COUNT,
                                             COLLECTIVE_EACH,    COLLECTIVE_TIME,
                                             COLLECTIVE_EXPOSED, COLLECTIVE_BUSBW};
static const uint8_t groups_screen[] = {GROUP,      GROUP_RANKS, GROUP_COUNT, GROUP_SENT,
                                        GROUP_TIME, GROUP_HOPS,  GROUP_AXES};

const struct column_table rows_ranks = {ranks, RANKS_TOTAL, COLUMN_LINE(ranks, ranks_screen),
                                        find_rank};
const struct column_table rows_phases = {phases, PHASES_TOTAL, COLUMN_LINE(phases, phases_screen),
                                         find_phase};
const struct column_table rows_collectives = {
    collectives, COLLECTIVES_TOTAL, COLUMN_LINE(collectives, collectives_screen), find_collective};
const struct column_table rows_groups = {groups, GROUPS_TOTAL, COLUMN_LINE(groups, groups_screen),
                                         find_group};
const struct column_table rows_overlaps = {besides, OVERLAP_TOTAL, {0}, find_overlap};

void rows_collectives_add_sum(double time_s, double exposed_s, struct strbuf *text)
{
    struct column_value values[COLLECTIVES_TOTAL] = {
        [COLLECTIVE_TIME] = REAL(time_s), [COLLECTIVE_EXPOSED] = REAL(exposed_s)};
    column_add_figures(&rows_collectives.screen, values, 0, false, text);
}
