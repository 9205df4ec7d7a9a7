/*
 * flight_log.h: the log of a collective that flies (flight.h): its handlers run by themselves, and
 * say what they do. Internal to sim/replay.
 */
#ifndef SIM_REPLAY_FLIGHT_LOG_H
#define SIM_REPLAY_FLIGHT_LOG_H

#include "sim/replay/flight.h"

/* The servers of a chip, while handlers run whose work is not to be counted. */
struct flight_servers {
    struct chip_servers states;
    struct chip_pasts pasts;
    struct server_reads reads[MACHINE_PORTS_MAX + 1]; /* [way] */
};

enum status flight_engine_create(struct arena *arena, struct replay *replay, uint64_t pending_max,
                                 struct engine **ret_engine, struct error *reterr);

/* Puts servers aside, in whose place are idle ones. */
void flight_servers_save(struct replay *replay, uint32_t chip, struct flight_servers *ret_saved);
void flight_servers_restore(struct replay *replay, uint32_t chip,
                            const struct flight_servers *saved);

/* Whether messages of other chips have come before the collective. */
bool flight_has_ahead(const struct plan_table *plan, uint32_t chip);

/* Simulates the collective that a stream is about to begin, from instant 0 on and with nothing
 * else, and leaves the state of the run as it was. False: it cannot fly, or there is no memory for
 * its log. */
bool flight_record(struct replay *replay, uint32_t stream, uint32_t chip,
                   struct flight_log *ret_log);
/* Simulates one that begins while others hold some of the links and ways of `first`, as `start`
 * says of each, which the log refers to. */
bool flight_record_from(struct replay *replay, uint32_t stream, uint32_t chip,
                        const struct flight_log *first, const struct flight_start *start,
                        struct flight_log *ret_log);

/* Reads of ways that go on at the begin of a collective. */
void flight_reads_start(struct replay *replay, uint32_t chip, uint32_t ways,
                        const struct flight_start *start, int64_t begin_ps);

/* What handlers say while flight_is_recorded(). A message comes to a link, before it takes it: */
void flight_record_link(struct replay *replay, struct link_state *link, struct link_waits *waits,
                        uint32_t port, bool waits_here);
/* A message has left by a way (reads_at()). */
void flight_record_leaving(struct replay *replay, uint32_t chip, uint32_t way);
/* A message has arrived, after `link_ps` on its way. */
void flight_record_arrival(struct replay *replay, uint32_t chip, int64_t now_ps, int64_t link_ps);
/* A shard has been written along the whole collective. */
void flight_record_shard(struct replay *replay, uint32_t chip);
/* Whether it comes to another chip than the one that is logged; then it must not land there. */
bool flight_record_leads_away(struct replay *replay, uint32_t chip);

#endif
