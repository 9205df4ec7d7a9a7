/*
 * output.h: results that are whole or not there. A file is opened before the work that fills it,
 * under another name beside it, and takes its own name when everything has been written; so what
 * cannot be written is known before a long run, and an interrupted run leaves nothing.
 */
#ifndef TOOLS_PODSIM_COMMON_OUTPUT_H
#define TOOLS_PODSIM_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "sim/base/status.h"
#include "tools/podsim/common/options.h"

struct column_line;
struct strbuf;

enum { OUTPUT_PATH_BYTES = 4096 };

struct output {
    const char *path;                  /* The path, in the user's words; NULL: not asked for. */
    char target[OUTPUT_PATH_BYTES];    /* What takes the new text: `path`, links followed. */
    char temporary[OUTPUT_PATH_BYTES]; /* "" if it is written in place: a device or a pipe. */
    FILE *file;
};

/* For main(), before anything is opened: standard streams that are closed get something that takes
 * their number, what ends the process removes unfinished files, and a write that fails is an error
 * and no signal. Only a pipe that nobody reads any more ends the process silently, by SIGPIPE,
 * unless that was ignored before. */
void output_prepare(void);

/* A child that must not outlive the process: a signal that ends the process ends it too. 0: none.
 */
void output_child(pid_t child);

/* Refuses two outputs (NULL: none; "-": standard output) that are one file by any names. */
enum status output_distinct(const char *path, const char *other, struct error *reterr);
/* output_distinct() of each two of several outputs; the last output is standard output. */
enum status outputs_distinct(uint32_t count, const char *const *paths, struct error *reterr);

/* Whether the path of an output is "-". NULL: it is not asked for. */
bool output_is_stdout(const char *path);
/* Refuses standard output to a picture. */
enum status output_picture_check(const char *path, struct error *reterr);

/* `path` NULL does nothing; "-" is standard output. What the command reads is not overwritten: a
 * path is refused that names an operand, the value of another option that takes a file, or a file
 * that has been read (files_read.h); and so is a file of the kinds that output_guard.h knows,
 * whoever reads it. `options` NULL: nothing is read. */
enum status output_open(struct output *output, const char *path, const struct options *options,
                        struct error *reterr);

/* output_open() of a table in CSV. A file that is there is replaced only if it is empty or begins
 * as a table of the columns does: what --schedule-csv reads is CSV too. Errors: also STATUS_IO. */
enum status output_open_table(struct output *output, const char *path,
                              const struct column_line *columns, const struct options *options,
                              struct error *reterr);

/* Refuses, as output_open() does, a file that is written in another way. */
enum status output_spares(const char *path, const struct options *options, struct error *reterr);

/* Writes a whole text, under the temporary name. As output_open() does, refuses a file that the
 * command has read since the output was opened. */
enum status output_write(struct output *output, const struct strbuf *text, struct error *reterr);
/* Gives the file its name. Several outputs are all written before the first gets its name. */
enum status output_finish(struct output *output, struct error *reterr);

/* Gives up an output that was opened and not finished; harmless otherwise. */
void output_abandon(struct output *output);

/* Prints to standard output, or to standard error if that is taken by a result. Lines of a text
 * that is for a terminal are broken where it ends. */
enum status output_print(struct strbuf *text, bool to_error, struct error *reterr);

/* Flushes standard output; a closed pipe or a full disk is an error. */
enum status output_flush(struct error *reterr);

#endif
