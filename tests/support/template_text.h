/*
 * template_text.h: the templates of a program, each as a text of its own. The text is cut out of
 * program_text_write(). It has no names, and streams, works, plans and copies stand where an op
 * names them. Two templates with the same text do the same.
 */
#ifndef PODSIM_TESTS_SUPPORT_TEMPLATE_TEXT_H
#define PODSIM_TESTS_SUPPORT_TEMPLATE_TEXT_H

#include "sim/base/strbuf.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"

/* Lines without indentation that ops and templates name by their number. */
enum template_text_kind { TEXT_STREAM, TEXT_WORK, TEXT_PLAN, TEXT_COPY, TEXT_TEMPLATE, TEXT_KINDS };

struct template_text {
    const struct program *program;
    struct strbuf whole;           /* The text of the program. */
    const char **line[TEXT_KINDS]; /* By the number of each line; inside of `whole`. */
};

/* A failure fails the test. */
void template_text_open(const struct program *program, const struct machine *machine,
                        struct template_text *ret_text);
void template_text_add(const struct template_text *of, uint32_t index, struct strbuf *text);
void template_text_close(struct template_text *text);

#endif
