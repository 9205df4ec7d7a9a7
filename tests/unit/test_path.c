/* Which texts are paths, and where a file beside another one lies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/path.h"
#include "sim/base/units.h"
#include "tests/support/case.h"

static void what_ends_in_json_or_has_a_folder_is_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool json, path;
    } texts[] = {
        {"", false, false},        {"json", false, false},     {".json", true, true},
        {"a.json", true, true},    {"a.JSON", false, false},   {"a.json5", false, false},
        {"a.json/b", false, true}, {"./a", false, true},       {"/", false, true},
        {"./a.json", true, true},  {"h100-sxm", false, false}, {"llama-3-8b", false, false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (path_is_json(texts[i].text) != texts[i].json || path_is(texts[i].text) != texts[i].path)
            fail_msg("\"%s\"", texts[i].text);
}

static void a_path_has_a_folder_or_none(void **state)
{
    (void)state;
    static const char *const paths[][2] = {
        {"a.json", NULL}, {"b/a.json", "b"}, {"/a.json", "/"}, {"../b/a", "../b"}, {"", NULL}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *folder = "?";
        case_ok(path_folder(case_arena, paths[i][0], &folder, &case_error));
        if (paths[i][1] == NULL)
            assert_null(folder);
        else
            assert_string_equal(folder, paths[i][1]);
    }
}

static void a_file_beside_another_is_called_with_its_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/podsim-path-XXXXXX", there[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(there, sizeof there, "%s/a", folder);
    FILE *const file = fopen(there, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    const char *const cases[][3] = {{folder, "a", there}, {folder, "none", "none"},
                                    {NULL, "a", "a"},     {folder, there, there},
                                    {folder, "", ""},     {"/nowhere", "a", "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = NULL;
        case_ok(path_beside(case_arena, cases[i][0], cases[i][1], &path, &case_error));
        assert_string_equal(path, cases[i][2]);
    }
    assert_int_equal(unlink(there), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void numbers_have_divisors_and_multiples_in_common(void **state)
{
    (void)state;
    for (uint32_t a = 1; a < 40; a++)
        for (uint32_t b = 1; b < 40; b++) {
            uint32_t divisor = a < b ? a : b, multiple = a > b ? a : b;
            while (a % divisor != 0 || b % divisor != 0) divisor--;
            while (multiple % a != 0 || multiple % b != 0) multiple++;
            assert_int_equal(units_common_divisor(a, b), divisor);
            assert_int_equal(units_common_multiple(a, b), multiple);
        }
    assert_int_equal(units_common_divisor(6, 0), 6);
    assert_int_equal(units_common_divisor(0, 6), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_in_json_or_has_a_folder_is_a_path),
        cmocka_unit_test(a_path_has_a_folder_or_none),
        cmocka_unit_test(a_file_beside_another_is_called_with_its_folder),
        cmocka_unit_test(numbers_have_divisors_and_multiples_in_common),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
