/*
 * A step hardly depends on how long a turn at a link is (sim/replay/port.h): with segments half or
 * twice as long, no shipped scenario's step differs by 1 %. A segment of a few MiB does differ.
 */
#include <string.h>

#include "sim/replay/port.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

static const struct scenario_setting oversubscribed = {.text =
                                                           "/workload/allow_oversubscription=true"};

static struct play_options segments_of(uint64_t segment_bytes)
{
    return (struct play_options){
        .settings = &oversubscribed, .setting_count = 1, .segment_bytes = segment_bytes};
}

static int64_t step_of(const char *path, uint64_t segment_bytes)
{
    struct play play;
    struct play_options const options = segments_of(segment_bytes);
    play_run_file(&play, path, &options);
    int64_t const step_ps = play.trace.step_ps;
    play_close(&play);
    return step_ps;
}

static bool differ(int64_t a_ps, int64_t b_ps)
{
    int64_t const apart_ps = a_ps > b_ps ? a_ps - b_ps : b_ps - a_ps;
    return apart_ps * 100 >= a_ps;
}

static void shipped_check(struct play *play, const char *path)
{
    const struct chip *chip = &play->machine.chip;
    bool const nccl = chip->kind == CHIP_GPU && strcmp(chip->profile, "measured") == 0;
    int64_t const step_ps = play->trace.step_ps;
    uint64_t const segment_bytes = nccl ? PORT_SEGMENT_NCCL_BYTES : PORT_SEGMENT_BYTES;
    assert_int_equal(step_of(path, segment_bytes), step_ps);
    int64_t const half_ps = step_of(path, segment_bytes / 2);
    int64_t const twice_ps = step_of(path, segment_bytes * 2);
    if (differ(step_ps, half_ps) || differ(step_ps, twice_ps))
        fail_msg("%s: %lld ps, with half the segment %lld, with twice %lld", path,
                 (long long)step_ps, (long long)half_ps, (long long)twice_ps);
}

/* Three take minutes. Once, their single steps were longer by 0.00, 0.00 and -0.27 % with half the
 * segment, and by -0.01, 0.00 and 0.22 % with twice. */
static void shipped_steps_hardly_depend_on_the_segment(void **state)
{
    static const char *const take_minutes[] = {"megatron-529.6b", "megatron-1008b",
                                               "deepseek-v3-h800", NULL};
    struct play_options const options = segments_of(0);
    (void)state;
    walk_shipped(&options, take_minutes, shipped_check);
}

/* Of a kind that shares its links all the time a segment of 4 MiB is too long to be left out. */
static void long_segments_matter(void **state)
{
    (void)state;
    static const char *const path = "scenarios/context/llama3-70b-fsdp-tp-v5p-16x16x32.json";
    assert_true(differ(step_of(path, 0), step_of(path, 4 << 20)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_steps_hardly_depend_on_the_segment),
        cmocka_unit_test(long_segments_matter),
    };
    return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
