/* What product names mean, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/machine/chip.h"
#include "sim/report/show_machine.h"

static void products_of(const char *name, struct text *text)
{
    struct chip chip;
    struct error error = {0};
    struct arena *arena = arena_create(0);
    assert_int_equal(chip_find(arena, name, "ideal", "", "", &chip, &error), STATUS_OK);
    show_machine_products(&chip, text);
    assert_false(text->failed);
    arena_destroy(arena);
}

static void every_slice_of_v5e_is_a_line(void **state)
{
    (void)state;
    struct text text = {0};
    products_of("v5e", &text);
    assert_string_equal(text.bytes, "v5e-1         1 chip        1x1         no rings\n"
                                    "v5e-4         4 chips       2x2         no rings\n"
                                    "v5e-8         8 chips       2x4         no rings\n"
                                    "v5e-16        16 chips      4x4         no rings\n"
                                    "v5e-32        32 chips      4x8         no rings\n"
                                    "v5e-64        64 chips      8x8         no rings\n"
                                    "v5e-128       128 chips     8x16        rings on y\n"
                                    "v5e-256       256 chips     16x16       rings on x, y\n");
    text_free(&text);
}

static void names_of_v5p_count_cores(void **state)
{
    (void)state;
    struct text text = {0};
    products_of("v5p", &text);
    assert_non_null(strstr(text.bytes, "v5p-8         4 chips       2x2x1       no rings\n"));
    assert_non_null(strstr(text.bytes, "v5p-8192      4096 chips    16x16x16    rings on x, y, z"));
    assert_non_null(strstr(text.bytes, "v5p-17920     8960 chips    16x20x28    rings on x, y, z"));
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_of_v5e_is_a_line),
        cmocka_unit_test(names_of_v5p_count_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
