#define _XOPEN_SOURCE 700 /* realpath() */

#include "sim/base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes room for `more` bytes and the 0 that ends them. */
static bool text_reserve(struct strbuf *text, uint64_t more)
{
    if (text->failed) return false;
    uint64_t const need = text->size_bytes + more + 1;
    if (need <= text->capacity_bytes) return true;
    uint64_t capacity = text->capacity_bytes ? text->capacity_bytes : 256;
    while (capacity < need) capacity *= 2;
    char *bytes = realloc(text->bytes, (size_t)capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity_bytes = capacity;
    return true;
}

void strbuf_add_list(struct strbuf *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int const length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) text->failed = true;
    if (length < 0 || !text_reserve(text, (uint64_t)length)) return;
    (void)vsnprintf(text->bytes + text->size_bytes, (size_t)length + 1, format, arguments);
    text->size_bytes += (uint64_t)length;
}

void strbuf_add(struct strbuf *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    strbuf_add_list(text, format, arguments);
    va_end(arguments);
}

void strbuf_add_bytes(struct strbuf *text, const void *bytes, uint64_t size_bytes)
{
    if (!text_reserve(text, size_bytes)) return;
    if (size_bytes != 0) memcpy(text->bytes + text->size_bytes, bytes, (size_t)size_bytes);
    text->size_bytes += size_bytes;
    text->bytes[text->size_bytes] = '\0';
}

uint32_t strbuf_column(const struct strbuf *text)
{
    uint64_t i = text->size_bytes;
    uint32_t column = 0;
    bool escaped = false;
    while (i > 0 && text->bytes[i - 1] != '\n') i--;
    for (; i < text->size_bytes; i++) {
        unsigned char const c = (unsigned char)text->bytes[i];
        if (c == 0x1b) escaped = true;
        /* Characters, not bytes: names and units may hold "·" or "µ". */
        if (!escaped) column += (c & 0xc0) != 0x80;
        if (c == 'm') escaped = false;
    }
    return column;
}

void strbuf_pad(struct strbuf *text, uint32_t column)
{
    uint32_t at = strbuf_column(text);
    do {
        strbuf_add_bytes(text, " ", 1);
        at++;
    } while (at < column);
}

void strbuf_free(struct strbuf *text)
{
    free(text->bytes);
    *text = (struct strbuf){0};
}

static enum status refuse(const char *path, int cause, struct error *reterr)
{
    return error_set(reterr, STATUS_IO, path, "cannot be written: %s", strerror(cause));
}

static enum status write_all(int file, const struct strbuf *text, const char *path,
                             struct error *reterr)
{
    for (uint64_t done = 0; done < text->size_bytes;) {
        ssize_t const count = write(file, text->bytes + done, (size_t)(text->size_bytes - done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return refuse(path, errno, reterr);
        done += (uint64_t)count;
    }
    return STATUS_OK;
}

/* Devices and pipes cannot be replaced by a whole file; they are written in place. */
static enum status write_in_place(const struct strbuf *text, const char *path, struct error *reterr)
{
    int const file = open(path, O_WRONLY | O_NOCTTY);
    if (file < 0) return refuse(path, errno, reterr);
    enum status status = write_all(file, text, path, reterr);
    if (close(file) != 0 && status == STATUS_OK) status = refuse(path, errno, reterr);
    return status;
}

static enum status write_whole(const struct strbuf *text, const char *path, struct error *reterr)
{
    char temporary[PATH_MAX];
    int const length = snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) return refuse(path, ENAMETOOLONG, reterr);
    (void)unlink(temporary); /* Left by a process that was killed and had our number. */
    int const file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file < 0) return refuse(path, errno, reterr);
    enum status status = write_all(file, text, path, reterr);
    if (close(file) != 0 && status == STATUS_OK) status = refuse(path, errno, reterr);
    if (status == STATUS_OK && rename(temporary, path) != 0) status = refuse(path, errno, reterr);
    if (status != STATUS_OK) (void)unlink(temporary);
    return status;
}

enum status strbuf_write_file(const struct strbuf *text, const char *path, struct error *reterr)
{
    if (text->failed)
        return error_set(reterr, STATUS_NO_MEMORY, path, "out of memory while it was prepared");
    if (strcmp(path, "-") == 0) {
        if (fflush(stdout) != 0) return refuse("standard output", errno, reterr);
        return write_all(STDOUT_FILENO, text, "standard output", reterr);
    }
    struct stat found;
    if (stat(path, &found) != 0) return write_whole(text, path, reterr);
    if (S_ISDIR(found.st_mode)) return refuse(path, EISDIR, reterr);
    if (!S_ISREG(found.st_mode)) return write_in_place(text, path, reterr);
    if (access(path, W_OK) != 0) return refuse(path, errno, reterr);
    char *target = realpath(path, NULL); /* A link stays a link; what it names is replaced. */
    if (target == NULL) return refuse(path, errno, reterr);
    enum status const status = write_whole(text, target, reterr);
    free(target);
    return status;
}
