/*
 * padding.h: what shares are padded by so that all ranks are alike. Real frameworks pad so: a
 * vocabulary (Megatron-LM, vocab_size_with_padding), heads (GSPMD), flat parameters (PyTorch's
 * FSDP, FlatParamHandle) and buckets of gradients (Megatron-LM's distributed optimizer).
 */
#ifndef SIM_STEP_PADDING_H
#define SIM_STEP_PADDING_H

#include <stdbool.h>
#include <stdint.h>

struct ranks;

enum { PADDINGS_MAX = 10 };

struct padding {
    const char *what;      /* "attention heads" */
    const char *role;      /* The ranks: "tp". */
    uint32_t ranks;        /* How many ranks have equal shares. */
    uint64_t size, padded; /* Elements of all ranks together, without and with padding. */
};

struct paddings {
    struct padding of[PADDINGS_MAX];
    uint32_t count; /* Entries of `of`: what divides without padding has none. */
};

void padding_list(const struct ranks *ranks, struct paddings *ret_paddings);

/* Buckets of parameters, of experts or of all others, on one chip that has the whole model. */
struct padding_sums {
    uint64_t buckets;
    uint64_t elements; /* Elements of all buckets together, on all ranks that share them. */
    uint64_t padding;  /* Elements that make the ranks' shares of each bucket equal. */
};

struct padding_sums padding_sums(const struct ranks *ranks, uint32_t rank_count, bool experts);

#endif
