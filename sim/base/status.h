/*
 * status.h: what a fallible function returns, and where it says why.
 *
 * Two kinds of failure are kept apart. An operating error (a bad scenario, a full disk, a limit
 * reached) is expected and is returned as a status. A programmer error (a broken invariant) is
 * never returned: it stops the program through SIM_ASSERT, in release builds too, because a
 * simulation that goes on after a broken invariant prints believable nonsense.
 */
#ifndef SIM_BASE_STATUS_H
#define SIM_BASE_STATUS_H

enum status {
    STATUS_OK,
    STATUS_INVALID,
    STATUS_UNSUPPORTED, /* Valid input, but not modelled. */
    STATUS_NOT_FOUND,   /* No such name. */
    STATUS_LIMIT,       /* A declared limit was reached. */
    STATUS_NO_MEMORY,
    STATUS_IO,
    STATUS_STUCK, /* The run cannot go on. */
    STATUS_INTERRUPTED,
};

/* Filled once, where the cause is known; callers pass it on and add nothing. */
struct error {
    enum status status;
    char where[192];    /* Place in the input: "/machine/shape", or "file.json:3:14". */
    char message[1024]; /* Lower case, no full stop: "size 0 is below the minimum 2". */
};

/* Returns the given status, so that a failing function reads `return error_set(...)`. Of names that
 * the error holds, `?` stands for what a terminal does not show or would obey (letter.h). */
enum status error_set(struct error *error, enum status status, const char *where,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The error of an allocation that has failed: STATUS_NO_MEMORY, "there is no memory". */
enum status error_no_memory(struct error *error, const char *where);

/* Says that the place of an error, a JSON pointer, lies in another file than the one that is read:
 * "file.json#/place". A bare pointer would be looked for in the file that names it. */
void error_in_file(struct error *error, const char *path);

/* Passes a failure on. The only macro in the program with control flow in it. */
#define STATUS_TRY(call)                                                                           \
    do {                                                                                           \
        enum status const status_ = (call);                                                        \
        if (status_ != STATUS_OK) return status_;                                                  \
    } while (0)

_Noreturn void assert_fail(const char *file, int line, const char *function, const char *claim);

#define SIM_ASSERT(claim) ((claim) ? (void)0 : assert_fail(__FILE__, __LINE__, __func__, #claim))

#endif
