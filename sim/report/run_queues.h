/*
 * run_queues.h: how busy the queues of a chip and the links between chips were.
 */
#ifndef SIM_REPORT_RUN_QUEUES_H
#define SIM_REPORT_RUN_QUEUES_H

#include "sim/report/report.h"

struct json_writer;
struct strbuf;

void run_queues_write(const struct report_input *input, struct strbuf *text);
void run_queues_put(const struct report_input *input, struct json_writer *json);

#endif
