/*
 * program_file.h: a program's text as a file:
 *
 *     podsim program 1
 *     {
 *       "podsim": 1, "title": ..., "question": ..., "machine": ..., "mesh": ..., "run": ...
 *     }
 *     step tokens=...
 *
 * a line with the version of the format; machine, mesh and run as `podsim show scenario` prints
 * them, up to a line "}"; the program (sim/program/program_text.h), and of a generation the
 * programs of its pages behind lines "page".
 */
#ifndef SIM_SCENARIO_PROGRAM_FILE_H
#define SIM_SCENARIO_PROGRAM_FILE_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/program/program.h"
#include "sim/program/program_text.h"
#include "sim/scenario/scenario.h"

struct arena;
struct strbuf;

enum { PROGRAM_FILE_BYTES_MAX = 1 << 28 };

/* Every version of the format begins so, and no scenario. */
extern const char program_file_begin[];

/* STATUS_NO_MEMORY. */
enum status program_file_write(struct arena *arena, const struct scenario *scenario,
                               const struct machine *machine, const struct program *program,
                               struct strbuf *text, struct error *reterr);

/* What follows the scenario's part. */
struct program_file_rest {
    const char *text;
    uint64_t text_bytes;
    uint32_t line; /* The number of its first line. */
};

/* The version and the scenario's part; refusals by line and column, or by a place in the JSON.
 * program_file_read() then reads the rest, for the machine that was built of it. */
enum status program_file_read_scenario(struct arena *arena, const char *name, const char *text,
                                       uint64_t text_bytes, const struct scenario_setting *settings,
                                       uint32_t setting_count, struct scenario *ret_scenario,
                                       struct program_file_rest *ret_rest, struct error *reterr);
enum status program_file_read(struct arena *arena, const char *name,
                              const struct program_file_rest *rest, const struct machine *machine,
                              struct program *ret_program, struct error *reterr);
/* The programs behind it, which program_text_read() reads: of the prefill of a generation and of
 * its pages. */
enum status program_file_pages(struct arena *arena, const char *name,
                               const struct program_file_rest *rest,
                               const struct program_text_part **ret_pages, uint32_t *ret_count,
                               struct error *reterr);

#endif
