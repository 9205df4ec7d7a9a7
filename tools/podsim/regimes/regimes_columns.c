/* The figures of `podsim regimes`: as cells of its tables and as JSON. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/regimes/regimes.h"

static struct table_figure size(struct column_value value)
{
    struct table_figure figure;
    (void)regimes_size(figure.text, value.whole);
    return figure;
}

static struct table_figure duration(struct column_value value)
{
    return table_duration((int64_t)value.whole);
}

/* Of the seconds that a byte takes. */
static struct table_figure rate(struct column_value value)
{
    return value.real > 0 ? table_rate(1 / value.real) : (struct table_figure){"-"};
}

/* Of an algorithm, on the map. */
static struct table_figure letter(struct column_value value)
{
    struct table_figure figure = {{regimes_letter((uint32_t)value.whole)}};
    return figure;
}

/* A size that is never reached has no key. */
#define SIZE(bytes) WHERE((bytes) > 0, WHOLE(bytes))
#define OR_DASH(...) SHOWN(__VA_ARGS__), .none = "-"

#define GROUPS(X)                                                                                  \
    X(AXES, "axes", WORDS(group->args.axes), SHOWN("", "axes", -17, column_words))                 \
    X(RANKS, "ranks", WHOLE(group->ranks), SHOWN("", "ranks", 8, column_plain))                    \
    X(BOUND_ALPHA, "bound_alpha_s", REAL(group->bound_alpha_s), IN_WORDS(column_seconds))          \
    X(BOUND_BETA, "bound_beta_s_per_byte", REAL(group->bound_beta_s_per_byte), IN_WORDS(rate))     \
    X(BOUND, "bound_by", WORDS(group->bound_by), SHOWN("", "bound", -8, column_words))             \
    X(FLOOR, "floor_ps", WHERE(has, WHOLE(group->best.floor_ps)),                                  \
      SHOWN("", "floor", 10, duration))                                                            \
    X(PEAK, "peak_algbw_bytes_per_s", WHERE(has, REAL(group->best.peak_bytes_per_s)),              \
      SHOWN("", "peak", 12, column_rate))                                                          \
    X(HALF, "half_bandwidth_bytes", WHERE(has, SIZE(group->best.half_bytes)),                      \
      OR_DASH("", "n1/2", 9, size))                                                                \
    X(MOST, "bandwidth_95_bytes", WHERE(has, SIZE(group->best.most_bytes)),                        \
      OR_DASH("", "95 %", 9, size))

#define CURVES(X)                                                                                  \
    X(LETTER, NULL, WHOLE(row), SHOWN("", "algorithm", -2, letter))                                \
    X(ALGORITHM, "algorithm", WORDS(curves->regimes->algorithm_name[row]),                         \
      SHOWN("", "", -25, column_words))                                                            \
    X(CURVE_FLOOR, "floor_ps", WHOLE(curve->floor_ps), HIDDEN)                                     \
    X(CURVE_PEAK, "peak_algbw_bytes_per_s", REAL(curve->peak_bytes_per_s), HIDDEN)                 \
    X(CURVE_HALF, "half_bandwidth_bytes", SIZE(curve->half_bytes), OR_DASH("", "n1/2", 9, size))   \
    X(CURVE_MOST, "bandwidth_95_bytes", SIZE(curve->most_bytes), OR_DASH("", "95 %", 9, size))     \
    X(ALPHA, "alpha_s", REAL(curve->fit.alpha_s), SHOWN("fit", "alpha", 11, column_seconds))       \
    X(BETA, "beta_s_per_byte", REAL(curve->fit.beta_s_per_byte), SHOWN("", "1/beta", -10, rate))   \
    X(OFF, "fit_error", REAL(curve->fit.error_most), SHOWN("", "off by", 9, column_share))         \
    X(THEORY_ALPHA, "theory_alpha_s", WHERE(curve->has_theory, REAL(curve->theory_alpha_s)),       \
      OR_DASH("theory", "alpha", 11, column_seconds))                                              \
    X(THEORY_BETA, "theory_beta_s_per_byte",                                                       \
      WHERE(curve->has_theory, REAL(curve->theory_beta_s_per_byte)),                               \
      OR_DASH("", "1/beta", -10, rate))

