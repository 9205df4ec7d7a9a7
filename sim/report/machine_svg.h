/*
 * machine_svg.h: a drawing of a machine: grids with their wraparound, nodes, switches tier by tier,
 * hosts, and the rate of every kind of link. One file without references to others; of what there
 * is much of, the first few are drawn and the rest is counted.
 */
#ifndef SIM_REPORT_MACHINE_SVG_H
#define SIM_REPORT_MACHINE_SVG_H

struct machine;
struct strbuf;

void machine_svg(const struct machine *machine, struct strbuf *text);

#endif
