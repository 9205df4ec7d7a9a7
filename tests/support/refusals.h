/*
 * refusals.h: the whole text of each refusal of a test, held against those that were kept in
 * tests/golden/refusals/. A test names a few words of a text; a slip in the rest is found here.
 */
#ifndef PODSIM_TESTS_SUPPORT_REFUSALS_H
#define PODSIM_TESTS_SUPPORT_REFUSALS_H

#include "sim/base/status.h"

/* Fails the test if no line of the file of the test is "WHERE: MESSAGE". `file` is the test's
 * __FILE__. With PODSIM_BLESS=yes the file is written anew instead, which takes every refusal, so
 * none may be left out. */
void refusals_hold(const struct error *error, const char *file);

#endif
