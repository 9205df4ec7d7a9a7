/* Evaluators that combine others: what the project says twice, compared. */
#include <math.h>
#include <stddef.h>

#include "tests/validation/case_row.h"

static struct case_value ratio(const struct case_row *row)
{
    return value_number(row_operand_of(row, "over") / row_operand_of(row, "under"));
}

static struct json *operands(const struct case_row *row, uint32_t *ret_count)
{
    struct json *of = row_find(row, "of");
    if (of == NULL) row_fail(row, "operands are missing");
    *ret_count = json_count(of);
    if (*ret_count == 0) row_fail(row, "there are no operands");
    return of;
}

static struct case_value sum(const struct case_row *row)
{
    uint32_t count = 0;
    struct json *of = operands(row, &count);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) total += row_operand(row, json_at(of, i));
    return value_number(total);
}

static struct case_value product(const struct case_row *row)
{
    uint32_t count = 0;
    struct json *of = operands(row, &count);
    double total = 1;
    for (uint32_t i = 0; i < count; i++) total *= row_operand(row, json_at(of, i));
    return value_number(total);
}

static struct case_value root(const struct case_row *row)
{
    return value_number(sqrt(row_operand_of(row, "of")));
}

static struct case_value difference(const struct case_row *row)
{
    return value_number(row_operand_of(row, "left") - row_operand_of(row, "right"));
}

static struct case_value extreme(const struct case_row *row, double sign)
{
    uint32_t count = 0;
    struct json *of = operands(row, &count);
    double best = row_operand(row, json_at(of, 0));
    for (uint32_t i = 1; i < count; i++) {
        double const other = row_operand(row, json_at(of, i));
        if (sign * other > sign * best) best = other;
    }
    return value_number(best);
}

static struct case_value largest(const struct case_row *row)
{
    return extreme(row, 1);
}

static struct case_value smallest(const struct case_row *row)
{
    return extreme(row, -1);
}

static struct case_value exceeds(const struct case_row *row)
{
    return value_truth(row_operand_of(row, "left") > row_operand_of(row, "right"));
}

static double gap_at(const struct case_row *row, const char *variable, double at)
{
    struct case_row const bound = {.outer = row,
                                   .variable = variable,
                                   .variable_value = at,
                                   .name = row->name,
                                   .arena = row->arena};
    return row_operand_of(&bound, "left") - row_operand_of(&bound, "right");
}

/* Where `left` and `right` are equal, in multiples of `step`, between two of them by a straight
 * line: bisection needs no more than one change of sign. */
static struct case_value crossing(const struct case_row *row)
{
    const char *variable = row_text(row, "variable");
    double const step = row_number_or(row, "step", 1);
    double low = row_number(row, "least") / step, high = row_number(row, "most") / step;
    double gap_low = gap_at(row, variable, low * step);
    double gap_high = gap_at(row, variable, high * step);
    if ((gap_low > 0) == (gap_high > 0)) row_fail(row, "no crossing between the ends");
    while (high - low > 1) {
        double const middle = floor((low + high) / 2);
        double const gap = gap_at(row, variable, middle * step);
        if ((gap > 0) == (gap_low > 0)) {
            low = middle;
            gap_low = gap;
        } else {
            high = middle;
            gap_high = gap;
        }
    }
    return value_number((low + (high - low) * gap_low / (gap_low - gap_high)) * step);
}

const struct case_evaluator case_combine[] = {
    {"root", root},
    {"ratio", ratio},
    {"sum", sum},
    {"product", product},
    {"largest", largest},
    {"smallest", smallest},
    {"difference", difference},
    {"exceeds", exceeds},
    {"crossing", crossing},
    {NULL, NULL},
};
