/*
 * collective_args.h: what `podsim collective` and `podsim regimes` have in common on the command
 * line: a machine, a collective, its ranks, its algorithms, and how it is simulated.
 */
#ifndef TOOLS_PODSIM_COMMON_COLLECTIVE_ARGS_H
#define TOOLS_PODSIM_COMMON_COLLECTIVE_ARGS_H

#include "sim/measure/measure_row.h"
#include "tools/podsim/common/options.h"

struct arena;

enum { COLLECTIVE_ALGORITHMS_MAX = 16 };

struct collective_args {
    struct arena *arena;
    const char *machine_text; /* The machine, in the user's words. */
    struct machine machine;
    struct measure_row_args row;
    struct algorithm algorithm[COLLECTIVE_ALGORITHMS_MAX]; /* None: not asked for. */
    uint32_t algorithm_count;
    struct measure_options run;
    struct tuner tuner;
};

/* The lines of a table of options that collective_args_read() reads. */
#define COLLECTIVE_ARGS_OPTIONS                                                                    \
    {"--machine", "SPEC", "tpu-v5e:8x16, v5p-8192, h100-sxm:nodes=4, FILE.json", false},           \
        {"--profile", "NAME", "of the chip: ideal (if left out) or measured", false},              \
        {"--op", "NAME", "all_gather, all_reduce, all_to_all, broadcast, ...", false},             \
        {"--axes", "LIST", "of the machine: x,y or node:2,gpu (all if left out)", false},          \
        {"--dtype", "NAME", "of the elements: bf16 (if left out), fp32, fp8, ...", false},         \
        {"--root", "RANK", "of broadcast, reduce, gather, scatter (0)", false},                    \
        {"--protocol", "NAME", "auto (if left out), none, LL, LL128 or Simple", false},            \
        {"--registered", NULL,                                                                     \
         "NCCL copies less: of all_gather, all_reduce, all_to_all, sendrecv in a node", false},    \
        {"--tuner", "FILE", "CSV of NCCL's tuner: what auto takes where a line fits", false},      \
        {"--full", NULL, "every chip and every hop: no folding", false},                           \
    {                                                                                              \
        "--engine", "NAME", "the event queue: fast or reference", false                            \
    }

/* Everything but sizes and outputs. The arena is the caller's. */
enum status collective_args_read(const struct options *options, struct arena *arena,
                                 struct collective_args *ret_args, struct error *reterr);

/* What to put before an error's place: the machine's text, if the place lies in the machine. */
const char *collective_args_input(const struct collective_args *args, const struct error *error);

#endif
