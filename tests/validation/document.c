#include "tests/validation/document.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/status.h"
#include "sim/base/strbuf.h"

static bool is_in(const struct strbuf *text, const char *path, bool whole)
{
    struct strbuf page = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file))
        strbuf_add_bytes(&page, &(char){(char)byte}, 1);
    (void)fclose(file);
    bool const found = !page.failed && page.size_bytes > 0 &&
                       strstr(page.bytes, text->bytes) != NULL &&
                       (!whole || page.size_bytes == text->size_bytes);
    strbuf_free(&page);
    return found;
}

int document_end(struct strbuf *text, const char *mode, const char *path)
{
    struct error error = {.message = "not up to date: write it with --markdown"};
    bool failed = text->failed;
    if (mode == NULL)
        (void)fwrite(text->bytes, 1, text->size_bytes, stdout);
    else if (strcmp(mode, "--markdown") == 0)
        failed = strbuf_write_file(text, path, &error) != STATUS_OK || failed;
    else
        failed = failed || !is_in(text, path, strcmp(mode, "--contains") != 0);
    if (failed) (void)fprintf(stderr, "%s: %s\n", path == NULL ? "" : path, error.message);
    strbuf_free(text);
    return failed;
}
