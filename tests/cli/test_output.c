/* Output: files that are whole or not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/common/output.h"

static struct output output;
static struct error error;

static int enter_folder(void **state)
{
    static char folder[64];
    (void)snprintf(folder, sizeof folder, "/tmp/podsim-output-XXXXXX");
    *state = mkdtemp(folder);
    return *state == NULL || chdir(folder) != 0;
}

static int leave_folder(void **state)
{
    return chdir("/") != 0 || rmdir(*state) != 0; /* Fails if a test left a file. */
}

static enum status write_text(const char *content)
{
    struct strbuf text = {0};
    strbuf_add(&text, "%s", content);
    enum status const status = output_write(&output, &text, &error);
    strbuf_free(&text);
    return status;
}

static void assert_content(const char *path, const char *content)
{
    char buffer[64] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t const size = fread(buffer, 1, sizeof buffer - 1, file);
    (void)fclose(file);
    assert_int_equal(size, strlen(content));
    assert_string_equal(buffer, content);
}

static void a_file_gets_its_name_when_it_is_whole(void **state)
{
    (void)state;
    assert_int_equal(output_open(&output, "new", NULL, &error), STATUS_OK);
    assert_int_not_equal(access("new", F_OK), 0);
    assert_int_equal(write_text("text"), STATUS_OK);
    assert_int_not_equal(access("new", F_OK), 0);
    assert_int_equal(output_finish(&output, &error), STATUS_OK);
    assert_content("new", "text");
    output_abandon(&output);
    assert_int_equal(unlink("new"), 0);
}

static void an_abandoned_file_leaves_what_was_there(void **state)
{
    (void)state;
    assert_int_equal(output_open(&output, "old", NULL, &error), STATUS_OK);
    assert_int_equal(write_text("first"), STATUS_OK);
    assert_int_equal(output_finish(&output, &error), STATUS_OK);

    assert_int_equal(output_open(&output, "old", NULL, &error), STATUS_OK);
    assert_int_equal(write_text("second"), STATUS_OK);
    output_abandon(&output);
    assert_content("old", "first");
    assert_int_equal(output_open(&output, "old", NULL, &error), STATUS_OK);
    output_abandon(&output);
    assert_int_equal(unlink("old"), 0);
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(mkdir("far", 0700), 0);
    assert_int_equal(symlink("far/next", "link") + symlink("file", "far/next"), 0);
    assert_int_equal(output_distinct("link", "far/file", &error), STATUS_IO);
    static const char *const texts[] = {"x", "y"}; /* The file is made, and replaced. */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(output_open(&output, "link", NULL, &error), STATUS_OK);
        assert_int_equal(write_text(texts[i]), STATUS_OK);
        assert_int_equal(output_finish(&output, &error), STATUS_OK);
        assert_content("far/file", texts[i]);
        assert_int_equal(lstat("link", &status), 0);
        assert_true(S_ISLNK(status.st_mode));
    }
    assert_int_equal(unlink("link") + unlink("far/next") + unlink("far/file") + rmdir("far"), 0);
}

static void links_that_go_round_are_an_error(void **state)
{
    (void)state;
    assert_int_equal(symlink("b", "a") + symlink("a", "b"), 0);
    assert_int_equal(output_open(&output, "a", NULL, &error), STATUS_IO);
    assert_string_equal(error.message, "cannot be written: Too many levels of symbolic links");
    assert_int_equal(unlink("a") + unlink("b"), 0);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(output_open(&output, "/dev/full", NULL, &error), STATUS_OK);
    assert_int_equal(write_text("text"), STATUS_IO);
    assert_string_equal(error.where, "/dev/full");
    assert_string_equal(error.message, "cannot be written: No space left on device");
}

static void what_cannot_be_opened_is_an_error_at_once(void **state)
{
    (void)state;
    FILE *file = fopen("input", "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(output_open(&output, "missing/file", NULL, &error), STATUS_IO);
    assert_string_equal(error.message, "cannot be written: No such file or directory");
    assert_int_equal(output_open(&output, ".", NULL, &error), STATUS_IO);
    assert_string_equal(error.message, "cannot be written: Is a directory");
    static const struct option known[] = {{"--csv", "FILE", "", true}, {"--set", "KEY", "", false}};
    struct options options = {.operand = {"input"}, .operand_count = 1};
    assert_int_equal(output_open(&output, "./input", &options, &error), STATUS_IO);
    assert_string_equal(error.message, "is the file that this command reads");
    options =
        (struct options){.given = {{&known[1], "input"}, {&known[0], "input"}}, .given_count = 2};
    assert_int_equal(output_open(&output, "./input", &options, &error), STATUS_IO);
    assert_string_equal(error.message, "is what --csv names");
    options.given_count = 1;
    assert_int_equal(output_open(&output, "input", &options, &error), STATUS_OK);
    output_abandon(&output);
    assert_int_equal(output_open(&output, NULL, &options, &error), STATUS_OK);
    assert_int_equal(write_text("x"), STATUS_OK);
    assert_int_equal(output_finish(&output, &error), STATUS_OK);
    assert_int_equal(unlink("input"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_gets_its_name_when_it_is_whole, enter_folder,
                                        leave_folder),
        cmocka_unit_test_setup_teardown(an_abandoned_file_leaves_what_was_there, enter_folder,
                                        leave_folder),
        cmocka_unit_test_setup_teardown(a_link_stays_a_link, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(links_that_go_round_are_an_error, enter_folder,
                                        leave_folder),
        cmocka_unit_test_setup_teardown(a_full_disk_is_an_error, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_an_error_at_once, enter_folder,
                                        leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
