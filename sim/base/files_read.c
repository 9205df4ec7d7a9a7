#include "sim/base/files_read.h"

#include <stdlib.h>

struct identity {
    dev_t device;
    ino_t node;
};

static struct identity *list;
static size_t count, room;

bool files_read_has(const struct stat *status)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].device == status->st_dev && list[i].node == status->st_ino) return true;
    return false;
}

enum status files_read_add(int file, const char *path, struct error *reterr)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || files_read_has(&status))
        return STATUS_OK;
    if (count == room) {
        size_t const more = 2 * room + 16;
        struct identity *const larger = realloc(list, more * sizeof *larger);
        if (larger == NULL) return error_set(reterr, STATUS_NO_MEMORY, path, "there is no memory");
        list = larger;
        room = more;
    }
    list[count++] = (struct identity){.device = status.st_dev, .node = status.st_ino};
    return STATUS_OK;
}
