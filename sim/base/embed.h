/*
 * embed.h: files that were built into the binary (see tools/embed.c).
 */
#ifndef SIM_BASE_EMBED_H
#define SIM_BASE_EMBED_H

struct embed_file {
    const char *name;  /* Without folders and `.json`. */
    const char *bytes; /* Ended by a 0 that is not counted. */
    unsigned size_bytes;
};

/* The file of a name among `count`; NULL: none has the name. */
const struct embed_file *embed_find(const struct embed_file *files, unsigned count,
                                    const char *name);

#endif
