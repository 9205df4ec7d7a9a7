/*
 * timeline_peers.h: who sends a message to whom, by the coordinates of the chip that is shown.
 * Records of the replay have the links of a message's way (sim/machine/path.h); a timeline finds no
 * way, it names the ends of these links.
 */
#ifndef SIM_REPORT_TIMELINE_PEERS_H
#define SIM_REPORT_TIMELINE_PEERS_H

#include "sim/report/report.h"

enum { TIMELINE_COORDINATES_BYTES = 96 };

struct timeline_ends {
    uint32_t from; /* Chips of the machine, or trace_no_chip: switches, the host. */
    uint32_t to;
};

/* Of a transfer on a link of the chip `shown`. Where a replayed chip stands for that, the ends are
 * moved as it is, inside its group. */
struct timeline_ends timeline_ends_of(const struct report_input *input,
                                      const struct trace_record *record,
                                      const struct program_op *op, uint32_t shown);

/* Whether a chip lies to another as two others do. */
bool timeline_lie_alike(const struct machine *machine, uint32_t from, uint32_t to,
                        uint32_t other_from, uint32_t other_to);

/* "(0,0,1)" */
const char *timeline_coordinates(const struct machine *machine, uint32_t chip,
                                 char text[TIMELINE_COORDINATES_BYTES]);

#endif
