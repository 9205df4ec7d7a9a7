/*
 * A step hardly depends on how long a turn at a link is (sim/replay/port.h): with segments half or
 * twice as long, no shipped scenario's step differs by 1 %. A segment of a few MiB does differ.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "sim/replay/port.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/thin.h"

enum { PATH_BYTES = 512 };

static const struct scenario_setting oversubscribed = {.text =
                                                           "/workload/allow_oversubscription=true"};

static int64_t step_of(const char *path, uint64_t segment_bytes, bool *ret_nccl)
{
    struct play play;
    struct play_options const options = {
        .settings = &oversubscribed, .setting_count = 1, .segment_bytes = segment_bytes};
    play_run_file(&play, path, &options);
    int64_t const step_ps = play.trace.step_ps;
    const struct chip *chip = &play.machine.chip;
    *ret_nccl = chip->kind == CHIP_GPU && strcmp(chip->profile, "measured") == 0;
    play_close(&play);
    return step_ps;
}

static bool differ(int64_t a_ps, int64_t b_ps)
{
    int64_t const apart_ps = a_ps > b_ps ? a_ps - b_ps : b_ps - a_ps;
    return apart_ps * 100 >= a_ps;
}

/* They take minutes. */
static bool takes_long(const char *name)
{
    static const char *const names[] = {"megatron-529.6b", "megatron-1008b", "deepseek-v3-h800"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void file_check(const char *path)
{
    bool nccl = false;
    int64_t const step_ps = step_of(path, 0, &nccl);
    uint64_t const segment_bytes = nccl ? PORT_SEGMENT_NCCL_BYTES : PORT_SEGMENT_BYTES;
    assert_int_equal(step_of(path, segment_bytes, &nccl), step_ps);
    int64_t const half_ps = step_of(path, segment_bytes / 2, &nccl);
    int64_t const twice_ps = step_of(path, segment_bytes * 2, &nccl);
    if (differ(step_ps, half_ps) || differ(step_ps, twice_ps))
        fail_msg("%s: %lld ps, with half the segment %lld, with twice %lld", path,
                 (long long)step_ps, (long long)half_ps, (long long)twice_ps);
}

static void shipped_steps_hardly_depend_on_the_segment(void **state)
{
    (void)state;
    static const char *const folders[] = {"context",    "gpu",      "megatron", "moe",
                                          "multislice", "pipeline", "train"};
    uint32_t walked = 0, files = 0;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "scenarios/%s", folders[f]);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
            if (strstr(entry->d_name, ".json") == NULL || takes_long(entry->d_name)) continue;
            if (thin_skips(&walked)) continue;
            (void)snprintf(path, sizeof path, "scenarios/%s/%s", folders[f], entry->d_name);
            file_check(path);
            files++;
        }
        (void)closedir(folder);
    }
    print_message("    %u scenarios\n", files);
    assert_true(files > 0);
}

/* Of a kind that shares its links all the time a segment of 4 MiB is too long to be left out. */
static void long_segments_matter(void **state)
{
    (void)state;
    static const char *const path = "scenarios/context/llama3-70b-fsdp-tp-v5p-16x16x32.json";
    bool nccl = false;
    assert_true(differ(step_of(path, 0, &nccl), step_of(path, 4 << 20, &nccl)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_steps_hardly_depend_on_the_segment),
        cmocka_unit_test(long_segments_matter),
    };
    return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
