/*
 * measured_memory_rows.h: peaks of memory that others have measured, of training steps.
 */
#ifndef TESTS_VALIDATION_MEASURED_MEMORY_ROWS_H
#define TESTS_VALIDATION_MEASURED_MEMORY_ROWS_H

#include <stdint.h>

struct memory_row {
    const char *title;
    const char *model; /* Of the catalogue; cut to so many layers, of them so many dense. */
    const char *mesh;  /* Members of the JSON object. */
    uint32_t layers, dense_layers;
    uint32_t data;   /* Sequences in a microbatch of the whole machine. */
    uint32_t length; /* Tokens of each. */
    uint32_t microbatches;
    const char *schedule, *layout; /* NULL: no stages. */
    double measured;               /* GiB, or what is printed as GB. */
};

/* MooreThreads/SimuMax at 1b8ca90b, docs/b200/b200_release_v1.2_summary.md: the most of any rank's
 * torch.cuda.max_memory_allocated(), in GiB, on eight B200 with Megatron-LM 23e00ed0 and
 * Transformer Engine 2.11; distributed optimizer, sequence parallel, no recomputation, fused cross
 * entropy; all-to-all where cp splits sequences. Runs with 8 and with 32 microbatches take equal
 * memory. */
extern const struct memory_row memory_b200[];
extern const uint32_t memory_b200_count;

/* Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241), tables 3 to 5: GPTs on A100 of 80
 * GB, one GPU a stage, the first and the last stage with a layer less. Sequences of 1,024 tokens;
 * the same memory with two and more times the microbatches. */
extern const struct memory_row memory_zero_bubble[];
extern const uint32_t memory_zero_bubble_count;

/* Runs that were published, so they fitted, and that podsim refuses with what it counts by default.
 * `counted` and `published` are members of `workload`: what is assumed, and what sources state. */
struct memory_fit {
    const char *title, *source;
    const char *machine, *mesh, *workload; /* Members of the JSON objects. */
    const char *counted, *published;
    uint64_t layers, width, heads, kv_heads, vocabulary; /* Of a GPT; 0: the catalogue's model. */
    const char *reason;
};
extern const struct memory_fit memory_fits[];
extern const uint32_t memory_fit_count;

#endif
