/*
 * recurring.h: what recurs in a step and is not simulated each time (sim/replay/recur.h), held
 * against a run that simulates each.
 */
#ifndef TESTS_PROPERTY_RECURRING_H
#define TESTS_PROPERTY_RECURRING_H

#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

struct recurring {
    uint32_t simulated, recurred; /* Steps; those of which some events were not simulated. */
    uint32_t foreseen;            /* Those whose period was found before its steps had ended. */
};

/* Plays a step both ways. One that is refused is not counted. */
static inline void recurring_check(const char *text, struct play_options options,
                                   struct recurring *counts)
{
    struct strbuf short_way = {0}, long_way = {0};
    struct trace few, all;
    if (!play_result(text, &options, &short_way, &few)) return;
    options.every_layer = true;
    assert_true(play_result(text, &options, &long_way, &all));
    case_that(all.work.recurred == 0, text);
    case_that(few.digest == all.digest, text);
    case_that(few.work.events == all.work.events, text);
    case_that(few.work.transfers == all.work.transfers, text);
    case_that(memcmp(&few.period, &all.period, sizeof few.period) == 0, text);
    case_that(strcmp(short_way.bytes, long_way.bytes) == 0, text);
    counts->simulated++;
    case_that(all.work.foreseen == 0, text);
    counts->recurred += few.work.recurred > 0;
    counts->foreseen += few.work.foreseen > 0;
    strbuf_free(&short_way);
    strbuf_free(&long_way);
}

/* A small sample may have a few less. */
enum { RECURRING_SLACK = 4 };

/* At the end of all draws: about one of `one_in` recurs, or more. */
static inline void recurring_end(const struct recurring *counts, uint32_t one_in)
{
    print_message("%u simulated, in %u of them something recurs\n", (unsigned)counts->simulated,
                  (unsigned)counts->recurred);
    assert_true(counts->recurred > 0 || counts->simulated < 2 * RECURRING_SLACK);
    assert_true(counts->recurred + RECURRING_SLACK > counts->simulated / one_in);
}

#endif
