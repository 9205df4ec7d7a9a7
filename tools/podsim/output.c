#define _XOPEN_SOURCE 700 /* realpath() */

#include "tools/podsim/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/text.h"

static enum status fail(const char *path, int cause, struct error *reterr)
{
    const char *const shown = strcmp(path, "-") == 0 ? "standard output" : path;
    return error_set(reterr, STATUS_IO, shown, "cannot be written: %s", strerror(cause));
}

static bool same_file(const struct stat *left, const struct stat *right)
{
    return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

static enum status open_beside(struct output *output, bool exists, struct error *reterr)
{
    char *found = exists ? realpath(output->path, NULL) : NULL;
    if (exists && found == NULL) return fail(output->path, errno, reterr);
    size_t const size = sizeof output->target;
    const char *const target = exists ? found : output->path;
    int const length = snprintf(output->target, size, "%s", target);
    int const longer = snprintf(output->temporary, size, "%s.tmp-%ld", target, (long)getpid());
    free(found);
    if (length < 0 || longer < 0 || (size_t)longer >= size)
        return fail(output->path, ENAMETOOLONG, reterr);
    output->file = fopen(output->temporary, "wbx");
    return output->file == NULL ? fail(output->path, errno, reterr) : STATUS_OK;
}

enum status output_open(struct output *output, const char *path, const char *input,
                        struct error *reterr)
{
    *output = (struct output){.path = path};
    if (path == NULL) return STATUS_OK;
    if (strcmp(path, "-") == 0) {
        output->file = stdout;
        return STATUS_OK;
    }
    struct stat status, input_status;
    bool const exists = stat(path, &status) == 0;
    if (exists && input != NULL && stat(input, &input_status) == 0 &&
        same_file(&status, &input_status))
        return error_set(reterr, STATUS_IO, path, "is the scenario itself");
    if (exists && S_ISDIR(status.st_mode)) return fail(path, EISDIR, reterr);
    if (exists && S_ISREG(status.st_mode) && access(path, W_OK) != 0)
        return fail(path, errno, reterr);
    /* A device or a pipe is not replaced. */
    if (exists && !S_ISREG(status.st_mode))
        output->file = fopen(path, "wb");
    else
        return open_beside(output, exists, reterr);
    return output->file == NULL ? fail(path, errno, reterr) : STATUS_OK;
}

enum status output_write(struct output *output, const struct text *text, struct error *reterr)
{
    if (output->path == NULL) return STATUS_OK;
    if (text->failed)
        return error_set(reterr, STATUS_NO_MEMORY, output->path,
                         "there is not enough memory to prepare it");
    size_t const size = (size_t)text->size_bytes;
    errno = 0;
    bool const written = fwrite(text->bytes, 1, size, output->file) == size;
    int cause = errno;
    if (output->file == stdout) return written ? output_flush(reterr) : fail("-", cause, reterr);
    bool const closed = fclose(output->file) == 0;
    output->file = NULL;
    if (written && closed) return STATUS_OK;
    if (written) cause = errno;
    enum status const status = fail(output->path, cause, reterr);
    output_abandon(output);
    return status;
}

enum status output_finish(struct output *output, struct error *reterr)
{
    if (output->path == NULL || output->temporary[0] == '\0') return STATUS_OK;
    if (rename(output->temporary, output->target) != 0) {
        enum status const status = fail(output->path, errno, reterr);
        output_abandon(output);
        return status;
    }
    output->path = NULL;
    return STATUS_OK;
}

void output_abandon(struct output *output)
{
    if (output->path == NULL || output->file == stdout) return;
    if (output->file != NULL) (void)fclose(output->file);
    if (output->temporary[0] != '\0') (void)unlink(output->temporary);
    *output = (struct output){0};
}

enum status output_flush(struct error *reterr)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_OK;
    return fail("-", errno == 0 ? EIO : errno, reterr);
}

enum status output_print(const struct text *text, bool to_error, struct error *reterr)
{
    if (text->failed)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is not enough memory to print");
    if (text->size_bytes == 0) return STATUS_OK;
    (void)fwrite(text->bytes, 1, (size_t)text->size_bytes, to_error ? stderr : stdout);
    return to_error ? STATUS_OK : output_flush(reterr);
}
