/*
 * stretch_record.h: what is kept of a stretch. Internal to stretch*.c.
 *
 * Instants count from the begin of the stretch, and counts of parts from those that a stream had
 * done there.
 */
#ifndef SIM_REPLAY_STRETCH_RECORD_H
#define SIM_REPLAY_STRETCH_RECORD_H

#include "sim/replay/state_fields.h"
#include "sim/replay/stretch.h"
#include "sim/replay/stretch_key.h"

/* Keeps a field of `is`, the state at the end of what is recorded; it was `was` at the begin. */
#define KEEP_FIELD(kept, member, again, name, keeping) KEEP_##keeping(kept, member)
#define KEEP_NOT(kept, member)
#define KEEP_VALUE(kept, member) (kept)->member = is->member;
#define KEEP_LATER(kept, member) (kept)->member = is->member - begin_ps;
#define KEEP_ADDED(kept, member) (kept)->member = is->member - was->member;
#define KEEP_OWN(kept, member)

/* Writes a field of `state`, that of a chip whose stretch has begun at `begin_ps` and ends. */
#define CLOSE_FIELD(kept, member, again, name, keeping) CLOSE_##keeping(kept, member)
#define CLOSE_NOT(kept, member)
#define CLOSE_VALUE(kept, member) state->member = (kept)->member;
#define CLOSE_LATER(kept, member) state->member = begin_ps + (kept)->member;
#define CLOSE_ADDED(kept, member) state->member += (kept)->member;
#define CLOSE_OWN(kept, member)

struct stretch_digest {
    int64_t at_ps;
    uint64_t key;
};

/* A collective that has flown. */
struct stretch_flight {
    const struct flight_log *log;
    int64_t begin_ps;
    const struct plan_table *plan;
    uint8_t stream;
    uint8_t epoch; /* From the stream's at the begin of the stretch. */
};

struct stretch_effect {
    const struct program_effect *effect;
    int64_t at_ps;
    uint16_t op;
};

/* A kind of memory. */
struct stretch_memory {
    uint8_t kind;
    int64_t most_bytes; /* The most that is held in between, from what was held before. */
    int64_t add_bytes;
};

struct stretch_sum {
    int64_t *at;
    int64_t add;
};

struct stretch_link {
    struct link_state *link;
    struct link_waits *waits; /* NULL: not counted. */
    struct link_waits added;
    int64_t busy_ps, free_ps;
    uint64_t bytes;
    uint8_t lane, stream;
};

struct stretch_class {
    int64_t end_ps;
    uint16_t index;
};

/* A stream that is not as it was. */
struct stretch_stream {
    struct stream_state state;
    uint8_t stream;
    uint8_t waits_at; /* The stream at which it has named itself, or PROGRAM_STREAMS_MAX. */
    bool moves;       /* False: others have come to wait for its parts, or have gone on. */
    bool began;       /* An op has begun: what describes the running op is its own. */
};

enum stretch_instant { INSTANT_STAYS, INSTANT_MOVES, INSTANT_RUN_BEGIN };

struct stretch_server {
    int64_t dma_ps, settled_ps; /* Added. */
    int64_t debt_ps, spared_ps, edge_ps, run_begin_ps, room_ps;
    const struct server_push *pushes;
    uint32_t push_count;
    enum stretch_instant edge, run_begin;
    bool needed, spares, has_room;
};

struct stretch_reads {
    struct server_reads reads;
    uint32_t way;
};

/* The pass of an op of compute that ends before the update. */
struct stretch_pass {
    bool counts; /* False: none has ended, the rest says nothing. */
    int64_t until_ps, begin_ps, end_ps;
};

/* Lists of a stretch: those that grow while it is recorded, and those that are made at its end. */
#define STRETCH_NOTED_LISTS(X)                                                                     \
    X(digest)                                                                                      \
    X(flight)                                                                                      \
    X(effect)                                                                                      \
    X(class)
