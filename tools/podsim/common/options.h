/*
 * options.h: a command line against what a verb knows. An unknown option is refused with the
 * nearest known one; an option that takes one value is refused if it is given twice.
 */
#ifndef TOOLS_PODSIM_COMMON_OPTIONS_H
#define TOOLS_PODSIM_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum { OPTIONS_GIVEN_MAX = 256 };

struct option {
    const char *name;  /* "--json" */
    const char *value; /* What its value is called in the help, "FILE"; NULL: it takes none. */
    const char *help;
    bool repeats; /* May be given several times. */
};

/* Options and operands in the order of the command line; texts lie in argv. */
struct options {
    const struct option *known; /* Ended by an option without name. */
    struct {
        const struct option *option;
        const char *value;
    } given[OPTIONS_GIVEN_MAX];
    uint32_t given_count;
    const char *operand[OPTIONS_GIVEN_MAX];
    uint32_t operand_count;
};

/* "--name value", "--name=value", "-n4"; "--" ends the options. `arguments` excludes program and
 * verb. */
enum status options_read(struct options *options, const struct option *known, uint32_t count,
                         const char *const *arguments, struct error *reterr);

bool options_has(const struct options *options, const char *name);
/* The value of an option, or NULL. */
const char *options_value(const struct options *options, const char *name);
/* The `index`-th value of an option that repeats, or NULL past the end. */
const char *options_value_at(const struct options *options, const char *name, uint32_t index);

#endif
