/*
 * Steps of inference, drawn. Folded or not and by either engine instants are the same; no step is
 * faster than its bound, nor slower for weights that come early.
 */
#include "sim/base/units.h"
#include "tests/property/inference_drawn.h"
#include "tests/support/play.h"

enum { ALIKE = 150 };

/* Weights that come early delay nothing, and are weights that are read. */
static void prefetch_check(const struct play *play, const char *text)
{
    static const struct scenario_setting none = {"/run/prefetch_weights=none"};
    static const struct play_options without = {.settings = &none, .setting_count = 1};
    double const prefetched = (double)play->trace.prefetched_bytes;
    struct play plain;
    if (!prefetches) return;
    play_run(&plain, text, &without);
    case_that(play->trace.step_ps <= plain.trace.step_ps, text);
    case_that(prefetched <=
                  inference_places[place].pp * play->roofline.counts.inference.weight_bytes,
              text);
    case_that(plain.trace.prefetched_bytes == 0, text);
    play_close(&plain);
}

static void alike_check(struct play *folded, const char *text)
{
    const struct roofline *roofline = &folded->roofline;
    double const step_s = units_seconds(folded->trace.step_ps);
    walk_alike(folded, text, "reference");
    case_that(step_s * (1 + 1e-9) >= roofline->lower_s, text);
    if (!measured) case_that(step_s <= roofline->upper_s * (1 + 1e-9), text);
    prefetch_check(folded, text);
}

static void folded_or_not_a_step_is_the_same(void **state)
{
    (void)state;
    walk_drawn_all(ALIKE, draw, NULL, alike_check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_or_not_a_step_is_the_same),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
