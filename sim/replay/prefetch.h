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

struct chip;
struct program;
struct role_table;
struct servers;

struct prefetch_state {
    int64_t since_ps;     /* Of the wait under way. */
    uint64_t there_bytes; /* In VMEM, of parts that have not begun. */
    uint64_t own_bytes;   /* Of the running part, in VMEM when it began. */
    uint64_t all_bytes;   /* Weights of the step. */
    uint64_t begun_bytes; /* Weights of the parts begun since the start of the step. */
    uint64_t sum_bytes;   /* Prefetched since the start of the step. */
    bool streams;         /* Weights come. */
};

struct prefetch {
    struct prefetch_state *states; /* [chip] */
    uint64_t room_bytes;           /* Room in VMEM for weights ahead. */
    bool is_on;                    /* Some op of the program has weights that may come early. */
};

/* Counts weights of each role of a program. */
void prefetch_build(const struct program *program, const struct chip *chip,
                    struct role_table *roles, struct prefetch *ret_prefetch);

/* Where `is_on`: a step begins, with weights of `all_bytes`. */
void prefetch_start(struct prefetch *prefetch, uint32_t chip, uint64_t all_bytes);
/* Where `is_on`: the compute stream waits from now on. */
void prefetch_wait(struct prefetch *prefetch, const struct servers *servers, uint32_t chip,
                   int64_t now_ps);
/* Where `is_on`: a part of a compute op begins, and takes what there is of its weights. `rate`: of
 * the chip's HBM, bytes a second. */
void prefetch_take(struct prefetch *prefetch, const struct servers *servers, uint32_t chip,
                   uint64_t bytes, uint64_t rate, int64_t now_ps);

#endif
