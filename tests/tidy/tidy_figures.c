/*
 * Figures of reports are rows of columns (sim/report/column.h): a member of JSON that a file writes
 * by its key may come to differ from the same figure on a screen. Keys that are made, as the names
 * of a machine's axes, are written where they are made.
 */
#include <string.h>

#include "tests/tidy/tidy.h"

static bool is_report(const char *path)
{
    return strncmp(path, "sim/report/", 11) == 0 || strncmp(path, "tools/podsim/", 13) == 0;
}

/* The key of a call, which begins behind its writer; NULL: it is made. */
static const char *key_of(const char *call)
{
    const char *const comma = strchr(call, ',');
    if (comma == NULL) return NULL;
    const char *const key = comma + 1 + strspn(comma + 1, " \n");
    return *key == '"' ? key + 1 : NULL;
}

void tidy_check_figures(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const writers[] = {"json_put_real", "json_put_unsigned", "json_put_integer",
                                          "json_put_boolean", "json_put_string"};
    static const char version[] = "podsim\""; /* Of the format. */
    if (file->code == NULL || !is_report(file->path)) return;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        for (const char *at = file->code; (at = tidy_word_find(file->code, at, writers[i])) != NULL;
             at++) {
            const char *const key = key_of(file->text + (at - file->code));
            if (key == NULL || strncmp(key, version, sizeof version - 1) == 0) continue;
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s() writes a figure by its key: it is a row of columns "
                          "(sim/report/column_table.h)",
                          writers[i]);
        }
}
