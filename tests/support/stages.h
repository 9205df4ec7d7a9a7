/*
 * stages.h: small pipelines by hand: a list of what each rank does, one after the other. For tests
 * of the replay of ranks with roles of their own.
 */
#ifndef TESTS_SUPPORT_STAGES_H
#define TESTS_SUPPORT_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"
#include "sim/trace/trace.h"

/* Whither a message goes along the pipeline's axis. */
enum stages_way { STAGES_UP, STAGES_DOWN, STAGES_WAYS };

enum { STAGES_WORKS_MAX = 8, STAGES_GATHERS_MAX = 4 };

struct stages {
    struct arena *arena;
    const struct machine *machine;
    struct group group; /* Of one dimension. */
    struct program program;
    struct work work[STAGES_WORKS_MAX];
    struct plan plan[STAGES_WAYS + STAGES_GATHERS_MAX];
    struct program_template template[2 * STAGES_WAYS + STAGES_WORKS_MAX + STAGES_GATHERS_MAX];
    struct program_role *role;
    uint32_t capacity; /* Blocks of a rank. */
    uint32_t work_template[STAGES_WORKS_MAX];
    const char *engine;
    const uint32_t *shown; /* Chips to record. */
    uint32_t shown_count;
    uint32_t steps_max; /* As a run is asked for (struct replay_options). */
};

/* Pipelines along a dimension; the most that a rank does is `capacity` things. */
void stages_open(struct stages *stages, struct arena *arena, const struct machine *machine,
                 const struct group_dimension *dimension, uint64_t message_bytes,
                 uint32_t capacity);

/* A kind of work of `flop`, on the MXU, without bytes; returns its number. */
uint32_t stages_work(struct stages *stages, uint64_t flop);
/* How long it takes. */
int64_t stages_work_ps(const struct stages *stages, uint32_t work);
/* An AllGather on a stream of its own, behind nothing and before nothing; returns its template. */
uint32_t stages_gather(struct stages *stages, const struct group *group, uint64_t size_bytes);

/* What a rank does next. Work needs all RECEIVEs before it, a SEND all work before it. */
void stages_compute(struct stages *stages, uint32_t rank, uint32_t work);
void stages_send(struct stages *stages, uint32_t rank, enum stages_way way);
void stages_receive(struct stages *stages, uint32_t rank, enum stages_way way, uint64_t arrivals);
void stages_play(struct stages *stages, uint32_t rank, uint32_t template_index);

enum status stages_try(struct stages *stages, bool full, struct trace *ret_trace,
                       struct error *reterr);
/* Fails the test, with the error, if it is refused. */
struct trace stages_run(struct stages *stages, bool full);

#endif
