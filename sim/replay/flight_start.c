/* Whether a collective that begins flies, and by which log: one of its plan where all is free, or
 * one of how it begins where others still hold its links. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight_group.h"
#include "sim/replay/flight_log.h"

/* After ASKS_EACH begins of a chip on held links, on average, starts are looked for no more if less
 * than one of SHARE has been known. */
enum { ASKS_EACH = 64, SHARE = 4 };

/* For each collective that begins. */
#define INLINED inline __attribute__((always_inline))

/* Whether a collective of a log may fly, if its links and reads are free, and whether they are. */
static INLINED bool flight_may_begin(struct replay *replay, const struct flight_log *log,
                                     uint32_t stream, uint32_t chip, int64_t now_ps, bool *ret_free)
{
    bool is_free = true;
    const struct stream_state *own = stream_at(replay, stream, chip);
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    const struct servers *servers = &replay->servers;
    if (flight_at(replay, stream, chip)->void_ps != 0) return false;
    if (own->operand_parts > 0 &&
        stream_at(replay, PROGRAM_COMPUTE, chip)->done < own->operand_first + own->operand_parts)
        return false;
    if (log->length_ps > TIME_PS_END / 2 - now_ps) return false;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        if (server_at(servers, server, chip)->dma_ps > TIME_PS_END / 2) return false;
    for (uint32_t bits = replay->lanes.flights->of_chip[chip]; bits != 0; bits &= bits - 1) {
        const struct flight *other = flight_at(replay, (uint32_t)__builtin_ctz(bits), chip);
        if (!other->is_off && (other->log->ways & log->ways) != 0) return false;
    }
    for (uint32_t i = 0; i < log->link_count; i++)
        if (log->links[i].waits_here) {
            if (log->links[i].link->flown) return false;
            is_free = is_free && log->links[i].link->free_ps <= now_ps;
        }
    for (uint32_t ways = log->ways; is_free && ways != 0; ways &= ways - 1)
        is_free = reads_at(servers, (uint32_t)__builtin_ctz(ways), chip)->until_ps <= now_ps;
    *ret_free = is_free;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_state *state = &plan->lane[i].states[chip];
        if (state->free_ps > now_ps || state->waiting) return false;
    }
    return true;
}

/* What holds links and ways of a log at an instant. */
static void start_find(const struct replay *replay, const struct flight_log *log, uint32_t chip,
                       int64_t now_ps, struct flight_start *ret_start)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < log->link_count; i++) {
        if (!log->links[i].waits_here || log->links[i].link->free_ps <= now_ps) continue;
        if (i < FLIGHT_START_LINKS) ret_start->free_ps[i] = log->links[i].link->free_ps - now_ps;
    }
    for (uint32_t ways = log->ways; ways != 0; ways &= ways - 1, number++) {
        const struct server_reads *reads =
            reads_at(&replay->servers, (uint32_t)__builtin_ctz(ways), chip);
        if (reads->until_ps <= now_ps) continue;
        if (number < FLIGHT_START_WAYS)
            ret_start->reads[number] = (struct server_reads){.work_ps = reads->work_ps,
                                                             .since_ps = reads->since_ps - now_ps,
                                                             .until_ps = reads->until_ps - now_ps};
    }
}

bool flight_finds_free(struct replay *replay, const struct flight_log *log, uint32_t stream,
                       uint32_t chip, int64_t now_ps)
{
    bool is_free = false;
    return flight_may_begin(replay, log, stream, chip, now_ps, &is_free) && is_free;
}

/* The log of the collective that begins; NULL: its messages are simulated. */
static const struct flight_log *log_of(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct flights *flights = replay->lanes.flights;
    uint32_t const plan = *running_at(replay, stream, chip);
    uint64_t const index = (uint64_t)plan * replay->chip_count + chip;
    if (flights->never[plan]) return NULL;
    if (flights->states[index] == FLIGHT_UNSEEN) {
        flights->states[index] = FLIGHT_SEEN;
    } else if (flights->states[index] == FLIGHT_SEEN) {
        if (!flight_record(replay, stream, chip, &flights->logs[index])) {
            flights->never[plan] = true;
            if (flights->aside != NULL) flights->groups[plan] = flight_group_build(replay, plan);
            return NULL;
        }
        flights->states[index] = FLIGHT_LOGGED;
        replay->tally.recorded++;
    }
    return flights->states[index] == FLIGHT_LOGGED ? &flights->logs[index] : NULL;
}

