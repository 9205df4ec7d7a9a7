/*
 * scene.h: small machines and programs by hand, for tests of fold and replay.
 */
#ifndef TESTS_SUPPORT_SCENE_H
#define TESTS_SUPPORT_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/program/builder.h"
#include "sim/replay/replay.h"
#include "sim/trace/trace.h"

enum { SCENE_OPS_MAX = 24, SCENE_PLANS_MAX = 12 };

/* One template, played `repeat` times; ops are added in order. */
struct scene {
    struct arena *arena;
    struct machine machine;
    struct program program;
    struct builder build;
    struct error error;
    /* Of the program, to be changed before it is played. */
    struct program_op *op;
    struct plan *plan;
    struct work *work;
    struct program_copy *copy;
    struct program_role *role;
    const char *engine;
    enum arbitration arbitration;
    uint64_t segment_bytes; /* 0: the replay's own. */
    const uint32_t *shown;  /* Chips to record; NULL: the first. */
    uint32_t shown_count;
};

/* A chip of round numbers: 100 GB/s links, 1 us hops, 10 TB/s HBM, 1 PFLOP/s. */
void scene_open(struct scene *scene, uint32_t x, uint32_t y, uint32_t z, bool wrap);
/* The chip of scene_open() on axes of any kind, of which the first `grid_axes` are a grid that
 * wraps. The others, and levels, are the caller's to describe: scene_level(). 4 lengths; 1 for an
 * axis that is not there. */
void scene_open_axes(struct scene *scene, const uint32_t shape[MACHINE_AXES_MAX],
                     uint32_t grid_axes);
/* Adds a level without tiers, which serves an axis; scene_tier() adds the tiers, lowest first:
 * boxes of chips, cables from each unit below, bytes/s of a cable, latency of a cable. */
struct level *scene_level(struct scene *scene, const char *name, uint32_t axis);
struct level_tier *scene_tier(struct level *level, const uint32_t box[MACHINE_AXES_MAX],
                              uint32_t cables, uint64_t cable_bytes_per_s, int64_t latency_ps);
/* Axis 0: GPUs on one NVSwitch, 450 GB/s and half a microsecond each way. */
void scene_open_node(struct scene *scene, uint32_t gpus);
void scene_close(struct scene *scene);
/* Without ops, plans and streams but the first; the machine stays. */
void scene_clear(struct scene *scene);

/* A group over whole axes, rings where the axis wraps. */
struct group scene_group(const struct scene *scene, bool x, bool y, bool z);

uint32_t scene_stream(struct scene *scene, const char *name);
uint32_t scene_collective(struct scene *scene, uint32_t stream, enum collective_kind kind,
                          struct group group, uint64_t size_bytes, const char *algorithm,
                          uint32_t chunk_count);
/* Any plan; the request says what, and over which group. */
uint32_t scene_plan(struct scene *scene, uint32_t stream, const struct plan_request *request);
/* An item of one routed primitive over the group, or over its first dimension; a chunk has `2 ·
 * unit_bytes`. */
uint32_t scene_routed(struct scene *scene, uint32_t stream, const struct primitive *primitive,
                      const struct group *group, bool flat, uint64_t unit_bytes,
                      uint32_t piece_count);
/* A group over an axis that a level serves, or over a whole axis of the grid. */
struct group_dimension scene_dimension(const struct scene *scene, uint32_t axis);
/* A matmul of `flop` on the MXU with no bytes. */
uint32_t scene_compute(struct scene *scene, uint64_t flop, uint32_t parts);
/* A link to the host for each chip, or for boxes of `sharers` along the first axis. */
void scene_host(struct scene *scene, uint64_t bytes_per_s, int64_t latency_ps, uint32_t sharers);
/* A copy on a stream of its own, or on one that has copies already (PROGRAM_STREAMS_MAX: new). */
uint32_t scene_copy(struct scene *scene, uint32_t stream, bool to_host, uint64_t size_bytes);
/* `op` needs all of `other` (an earlier or later op of the template) `slots` slots on. */
void scene_need(struct scene *scene, uint32_t op, uint32_t other, int16_t slots);

/* Seals, folds and runs. */
struct trace scene_run(struct scene *scene, uint32_t repeat, bool full, bool record);
/* Runs all chips and a fold, by either queue, and fails the test unless they agree; gives the run
 * of all chips. */
struct trace scene_run_alike(struct scene *scene, uint32_t repeat);
enum status scene_try(struct scene *scene, uint32_t repeat, bool full, bool record,
                      struct trace *ret_trace, struct error *reterr);

#endif
