/*
 * op_rows.h: the compute ops of a step, and what gives each its time, for `podsim show op`.
 */
#ifndef TOOLS_PODSIM_COMMON_OP_ROWS_H
#define TOOLS_PODSIM_COMMON_OP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct json_writer;
struct machine;
struct op_row;
struct program;
struct strbuf;

/* Each compute op of each kind of slot, on a chip without overrides: as a table, or as JSON. What
 * several ranks of a pipeline have alike is there once, with the numbers of these ranks. */
enum status op_rows_show(struct arena *arena, const struct machine *machine,
                         const struct program *program, bool as_json, struct strbuf *text,
                         struct error *reterr);

/* The ops of op_rows_show(), as a list in an object of JSON that is being written. */
struct op_rows {
    const struct machine *machine;
    const struct program *program;
    struct op_row *row;
    uint32_t count;
};
enum status op_rows_find(struct arena *arena, struct op_rows *rows, struct error *reterr);
void op_rows_put(const struct op_rows *rows, struct json_writer *json);

#endif
