/*
 * program_text.h: a program as text: written, read, and the same again.
 *
 * A line is a word, perhaps a number, perhaps a name in quotes, and then key=value, in any order:
 *
 *     compute 4 "mlp.In" stream=0 parts=1 work=2 class="mlp.In"
 *
 * A value is a whole number, a word of a list, several words with commas between them,
 * or text in quotes (with \" and \\). A value with a blank stands in quotes. Blanks at the
 * beginning of a line mean nothing, and neither do empty lines and lines that begin with #. What is
 * counted is numbered from 0 in the order of the text. A key that is left out is 0, or the first
 * word of its list; `parts` are those of the plan of a collective, and else 1.
 *
 * The lines, and what each belongs to:
 *
 *     step                       what the step achieves, over all ranks
 *     roles                      where a chip's role comes from, if there are several
 *     stream N NAME              program.stream
 *     work N                     program.works
 *       matmul                   of the work before it
 *     plan N                     program.plans: what was asked for (struct plan_request), and by
 *                                which algorithm it then goes (`runs`)
 *       dimension                of its group
 *       ragged                   tokens that are drawn
 *     host_copy N                program.copies
 *     template N NAME            program.templates
 *       KIND N NAME              an op: compute, collective, copy, send or receive
 *         need                   what of another stream must be done, or begun, first
 *         memory                 bytes that it takes (or gives back, negative)
 *     role N
 *       resident                 bytes that are held from the start
 *       block                    slots of one template
 *     end                        the last line: a text that was cut off has none
 *     page                       behind the end, where a run has several programs: the next one is
 *                                of the prefill of a generation, or of the last step of a page
 *
 * Every key of each line, its range and its words are rows of a table (program_text_rows.c), which
 * the writer and the reader share. The writer writes every key that means something, so a text
 * shows every default.
 */
#ifndef SIM_PROGRAM_PROGRAM_TEXT_H
#define SIM_PROGRAM_PROGRAM_TEXT_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"

struct arena;
struct strbuf;

/* Of a program that was sealed and has its requests, on the machine that it was made for. */
void program_text_write(const struct program *program, const struct machine *machine,
                        struct strbuf *text);

/* The line "page" before the program of a page of steps, or with `last` 0 before the prefill. */
void program_text_write_page(uint64_t last, uint64_t of, struct strbuf *text);

/* One of several programs in a text. */
struct program_text_part {
    uint64_t last; /* The last step of its page; 0: the whole, or the prefill. */
    const char *text;
    uint64_t text_bytes;
    uint32_t line; /* The number of the first line. */
};

/* Divides a text at its lines "page": at first the program before them, which may be the only one,
 * then one of each page. Refuses pages that are out of order or not all there. */
enum status program_text_divide(struct arena *arena, const char *name, uint32_t line,
                                const char *text, uint64_t text_bytes,
                                struct program_text_part **ret_parts, uint32_t *ret_count,
                                struct error *reterr);

/* Builds its plans and seals it. Refusals say "NAME:LINE:COLUMN"; `line` is the number of the first
 * line of the text. Nothing is reserved for more than the limits of program.h. Names lie in the
 * arena. */
enum status program_text_read(struct arena *arena, const struct machine *machine, const char *name,
                              uint32_t line, const char *text, uint64_t text_bytes,
                              struct program *ret_program, struct error *reterr);

#endif
