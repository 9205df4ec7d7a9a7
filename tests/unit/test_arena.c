/* Arena: memory by stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    assert_non_null(arena);
    unsigned char *before = NULL;
    for (uint64_t size = 1; size < 200000; size = size * 3 + 1) {
        unsigned char *memory = arena_take(arena, 1, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (uint64_t i = 0; i < size; i++) assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size);
        assert_ptr_not_equal(memory, before);
        before = memory;
    }
    arena_destroy(arena);
}

static void the_limit_and_overflow_are_refused(void **state)
{
    (void)state;
    struct error error = {0};
    void *memory = NULL;
    struct arena *arena = arena_create(4096);
    assert_null(arena_take(arena, 1, 4097));
    assert_null(arena_take(arena, UINT64_MAX, 16));
    assert_non_null(arena_take(arena, 1, 1024));
    assert_int_equal(arena_try(arena, 4096, 1, &memory, &error), STATUS_NO_MEMORY);
    assert_non_null(strstr(error.message, "memory limit"));
    assert_null(memory);
    arena_destroy(arena);
    arena_destroy(NULL);
}

static void texts_are_copied_and_formatted(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    char original[] = "ring";
    char *copy = arena_text(arena, original);
    original[0] = 'w';
    assert_string_equal(copy, "ring");
    assert_string_equal(arena_format(arena, "%s of %d", copy, 16), "ring of 16");
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(the_limit_and_overflow_are_refused),
        cmocka_unit_test(texts_are_copied_and_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
