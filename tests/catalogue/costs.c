#include "tests/catalogue/costs.h"

#include <stdbool.h>
#include <stdlib.h>

#include "sim/base/units.h"

enum { RANKS = COSTS_RANKS_MAX, LANES = PRIMITIVE_LANES_MAX };

/* Messages that a position expects in a lane, of all pieces. */
struct arrivals {
    uint64_t *at;       /* By slot; for ever where it has not come. */
    uint64_t *first_at; /* When all up to a slot have come, */
    uint32_t known;     /* known of so many. */
    uint32_t count;     /* As they come, where they have no slots. */
    uint32_t *parts;    /* Of a sum that switches make: those that have not gone up; 0: all. */
};

struct lane_play {
    uint32_t piece, step;
    uint64_t left_at; /* Its last message. */
    struct arrivals arrivals;
};

struct play {
    const struct primitive *primitive;
    const struct costs_clock *clock;
    uint32_t size;
    struct lane_play lane[RANKS][LANES];
    uint64_t next_at[RANKS][LANES]; /* When a lane's next message can leave, */
    bool stale[RANKS];              /* but of a position that something has come to or left. */
    uint64_t out_free[RANKS][LANES], in_free[RANKS];
    uint64_t out_units[RANKS][LANES], in_units[RANKS];
    uint64_t end_at;
};

static const uint64_t never = UINT64_MAX;

static uint32_t receiver_of(const struct play *play, uint32_t lane, uint32_t position,
                            const struct primitive_step *step)
{
    const struct primitive *primitive = play->primitive;
    if (!primitive->routed)
        return (lane == 0 ? position + 1 : position + play->size - 1) % play->size;
    return primitive->translates ? (position + step->peer) % play->size : step->peer;
}

/* Neighbours have a link each. */
static uint32_t port_of(const struct play *play, uint32_t lane)
{
    return play->primitive->routed ? 0 : lane;
}

static uint32_t arrivals_a_piece(const struct play *play, uint32_t lane, uint32_t position)
{
    return play->primitive->arrival_count(play->size, lane, position);
}

/* When the first `count` messages have come. */
static uint64_t come_at(struct arrivals *arrivals, uint32_t count, uint32_t all)
{
    while (arrivals->known < all && arrivals->at[arrivals->known] != never) {
        uint64_t const before = arrivals->known == 0 ? 0 : arrivals->first_at[arrivals->known - 1];
        uint64_t const at = arrivals->at[arrivals->known];
        arrivals->first_at[arrivals->known++] = at > before ? at : before;
    }
    if (count == 0) return 0;
    return count <= arrivals->known ? arrivals->first_at[count - 1] : never;
}

/* The earliest that a lane's next message can leave, as far as is known. */
static uint64_t ready_at(struct play *play, uint32_t lane, uint32_t position,
                         struct primitive_step *ret_step)
{
    struct lane_play *own = &play->lane[position][lane];
    uint32_t const pieces = play->clock->piece_count;
    uint32_t const sends = play->primitive->send_count(play->size, lane, position);
    if (sends == 0 || own->piece == pieces) return never;
    *ret_step = play->primitive->step(play->size, lane, position, own->step);
    uint32_t const awaited = play->primitive->routed ? ret_step->wait_lane : lane;
    uint32_t const each = arrivals_a_piece(play, awaited, position);
    uint32_t const count = ret_step->arrivals == 0 ? 0 : own->piece * each + ret_step->arrivals;
    uint64_t at = come_at(&play->lane[position][awaited].arrivals, count, pieces * each);
    uint64_t const port = play->out_free[position][port_of(play, lane)];
    if (own->left_at > at) at = own->left_at;
    return at == never || at > port ? at : port;
}

/* A message, a copy or a sum comes in from `begin_at` on. */
static void come(struct play *play, uint32_t lane, uint32_t position, uint32_t slot, uint32_t units,
                 uint64_t begin_at)
{
    uint64_t const own_time = units * play->clock->unit_time;
    struct arrivals *arrivals = &play->lane[position][lane].arrivals;
    uint64_t end_at = begin_at + own_time;
    if (play->primitive->routed) {
        uint64_t const free_at = play->in_free[position];
        end_at = (free_at > begin_at ? free_at : begin_at) + own_time;
        play->in_free[position] = end_at;
        play->in_units[position] += units;
    }
    end_at += play->clock->way_time;
    arrivals->at[slot] = end_at;
    play->stale[position] = true;
    arrivals->count++;
    if (end_at > play->end_at) play->end_at = end_at;
}

/* A part of a sum: the sum comes down when the last part has gone up. */
static void add(struct play *play, uint32_t lane, uint32_t position, uint32_t slot, uint32_t units,
                uint64_t begin_at)
{
    struct arrivals *arrivals = &play->lane[position][lane].arrivals;
    uint32_t const all =
        play->primitive->network == PRIMITIVE_NETWORK_ALL_REDUCE ? play->size : play->size - 1;
    if (arrivals->parts[slot] == 0) arrivals->parts[slot] = all;
    if (--arrivals->parts[slot] == 0) come(play, lane, position, slot, units, begin_at);
}

