/* The search for the largest batch finds where memory ends, however memory grows with the batch,
 * and looks at few batches on the way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/podsim/common/largest_batch.h"

/* What is held of a batch: at least, and at the peak. */
struct memory {
    double weights, each, each_of_peak;
    uint64_t step;     /* Ranks that have equally many sequences each. */
    uint64_t chunked;  /* From this batch on steps hold more than is known without a run. */
    uint64_t possible; /* Batches above cannot be. */
    bool peaks_known;
    uint32_t looked, played;
};

static double held_of(const struct memory *memory, uint64_t batch, bool peak)
{
    double const padded = (double)((batch + memory->step - 1) / memory->step * memory->step);
    double const more = peak && batch >= memory->chunked ? memory->each_of_peak : 0;
    return memory->weights + padded * (memory->each + more);
}

static enum status held_find(void *owner, double hbm_bytes, bool plays, struct batch_held *held,
                             struct error *reterr)
{
    struct memory *memory = owner;
    (void)reterr;
    memory->looked++;
    assert_true(held->batch > 0 && held->batch <= LARGEST_BATCH_MOST);
    held->bytes = held_of(memory, held->batch, false);
    held->is_peak = memory->peaks_known;
    if (held->batch > memory->possible) held->bytes = INFINITY;
    if (!plays || memory->peaks_known || held->bytes > hbm_bytes) return STATUS_OK;
    memory->played++;
    held->bytes = held_of(memory, held->batch, true);
    held->is_peak = held->bytes <= hbm_bytes; /* A step that holds more is not played to its end. */
    if (!held->is_peak) held->bytes = hbm_bytes + 1;
    return STATUS_OK;
}

static struct memory memory_of(uint64_t step)
{
    return (struct memory){.weights = 1000,
                           .each = 10,
                           .step = step,
                           .chunked = UINT64_MAX,
                           .possible = UINT64_MAX,
                           .peaks_known = true};
}

static uint64_t most_of(const struct memory *memory, double hbm_bytes)
{
    uint64_t batch = 0;
    while (batch < LARGEST_BATCH_MOST && batch < memory->possible &&
           held_of(memory, batch + 1, true) <= hbm_bytes)
        batch++;
    return batch;
}

/* Of two amounts of memory, one after the other, from a batch that was asked for and fits both, or
 * neither. */
static void both_check(struct memory memory, uint64_t asked, uint64_t first, uint32_t looked_most)
{
    double const hbm_bytes[2] = {2345, 2789};
    struct largest_batch search = {.step = memory.step, .held_find = held_find, .owner = &memory};
    struct batch_held const least = {asked, held_of(&memory, asked, false), memory.peaks_known};
    struct batch_held const peak = {asked, held_of(&memory, asked, true), true};
    largest_batch_add(&search, &least);
    largest_batch_add(&search, &peak);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t batch = 0;
        struct error error;
        assert_int_equal(largest_batch_find(&search, hbm_bytes[i], first, &batch, &error),
                         STATUS_OK);
        assert_int_equal(batch, most_of(&memory, hbm_bytes[i]));
        assert_int_equal(search.refused, batch == memory.possible ? batch + 1 : 0);
    }
    assert_in_range(memory.looked, 0, looked_most);
}

static void memory_ends_between_the_batch_and_the_next(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 40; step += 13)
        for (uint64_t asked = 1; asked < 200; asked += 9) {
            /* Two batches for each amount, and one more where the first line is off. */
            both_check(memory_of(step), asked, 134, 8);
            both_check(memory_of(step), asked, 0, 26);
        }
}

static void peaks_that_are_higher_count_whatever_was_asked(void **state)
{
    (void)state;
    for (uint64_t chunked = 1; chunked < 170; chunked += 7)
        for (uint64_t asked = 1; asked < 100; asked += 9) {
            struct memory memory = memory_of(1);
            memory.peaks_known = false;
            memory.each_of_peak = 2;
            memory.chunked = chunked;
            both_check(memory, asked, 134, 40);
        }
}

/* An estimate is as good as its part of the batch, and takes fewer looks. */
static void estimates_end_where_batches_are_about_as_large(void **state)
{
    (void)state;
    for (uint64_t part = 8; part <= 128; part *= 2)
        for (uint64_t asked = 1; asked < 4000; asked += 399) {
            struct memory exact = memory_of(1), rough = memory_of(1);
            struct memory *const both[2] = {&exact, &rough};
            uint64_t batch[2] = {0, 0};
            for (uint32_t i = 0; i < 2; i++) {
                struct largest_batch search = {
                    .part = i * part, .held_find = held_find, .owner = both[i]};
                struct error error;
                both[i]->each = 0.37;
                both[i]->peaks_known = false;
                both[i]->chunked = 1500;
                both[i]->each_of_peak = 0.2;
                struct batch_held const own = {asked, held_of(both[i], asked, true), true};
                largest_batch_add(&search, &own);
                assert_int_equal(largest_batch_find(&search, 2345, 0, &batch[i], &error),
                                 STATUS_OK);
            }
            assert_int_equal(batch[0], most_of(&exact, 2345));
            assert_in_range(batch[1], batch[0] - batch[0] / part, batch[0]);
            assert_true(rough.looked < exact.looked);
        }
}

static void no_batch_is_larger_than_a_scenario_can_have(void **state)
{
    struct memory memory = memory_of(320);
    (void)state;
    memory.each = 1e-4;
    both_check(memory, 40960, 12000000, 2);
    both_check(memory, 1, 0, 40);
    memory.peaks_known = false;
    both_check(memory, 40960, 12000000, 4);
    assert_int_equal(most_of(&memory, 2345), LARGEST_BATCH_MOST);
}

static void batches_that_cannot_be_do_not_fit(void **state)
{
    struct memory memory = memory_of(1);
    (void)state;
    memory.possible = 57;
    both_check(memory, 8, 134, 30);
    memory.weights = 3000;
    both_check(memory, 8, 4, 30);
    assert_int_equal(most_of(&memory, 2789), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_ends_between_the_batch_and_the_next),
        cmocka_unit_test(peaks_that_are_higher_count_whatever_was_asked),
        cmocka_unit_test(estimates_end_where_batches_are_about_as_large),
        cmocka_unit_test(no_batch_is_larger_than_a_scenario_can_have),
        cmocka_unit_test(batches_that_cannot_be_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
