/* kernel_read.h: documents of kernels while they are read. A document may name other stacks. */
#ifndef SIM_KERNELS_KERNEL_READ_H
#define SIM_KERNELS_KERNEL_READ_H

#include "sim/kernels/kernels.h"

struct kernel_reading {
    struct arena *arena;
    /* A stack by its full name, with all of its tables or only with tables of its own numbers.
     * Errors: STATUS_NOT_FOUND at `where`. */
    enum status (*find)(struct kernel_reading *reading, const char *name, bool only_own,
                        const char *where, const struct kernel_stack **ret_stack,
                        struct error *reterr);
    bool is_own_file; /* The document is a user's. */
    bool only_own;    /* Tables of other stacks are left out. */
};

enum status kernel_document_read(struct kernel_reading *reading, struct json *document,
                                 struct kernel_stack *ret_stack, struct error *reterr);

/* A text of an object that is needed, and says something. */
enum status kernel_text_read(struct json *object, const char *key, const char **ret_text,
                             struct error *reterr);

/* A table of a list, of numbers of its own or of another stack's table. */
enum status kernel_table_read(struct kernel_reading *reading, struct json *object,
                              struct kernel_table *table, struct error *reterr);

/* Edges of all sides, as members of an object, and the numbers of all points, `most` at most. */
enum status kernel_grid_read(struct arena *arena, struct json *object, const char *numbers,
                             int64_t most, struct kernel_table *table, struct error *reterr);

#endif
