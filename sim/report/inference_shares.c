#include "sim/report/inference_shares.h"

#include <math.h>

#include "sim/base/units.h"

const char *inference_share_word(enum inference_share share)
{
    static const char *const words[] = {
#define X(name, word) [INFERENCE_SHARE_##name] = (word),
        INFERENCE_SHARES(X)
#undef X
    };
    return words[share];
}

enum inference_share inference_shares_most(const struct inference_shares *shares)
{
    enum inference_share most = INFERENCE_SHARE_WEIGHTS;
    for (uint32_t i = 0; i < INFERENCE_SHARE_COUNT; i++)
        if (shares->s[i] > shares->s[most]) most = (enum inference_share)i;
    return most;
}

static enum inference_share share_of(const struct program_op *op, const struct analysis_class *row)
{
    if (op->purpose == PROGRAM_PURPOSE_OTHER) return INFERENCE_SHARE_OTHER;
    if (row->hbm_excess_s <= 0) return INFERENCE_SHARE_MATH;
    return op->purpose == PROGRAM_PURPOSE_LINEAR ? INFERENCE_SHARE_WEIGHTS : INFERENCE_SHARE_KV;
}

/* Each class of computes is of one purpose. */
struct inference_shares inference_shares_of(const struct report_input *input,
                                            const struct analysis *analysis)
{
    const struct program *program = input->program;
    const struct chip_launch *launch = &input->machine->chip.launch;
    struct inference_shares shares = {{0}};
    double rest_s = analysis->compute_s; /* What HBM owes to messages behind the last op. */
    bool counted[PROGRAM_CLASSES_MAX] = {false};
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t o = 0; o < program->templates[t].op_count; o++) {
            const struct program_op *op = &program->templates[t].op[o];
            const struct analysis_class *row = &analysis->classes[op->class_index];
            if (op->kind != PROGRAM_OP_COMPUTE || counted[op->class_index]) continue;
            counted[op->class_index] = true;
            double const time_s = row->time_s - row->idle_s;
            double const launches_s =
                fmin((double)row->count * units_seconds(launch->op_ps), time_s);
            rest_s -= time_s;
            shares.s[share_of(op, row)] += time_s - launches_s;
            shares.s[INFERENCE_SHARE_LAUNCHES] += launches_s;
        }
    shares.s[INFERENCE_SHARE_OTHER] += fmax(rest_s, 0);
    shares.s[INFERENCE_SHARE_HOPS] = fmin(analysis->hop_chain_s, analysis->exposed_s);
    shares.s[INFERENCE_SHARE_BYTES] = analysis->exposed_s - shares.s[INFERENCE_SHARE_HOPS];
    shares.s[launch->host_ps > 0 ? INFERENCE_SHARE_LAUNCHES : INFERENCE_SHARE_OTHER] +=
        analysis->idle_s;
    return shares;
}
