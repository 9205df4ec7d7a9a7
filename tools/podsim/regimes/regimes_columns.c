/* The figures of `podsim regimes`. */
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

/* A size that is never reached has no key. */
#define SIZE(bytes) WHERE((bytes) > 0, WHOLE(bytes))
#define OR_DASH(...) SHOWN(__VA_ARGS__), .none = "-"

#define GROUPS(X)                                                                                  \
    X(AXES, "axes", WORDS(group->question.axes), HIDDEN)                                           \
    X(RANKS, "ranks", WHOLE(group->ranks), HIDDEN)                                                 \
    X(BOUND_ALPHA, "bound_alpha_s", REAL(group->bound_alpha_s), HIDDEN)                            \
    X(BOUND_BETA, "bound_beta_s_per_byte", REAL(group->bound_beta_s_per_byte), HIDDEN)             \
    X(BOUND, "bound_by", WORDS(group->bound_by), HIDDEN)                                           \
    X(FLOOR, "floor_ps", WHERE(has, WHOLE(group->best.floor_ps)),                                  \
      SHOWN("", "floor", 10, duration))                                                            \
    X(PEAK, "peak_algbw_bytes_per_s", WHERE(has, REAL(group->best.peak_bytes_per_s)),              \
      SHOWN("", "peak", 12, column_rate))                                                          \
    X(HALF, "half_bandwidth_bytes", WHERE(has, SIZE(group->best.half_bytes)),                      \
      OR_DASH("", "n1/2", 9, size))                                                                \
    X(MOST, "bandwidth_95_bytes", WHERE(has, SIZE(group->best.most_bytes)),                        \
      OR_DASH("", "95 %", 9, size))

#define CURVES(X)                                                                                  \
    X(ALGORITHM, "algorithm", WORDS(curves->regimes->algorithm[row]), HIDDEN)                      \
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

enum { GROUPS(COLUMN_NAME) GROUPS_TOTAL };
enum { CURVES(COLUMN_NAME) CURVES_TOTAL };

static const struct column group_columns[] = {GROUPS(COLUMN_ENTRY)};
static const struct column curve_columns[] = {CURVES(COLUMN_ENTRY)};

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

static const uint8_t groups_screen[] = {FLOOR, PEAK, HALF, MOST};
static const uint8_t curves_screen[] = {ALPHA,       BETA,       OFF,       THEORY_ALPHA,
                                        THEORY_BETA, CURVE_HALF, CURVE_MOST};

const struct column_table regimes_group_table = {
    group_columns, GROUPS_TOTAL, COLUMN_LINE(group_columns, groups_screen), find_group};
const struct column_table regimes_curve_table = {
    curve_columns, CURVES_TOTAL, COLUMN_LINE(curve_columns, curves_screen), find_curve};
