#include "sim/base/files_read.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sim/base/lock.h"

struct identity {
    dev_t device;
    ino_t node;
};

static struct identity *list;
static size_t count, room;
static atomic_bool lock; /* Of the list. */

static bool has(const struct stat *status)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].device == status->st_dev && list[i].node == status->st_ino) return true;
    return false;
}

bool files_read_has(const struct stat *status)
{
    lock_take(&lock);
    bool const is_there = has(status);
    lock_give(&lock);
    return is_there;
}

/* False: there is no memory. */
static bool add(const struct stat *status)
{
    if (has(status)) return true;
    if (count == room) {
        size_t const more = 2 * room + 16;
        struct identity *const larger = realloc(list, more * sizeof *larger);
        if (larger == NULL) return false;
        list = larger;
        room = more;
    }
    list[count++] = (struct identity){.device = status->st_dev, .node = status->st_ino};
    return true;
}

enum status files_read_add(int file, const char *path, struct error *reterr)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return STATUS_OK;
    lock_take(&lock);
    bool const is_added = add(&status);
    lock_give(&lock);
    if (is_added) return STATUS_OK;
    return error_no_memory(reterr, path);
}
