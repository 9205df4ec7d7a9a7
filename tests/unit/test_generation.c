/*
 * Times of a generation's tokens: the total, the mean and the shares below a time, of pages that
 * are not equally long.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/generation.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

static struct generation of_pages(struct generation_page *pages, uint32_t count)
{
    struct generation generation = {.page = pages,
                                    .page_count = count,
                                    .page_steps = 50,
                                    .sequences = 4,
                                    .output = pages[count - 1].last,
                                    .chips = 2};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t const steps = i == 0 ? 1 : pages[i].last - pages[i].first + 1;
        pages[i].end_ps = (i == 0 ? 0 : pages[i - 1].end_ps) + (int64_t)steps * pages[i].step_ps;
        pages[i].inference.book.step_s = 0.5;
        pages[i].inference.sequences = 4;
    }
    generation_end(&generation);
    return generation;
}

static void shares_count_steps_not_pages(void **state)
{
    struct generation_page pages[] = {{.name = "prefill", .step_ps = 7000},
                                      {.first = 1, .last = 50, .step_ps = 30},
                                      {.first = 51, .last = 100, .step_ps = 20},
                                      {.first = 101, .last = 101, .step_ps = 90}};
    (void)state;
    struct generation const all = of_pages(pages, 4);
    assert_int_equal(generation_total_ps(&all), 7000 + 50 * 30 + 50 * 20 + 90);
    assert_int_equal(generation_tokens(&all), 4 * 102);
    assert_int_equal(all.times.least_ps, 20);
    assert_int_equal(all.times.most_ps, 90);
    assert_int_equal(all.times.half_ps, 30); /* The 51st of 101. */
    assert_int_equal(all.times.tail_ps, 30); /* The 100th. */
    case_near(generation_book_s(&all), 0.5 * 102, 1e-12);
    /* Of 100 steps the half take the shorter time, and the last percent is one of the longer. */
    struct generation const less = of_pages(pages, 3);
    assert_int_equal(less.times.half_ps, 20);
    assert_int_equal(less.times.tail_ps, 30);
    struct generation const one = of_pages(pages, 2);
    assert_int_equal(one.times.half_ps, 30);
    assert_int_equal(one.times.least_ps, one.times.most_ps);
}

static uint32_t lines_of(const char *text)
{
    uint32_t lines = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++) lines++;
    return lines;
}

/* CSV has all rows; the screen has the first, the last and some between. */
static void many_pages_are_shown_in_part(void **state)
{
    enum { PAGES = 1001 };
    static struct generation_page pages[PAGES];
    struct strbuf csv = {0}, text = {0};
    (void)state;
    for (uint32_t i = 0; i < PAGES; i++)
        pages[i] = (struct generation_page){.name = "1",
                                            .first = i == 0 ? 0 : 10 * (i - 1) + 1,
                                            .last = 10 * i,
                                            .step_ps = 1000 + i};
    struct generation const all = of_pages(pages, PAGES);
    generation_write_csv(&all, &csv);
    assert_int_equal(lines_of(csv.bytes), PAGES + 1);
    generation_print(&all, &text);
    assert_true(lines_of(text.bytes) < 25);
    assert_non_null(strstr(text.bytes, "and 987 more rows"));
    strbuf_free(&csv);
    strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_count_steps_not_pages),
        cmocka_unit_test(many_pages_are_shown_in_part),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
