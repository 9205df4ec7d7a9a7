/*
 * refusals.h: the whole text of each refusal of a test, held against those that were kept in
 * tests/golden/refusals/. A test names a few words of a text; a slip in the rest is found here.
 */
#ifndef PODSIM_TESTS_SUPPORT_REFUSALS_H
#define PODSIM_TESTS_SUPPORT_REFUSALS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/status.h"

/* Fails the test if no line of the file of the test is "WHERE: MESSAGE". `file` is the test's
 * __FILE__. With PODSIM_BLESS=yes the file is written anew instead, once the group has passed. That
 * takes every refusal, so none may be left out. */
void refusals_hold(const struct error *error, const char *file);

/* Ends a group of tests, of which some have failed: a group that has passed is written. */
int refusals_end(int failed);

#undef cmocka_run_group_tests
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, up, down)                                         \
    refusals_end(_cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof *(tests), up, down))
#define cmocka_run_group_tests(tests, up, down) cmocka_run_group_tests_name(#tests, tests, up, down)

#endif