/* Collectives of the chip whose messages have taken all their links leave them to the one of `log`,
 * which begins. */
static void flights_off(struct replay *replay, const struct flight_log *log, uint32_t chip,
                        int64_t now_ps)
{
    for (uint32_t bits = replay->lanes.flights->of_chip[chip]; bits != 0; bits &= bits - 1) {
        uint32_t const stream = (uint32_t)__builtin_ctz(bits);
        struct flight *flight = flight_at(replay, stream, chip);
        if (flight->is_off || (flight->log->ways & log->ways) == 0) continue;
        if (flight->log->senders != NULL || flight->log->link_count > FLIGHT_START_LINKS ||
            flight->log->taken_ps >= now_ps - flight->begin_ps)
            continue;
        flight_serve_until_now(replay, stream, chip);
        if (flight->left != flight->log->left_count) continue;
        flight_links_close(replay, flight);
        for (uint32_t i = 0; i < flight->log->link_count; i++)
            flight->log->links[i].link->flown = false;
        flight->is_off = true;
    }
}

/* The log of a collective that begins while others hold its links. NULL: its messages are
 * simulated.
 */
static const struct flight_log *variant_of(struct replay *replay, const struct flight_log *first,
                                           uint32_t stream, uint32_t chip,
                                           const struct flight_start *start)
{
    struct flights *flights = replay->lanes.flights;
    uint64_t const index = (uint64_t)*running_at(replay, stream, chip) * replay->chip_count + chip;
    if (first->link_count > FLIGHT_START_LINKS ||
        __builtin_popcount(first->ways) > FLIGHT_START_WAYS)
        return NULL;
    struct flight_variant *variant = flights->variants[index];
    uint32_t count = 0;
    flights->variant_asks++;
    for (; variant != NULL && memcmp(&variant->start, start, sizeof *start) != 0; count++)
        variant = variant->next;
    if (variant == NULL) {
        if (count >= FLIGHT_VARIANTS_MAX || flights->log_bytes + sizeof *variant > FLIGHT_LOG_BYTES)
            return NULL;
        variant = arena_take(flights->arena, 1, sizeof *variant);
        if (variant == NULL) return NULL;
        flights->log_bytes += sizeof *variant;
        variant->start = *start;
        variant->fails = true;
        variant->next = flights->variants[index];
        flights->variants[index] = variant;
        return NULL;
    }
    flights->variant_hits++;
    if (variant->fails && variant->log.length_ps == 0) {
        variant->fails =
            !flight_record_from(replay, stream, chip, first, &variant->start, &variant->log);
        if (variant->fails)
            variant->log.length_ps = -1; /* It is not tried again. */
        else
            replay->tally.recorded++;
    }
    return variant->fails ? NULL : &variant->log;
}

/* Whether few collectives begin as others did. */
static bool starts_are_in_vain(const struct replay *replay)
{
    const struct flights *flights = replay->lanes.flights;
    return flights->variant_asks >= (uint64_t)ASKS_EACH * replay->chip_count &&
           flights->variant_hits < flights->variant_asks / SHARE;
}

const struct flight_log *flight_log_to_fly(struct replay *replay, uint32_t stream, uint32_t chip,
                                           int64_t now_ps)
{
    bool is_free = false;
    if (replay->lanes.flights == NULL) return NULL;
    const struct flight_log *log = log_of(replay, stream, chip);
    if (log == NULL) return NULL;
    if (replay->ports == NULL && replay->lanes.flights->of_chip[chip] != 0)
        flights_off(replay, log, chip, now_ps);
    if (!flight_may_begin(replay, log, stream, chip, now_ps, &is_free)) return NULL;
    if (is_free) return log;
    if (replay->ports != NULL || starts_are_in_vain(replay)) return NULL;
    struct flight_start start = {.free_ps = {0}};
    start_find(replay, log, chip, now_ps, &start);
    return variant_of(replay, log, stream, chip, &start);
}