#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(MACHINE, "machine", WORDS(args->machine_text), IN_WORDS(column_words))                       \
    X(PROFILE, "profile", WORDS(args->machine.chip.profile), IN_WORDS(column_words))               \
    X(OP, "op", WORDS(measure_op_name(args->row.operation)), IN_WORDS(column_words))               \
    X(HEAD_AXES, "axes", WORDS(args->row.axes), HIDDEN)                                            \
    X(COMPLETE, "complete", FLAG(regimes->group_count == regimes->group_count_max), HIDDEN)

/* Of each size: who wins in a group, how long an algorithm takes. */
#define SIZES(X)                                                                                   \
    X(SIZE_BYTES, "size_bytes", WHOLE(of->regimes->size_bytes[row]), IN_WORDS(size))               \
    X(WINNER, "winners", WHERE(has, WORDS(of->regimes->algorithm_name[of->group->winner[row]])),   \
      HIDDEN)                                                                                      \
    X(TIME, "time_ps", WHERE(of->curve != NULL, WHOLE(of->curve->time_ps[row])), HIDDEN)

#define CROSSOVERS(X)                                                                              \
    X(CROSS_SIZE, "size_bytes", WHOLE(at->size_bytes), IN_WORDS(size))                             \
    X(FROM, "from", WORDS(of->regimes->algorithm_name[at->from]), HIDDEN)                          \
    X(TO, "to", WORDS(of->regimes->algorithm_name[at->to]), HIDDEN)                                \
    X(FROM_LETTER, NULL, WHOLE(at->from), IN_WORDS(letter))                                        \
    X(TO_LETTER, NULL, WHOLE(at->to), IN_WORDS(letter))

struct sizes_of {
    const struct regimes *regimes;
    const struct regimes_group *group; /* NULL: of no group. */
    const struct regimes_curve *curve; /* NULL: of no algorithm. */
};

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };
enum { SIZES(COLUMN_NAME) SIZES_TOTAL };
enum { CROSSOVERS(COLUMN_NAME) CROSSOVERS_TOTAL };
enum { GROUPS(COLUMN_NAME) GROUPS_TOTAL };
enum { CURVES(COLUMN_NAME) CURVES_TOTAL };

static const struct column head_columns[] = {HEAD(COLUMN_ENTRY)};
static const struct column size_columns[] = {SIZES(COLUMN_ENTRY)};
static const struct column crossover_columns[] = {CROSSOVERS(COLUMN_ENTRY)};
static const struct column group_columns[] = {GROUPS(COLUMN_ENTRY)};
static const struct column curve_columns[] = {CURVES(COLUMN_ENTRY)};

