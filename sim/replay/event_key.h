/*
 * event_key.h: events of a run by kind, and their order within an instant, relative to their chip.
 * Internal to sim/replay.
 */
#ifndef SIM_REPLAY_EVENT_KEY_H
#define SIM_REPLAY_EVENT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/program/program.h"

/* Kinds of events, in their order at one instant: arrivals and ends release resources before a new
 * op or message takes them. */
enum replay_event {
    EVENT_ARRIVE,         /* A message has arrived whole at the end of its route. */
    EVENT_HOP,            /* The head of a message has reached a chip on its route. */
    EVENT_LANE_READY,     /* A lane's last message has left; it may send the next. */
    EVENT_COLLECTIVE_END, /* The last message of a collective has left and all have arrived. */
    EVENT_COMPUTE_END,    /* A part of a compute op ends. */
    EVENT_START,          /* The step begins; with KEY_LAUNCHED, an op of a stream. */
    EVENT_LAND,           /* A message has arrived, and HBM has caught up with writing it. */
    /* One number for two events, as an order has room for eight kinds. Of the compute stream: all
     * streams have ended, and HBM has paid its debt. Of a stream that sends: a message on a link
     * that streams share begins, or has left. */
    EVENT_FINISH_OR_PORT,
    EVENT_FINISH = EVENT_FINISH_OR_PORT,
    EVENT_PORT = EVENT_FINISH_OR_PORT,
};

/* The order of an event relative to its chip:
 *   kind 3 | port 3 | stream 4 | lane 8 | stream 1 | plan 15 | hop 10 | slowest link class 6 |
 *   units 14 bits
 * The last four say what is under way, so that a message on its route needs no memory. */
enum {
    KEY_UNITS_BITS = 14,
    KEY_CLASS_SHIFT = 14,
    KEY_CLASS_BITS = 6,
    KEY_HOP_SHIFT = 20,
    KEY_HOP_BITS = 10,
    KEY_PLAN_SHIFT = 30,
    KEY_PLAN_BITS = 15,
    KEY_LANE_SHIFT = 46,
    KEY_LANE_BITS = 8,
    KEY_STREAM_SHIFT = 54,
    KEY_STREAM_BITS =
        4, /* A fifth bit lies below the lane, for 16 streams and more, which few programs have. */
    KEY_STREAM_HIGH_SHIFT = 45,
    KEY_PORT_SHIFT = 58,
    KEY_KIND_SHIFT = 61,
};

/* Messages that name their receivers (routed.h) say so in the place of the port, and have a layout
 * of their own behind the lane; so do the pieces of copies (host.h). */
enum {
    KEY_LAUNCHED = 1, /* In place of a port: the host has launched an op. */
    KEY_CHAINED = 2,  /* In place of a port: compute ops that follow one another end (chain.h). */
    KEY_HOST = 6,     /* In place of a port: a piece of a copy. */
    KEY_ROUTED = 7,   /* In place of a port: a message that names its receiver. */
    KEY_ROUTED_PLAN_SHIFT = 36,
    KEY_ROUTED_PLAN_BITS = 9,
    KEY_EPOCH_SHIFT = 30,
    KEY_EPOCH_BITS = 6,
    KEY_WHAT_BITS = 30, /* hop | number | discriminator, as wide as the lane needs each. */
};

static inline uint64_t event_key_make(enum replay_event kind, uint32_t port, uint32_t stream,
                                      uint32_t lane)
{
    uint32_t const low = stream & ((1u << KEY_STREAM_BITS) - 1);
    return (uint64_t)kind << KEY_KIND_SHIFT | (uint64_t)port << KEY_PORT_SHIFT |
           (uint64_t)low << KEY_STREAM_SHIFT | (uint64_t)lane << KEY_LANE_SHIFT |
           (uint64_t)(stream >> KEY_STREAM_BITS) << KEY_STREAM_HIGH_SHIFT;
}

static inline uint32_t event_key_field(uint64_t key, uint32_t shift, uint32_t bits)
{
    return (uint32_t)(key >> shift) & ((1u << bits) - 1);
}

_Static_assert(PROGRAM_STREAMS_MAX <= 2 << KEY_STREAM_BITS, "a stream's number fits an order");

static inline uint32_t event_key_stream(uint64_t key)
{
    return event_key_field(key, KEY_STREAM_SHIFT, KEY_STREAM_BITS) |
           event_key_field(key, KEY_STREAM_HIGH_SHIFT, 1) << KEY_STREAM_BITS;
}

static inline enum replay_event event_key_kind(uint64_t key)
{
    return (enum replay_event)(key >> KEY_KIND_SHIFT);
}

static inline uint32_t event_key_lane(uint64_t key)
{
    return event_key_field(key, KEY_LANE_SHIFT, KEY_LANE_BITS);
}

static inline uint32_t event_key_port(uint64_t key)
{
    return event_key_field(key, KEY_PORT_SHIFT, KEY_KIND_SHIFT - KEY_PORT_SHIFT);
}

/* Whether an order is of a message that names its receiver, and so has the epoch and more. */
static inline bool event_key_names_epoch(uint64_t key)
{
    return event_key_port(key) == KEY_ROUTED && event_key_kind(key) != EVENT_LANE_READY;
}

#endif
