/*
 * import_case.h: a text, and the settings that a reader of `podsim import` makes of it.
 */
#ifndef TESTS_UNIT_IMPORT_CASE_H
#define TESTS_UNIT_IMPORT_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/import/settings.h"

typedef enum status (*import_reader)(struct import_file *file, struct error *reterr);

static inline enum status import_case_read(struct arena *arena, import_reader reader,
                                           const char *text, struct import_file *ret_file,
                                           struct error *reterr)
{
    *ret_file = (struct import_file){.arena = arena, .path = "script"};
    ret_file->text = arena_text(arena, text);
    ret_file->text_bytes = strlen(text);
    return reader(ret_file, reterr);
}

/* Lines "LINE KEY=VALUE", or "LINE KEY" of what has no value. */
static inline void import_case_reads(import_reader reader, const char *text, const char *expected)
{
    struct arena *arena = arena_create(0);
    struct import_file file;
    struct error error = {.status = STATUS_OK};
    struct strbuf got = {.bytes = NULL};
    if (import_case_read(arena, reader, text, &file, &error) != STATUS_OK)
        fail_msg("refused: %s: %s\n%s", error.where, error.message, text);
    strbuf_add(&got, "%s", "");
    for (uint32_t i = 0; i < file.count; i++)
        strbuf_add(&got, "%u %s%s%s\n", file.setting[i].line, file.setting[i].key,
                   file.setting[i].value[0] == '\0' ? "" : "=", file.setting[i].value);
    assert_string_equal(got.bytes, expected);
    strbuf_free(&got);
    arena_destroy(arena);
}

/* "PLACE: MESSAGE" as a shell's pattern. */
static inline void import_case_refuses(import_reader reader, const char *text, const char *expected)
{
    struct arena *arena = arena_create(0);
    struct import_file file;
    struct error error = {.status = STATUS_OK};
    char got[sizeof error.where + sizeof error.message + 4];
    if (import_case_read(arena, reader, text, &file, &error) == STATUS_OK)
        fail_msg("not refused: %s", text);
    (void)snprintf(got, sizeof got, "%s: %s", error.where, error.message);
    if (fnmatch(expected, got, 0) != 0) fail_msg("expected %s\n     got %s", expected, got);
    arena_destroy(arena);
}

#endif
