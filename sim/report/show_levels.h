/*
 * show_levels.h: the switches of a machine: tiers, cables, rates, and totals that published figures
 * can be checked against.
 */
#ifndef SIM_REPORT_SHOW_LEVELS_H
#define SIM_REPORT_SHOW_LEVELS_H

struct machine;
struct strbuf;

/* Nothing for a machine without levels. */
void show_levels(const struct machine *machine, struct strbuf *text);

/* Egress and bisection of any machine. */
void show_totals(const struct machine *machine, struct strbuf *text);

/* What is published of such a machine, and by how much this one differs; nothing if nothing is. */
void show_published(const struct machine *machine, struct strbuf *text);

#endif
