/* Items that are found by a hash, against a list of all that were added. */
#include "sim/base/hashed.h"
#include "tests/support/case.h"

enum { ITEMS = 300, STEPS = 20000 };

/* More names than items, of few hashes each: buckets have several items, of several names. */
static uint64_t name_drawn(uint64_t *chance)
{
    return case_random(chance) % 7 + (case_random(chance) % 60 << 20);
}

/* The items of a name come as the list has them. */
static void compare(const struct hashed *hashed, const uint64_t *names, const uint32_t *list,
                    uint32_t count, uint64_t name)
{
    uint32_t item = hashed_first(hashed, name);
    for (uint32_t i = 0; i < count; i++) {
        if (names[list[i]] != name) continue;
        while (item != 0 && names[item] != name) item = hashed_next(hashed, item);
        assert_int_equal(item, list[i]);
        item = hashed_next(hashed, item);
    }
    for (; item != 0; item = hashed_next(hashed, item)) assert_true(names[item] != name);
}

static void items_come_in_the_order_of_adding(void **state)
{
    (void)state;
    struct hashed hashed;
    static uint64_t names[ITEMS + 1];
    static uint32_t list[ITEMS], items[ITEMS];
    uint32_t count = 0;
    uint64_t chance = 5;
    case_ok(hashed_build(case_arena, ITEMS, &hashed, &case_error));
    for (uint32_t i = 0; i < ITEMS; i++) items[i] = i + 1;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t const at = (uint32_t)(case_random(&chance) % ITEMS);
        if (at >= count) {
            uint32_t const item = items[count];
            names[item] = name_drawn(&chance);
            list[count++] = item;
            hashed_add(&hashed, names[item], item);
        } else {
            uint32_t const item = list[at];
            hashed_remove(&hashed, names[item], item);
            count--;
            for (uint32_t i = at; i < count; i++) list[i] = list[i + 1];
            items[count] = item;
        }
        compare(&hashed, names, list, count, name_drawn(&chance));
    }
}

/* As many items as make buckets more, with a name for each three. */
static void more_items_than_buckets_are_found(void **state)
{
    (void)state;
    enum { MANY = 30000, NAMES = MANY / 3 };
    struct hashed hashed;
    static uint64_t names[NAMES], of[MANY + 1];
    uint64_t chance = 9;
    case_ok(hashed_build(case_arena, MANY, &hashed, &case_error));
    uint32_t const buckets = hashed.mask + 1;
    for (uint32_t i = 0; i < NAMES; i++) names[i] = case_random(&chance);
    for (uint32_t item = 1; item <= MANY; item++) {
        of[item] = names[item % NAMES];
        hashed_add(&hashed, of[item], item);
    }
    assert_true(hashed.mask + 1 > buckets);
    for (uint32_t i = 0; i < NAMES; i++) {
        uint32_t before = 0, found = 0;
        for (uint32_t item = hashed_first(&hashed, names[i]); item != 0;
             item = hashed_next(&hashed, item)) {
            if (of[item] != names[i]) continue;
            assert_true(item > before);
            before = item;
            found++;
        }
        assert_int_equal(found, MANY / NAMES);
    }
    for (uint32_t item = 1; item <= MANY; item++) hashed_remove(&hashed, of[item], item);
    for (uint32_t i = 0; i < NAMES; i++) assert_int_equal(hashed_first(&hashed, names[i]), 0);
}

/* A table without items has a bucket to look into. */
static void no_items_are_none(void **state)
{
    (void)state;
    struct hashed hashed;
    case_ok(hashed_build(case_arena, 0, &hashed, &case_error));
    for (uint64_t hash = 0; hash < 9; hash++) assert_int_equal(hashed_first(&hashed, hash), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(items_come_in_the_order_of_adding, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(more_items_than_buckets_are_found, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(no_items_are_none, case_arena_up, case_arena_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
