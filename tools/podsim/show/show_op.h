/*
 * show_op.h: the compute ops of a step, and what gives each its time, for `podsim show op`.
 */
#ifndef TOOLS_PODSIM_SHOW_SHOW_OP_H
#define TOOLS_PODSIM_SHOW_SHOW_OP_H

#include <stdbool.h>

#include "sim/base/status.h"

struct arena;
struct machine;
struct program;
struct strbuf;

/* Each compute op of each kind of slot of the first rank of pp, on a chip without overrides: as a
 * table, or as JSON. */
enum status show_ops(struct arena *arena, const struct machine *machine,
                     const struct program *program, bool as_json, struct strbuf *text,
                     struct error *reterr);

#endif
