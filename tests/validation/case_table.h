/*
 * case_table.h: the outcome of every answer of every case, and how it is shown.
 */
#ifndef TESTS_VALIDATION_CASE_TABLE_H
#define TESTS_VALIDATION_CASE_TABLE_H

#include "sim/base/strbuf.h"
#include "tests/validation/case_row.h"

enum case_status {
    CASE_EQUAL,     /* To the digits printed. */
    CASE_EXPLAINED, /* Differs by as much as the stated reason makes it differ. */
    CASE_OUT,       /* Needs parts that are not there. */
    CASE_WRONG,
    CASE_STATUS_COUNT,
};

struct case_outcome {
    const char *category;
    const char *id;
    const char *chapter;
    const char *answer;
    const char *unit;
    struct case_value book;
    struct case_value ours; /* In the book's unit. */
    double difference;      /* Relative to the book. */
    bool simulated;         /* Something was played for it. */
    enum case_status status;
    const char *why;
};

struct case_counts {
    uint32_t cases[CASE_STATUS_COUNT]; /* A case is as its answers are: wrong if one is wrong, else
                                          explained if one is, out only if all are. */
    uint32_t answers[CASE_STATUS_COUNT];
    uint32_t case_count;
    uint32_t answer_count;
};

struct case_counts case_count(const struct case_outcome *outcome, uint32_t count,
                              const char *category);

/* Outcomes of a case are consecutive, cases of a category too. */
void case_print(struct strbuf *text, const struct case_outcome *outcome, uint32_t count);
void case_markdown(struct strbuf *text, const struct case_outcome *outcome, uint32_t count);

#endif
