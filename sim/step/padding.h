/*
 * padding.h: what shares are padded by so that all ranks are alike. Real frameworks pad so: a
 * vocabulary (Megatron-LM, vocab_size_with_padding), heads (GSPMD), flat parameters (PyTorch's
 * FSDP, FlatParamHandle) and buckets of gradients (Megatron-LM's distributed optimizer).
 */
#ifndef SIM_STEP_PADDING_H
#define SIM_STEP_PADDING_H

#include <stdbool.h>
#include <stdint.h>

struct local;

enum { PADDINGS_MAX = 8 };

struct padding {
    const char *what;      /* "attention heads" */
    const char *role;      /* The ranks: "tp". */
    uint32_t ranks;        /* As many have equal shares. */
    uint64_t size, padded; /* Of all of them together; the latter is the greater. */
};

struct paddings {
    struct padding of[PADDINGS_MAX];
    uint32_t count; /* Of what is padded; the rest divides. */
};

void padding_list(const struct local *local, struct paddings *ret_paddings);

/* Elements by which the units of parameters are padded where `ranks` have equal shares of
 * each: of experts, or of all others. */
uint64_t padding_elements(const struct local *local, uint32_t ranks, bool experts);

#endif
