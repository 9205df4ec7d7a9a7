#include "sim/report/report_roofline.h"

#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/report_rules.h"
#include "sim/report/words.h"
#include "sim/roofline/level_rate.h"

enum { BAR_COLUMNS = 34 };

#define FLOP(kind) REAL(roofline->flop.kind)

#define TABLE(X)                                                                                   \
    X(MATH, "math_s", REAL(roofline->math_s), IN_WORDS(column_seconds))                            \
    X(VECTOR, "vector_s", REAL(roofline->vector_s), IN_WORDS(column_seconds))                      \
    X(HBM, "hbm_s", REAL(roofline->hbm_s), IN_WORDS(column_seconds))                               \
    X(HOST, "host_s", REAL(roofline->host_s), IN_WORDS(column_seconds))                            \
    X(STAGES, "stages_s",                                                                          \
      WHERE(roofline->stages.messages_s > 0, REAL(roofline->stages.messages_s)), HIDDEN)           \
    X(COPIES, "copies_s", WHERE(roofline->stages.copies_s > 0, REAL(roofline->stages.copies_s)),   \
      HIDDEN)                                                                                      \
    X(LATENCY, "latency_s", REAL(roofline->latency_s),                                             \
      NAMED("hops on the critical path", column_seconds))                                          \
    X(LOWER, "lower_s", REAL(roofline->lower_s), NAMED("lower bound", column_seconds))             \
    X(UPPER, "upper_s", REAL(roofline->upper_s), NAMED("upper bound", column_seconds))             \
    X(CRITICAL, "critical_s", REAL(roofline->critical_s), NAMED("estimate", column_seconds))       \
    X(TP_EXCESS, "tp_excess_s", REAL(roofline->tp_excess_s), IN_WORDS(column_seconds))             \
    X(BOUND, "bound_by", SAID(bound->by, words_resource(input->machine, bound->by)),               \
      IN_WORDS(column_words))                                                                      \
    X(BOUND_NAME, "bound_name", WORDS(words_resource(input->machine, bound->by)), HIDDEN)          \
    X(BOUND_AXIS, NULL, WHERE(bound->axis >= 0, WORDS(bound->axes)), IN_WORDS(column_words))       \
    X(IDEAL, "ideal_s", REAL(roofline->ideal_s), NAMED("useful FLOP at peak", column_seconds))     \
    X(USEFUL, "useful_flop", FLOP(useful), HIDDEN)                                                 \
    X(USEFUL_ATTENTION, "useful_attention_flop", FLOP(useful_attention), HIDDEN)                   \
    X(EXECUTED, "executed_flop", FLOP(executed), HIDDEN)                                           \
    X(PADDED, "padded_flop", FLOP(padded), HIDDEN)                                                 \
    X(RECOMPUTED, "recomputed_flop", FLOP(recomputed), HIDDEN)                                     \
    X(FLASH, "flash_flop", FLOP(flash), HIDDEN)                                                    \
    X(DUPLICATED, "duplicated_flop", FLOP(duplicated), HIDDEN)                                     \
    X(SHARE_PADDING, "share_padding_flop",                                                         \
      REAL(roofline->counts.spare.padding * input->machine->chip_count), HIDDEN)                   \
    X(MEMORY, "memory_bytes", REAL(roofline->memory_bytes), IN_WORDS(column_bytes))                \
    X(CAPACITY, NULL, REAL(capacity), IN_WORDS(column_bytes))                                      \
    X(MEMORY_SHARE, NULL, PERCENT(roofline->memory_bytes, capacity), IN_WORDS(column_percent))     \
    X(MFU_MOST, NULL, PERCENT(roofline->ideal_s, roofline->lower_s), IN_WORDS(column_percent))

