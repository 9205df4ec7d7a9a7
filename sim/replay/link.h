/*
 * link.h: a link as messages find it, and the links of the grid.
 */
#ifndef SIM_REPLAY_LINK_H
#define SIM_REPLAY_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/replay/server.h"

struct arena;
struct fold;
struct machine;

struct link_state {
    int64_t free_ps;
    int64_t busy_ps;
    uint64_t bytes;
    uint32_t queue; /* Index of its port_queue, once streams have met or messages are kept. */
    uint8_t lane;   /* On the grid: lane of its last message, among the lanes of all streams. */
    uint8_t stream; /* Stream of its messages; PORT_SHARED: streams or lanes take turns. */
    bool flown;     /* A collective that uses it flies (flight.h). */
};

/* Waits of a link's messages, if the caller asks for them: they cost a long run some percent. */
struct link_waits {
    uint64_t waited_ps; /* Sum over all messages; may wrap if the simulated run lasts for days. */
    uint64_t messages;
};

/* Of further messages. `waits` NULL: waits are not counted. */
static inline void link_waits_add(struct link_waits *waits, uint64_t waited_ps, uint64_t messages)
{
    if (waits == NULL) return;
    waits->waited_ps += waited_ps;
    waits->messages += messages;
}

/* What a message that leaves by a port of the grid changes: a line of the cache. */
struct grid_port {
    _Alignas(64) struct link_state link;
    struct server_reads reads; /* Of the messages that leave by the link. */
};

struct grid_links {
    uint32_t port_count;      /* Ports of a chip on the grid. */
    uint32_t *neighbour;      /* [port][chip]; UINT32_MAX: no link. */
    struct grid_port *ports;  /* [port][chip] */
    struct link_waits *waits; /* [port][chip]; NULL: not counted. */
};

/* Which chip each port leads to. The arrays of state are reserved later. */
enum status grid_links_build(struct arena *arena, const struct machine *machine,
                             const struct fold *fold, struct grid_links *ret_grid,
                             struct error *reterr);

#endif
