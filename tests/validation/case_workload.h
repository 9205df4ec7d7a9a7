/*
 * case_workload.h: a training step as rows name it.
 */
#ifndef TESTS_VALIDATION_CASE_WORKLOAD_H
#define TESTS_VALIDATION_CASE_WORKLOAD_H

#include "sim/model/model.h"
#include "tests/validation/case_row.h"

struct model row_model(const struct case_row *row);

#endif