static void send(struct play *play, uint32_t lane, uint32_t position,
                 const struct primitive_step *step, uint64_t begin_at)
{
    struct lane_play *own = &play->lane[position][lane];
    enum primitive_network const network = play->primitive->network;
    uint32_t const port = port_of(play, lane), piece = own->piece;
    play->out_free[position][port] = begin_at + step->units * play->clock->unit_time;
    play->out_units[position][port] += step->units;
    own->left_at = play->out_free[position][port];
    if (++own->step == play->primitive->send_count(play->size, lane, position)) {
        own->step = 0;
        own->piece++;
    }
    for (uint32_t to = 0; to < play->size; to++) {
        bool const all = network == PRIMITIVE_NETWORK_ALL_REDUCE ||
                         (network == PRIMITIVE_NETWORK_MULTICAST && to != position);
        bool const named = network != PRIMITIVE_NETWORK_ALL_REDUCE &&
                           network != PRIMITIVE_NETWORK_MULTICAST &&
                           to == receiver_of(play, lane, position, step);
        if (!all && !named) continue;
        uint32_t const each = arrivals_a_piece(play, lane, to);
        struct arrivals *arrivals = &play->lane[to][lane].arrivals;
        bool const counted = !play->primitive->routed || network == PRIMITIVE_NETWORK_MULTICAST;
        uint32_t const slot = counted ? arrivals->count : piece * each + step->slot;
        SIM_ASSERT(slot < each * play->clock->piece_count);
        if (network == PRIMITIVE_NETWORK_REDUCE || network == PRIMITIVE_NETWORK_ALL_REDUCE)
            add(play, lane, to, slot, step->units, begin_at);
        else
            come(play, lane, to, slot, step->units, begin_at);
    }
}

/* The next message of all to leave, if there is one more. */
static bool play_one(struct play *play)
{
    uint64_t first_at = never;
    uint32_t lane = 0, position = 0;
    struct primitive_step step;
    for (uint32_t p = 0; p < play->size; p++) {
        for (uint32_t l = 0; l < play->primitive->lane_count; l++) {
            if (play->stale[p]) play->next_at[p][l] = ready_at(play, l, p, &step);
            if (play->next_at[p][l] >= first_at) continue;
            first_at = play->next_at[p][l];
            lane = l;
            position = p;
        }
        play->stale[p] = false;
    }
    if (first_at == never) return false;
    (void)ready_at(play, lane, position, &step);
    send(play, lane, position, &step, first_at);
    play->stale[position] = true;
    return true;
}

uint64_t costs_play(const struct primitive *primitive, uint32_t size,
                    const struct costs_clock *clock, uint64_t *ret_port_units)
{
    struct play *play = calloc(1, sizeof *play);
    SIM_ASSERT(play != NULL && size <= RANKS);
    *play = (struct play){.primitive = primitive, .clock = clock, .size = size};
    for (uint32_t p = 0; p < size; p++) {
        play->stale[p] = true;
        for (uint32_t l = 0; l < primitive->lane_count; l++) {
            struct arrivals *arrivals = &play->lane[p][l].arrivals;
            size_t const count = arrivals_a_piece(play, l, p) * clock->piece_count + 1;
            arrivals->at = calloc(count, sizeof *arrivals->at);
            arrivals->first_at = calloc(count, sizeof *arrivals->first_at);
            arrivals->parts = calloc(count, sizeof *arrivals->parts);
            SIM_ASSERT(arrivals->at != NULL && arrivals->first_at != NULL &&
                       arrivals->parts != NULL);
            for (size_t i = 0; i < count; i++) arrivals->at[i] = never;
        }
    }
    while (play_one(play)) {
    }
    uint64_t const end_at = play->end_at;
    *ret_port_units = 0;
    for (uint32_t p = 0; p < size; p++) {
        if (play->in_units[p] > *ret_port_units) *ret_port_units = play->in_units[p];
        for (uint32_t l = 0; l < primitive->lane_count; l++) {
            if (play->out_units[p][l] > *ret_port_units) *ret_port_units = play->out_units[p][l];
            free(play->lane[p][l].arrivals.at);
            free(play->lane[p][l].arrivals.first_at);
            free(play->lane[p][l].arrivals.parts);
        }
    }
    free(play);
    return end_at;
}

uint64_t costs_crossing(const struct primitive *primitive, uint32_t size, uint32_t inside)
{
    struct play const play = {.primitive = primitive, .size = size};
    uint64_t sent[RANKS] = {0}, got[RANKS] = {0}, most = 0;
    for (uint32_t p = 0; p < size; p++)
        for (uint32_t l = 0; l < primitive->lane_count; l++)
            for (uint32_t s = 0; s < primitive->send_count(size, l, p); s++) {
                struct primitive_step const step = primitive->step(size, l, p, s);
                uint32_t const to = receiver_of(&play, l, p, &step);
                if (to / inside == p / inside) continue;
                sent[p] += step.units;
                got[to] += step.units;
            }
    for (uint32_t p = 0; p < size; p++) {
        if (sent[p] > most) most = sent[p];
        if (got[p] > most) most = got[p];
    }
    return most;
}