#define GROUPS(X)                                                                                  \
    X(GROUP, "axis", WORDS(group->name), HIDDEN)                                                   \
    X(GROUP_SHOWN, NULL, WORDS(shown_name(roofline, group)),                                       \
      SHOWN("", "collectives", -16, column_words))                                                 \
    X(GROUP_RANKS, "ranks", WHOLE(group->rank_count), SHOWN("", "ranks", 8, column_count))         \
    X(GROUP_COUNT, "count", WHOLE(group->count), SHOWN("", "count", 8, column_count))              \
    X(GROUP_SENT, "sent_bytes", REAL(group->sent_bytes),                                           \
      SHOWN("", "sent a chip", 14, column_bytes))                                                  \
    X(GROUP_TIME, "time_s", REAL(group->time_s), SHOWN("", "bytes' time", 12, column_seconds))     \
    X(GROUP_HOPS, "hops_s", REAL(group->hops_total_s),                                             \
      SHOWN("", "hops' time", 12, column_seconds))                                                 \
    X(GROUP_AXES, NULL, REAL(group->axes), SHOWN("", "axes' worth", 14, three_digits))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
enum { GROUPS(COLUMN_NAME) GROUPS_TOTAL };

static struct table_figure three_digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.3g", value.real);
    return figure;
}

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const struct column groups[] = {GROUPS(COLUMN_ENTRY)};

static void find(const struct report_input *input, struct column_value *ret_values)
{
    const struct roofline *roofline = input->roofline;
    const struct roofline_bound *bound = &roofline->bound;
    double const capacity = (double)input->machine->chip.hbm_capacity_bytes;
    TABLE(COLUMN_FIND)
}

/* Where all replicas lie along ep, ep has two rows: tokens on their way to experts, and gradients.
 */
static const char *shown_name(const struct roofline *roofline, const struct roofline_group *group)
{
    const struct roofline_group *exchange = roofline_group_find(roofline, MESH_EP);
    bool const alike = exchange != NULL && name_same(exchange->name, group->name);
    return group->of == MESH_DP && alike ? "ep (replicas)" : group->name;
}

static void find_group(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct roofline *roofline = owner;
    const struct roofline_group *group = &roofline->group[row];
    GROUPS(COLUMN_FIND)
}

static const uint8_t groups_screen[] = {GROUP_SHOWN, GROUP_RANKS, GROUP_COUNT, GROUP_SENT,
                                        GROUP_TIME,  GROUP_HOPS,  GROUP_AXES};

static const struct column_table groups_table = {groups, GROUPS_TOTAL,
                                                 COLUMN_LINE(groups, groups_screen), find_group};

#define FIGURE(name) CELL(columns, values, name)

/* Against the lower bound: full is what bounds the step. */
static void write_resource(const char *name, struct column_value busy, struct column_value lower,
                           bool colour, struct strbuf *text)
{
    strbuf_add(text, "%s", name);
    table_right(text, 42, column_seconds(busy).text);
    table_right(text, 52, table_percent(busy.real, lower.real).text);
    table_colour(text, colour, busy.real >= lower.real ? TABLE_RED : TABLE_GREEN);
    table_bar(text, busy.real, lower.real, BAR_COLUMNS);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "\n");
}

static void write_resources(const struct report_input *input, const struct column_value *values,
                            bool colour, struct strbuf *text)
{
    const struct machine *machine = input->machine;
    struct column_value const lower = values[LOWER];
    char name[64];
    strbuf_add(text, "resource");
    table_right(text, 42, "busy");
    table_right(text, 52, "of lower");
    strbuf_add(text, "\n");
    (void)snprintf(name, sizeof name, "%s (padded FLOP)", words_of_chip(&machine->chip, WORDS_MXU));
    write_resource(name, values[MATH], lower, colour, text);
    write_resource(words_of_chip(&machine->chip, WORDS_VPU), values[VECTOR], lower, colour, text);
    write_resource("HBM (compute, collectives)", values[HBM], lower, colour, text);
    for (uint32_t i = 0; i < machine->axis_count; i++) {
        if (machine->axis_level[i] == LEVEL_NONE)
            (void)snprintf(name, sizeof name, "ICI along %s (%s of %u)",
                           machine_axis_name(machine, i), machine->wrap[i] ? "ring" : "line",
                           machine->shape[i]);
        else
            (void)snprintf(name, sizeof name, "%s along %s (%u)", level_link_name(machine, i),
                           machine_axis_name(machine, i), machine->shape[i]);
        write_resource(name, REAL(input->roofline->ici_s[i]), lower, colour, text);
    }
    if (input->roofline->host_s > 0) {
        (void)snprintf(name, sizeof name, "host over %s, each way", machine->host.cable_name);
        write_resource(name, values[HOST], lower, colour, text);
    }
}

