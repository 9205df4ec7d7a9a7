#include "tests/support/templates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/program/program_text.h"
#include "tests/support/case.h"

enum { DIGEST_DIGITS = 8, PATH_BYTES = 128 };

static struct {
    char path[PATH_BYTES];
    FILE *written;     /* While blessing; else NULL. */
    struct text kept;  /* All of the file; */
    const char *after; /* the line behind the one that was found last. */
} held;

static bool is_blessing(void)
{
    const char *const bless = getenv("PODSIM_BLESS");
    return bless != NULL && strcmp(bless, "yes") == 0;
}

void templates_open(const char *name)
{
    char part[4096];
    size_t count = 0;
    (void)snprintf(held.path, sizeof held.path, "tests/golden/templates/%s.expect", name);
    FILE *file = fopen(held.path, is_blessing() ? "w" : "r");
    if (file == NULL) fail_msg("%s: %s", held.path, strerror(errno));
    if (is_blessing()) {
        held.written = file;
        return;
    }
    while ((count = fread(part, 1, sizeof part, file)) > 0) text_add_bytes(&held.kept, part, count);
    (void)fclose(file);
    assert_true(held.kept.size_bytes > 0 && !held.kept.failed);
    held.after = held.kept.bytes;
}

void templates_close(void)
{
    if (held.written != NULL) assert_int_equal(fclose(held.written), 0);
    text_free(&held.kept);
    held.written = NULL;
}

/* "NAME: 01234567 89abcdef", a digest a template. */
static void line_make(const char *of, const struct program *program, const struct machine *machine,
                      struct text *line)
{
    text_add(line, "%s:", of);
    for (uint32_t t = 0; t < program->template_count; t++) {
        uint64_t digest = 0;
        case_ok(program_text_digest(program, machine, t, &digest, &case_error));
        text_add(line, " %08x", (unsigned)(digest & 0xffffffff));
    }
    text_add(line, "\n");
}

/* Programs come in the order of the file, as a rule. */
static const char *line_find(const char *of)
{
    size_t const length = strlen(of);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (const char *at = pass == 0 ? held.after : held.kept.bytes; *at != '\0';) {
            const char *const end = strchr(at, '\n');
            if (end == NULL) break;
            held.after = end + 1;
            if (strncmp(at, of, length) == 0 && at[length] == ':') return at;
            at = end + 1;
        }
    }
    return NULL;
}

static void differ(const char *of, const struct program *program, const struct machine *machine,
                   const char *ours, const char *kept)
{
    struct text text = {0};
    size_t const begin = strlen(of) + 1;
    uint32_t index = 0;
    for (; index < program->template_count; index++) {
        size_t const at = begin + (size_t)index * (DIGEST_DIGITS + 1);
        if (strncmp(ours + at, kept + at, DIGEST_DIGITS + 1) != 0) break;
    }
    if (index == program->template_count)
        fail_msg("%s: %s has fewer templates than it had", held.path, of);
    program_text_write_template(program, machine, index, &text);
    (void)fputs(text.bytes, stdout);
    (void)fflush(stdout);
    text_free(&text);
    fail_msg("%s: template %u of %s (%s), printed above, does something else than it did;\n"
             "if that is meant: tests/golden/golden.sh --bless build/podsim . templates",
             held.path, index, of, program->templates[index].name);
}

void templates_hold(const char *of, const struct program *program, const struct machine *machine)
{
    struct text line = {0};
    line_make(of, program, machine, &line);
    assert_false(line.failed);
    if (held.written != NULL) {
        (void)fputs(line.bytes, held.written);
        text_free(&line);
        return;
    }
    const char *const kept = line_find(of);
    if (kept == NULL) fail_msg("%s has no line for %s", held.path, of);
    if (strncmp(kept, line.bytes, line.size_bytes) != 0)
        differ(of, program, machine, line.bytes, kept);
    text_free(&line);
}
