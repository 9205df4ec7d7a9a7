/*
 * More replicas, each with the same work: whole gradient messages in front of small ones between
 * stages once made two replicas slower than eight. A pipeline of 340B parameters on 1, 2, 4 and 8
 * times 64 GPUs takes longer with each doubling, and never by more than a sixteenth.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { COUNTS = 4 };

static void steps_of(const char *arbitration, int64_t step_ps[COUNTS])
{
    for (uint32_t i = 0; i < COUNTS; i++) {
        char path[64], text[64];
        (void)snprintf(path, sizeof path, "tests/property/replicas/dp%u.json", 1u << i);
        (void)snprintf(text, sizeof text, "/run/arbitration=\"%s\"", arbitration);
        struct scenario_setting const setting = {.text = text};
        struct play_options const options = {.settings = &setting, .setting_count = 1};
        struct play play;
        play_run_file(&play, path, &options);
        step_ps[i] = play.trace.step_ps;
        play_close(&play);
        print_message("    %s, %u replicas: %lld ps\n", arbitration, 1u << i,
                      (long long)step_ps[i]);
    }
}

static void steps_rise_smoothly_with_replicas(void **state)
{
    (void)state;
    int64_t step_ps[COUNTS];
    steps_of("fair", step_ps);
    for (uint32_t i = 1; i < COUNTS; i++) {
        assert_true(step_ps[i] >= step_ps[i - 1]);
        assert_true(step_ps[i] * 16 <= step_ps[i - 1] * 17);
    }
    if (sampling_of() > 1) return;
    steps_of("fifo", step_ps);
    assert_true(step_ps[1] > step_ps[2]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_rise_smoothly_with_replicas),
    };
    return cmocka_run_group_tests_name("replicas", tests, NULL, NULL);
}
