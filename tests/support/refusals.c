#include "tests/support/refusals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"

enum { FILES_MAX = 4, PATH_BYTES = 512, LINE_BYTES = 2048 };

/* A program of tests has one source with refusals, or a few. */
static struct kept {
    char path[PATH_BYTES];
    struct strbuf lines; /* Each with its end; the first behind an empty line. */
} all_kept[FILES_MAX];

static bool is_blessing(void)
{
    const char *const bless = getenv("PODSIM_BLESS");
    return bless != NULL && strcmp(bless, "yes") == 0;
}

static void kept_read(struct kept *kept)
{
    char part[4096];
    size_t count = 0;
    strbuf_add(&kept->lines, "\n");
    if (is_blessing()) return;
    FILE *file = fopen(kept->path, "r");
    if (file == NULL) fail_msg("%s: %s", kept->path, strerror(errno));
    while ((count = fread(part, 1, sizeof part, file)) > 0)
        strbuf_add_bytes(&kept->lines, part, count);
    assert_int_equal(fclose(file), 0);
    assert_false(kept->lines.failed);
}

/* "../tests/unit/test_key.c" is of tests/golden/refusals/unit/test_key.txt. */
static struct kept *kept_of(const char *source)
{
    static const char folder[] = "tests/";
    const char *name = strstr(source, folder);
    char path[PATH_BYTES];
    uint32_t i = 0;
    assert_non_null(name);
    name += strlen(folder);
    (void)snprintf(path, sizeof path, "%s/tests/golden/refusals/%.*s.txt", SOURCE_ROOT,
                   (int)strcspn(name, "."), name);
    while (i < FILES_MAX && all_kept[i].path[0] != '\0' && strcmp(all_kept[i].path, path) != 0) i++;
    assert_true(i < FILES_MAX);
    if (all_kept[i].path[0] == '\0') {
        memcpy(all_kept[i].path, path, sizeof path);
        kept_read(&all_kept[i]);
    }
    return &all_kept[i];
}

/* Folders of tests have another name in each run: "/tmp/podsim-model-GM2p9o/" is left out. */
static void folder_drop(char *line)
{
    char *const begin = strstr(line, "/tmp/podsim-");
    if (begin == NULL) return;
    const char *end = begin + strlen("/tmp/podsim-");
    end += strcspn(end, "/\"");
    end += *end == '/';
    memmove(begin, end, strlen(end) + 1);
}

void refusals_hold(const struct error *error, const char *file)
{
    struct kept *kept = kept_of(file);
    char line[LINE_BYTES];
    case_text(line, sizeof line, "\n%s: %s\n", error->where, error->message);
    folder_drop(line);
    if (strstr(kept->lines.bytes, line) != NULL) return;
    if (!is_blessing())
        fail_msg("%s has no line%sif it is meant: PODSIM_BLESS=yes PODSIM_TEST_THIN=1 "
                 "meson test -C build 'NAME OF THE TEST'",
                 kept->path, line);
    strbuf_add(&kept->lines, "%s", line + 1);
    assert_false(kept->lines.failed);
}

static bool is_written(const struct kept *kept)
{
    FILE *file = fopen(kept->path, "w");
    bool const begun = file != NULL && fputs(kept->lines.bytes + 1, file) >= 0;
    return file != NULL && fclose(file) == 0 && begun;
}

int refusals_end(int failed)
{
    for (uint32_t i = 0; is_blessing() && i < FILES_MAX && all_kept[i].path[0] != '\0'; i++) {
        if (failed == 0 && is_written(&all_kept[i])) continue;
        print_error("%s is not written anew\n", all_kept[i].path);
        if (failed == 0) return 1;
    }
    return failed;
}
