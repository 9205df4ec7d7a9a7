/*
 * embed.h: a file that was built into the binary (see tools/embed.c).
 */
#ifndef SIM_BASE_EMBED_H
#define SIM_BASE_EMBED_H

struct embed_file {
    const char *name;  /* Without folders and `.json`. */
    const char *bytes; /* Ended by a 0 that is not counted. */
    unsigned size_bytes;
};

#endif
