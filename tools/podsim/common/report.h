/*
 * report.h: what the stages built, as reports want it.
 */
#ifndef TOOLS_PODSIM_COMMON_REPORT_H
#define TOOLS_PODSIM_COMMON_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/report/report.h"
#include "tools/podsim/common/session.h"

/* Borrows from the session. Program, trace and fold are left out if it was not replayed. */
void report_from_session(const struct session *session, struct report_input *ret_input);

const char *report_version(void); /* The version of podsim: "0.1.0". */

/* What a timeline says of where it comes from: the version, the scenario as the command line names
 * it, and each --set. STATUS_NO_MEMORY. */
enum status report_name(struct arena *arena, const struct options *options, const char *scenario,
                        struct report_input *input, struct error *reterr);

/* Whether what is printed to this file descriptor may be coloured: a terminal, and NO_COLOR
 * (no-color.org) is not set, nor is it a dumb one. */
bool report_in_colour(int descriptor);

/* How text is laid out there. */
struct report_terminal {
    bool colour;
    bool is_one;      /* False: tables keep their full width. */
    uint32_t columns; /* Columns of pictures; 94 where there is no terminal. */
};

struct report_terminal report_terminal(int descriptor);
/* Columns of a terminal, for struct strbuf; 0: the descriptor is no terminal. */
uint32_t report_columns(int descriptor);

#endif
