/* Whole numbers, lists and ranges of them as options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/podsim/common/counts.h"

enum { COUNTS_MAX = 8, MOST = 1 << 20 };

static struct error error;

static enum status read(const char *text, uint32_t counts[COUNTS_MAX], uint32_t *count)
{
    *count = 0;
    error = (struct error){0};
    return counts_list(text, "--batch", MOST, counts, COUNTS_MAX, count, &error);
}

static void lists_and_ranges_are_read_in_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t count, counts[COUNTS_MAX];
    } rows[] = {
        {"8", 1, {8}},
        {"8,16,4", 3, {8, 16, 4}},
        {"1:64:x2", 7, {1, 2, 4, 8, 16, 32, 64}},
        {"3:100:x5", 3, {3, 15, 75}},
        {"64:256:+64", 4, {64, 128, 192, 256}},
        {"1:8:+3", 3, {1, 4, 7}},
        {"7:7:x2", 1, {7}},
        {"120,1:4:x2,2K:8K:x2", 7, {120, 1, 2, 4, 2048, 4096, 8192}},
        {"1.5K,1M", 2, {1536, MOST}},
        {"1M:1M:+1048576", 1, {MOST}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[COUNTS_MAX], count = 0;
        assert_int_equal(read(rows[i].text, counts, &count), STATUS_OK);
        assert_int_equal(count, rows[i].count);
        assert_memory_equal(counts, rows[i].counts, count * sizeof *counts);
    }
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        enum status status;
    } rows[] = {
        {"", "\"\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"0", "\"0\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"-1", "\"-1\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"1048577", "\"1048577\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"18446744073709551617", "\"18446744073709551617\" is no whole number from 1 to 1048576",
         STATUS_INVALID},
        {"1.3K", "\"1.3K\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"8B", "\"8B\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"8,", "\"\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"000000000000000000000000000000000000000000001",
         "\"0000000000000000000000000000000000000000\" is no whole number from 1 to 1048576",
         STATUS_INVALID},
        {"512:1:x2", "\"512:1:x2\" begins above its end; 1:512:x2 does not", STATUS_INVALID},
        {"1:512", "\"1:512\" has no step; 1:512:x2 doubles, 64:512:+64 adds", STATUS_INVALID},
        {"1:512:2", "\"1:512:2\" has no step; 1:512:x2 doubles, 64:512:+64 adds", STATUS_INVALID},
        {"1:512:x1", "\"1:512:x1\" comes to no end; the least factor is x2", STATUS_INVALID},
        {"1:512:x0", "\"0\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"1:512:+0", "\"0\" is no whole number from 1 to 1048576", STATUS_INVALID},
        {"1:2:x2:3", "\"1:2:x2:3\" has more than a first number, a last one and a step",
         STATUS_INVALID},
        {"1:1M:+1", "more than 8 numbers", STATUS_LIMIT},
        {"1:4:x2,1:1M:x2", "more than 8 numbers", STATUS_LIMIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[COUNTS_MAX], count = 0;
        assert_int_equal(read(rows[i].text, counts, &count), rows[i].status);
        assert_string_equal(error.message, rows[i].message);
        assert_string_equal(error.where, "--batch");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_ranges_are_read_in_their_order),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
