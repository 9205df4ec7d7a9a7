/*
 * templates.h: digests of the templates of programs (ops, works, needs and effects in full, without
 * names: template_text.h) held against those that were kept in tests/golden/templates/. What memory
 * ops take and give is held apart, in files of its own.
 */
#ifndef PODSIM_TESTS_SUPPORT_TEMPLATES_H
#define PODSIM_TESTS_SUPPORT_TEMPLATES_H

#include "sim/machine/machine.h"
#include "sim/program/program.h"

/* tests/golden/templates/NAME.expect and NAME-memory.expect, from the root of the sources. With
 * PODSIM_BLESS=yes the files are written anew instead, which takes every program, so none may be
 * left out. */
void templates_open(const char *name);
/* Returns what it is given. */
int templates_close(int failed_count);

/* A group of cmocka's tests with the files open; how many failed. */
#define templates_run(name, tests)                                                                 \
    (templates_open(name), templates_close(cmocka_run_group_tests(tests, NULL, NULL)))

/* Each template of a program against the line that begins with `of`. A difference fails the test
 * and prints the first template that differs. */
void templates_hold(const char *of, const struct program *program, const struct machine *machine);

#endif
