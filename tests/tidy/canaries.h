/* canaries.h: files that break a rule of tidy.h, each refused with its place and a reason. */
#ifndef TESTS_TIDY_CANARIES_H
#define TESTS_TIDY_CANARIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tidy/tidy.h"

static const char layers[] = "# comment: sim/engine\n"
                             "sim/base:\n"
                             "sim/engine:\n"
                             "sim/machine:\n"
                             "topology: sim/machine\n"
                             "sim/report: sim/machine\n"
                             "tools/podsim: *\n"
                             "tools/podsim/common: sim/*\n"
                             "tools/podsim/run: sim/* tools/podsim/common\n"
                             "tests: *\n";
static const char doubles[] = "sim/report/summary.c: prints\nsim/roofline/: bounds\n";

static const char names[] = "sim/report/words.c: by makers\nsim/graph/: by dimensions\n"
                            "sim/engine/wheel.c: tells: two names that were made\n";

/* All rules on one file; returns the complaints, which the caller frees with tidy_free(). */
static inline struct tidy complaints(const char *path, const char *text)
{
    struct tidy tidy = {0};
    char *code = tidy_ends_with(path, ".c") || tidy_ends_with(path, ".h") ? tidy_blank(text) : NULL;
    struct tidy_file const file = {path, text, code};
    tidy_check_layout(&tidy, &file);
    tidy_check_words(&tidy, &file, doubles);
    tidy_check_comments(&tidy, &file);
    tidy_check_draws(&tidy, &file);
    tidy_check_names(&tidy, &file, names);
    tidy_check_families(&tidy, &file);
    tidy_check_entries(&tidy, &file);
    tidy_check_readers(&tidy, &file);
    tidy_check_figures(&tidy, &file);
    tidy_check_products(&tidy, &file);
    tidy_check_excuse(&tidy, &file, doubles);
    if (code != NULL) tidy_check_includes(&tidy, &file, layers);
    if (tidy_ends_with(path, ".def")) tidy_check_order(&tidy, &file);
    free(code);
    return tidy;
}

static inline void refuses(const char *path, const char *text, const char *message)
{
    struct tidy tidy = complaints(path, text);
    assert_int_equal(tidy.count, 1);
    assert_string_equal(tidy.text, message);
    tidy_free(&tidy);
}

static inline void accepts(const char *path, const char *text)
{
    struct tidy tidy = complaints(path, text);
    if (tidy.count != 0) print_error("%s", tidy.text);
    assert_int_equal(tidy.count, 0);
    tidy_free(&tidy);
}

#endif
