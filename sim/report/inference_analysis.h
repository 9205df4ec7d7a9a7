/*
 * inference_analysis.h: what a simulated step of inference says: its time by what it is spent on,
 * the bytes that a chip reads and holds, what fits, and the book's formula for the same step.
 */
#ifndef SIM_REPORT_INFERENCE_ANALYSIS_H
#define SIM_REPORT_INFERENCE_ANALYSIS_H

#include "sim/report/analysis.h"
#include "sim/report/inference_fit.h"
#include "sim/report/inference_shares.h"
#include "sim/roofline/inference.h"

struct json_writer;
struct strbuf;

/* Ranks of pp. */
struct inference_stages {
    uint32_t batches; /* In flight; 0: the mesh has no pp. */
    double bubble_s;  /* Time without work, of the reported rank. */
};

/* What products with weights and attention read and write besides weights and cache. */
struct inference_activations {
    double bytes;
    double load_s; /* HBM's time for them. */
    double wait_s; /* The part of load_s that math does not hide; at most what HBM takes longer than
                      math in these ops. */
};

struct inference_launches {
    const char *by; /* "graph" */
    double floor_s; /* The overheads of a step's ops, or what the host needs to launch them. */
    double count;   /* Ops that the host launches one by one. */
};

/* Times of the reported chip, of ops one after the other; bytes of one chip. */
struct inference_analysis {
    const char *phase; /* "decode", or another kind of step. */
    uint64_t sequences;
    struct inference_stages stages;
    uint64_t tokens;         /* Tokens of the pass, all sequences. */
    uint64_t context_tokens; /* Tokens in the cache behind the pass, all sequences. */
    double linear_s;
    double attention_s;
    double other_s;
    double weight_load_s, kv_load_s; /* HBM's time for weights; for the cache. */
    struct inference_activations activations;
    double math_s;       /* Time of products with weights and of attention, padded. */
    double weight_bytes; /* Bytes of weights that are read: the embedding is looked up, not read. */
    double prefetched_bytes;   /* Bytes of weights that came while compute waited. */
    double kv_bytes_per_token; /* Bytes that a token takes in the cache, all layers. */
    double kv_read_bytes;
    double kv_bytes;                      /* Bytes of the cache that are held. */
    struct inference_fit fit, fit_of_gib; /* The second if the data sheet's GB are GiB. */
    double hop_floor_s; /* Collectives, and messages between stages, had they no bytes. */
    struct inference_launches launches;
    enum inference_share dominant; /* The largest part of the step. */
    double tokens_per_s_per_chip;
    struct inference_step book; /* The formula of 7.1.5; of prompts what math takes. */
};

struct inference_analysis inference_analysis_of(const struct report_input *input,
                                                const struct analysis *analysis);

/* How many sequences fit chips with HBM of `hbm_bytes`, and the smallest slice of such chips. */
struct inference_fit inference_analysis_fit(const struct report_input *input, uint64_t hbm_bytes);

const char *inference_phase(const struct workload_plan *plan); /* "decode" */

/* What the book's formulas are given: all parameters of the model; all chips, of which each rank of
 * dp, fsdp and cp multiplies with all parameters. */
struct inference_model inference_book_model(const struct workload_plan *plan);
struct inference_chips inference_book_chips(const struct workload_plan *plan,
                                            const struct machine *machine, const struct mesh *mesh);
/* The formula of the plan's step. Prompts are their products (8.1.2) and those of their attention
 * (7.1.4): the cache is read by decodes. */
struct inference_step inference_book_step(const struct workload_plan *plan,
                                          const struct inference_model *model,
                                          const struct inference_chips *chips);

/* The member "inference" of a result. */
void inference_analysis_write(const struct inference_analysis *inference, struct json_writer *json);
/* Lines of the summary. */
void inference_analysis_print(const struct inference_analysis *inference, struct strbuf *text);
/* Of a step that does not fit: the smallest slice that would do, as the summary has it. */
void inference_slice_print(const struct report_input *input, struct strbuf *text);
/* Of a generation: members of its result, lines of its summary. */
void inference_fit_put(const struct inference_fit *fit, struct json_writer *json);
void inference_fit_print(const struct inference_fit *fit, struct strbuf *text);

#endif
