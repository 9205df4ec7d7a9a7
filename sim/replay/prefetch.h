/*
 * prefetch.h: weights of ops that follow, read into VMEM while the compute stream waits.
 *
 * Weights are wanted in the order of ops, so those that have come early are always the next ones: a
 * count of bytes says which. They come as long as the stream waits and VMEM has room, at the rate
 * of HBM, of which messages take their part first, as from any op (server.h). An op finds what has
 * come of its weights and reads the rest. Nothing is counted before the op begins, so waits cost no
 * events.
 */
#ifndef SIM_REPLAY_PREFETCH_H
#define SIM_REPLAY_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct program_op;
struct replay;

struct prefetch_state {
    int64_t since_ps;     /* Of the wait under way. */
    uint64_t there_bytes; /* In VMEM, of parts that have not begun. */
    uint64_t own_bytes;   /* Of the running part, in VMEM when it began. */
    uint64_t begun_bytes; /* Weights of the parts begun since the start of the step. */
    uint64_t sum_bytes;   /* Prefetched since the start of the step. */
    bool streams;         /* Weights come. */
};

struct prefetch {
    struct prefetch_state *states; /* [chip] */
    uint64_t room_bytes;           /* Room in VMEM for weights ahead. */
    bool is_on;                    /* Some op of the program has weights that may come early. */
};

/* Counts weights of each role; needs the roles. */
void prefetch_build(struct replay *replay);
/* A step begins. */
void prefetch_start(struct replay *replay, uint32_t chip);
/* The compute stream waits from now on. */
void prefetch_wait(struct replay *replay, uint32_t chip, int64_t now_ps);
/* Part `part` of a compute op begins, and takes what there is of its weights. */
void prefetch_take(struct replay *replay, const struct program_op *op, uint32_t part, uint32_t chip,
                   int64_t now_ps);

#endif
