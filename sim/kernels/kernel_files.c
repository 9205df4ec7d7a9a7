#include "sim/kernels/kernel_files.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/kernels/kernel_read.h"

/* `reading` is the first member, so that its functions find the rest. */
struct files_reading {
    struct kernel_reading reading;
    const struct embed_file *files;
    unsigned count;
    uint32_t depth; /* Open files: each but the first is named by the one before. */
};

static enum status file_read(struct kernel_reading *reading, const char *name, bool only_own,
                             const char *where, const struct kernel_stack **ret_stack,
                             struct error *reterr)
{
    struct files_reading *all = (struct files_reading *)reading;
    const struct embed_file *file = embed_find(all->files, all->count, name);
    bool const was_only_own = reading->only_own;
    struct json *document = NULL;
    void *memory = NULL;
    if (file == NULL)
        return error_set(reterr, STATUS_NOT_FOUND, where, "there is no file of \"%.80s\"", name);
    if (all->depth == KERNEL_FILES_DEPTH_MAX)
        return error_set(reterr, STATUS_INVALID, where,
                         "more than %d files of kernels name the next, or they name each other in "
                         "a circle",
                         KERNEL_FILES_DEPTH_MAX);
    STATUS_TRY(arena_try(reading->arena, 1, sizeof **ret_stack, &memory, reterr));
    STATUS_TRY(json_read_text(reading->arena, file->name, file->bytes, file->size_bytes, &document,
                              reterr));
    all->depth++;
    reading->only_own = only_own;
    enum status const status = kernel_document_read(reading, document, memory, reterr);
    reading->only_own = was_only_own;
    all->depth--;
    json_free(document);
    *ret_stack = memory;
    return status;
}

enum status kernel_files_read(struct arena *arena, const struct embed_file *files, unsigned count,
                              const char *name, struct kernel_stack *ret_stack,
                              struct error *reterr)
{
    const struct kernel_stack *stack = NULL;
    struct files_reading all = {
        .reading = {.arena = arena, .find = file_read}, .files = files, .count = count};
    STATUS_TRY(file_read(&all.reading, name, false, "", &stack, reterr));
    *ret_stack = *stack;
    return STATUS_OK;
}
