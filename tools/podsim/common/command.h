/*
 * command.h: a verb of the command line: what it takes, how it is explained, what it does.
 * A new verb is a folder <verb> with its cmd_<verb>.c, and one line in commands.def.
 */
#ifndef TOOLS_PODSIM_COMMON_COMMAND_H
#define TOOLS_PODSIM_COMMON_COMMAND_H

#include "tools/podsim/common/options.h"

enum { EXIT_DONE = 0, EXIT_WRONG = 1, EXIT_INTERRUPTED = 130 };

struct command {
    const char *name;
    const char *usage;   /* "podsim run FILE [--set /pointer=value]..." */
    const char *summary; /* One line for the list of verbs. */
    const char *help;    /* What it does and examples, shown by --help. */
    uint32_t operands_min;
    uint32_t operands_max;
    const struct option *options;              /* Ended by an option without name. */
    int (*run)(const struct options *options); /* Returns an exit status. */
};

/* "podsim: PLACE: sentence" on standard error. `input` is the file that places like /machine/shape
 * lie in; NULL or "" if there is none. Returns the exit status that the failure means. */
int command_fail(const char *input, const struct error *error);
/* command_fail() of a scenario that options may have changed: a value that an option has set is
 * named by the option. */
int command_fail_scenario(const struct options *options, const char *input,
                          const struct error *error);

#endif
