/* Arena: memory by stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/guard.h"

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
    assert_non_null(arena_take(arena, 3, 1024)); /* All that is left. */
    assert_null(arena_take(arena, 1, 1));
    arena_destroy(arena);
    arena_destroy(NULL);
}

/* It counts against the limit as what is zeroed does. */
static void memory_may_be_left_unset(void **state)
{
    (void)state;
    struct error error = {0};
    void *memory = NULL;
    struct arena *arena = arena_create(1 << 20);
    for (uint64_t size = 1; size < 100000; size = size * 3 + 1) {
        uint64_t const before = arena_taken_bytes(arena);
        assert_int_equal(arena_try_unset(arena, 1, size, &memory, &error), STATUS_OK);
        assert_int_equal((uintptr_t)memory % 64, 0);
        assert_in_range(arena_taken_bytes(arena) - before, size, size + 63);
#ifdef GUARD_WATCHED
        for (uint64_t i = 0; i < size; i++)
            assert_int_equal(((unsigned char *)memory)[i], GUARD_SPOILT);
#endif
        memset(memory, 0xff, size);
    }
    memory = NULL;
    assert_int_equal(arena_try_unset(arena, 1 << 20, 1, &memory, &error), STATUS_NO_MEMORY);
    assert_non_null(strstr(error.message, "memory limit"));
    assert_null(memory);
    arena_destroy(arena);
}

#ifndef GUARD_WATCHED /* Sanitizers end a process that asks for so much. */
static void what_the_system_refuses_is_not_the_limit(void **state)
{
    (void)state;
    struct error error = {0};
    void *memory = NULL;
    struct arena *arena = arena_create(UINT64_C(1) << 62);
    assert_int_equal(arena_try(arena, UINT64_C(1) << 58, 8, &memory, &error), STATUS_NO_MEMORY);
    assert_string_equal(error.message,
                        "the system has no memory for 288230376151711744 items of 8 bytes");
    assert_null(memory);
    assert_int_equal(arena_try(arena, UINT64_C(1) << 59, 16, &memory, &error), STATUS_NO_MEMORY);
    assert_non_null(strstr(error.message, "memory limit"));
    arena_destroy(arena);
}
#endif

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

#ifdef GUARD_WATCHED
static bool is_hidden(const void *memory)
{
    return __asan_address_is_poisoned(memory) != 0;
}

/* Small and large: parts of a shared block, and blocks of their own. */
static const uint64_t guarded_sizes[] = {0, 1, 7, 8, 63, 64, 65, 1000, 16384, 16385, 100001};
enum { GUARDED_SIZES = sizeof guarded_sizes / sizeof *guarded_sizes };

static void what_was_not_given_is_hidden(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; i < GUARDED_SIZES; i++) {
        uint64_t const size = guarded_sizes[i];
        unsigned char *const memory = arena_take(arena, 1, size);
        (void)arena_take(arena, 1, 64); /* What stands behind it is another's. */
        for (uint64_t at = 0; at < size; at++) assert_false(is_hidden(memory + at));
        for (uint64_t at = size; at < size + GUARD_BYTES; at++) assert_true(is_hidden(memory + at));
        assert_true(is_hidden(memory - 1));
    }
    arena_destroy(arena);
}

/* Whether a process that writes one byte there is ended by the sanitizer. */
static bool write_ends(unsigned char *memory)
{
    pid_t const child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(0);
        *(volatile unsigned char *)memory = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void an_overrun_of_one_byte_ends_the_process(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; i < GUARDED_SIZES; i++) {
        uint64_t const size = guarded_sizes[i];
        unsigned char *const memory = arena_take(arena, 1, size);
        if (size > 0) assert_false(write_ends(memory + size - 1));
        assert_true(write_ends(memory + size));
    }
    arena_destroy(arena);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(the_limit_and_overflow_are_refused),
        cmocka_unit_test(memory_may_be_left_unset),
#ifndef GUARD_WATCHED
        cmocka_unit_test(what_the_system_refuses_is_not_the_limit),
#endif
        cmocka_unit_test(texts_are_copied_and_formatted),
#ifdef GUARD_WATCHED
        cmocka_unit_test(what_was_not_given_is_hidden),
        cmocka_unit_test(an_overrun_of_one_byte_ends_the_process),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