/* Links round a ring, the shorter way. */
static uint32_t apart(uint32_t size, uint32_t from, uint32_t to)
{
    uint32_t const ahead = (to + size - from) % size;
    return ahead < size - ahead ? ahead : size - ahead;
}

/* Whom a position sends to or gets from. */
struct partners {
    bool is_one[RANKS];
    bool far[RANKS]; /* Distances of those it sends to. */
    uint32_t count, sent;
};

static void partner_add(struct partners *partners, uint32_t other)
{
    partners->count += !partners->is_one[other];
    partners->is_one[other] = true;
}

/* Whether a position sends one message to each distance 1, 2, 4, ..., the shorter way round, and no
 * other. */
static bool is_doubling(const struct partners *partners, uint32_t size)
{
    uint32_t count = 0, distances = 0;
    for (uint32_t distance = 1; distance < size; distance *= 2, count++)
        if (!partners->far[apart(size, 0, distance)]) return false;
    for (uint32_t distance = 0; distance < size; distance++) distances += partners->far[distance];
    return partners->sent == count && distances <= count;
}

/* Units of messages. */
struct lengths {
    uint32_t least, most; /* But for those that go farthest, which may be shorter. */
    bool scaled;          /* Each as long as its way. */
};

static void length_add(struct lengths *lengths, uint32_t units, uint32_t far, bool farthest)
{
    lengths->scaled = lengths->scaled && units == 2 * far;
    if (units > lengths->most) lengths->most = units;
    if (!farthest && units < lengths->least) lengths->least = units;
}

enum primitive_reach costs_reach(const struct primitive *primitive, uint32_t size)
{
    struct play const play = {.primitive = primitive, .size = size};
    struct partners partners[RANKS] = {{{false}, {false}, 0, 0}};
    struct lengths lengths = {UINT32_MAX, 0, true};
    uint32_t most = 0;
    bool doubles = true, next = true;
    if (!primitive->routed) return PRIMITIVE_REACH_NEXT;
    if (primitive->network != PRIMITIVE_NETWORK_NONE) return PRIMITIVE_REACH_NEAR;
    for (uint32_t p = 0; p < size; p++)
        for (uint32_t l = 0; l < primitive->lane_count; l++)
            for (uint32_t s = 0; s < primitive->send_count(size, l, p); s++) {
                struct primitive_step const step = primitive->step(size, l, p, s);
                uint32_t const to = receiver_of(&play, l, p, &step), far = apart(size, p, to);
                uint32_t const ahead = (to + size - p) % size;
                partner_add(&partners[p], to);
                partner_add(&partners[to], p);
                partners[p].sent++;
                partners[p].far[far] = true;
                next = next && far == 1;
                length_add(&lengths, step.units, far, 2 * ahead >= size);
            }
    if (next) return PRIMITIVE_REACH_NEXT;
    for (uint32_t p = 0; p < size; p++) {
        most = partners[p].count > most ? partners[p].count : most;
        doubles = doubles && is_doubling(&partners[p], size);
    }
    if (doubles && lengths.scaled) return PRIMITIVE_REACH_SCALED;
    if (doubles && lengths.most <= 2 * lengths.least) return PRIMITIVE_REACH_DOUBLING;
    return most == size - 1 ? PRIMITIVE_REACH_ALL : PRIMITIVE_REACH_NEAR;
}

enum primitive_relay costs_relay(const struct primitive *primitive, uint32_t size)
{
    struct play const play = {.primitive = primitive, .size = size};
    uint64_t sent[RANKS] = {0}, got[RANKS] = {0};
    uint32_t longest = 0;
    bool relays = false;
    /* An exchange has an array a position; and who waits for both partners passes on nothing. */
    bool const exchanges = primitive->kind == COLLECTIVE_ALL_TO_ALL;
    if (primitive->network != PRIMITIVE_NETWORK_NONE || primitive->cost(size).serial || exchanges)
        return PRIMITIVE_RELAY_NONE;
    for (uint32_t p = 0; p < size; p++)
        for (uint32_t l = 0; l < primitive->lane_count; l++)
            for (uint32_t s = 0; s < primitive->send_count(size, l, p); s++) {
                struct primitive_step const step = primitive->step(size, l, p, s);
                sent[p] += step.units;
                got[receiver_of(&play, l, p, &step)] += step.units;
                longest = step.units > longest ? step.units : longest;
            }
    for (uint32_t p = 0; p < size; p++)
        relays = relays || (sent[p] >= 2 * (uint64_t)size && got[p] >= 2 * (uint64_t)size);
    if (!relays) return PRIMITIVE_RELAY_NONE;
    return longest > 2 ? PRIMITIVE_RELAY_WHOLE : PRIMITIVE_RELAY_CHUNKS;
}