static void find_head(const struct collective_args *args, const struct regimes *regimes,
                      struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

static void find_size(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct sizes_of *of = owner;
    bool const has = of->group != NULL && of->group->winner[row] != REGIMES_NONE;
    SIZES(COLUMN_FIND)
}

static void find_crossover(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct regimes_curves_of *of = owner;
    const struct regimes_crossover *at = &of->group->crossover[row];
    CROSSOVERS(COLUMN_FIND)
}

static void find_group(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct regimes *regimes = owner;
    const struct regimes_group *group = &regimes->group[row];
    bool const has = group->winner[0] != REGIMES_NONE;
    GROUPS(COLUMN_FIND)
}

static void find_curve(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct regimes_curves_of *curves = owner;
    const struct regimes_curve *curve = &curves->group->curve[row];
    CURVES(COLUMN_FIND)
}

/* What a row is of; its figures begin behind. */
enum {
    AXES_AT = 9,
    LABEL_END = 26,
    ALGORITHM_AT = 27,
    ALGORITHM_END = 54,
    BOUND_AT = 67,
    BOUND_END = 75
};
static const uint8_t ranks_label[] = {RANKS}, axes_label[] = {AXES}, bound_label[] = {BOUND};
static const uint8_t curves_label[] = {LETTER, ALGORITHM};
static const uint8_t any_figures[] = {ALPHA, BETA, OFF, THEORY_ALPHA, THEORY_BETA};
static const struct column_line ranks_line = COLUMN_LINE(group_columns, ranks_label);
static const struct column_line axes_line = COLUMN_LINE(group_columns, axes_label);
static const struct column_line bound_line = COLUMN_LINE(group_columns, bound_label);
static const struct column_line algorithm_line = COLUMN_LINE(curve_columns, curves_label);
static const struct column_line any_line = COLUMN_LINE(curve_columns, any_figures);

static const uint8_t groups_screen[] = {FLOOR, PEAK, HALF, MOST};
static const uint8_t curves_screen[] = {ALPHA,       BETA,       OFF,       THEORY_ALPHA,
                                        THEORY_BETA, CURVE_HALF, CURVE_MOST};

static const struct column_table crossover_table = {
    crossover_columns, CROSSOVERS_TOTAL, {0}, find_crossover};

const struct column_table regimes_group_table = {
    group_columns, GROUPS_TOTAL, COLUMN_LINE(group_columns, groups_screen), find_group};
const struct column_table regimes_curve_table = {
    curve_columns, CURVES_TOTAL, COLUMN_LINE(curve_columns, curves_screen), find_curve};

void regimes_add_title(const struct collective_args *args, const struct regimes *regimes,
                       struct strbuf *text)
{
    struct column_value values[HEAD_TOTAL];
    find_head(args, regimes, values);
    strbuf_add(text, "podsim regimes: %s on %s, profile %s\n", CELL(head_columns, values, OP),
               CELL(head_columns, values, MACHINE), CELL(head_columns, values, PROFILE));
}

void regimes_add_label(const struct regimes *regimes, uint32_t group, struct strbuf *text)
{
    struct column_value values[GROUPS_TOTAL];
    if (group == REGIMES_HEADINGS) {
        column_add_headings(&ranks_line, 1, 0, text);
        column_add_headings(&axes_line, 1, AXES_AT, text);
    } else {
        find_group(regimes, group, values);
        column_add_figures(&ranks_line, values, 0, false, text);
        column_add_figures(&axes_line, values, AXES_AT, false, text);
    }
    strbuf_pad(text, LABEL_END);
}

void regimes_add_algorithm(const struct regimes_curves_of *curves, uint32_t algorithm,
                           struct strbuf *text)
{
    struct column_value values[CURVES_TOTAL];
    if (curves == NULL) {
        column_add_headings(&algorithm_line, 1, ALGORITHM_AT, text);
    } else {
        find_curve(curves, algorithm, values);
        column_add_figures(&algorithm_line, values, ALGORITHM_AT, false, text);
    }
    strbuf_pad(text, ALGORITHM_END);
}

void regimes_add_bound(const struct regimes *regimes, uint32_t group, struct strbuf *text)
{
    struct column_value values[GROUPS_TOTAL], any[CURVES_TOTAL] = {{.kind = COLUMN_NONE}};
    find_group(regimes, group, values);
    any[ALGORITHM] = WORDS("any (cuts of the fabric)");
    any[THEORY_ALPHA] = values[BOUND_ALPHA];
    any[THEORY_BETA] = values[BOUND_BETA];
    regimes_add_label(regimes, group, text);
    column_add_figures(&algorithm_line, any, ALGORITHM_AT, false, text);
    column_add_figures(&any_line, any, ALGORITHM_END, false, text);
    strbuf_add(text, "\n");
}

/* Whether a change belongs to the one before it: the winner between them has less than 3 % of the
 * size, as where two algorithms are equal at a size. */
static bool is_same_change(const struct regimes_group *group, uint32_t crossover)
{
    enum { PERCENT_APART = 3 };
    return crossover > 0 && 100 * (group->crossover[crossover].size_bytes -
                                   group->crossover[crossover - 1].size_bytes) <
                                PERCENT_APART * group->crossover[crossover - 1].size_bytes;
}

/* "A|B 16K, B|C|B 64K": the last is two changes that belong together. */
void regimes_add_changes(const struct regimes *regimes, uint32_t group, struct strbuf *text)
{
    struct column_value values[GROUPS_TOTAL], at[CROSSOVERS_TOTAL];
    if (group == REGIMES_HEADINGS) {
        column_add_headings(&bound_line, 1, BOUND_AT, text);
        strbuf_pad(text, BOUND_END);
        strbuf_add(text, " changes at\n");
        return;
    }
    struct regimes_curves_of const of = {regimes, &regimes->group[group]};
    find_group(regimes, group, values);
    column_add_figures(&bound_line, values, BOUND_AT, false, text);
    strbuf_pad(text, BOUND_END);
    for (uint32_t c = 0, first = 0; c < of.group->crossover_count; c++) {
        find_crossover(&of, c, at);
        if (!is_same_change(of.group, c)) {
            first = c;
            strbuf_add(text, "%s%s", c == 0 ? " " : ", ", CELL(crossover_columns, at, FROM_LETTER));
        }
        strbuf_add(text, "|%s", CELL(crossover_columns, at, TO_LETTER));
        if (c + 1 < of.group->crossover_count && is_same_change(of.group, c + 1)) continue;
        find_crossover(&of, first, at);
        strbuf_add(text, " %s", CELL(crossover_columns, at, CROSS_SIZE));
    }
    strbuf_add(text, of.group->crossover_count == 0 ? " nowhere\n" : "\n");
}

static void put_curve(struct json_writer *json, const struct regimes_curves_of *of,
                      uint32_t algorithm)
{
    struct sizes_of const sizes = {of->regimes, NULL, &of->group->curve[algorithm]};
    json_write_object(json);
    column_put_row(&regimes_curve_table, of, algorithm, json);
    column_put_array(size_columns, TIME, find_size, &sizes, of->regimes->size_count, json);
    json_write_object_end(json);
}

static void put_group(struct json_writer *json, const struct regimes *regimes, uint32_t index)
{
    const struct regimes_group *group = &regimes->group[index];
    struct regimes_curves_of const of = {regimes, group};
    struct sizes_of const sizes = {regimes, group, NULL};
    json_write_object(json);
    column_put_row(&regimes_group_table, regimes, index, json);
    if (group->winner[0] != REGIMES_NONE)
        column_put_array(size_columns, WINNER, find_size, &sizes, regimes->size_count, json);
    json_write_key(json, "crossovers");
    column_put_rows(&crossover_table, &of, group->crossover_count, json);
    json_put_array(json, "algorithms");
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (group->curve[a].applies) put_curve(json, &of, a);
    json_write_array_end(json);
    json_write_object_end(json);
}

void regimes_write_json(const struct collective_args *args, const struct regimes *regimes,
                        struct strbuf *text)
{
    struct sizes_of const sizes = {regimes, NULL, NULL};
    struct column_value values[HEAD_TOTAL];
    struct json_writer json;
    find_head(args, regimes, values);
    json_write_start(&json, text);
    json_write_object(&json);
    column_put(head_columns, values, 0, HEAD_TOTAL - 1, &json);
    column_put_array(size_columns, SIZE_BYTES, find_size, &sizes, regimes->size_count, &json);
    json_put_array(&json, "groups");
    for (uint32_t g = 0; g < regimes->group_count; g++) put_group(&json, regimes, g);
    json_write_array_end(&json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
