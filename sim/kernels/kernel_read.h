/* kernel_read.h: files of kernels while they are read, one of which may name another. */
#ifndef SIM_KERNELS_KERNEL_READ_H
#define SIM_KERNELS_KERNEL_READ_H

#include "sim/kernels/kernels.h"

enum { KERNEL_READING_MAX = 8 };

struct embed_file;

/* Stacks of the catalogue that have been read, so that each is once. */
struct kernel_reading {
    struct arena *arena;
    struct {
        const struct embed_file *file; /* A file of the catalogue. */
        const struct kernel_stack *stack;
        bool only_own;
    } loaded[KERNEL_READING_MAX];
    uint32_t loaded_count;
    uint32_t depth;   /* Files that are open: each but the first is named by the one before. */
    bool is_own_file; /* The first is a file of the user, and none of the catalogue. */
    bool only_own;    /* Of the file that is read tables of other stacks are left out. */
};

/* A stack of the catalogue by its full name, with all of its tables or only with those whose
 * numbers its file has. Errors: STATUS_NOT_FOUND at `where`; files that take each other's tables in
 * a circle. */
enum status kernel_reading_stack(struct kernel_reading *reading, const char *name, bool only_own,
                                 const char *where, const struct kernel_stack **ret_stack,
                                 struct error *reterr);

enum status kernel_document_read(struct kernel_reading *reading, struct json *document,
                                 struct kernel_stack *ret_stack, struct error *reterr);

/* A table of a list, of numbers of its own or of another stack's table. */
enum status kernel_table_read(struct kernel_reading *reading, struct json *object,
                              struct kernel_table *table, struct error *reterr);

/* Edges of all sides, as members of an object, and the numbers of all points, `most` at most. */
enum status kernel_grid_read(struct arena *arena, struct json *object, const char *numbers,
                             int64_t most, struct kernel_table *table, struct error *reterr);

#endif
