/*
 * report_rules.h: the book's rules with the scenario's numbers, a sentence each, and the
 * collectives over tp that they speak of.
 */
#ifndef SIM_REPORT_REPORT_RULES_H
#define SIM_REPORT_REPORT_RULES_H

#include "sim/report/report.h"

struct json_writer;
struct strbuf;

/* `tp_excess`: the time that collectives over tp leave exposed, in words. */
void report_rules_write(const struct report_input *input, const char *tp_excess,
                        struct strbuf *text);

/* The members "tp_collectives" and "rules". */
void report_rules_put(const struct roofline *roofline, struct json_writer *json);

#endif
