/*
 * timeline_file.h: --trace and --trace-chips of every verb that writes a timeline: which file,
 * which chips, and gzip where the file's name ends in ".gz".
 */
#ifndef TOOLS_PODSIM_COMMON_TIMELINE_FILE_H
#define TOOLS_PODSIM_COMMON_TIMELINE_FILE_H

#include "tools/podsim/common/output.h"

/* For a table of options. */
#define TIMELINE_OPTIONS                                                                           \
    {"--trace", "FILE", "write a timeline for https://ui.perfetto.dev; NAME.gz: compressed",       \
     false},                                                                                       \
    {                                                                                              \
        "--trace-chips", "LIST", "chips in it: \"0,0,0 1,0,0\", or all (the first if left out)",   \
            false                                                                                  \
    }

/* Refuses standard output, and chips without a timeline. */
enum status timeline_file_check(const struct options *options, struct error *reterr);

/* output_write() of a timeline: with gzip's header of no name and no time, so that the same step
 * gives the same bytes. */
enum status timeline_file_write(struct output *output, const struct strbuf *timeline,
                                struct error *reterr);

#endif