#define STRETCH_MADE_LISTS(X)                                                                      \
    X(memory)                                                                                      \
    X(sum)                                                                                         \
    X(link)                                                                                        \
    X(stream)                                                                                      \
    X(reads)
#define STRETCH_LISTS(X)                                                                           \
    STRETCH_NOTED_LISTS(X)                                                                         \
    STRETCH_MADE_LISTS(X)

struct stretch {
    struct stretch_place *to;
    int64_t length_ps;
    int64_t event_count;
    uint64_t transfers, flown, parts;
#define X(name)                                                                                    \
    const struct stretch_##name *name;                                                             \
    uint32_t name##_count;
    STRETCH_LISTS(X)
#undef X
    struct stretch_server server[SERVER_COUNT];
    struct cores_state cores;
    struct chip_state chip;
    struct stretch_pass pass;
    int64_t total_add, total_most;
};

/* A state of a chip. */
struct stretch_place {
    struct stretch_key key;
    struct stretch_place *next; /* The next of the bucket; NULL: none. */
    const struct stretch *stretch;
    uint32_t dropped; /* Records that were no stretch. */
};

enum {
    STRETCH_BUCKETS = 256,
    STRETCH_SITES = 1024,
    STRETCH_SITE_DROPS = 8,
    STRETCH_DIGESTS_MAX = 256,
    STRETCH_FLIGHTS_MAX = 16,
    STRETCH_EFFECTS_MAX = 256,
    STRETCH_CLASSES_MAX = 128,
    STRETCH_LINKS_MAX = 16,
    STRETCH_SUMS_MAX = 1024,
    STRETCH_BYTES = 1 << 24,
};

/* What is noted of a chip while a stretch is recorded. */
struct stretch_recorder {
    struct stretch_place *from;
    uint32_t site;
    int64_t begin_ps;
    int64_t event_count;
    struct chip_state chip; /* The state at the begin, as what follows. */
    struct stream_state streams[PROGRAM_STREAMS_MAX];
    struct chip_servers servers;
    struct chip_pasts pasts;
    int64_t until_ps;
    struct stretch_pass pass;
    int64_t **sums; /* The sums of the chip. */
    int64_t *were;
    uint32_t sum_count;
    struct stretch_digest digest[STRETCH_DIGESTS_MAX];
    struct stretch_flight flight[STRETCH_FLIGHTS_MAX];
    struct stretch_effect effect[STRETCH_EFFECTS_MAX];
    struct stretch_class class[STRETCH_CLASSES_MAX];
    uint32_t digest_count, flight_count, effect_count, class_count;
};

struct stretch_chip {
    struct stretch_recorder *recorder; /* Made when it is first needed. */
    struct stretch_place *bucket[STRETCH_BUCKETS];
    struct stretch_place *here; /* The state at the end of a stretch. */
    uint32_t vain; /* Looks for a state that found none, less stretches that came again. */
    uint32_t turn; /* Instants that were not looked at. */
    uint8_t drops[STRETCH_SITES]; /* [place in the program]: records in turn that were none. */
};

/* stretch_note.c: a stretch begins, and nobody has recorded it. */
void stretch_record(struct replay *replay, uint32_t chip, struct stretch_place *from,
                    int64_t now_ps);
uint32_t stretch_site(const struct replay *replay, uint32_t chip);
/* It ends; keeps it, if it is one. */
void stretch_keep(struct replay *replay, uint32_t chip, struct stretch_place *to, int64_t now_ps);

/* stretch_make.c: what is kept, in memory of its own. NULL: it is no stretch, or there is no
 * memory. */
const struct stretch *stretch_make(struct replay *replay, uint32_t chip, struct stretch_place *to,
                                   int64_t now_ps);

/* stretch_close.c: the state of a chip behind the stretch that it plays. */
void stretch_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                   int64_t begin_ps);

#endif