/* The name of a line, and its figure below those of the resources. */
static void line_begin(const struct column_value *values, uint32_t column, struct strbuf *text)
{
    strbuf_add(text, "%s", columns[column].heading[1]);
    table_right(text, 42, columns[column].look(values[column]).text);
}

/* Whose collectives the estimate does not hide. */
static const char *exposing(const struct report_input *input)
{
    bool const tp = roofline_group_find(input->roofline, MESH_TP) != NULL;
    bool const experts = roofline_group_find(input->roofline, MESH_EP) != NULL;
    return experts ? tp ? "tp and experts leave" : "experts leave" : "tp leaves";
}

static void write_bounds(const struct report_input *input, const struct column_value *values,
                         struct strbuf *text)
{
    strbuf_add(text, "\n");
    line_begin(values, LOWER, text);
    strbuf_add(text, "  everything overlaps; bound by %s\n", FIGURE(BOUND));
    line_begin(values, CRITICAL, text);
    strbuf_add(text, "  math, what %s exposed, hops\n", exposing(input));
    line_begin(values, LATENCY, text);
    strbuf_add(text, "  in addition to the bound\n");
    line_begin(values, UPPER, text);
    strbuf_add(text, "  nothing overlaps\n");
    line_begin(values, IDEAL, text);
    strbuf_add(text, "  MFU at most %s\n", FIGURE(MFU_MOST));
}

static void write_memory(const struct report_input *input, const struct column_value *values,
                         struct strbuf *text)
{
    uint64_t const held_ppm = input->roofline->counts.held_anyway.held_ppm;
    strbuf_add(text, "\nmemory by formulas %s of %s HBM (%s)\n", FIGURE(MEMORY), FIGURE(CAPACITY),
               FIGURE(MEMORY_SHARE));
    if (held_ppm != PPM_ONE)
        strbuf_add(text,
                   "- including activations of %.4g microbatches, as many as a rank of "
                   "pp holds\n",
                   (double)held_ppm / PPM_ONE);
}

void report_roofline_write(const struct report_input *input, bool colour, struct strbuf *text)
{
    const struct roofline *roofline = input->roofline;
    struct column_value values[COLUMN_TOTAL];
    find(input, values);
    table_heading(input, colour, text);
    if (input->workload->kind == WORKLOAD_GENERATE)
        strbuf_add(text, "bounds are of the prefill and the last step\n\n");
    write_resources(input, values, colour, text);
    write_bounds(input, values, text);
    if (roofline->group_count > 0) {
        strbuf_add(text, "\n");
        column_add_table(&groups_table, roofline, roofline->group_count, 16, text);
    }
    report_rules_write(input, FIGURE(TP_EXCESS), text);
    write_memory(input, values, text);
}

void report_roofline_write_bounds(const struct report_input *input, double step_s,
                                  struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    struct strbuf line = {0};
    double const lower_s = input->roofline->lower_s;
    find(input, values);
    strbuf_add(text, "\n");
    table_line(text, "roofline");
    strbuf_add(&line, "lower %s (%s%s%s), upper %s; the step is %.3f times the lower bound",
               FIGURE(LOWER), FIGURE(BOUND), values[BOUND_AXIS].kind == COLUMN_NONE ? "" : " ",
               FIGURE(BOUND_AXIS), FIGURE(UPPER), lower_s > 0 ? step_s / lower_s : 0);
    table_wrap_close(text, TABLE_LINE_COLUMNS, &line);
}

void report_roofline_put(const struct report_input *input, struct json_writer *json)
{
    const struct roofline *roofline = input->roofline;
    struct column_value values[COLUMN_TOTAL];
    find(input, values);
    json_put_object(json, "roofline");
    column_put(columns, values, MATH, HBM, json);
    json_put_object(json, "ici_s");
    for (uint32_t i = 0; i < input->machine->axis_count; i++)
        json_put_real(json, machine_axis_name(input->machine, i), roofline->ici_s[i]);
    json_write_object_end(json);
    column_put(columns, values, HOST, COLUMN_TOTAL - 1, json);
    json_write_key(json, "groups");
    column_put_rows(&groups_table, roofline, roofline->group_count, json);
    report_rules_put(roofline, json);
    json_write_object_end(json);
}
