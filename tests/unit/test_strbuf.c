/* Text: a growing buffer, and files that are whole or not there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"

static char folder[] = "podsim-text-XXXXXX";
static struct error error;

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int folder_make(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    (void)state;
    static const char *const names[] = {"whole.json", "link.json", "target.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) (void)unlink(in_folder(names[i]));
    (void)rmdir(in_folder("inner"));
    return rmdir(folder); /* Fails if a temporary file is left. */
}

static void file_is(const char *path, const char *wanted)
{
    char found[64] = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    (void)fread(found, 1, sizeof found - 1, file);
    (void)fclose(file);
    assert_string_equal(found, wanted);
}

static void it_grows_and_stays_ended(void **state)
{
    (void)state;
    struct strbuf text = {0};
    for (int i = 0; i < 10000; i++) strbuf_add(&text, "%d ", i % 10);
    assert_int_equal(text.size_bytes, 20000);
    assert_int_equal(strlen(text.bytes), 20000);
    strbuf_add_bytes(&text, "\0x", 2);
    assert_int_equal(text.size_bytes, 20002);
    assert_int_equal(text.bytes[20002], 0);
    strbuf_free(&text);
    assert_null(text.bytes);
}

static void columns_count_characters_of_the_line(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, "first line\nab");
    strbuf_pad(&text, 5);
    strbuf_add(&text, "|");
    strbuf_pad(&text, 3);
    strbuf_add(&text, "\n2·B");
    strbuf_pad(&text, 5);
    strbuf_add(&text, "|");
    assert_string_equal(text.bytes, "first line\nab   | \n2·B  |");
    strbuf_free(&text);
}

static void colours_take_no_column(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, "above\n\x1b[32mname\x1b[0m");
    assert_int_equal(strbuf_column(&text), 4);
    strbuf_pad(&text, 7);
    strbuf_add(&text, "\x1b[1m|");
    assert_string_equal(text.bytes, "above\n\x1b[32mname\x1b[0m   \x1b[1m|");
    assert_int_equal(strbuf_column(&text), 8);
    strbuf_free(&text);
}

static void a_file_is_written_and_replaced(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, "one");
    assert_int_equal(strbuf_write_file(&text, in_folder("whole.json"), &error), STATUS_OK);
    file_is(in_folder("whole.json"), "one");
    strbuf_add(&text, " two");
    assert_int_equal(strbuf_write_file(&text, in_folder("whole.json"), &error), STATUS_OK);
    file_is(in_folder("whole.json"), "one two");
    strbuf_free(&text);
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct stat found;
    strbuf_add(&text, "one");
    assert_int_equal(strbuf_write_file(&text, in_folder("target.json"), &error), STATUS_OK);
    assert_int_equal(symlink("target.json", in_folder("link.json")), 0);
    strbuf_add(&text, " two");
    assert_int_equal(strbuf_write_file(&text, in_folder("link.json"), &error), STATUS_OK);
    assert_int_equal(lstat(in_folder("link.json"), &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    file_is(in_folder("target.json"), "one two");
    strbuf_free(&text);
}

static void what_cannot_be_written_is_said_and_leaves_nothing(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, "one");
    assert_int_equal(mkdir(in_folder("inner"), 0777), 0);
    assert_int_equal(strbuf_write_file(&text, in_folder("inner"), &error), STATUS_IO);
    assert_non_null(strstr(error.message, "cannot be written"));
    assert_int_equal(strbuf_write_file(&text, in_folder("none/x.json"), &error), STATUS_IO);
    assert_non_null(strstr(error.where, "none/x.json"));
    assert_int_equal(strbuf_write_file(&text, "", &error), STATUS_IO);
    strbuf_free(&text);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    struct strbuf text = {0};
    assert_int_equal(access("/dev/full", W_OK),
                     0); /* Every Linux has it; else this tests nothing. */
    strbuf_add(&text, "one");
    assert_int_equal(strbuf_write_file(&text, "/dev/full", &error), STATUS_IO);
    assert_string_equal(error.where, "/dev/full");
    strbuf_free(&text);
}

static void a_device_is_written_and_still_there(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct stat found;
    strbuf_add(&text, "one");
    assert_int_equal(strbuf_write_file(&text, "/dev/null", &error), STATUS_OK);
    assert_int_equal(stat("/dev/null", &found), 0);
    assert_true(S_ISCHR(found.st_mode));
    strbuf_free(&text);
}

static void a_closed_pipe_is_said(void **state)
{
    (void)state;
    struct strbuf text = {0};
    int ends[2];
    strbuf_add(&text, "one");
    (void)fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    int const kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0);
    (void)close(ends[0]);
    assert_true(dup2(ends[1], STDOUT_FILENO) >= 0);
    enum status const status = strbuf_write_file(&text, "-", &error);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    (void)close(ends[1]);
    (void)close(kept);
    assert_int_equal(status, STATUS_IO);
    assert_string_equal(error.where, "standard output");
    strbuf_free(&text);
}

static void a_text_that_ran_out_of_memory_is_not_written(void **state)
{
    (void)state;
    struct strbuf text = {.failed = true};
    strbuf_add(&text, "lost");
    assert_int_equal(text.size_bytes, 0);
    assert_int_equal(strbuf_write_file(&text, in_folder("never.json"), &error), STATUS_NO_MEMORY);
    assert_int_not_equal(access(in_folder("never.json"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_stays_ended),
        cmocka_unit_test(columns_count_characters_of_the_line),
        cmocka_unit_test(colours_take_no_column),
        cmocka_unit_test(a_file_is_written_and_replaced),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(what_cannot_be_written_is_said_and_leaves_nothing),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(a_device_is_written_and_still_there),
        cmocka_unit_test(a_closed_pipe_is_said),
        cmocka_unit_test(a_text_that_ran_out_of_memory_is_not_written),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
