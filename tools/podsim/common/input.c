#define _POSIX_C_SOURCE 200809L /* fileno() */

#include "tools/podsim/common/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/files_read.h"

enum { CHUNK_BYTES = 1 << 16 };

/* Grows as the file does, since a pipe has no length. */
static enum status stream_load(FILE *file, uint64_t bytes_max, char **buffer, uint64_t *size)
{
    uint64_t capacity = 0;
    for (;;) {
        if (*size + CHUNK_BYTES > capacity) {
            capacity = 2 * capacity + CHUNK_BYTES;
            char *larger = realloc(*buffer, capacity);
            if (larger == NULL) return STATUS_NO_MEMORY;
            *buffer = larger;
        }
        size_t const more = fread(*buffer + *size, 1, CHUNK_BYTES, file);
        *size += more;
        if (*size > bytes_max) return STATUS_LIMIT;
        if (more < CHUNK_BYTES) return ferror(file) != 0 ? STATUS_IO : STATUS_OK;
    }
}

/* UTF-8 needs no mark of its byte order; some editors write one. */
static uint64_t mark_bytes(const char *text, uint64_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool input_begins(const char *path, const char *begin)
{
    char text[INPUT_BEGIN_BYTES_MAX];
    uint64_t const length = strlen(begin);
    struct stat found;
    SIM_ASSERT(length + 3 <= sizeof text);
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode)) return false;
    FILE *const file = fopen(path, "rb");
    if (file == NULL) return false;
    uint64_t const bytes = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    uint64_t const mark = mark_bytes(text, bytes);
    return bytes >= mark + length && memcmp(text + mark, begin, length) == 0;
}

enum status input_load(struct arena *arena, const char *path, uint64_t bytes_max, char **ret_text,
                       uint64_t *ret_bytes, struct error *reterr)
{
    bool const is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    char *buffer = NULL;
    uint64_t size = 0;
    void *memory = NULL;
    if (file == NULL)
        return error_set(reterr, STATUS_IO, path, "cannot be read: %s", strerror(errno));
    enum status status = files_read_add(fileno(file), path, reterr);
    if (status == STATUS_OK) status = stream_load(file, bytes_max, &buffer, &size);
    if (status == STATUS_IO)
        (void)error_set(reterr, status, path, "cannot be read: %s", strerror(errno));
    if (status == STATUS_LIMIT)
        (void)error_set(reterr, status, path, "has more than %llu bytes",
                        (unsigned long long)bytes_max);
    if (status == STATUS_NO_MEMORY) (void)error_no_memory(reterr, path);
    if (!is_stdin) (void)fclose(file);
    if (status == STATUS_OK) status = arena_try(arena, size + 1, 1, &memory, reterr);
    if (status == STATUS_OK) {
        uint64_t const mark = mark_bytes(buffer, size);
        *ret_bytes = size - mark;
        *ret_text = memcpy(memory, buffer + mark, *ret_bytes);
    }
    free(buffer);
    return status;
}
