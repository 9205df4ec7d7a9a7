/*
 * case_row.h: one answer of a worked case: which evaluator computes our value, and with what.
 *
 * An evaluator is a function of the row's parameters that asks the project's own code; cases name
 * it ("by") and give the parameters beside it. A parameter that the answer does not have is looked
 * for in the case. Operands of a combination (ratio, sum, crossing) are rows of their own.
 *
 * Rows come from our own files: what is wrong in them ends the test with the row's name.
 */
#ifndef TESTS_VALIDATION_CASE_ROW_H
#define TESTS_VALIDATION_CASE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/json.h"
#include "sim/base/status.h"

struct arena;

enum { CASE_TEXT_BYTES = 128 };

struct case_value {
    bool is_text;
    double number; /* In bytes, FLOP, seconds, per second. */
    char text[CASE_TEXT_BYTES];
};

struct case_row {
    struct json *object;          /* NULL: a variable of a crossing alone. */
    const struct case_row *outer; /* Where parameters are looked for next; NULL: nowhere. */
    const char *variable;
    double variable_value;
    const char *name;    /* "chip.spec.v5p pod_chips", for complaints. */
    struct arena *arena; /* Lives as long as the evaluation. */
};

struct case_evaluator {
    const char *name;
    struct case_value (*evaluate)(const struct case_row *row);
};

/* Each ended by an entry without a name. */
extern const struct case_evaluator case_combine[];
extern const struct case_evaluator case_chip[];
extern const struct case_evaluator case_matmul[];
extern const struct case_evaluator case_collective[];
extern const struct case_evaluator case_host[];
extern const struct case_evaluator case_level[];
extern const struct case_evaluator case_sharding[];
extern const struct case_evaluator case_model[];
extern const struct case_evaluator case_train[];
extern const struct case_evaluator case_pipeline[];
extern const struct case_evaluator case_experts[];
extern const struct case_evaluator case_inference[];
extern const struct case_evaluator case_pass[];

/* The row's value, with its own modifiers "times", "per" and "round" ("up", "down", "nearest"). */
struct case_value row_evaluate(const struct case_row *row);
/* Called by an evaluator whose value comes of something that was played on a machine's queues. */
void row_simulates(void);
/* Whether one has, since this was asked last. */
bool row_simulated(void);
/* An operand: a number, or an object that is a row. */
double row_operand(const struct case_row *row, struct json *operand);
/* The operand of that key. */
double row_operand_of(const struct case_row *row, const char *key);

struct json *row_find(const struct case_row *row, const char *key); /* NULL: absent. */
bool row_has(const struct case_row *row, const char *key);
double row_number(const struct case_row *row, const char *key);
double row_number_or(const struct case_row *row, const char *key, double otherwise);
uint64_t row_count(const struct case_row *row, const char *key);
uint64_t row_count_or(const struct case_row *row, const char *key, uint64_t otherwise);
const char *row_text(const struct case_row *row, const char *key);
const char *row_text_or(const struct case_row *row, const char *key, const char *otherwise);
bool row_flag_or(const struct case_row *row, const char *key, bool otherwise);

struct case_value value_number(double number);
struct case_value value_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct case_value value_truth(bool truth); /* The text "true" or "false". */

_Noreturn void row_fail(const struct case_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails with the error unless the status is STATUS_OK. */
void row_check(const struct case_row *row, enum status status, const struct error *error);

#endif
