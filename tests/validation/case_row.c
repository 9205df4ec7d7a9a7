#include "tests/validation/case_row.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct case_evaluator *const tables[] = {
    case_combine, case_chip,      case_matmul,   case_collective, case_host,
    case_level,   case_model,     case_sharding, case_train,      case_pipeline,
    case_experts, case_inference, case_pass};

void row_fail(const struct case_row *row, const char *format, ...)
{
    va_list arguments;
    (void)fprintf(stderr, "%s: ", row->name);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\n");
    exit(1);
}

void row_check(const struct case_row *row, enum status status, const struct error *error)
{
    if (status != STATUS_OK) row_fail(row, "%s: %s", error->where, error->message);
}

struct json *row_find(const struct case_row *row, const char *key)
{
    for (; row != NULL; row = row->outer) {
        struct json *found = row->object == NULL ? NULL : json_take(row->object, key);
        if (found != NULL) return found;
    }
    return NULL;
}

/* The row of the chain that binds the key as a crossing's variable, unless an inner one says it. */
static const struct case_row *variable_of(const struct case_row *row, const char *key)
{
    for (; row != NULL; row = row->outer) {
        if (row->variable != NULL && strcmp(row->variable, key) == 0) return row;
        if (row->object != NULL && json_take(row->object, key) != NULL) return NULL;
    }
    return NULL;
}

bool row_has(const struct case_row *row, const char *key)
{
    return variable_of(row, key) != NULL || row_find(row, key) != NULL;
}

static double number_of(const struct case_row *row, struct json *json)
{
    struct error error = {0};
    double number = 0;
    row_check(row, json_as_real(json, -1e300, 1e300, &number, &error), &error);
    return number;
}

double row_number(const struct case_row *row, const char *key)
{
    const struct case_row *bound = variable_of(row, key);
    if (bound != NULL) return bound->variable_value;
    struct json *found = row_find(row, key);
    if (found == NULL) row_fail(row, "parameter %s is missing", key);
    return number_of(row, found);
}

double row_number_or(const struct case_row *row, const char *key, double otherwise)
{
    return row_has(row, key) ? row_number(row, key) : otherwise;
}

uint64_t row_count(const struct case_row *row, const char *key)
{
    double const number = row_number(row, key);
    if (number < 0 || number != floor(number) || number > 1.8e19)
        row_fail(row, "parameter %s is not a count", key);
    return (uint64_t)number;
}

uint64_t row_count_or(const struct case_row *row, const char *key, uint64_t otherwise)
{
    return row_has(row, key) ? row_count(row, key) : otherwise;
}

const char *row_text(const struct case_row *row, const char *key)
{
    struct error error = {0};
    const char *text = NULL;
    struct json *found = row_find(row, key);
    if (found == NULL) row_fail(row, "parameter %s is missing", key);
    row_check(row, json_as_string(found, &text, &error), &error);
    return text;
}

const char *row_text_or(const struct case_row *row, const char *key, const char *otherwise)
{
    return row_find(row, key) != NULL ? row_text(row, key) : otherwise;
}

bool row_flag_or(const struct case_row *row, const char *key, bool otherwise)
{
    struct error error = {0};
    struct json *found = row_find(row, key);
    if (found != NULL) row_check(row, json_as_boolean(found, &otherwise, &error), &error);
    return otherwise;
}

struct case_value value_number(double number)
{
    return (struct case_value){.number = number};
}

struct case_value value_text(const char *format, ...)
{
    struct case_value value = {.is_text = true};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(value.text, sizeof value.text, format, arguments);
    va_end(arguments);
    return value;
}

struct case_value value_truth(bool truth)
{
    return value_text("%s", truth ? "true" : "false");
}

static const struct case_evaluator *evaluator_find(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct case_evaluator *entry = tables[i]; entry->name != NULL; entry++)
            if (strcmp(entry->name, name) == 0) return entry;
    return NULL;
}

static double rounded(const struct case_row *row, const char *how, double number)
{
    if (strcmp(how, "up") == 0) return ceil(number);
    if (strcmp(how, "down") == 0) return floor(number);
    if (strcmp(how, "nearest") == 0) return round(number);
    row_fail(row, "cannot round %s", how);
}

static bool simulated;

void row_simulates(void)
{
    simulated = true;
}

bool row_simulated(void)
{
    bool const was = simulated;
    simulated = false;
    return was;
}

struct case_value row_evaluate(const struct case_row *row)
{
    const char *by = row_text(row, "by");
    const struct case_evaluator *entry = evaluator_find(by);
    if (entry == NULL) row_fail(row, "no evaluator %s", by);
    struct case_value value = entry->evaluate(row);
    if (value.is_text) return value;
    struct json *times = json_take(row->object, "times");
    struct json *per = json_take(row->object, "per");
    struct json *round = json_take(row->object, "round");
    if (times != NULL) value.number *= row_operand(row, times);
    if (per != NULL) value.number /= row_operand(row, per);
    if (round != NULL) value.number = rounded(row, row_text(row, "round"), value.number);
    return value;
}

double row_operand(const struct case_row *row, struct json *operand)
{
    if (json_kind(operand) != JSON_OBJECT) return number_of(row, operand);
    struct case_row const inner = {
        .object = operand, .outer = row, .name = row->name, .arena = row->arena};
    struct case_value const value = row_evaluate(&inner);
    if (value.is_text) row_fail(row, "%s is a text, not an operand", json_where(operand));
    return value.number;
}

double row_operand_of(const struct case_row *row, const char *key)
{
    struct json *operand = row_find(row, key);
    if (operand == NULL) row_fail(row, "operand %s is missing", key);
    return row_operand(row, operand);
}
