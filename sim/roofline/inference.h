/*
 * inference.h: the closed forms of inference, as the book has them (chapter 7 and 8): numbers of a
 * model and of chips go in, seconds and sequences come out. No mesh, no collective, no overlap but
 * the one that a formula assumes; a simulated step is compared with them, and never made of them.
 */
#ifndef SIM_ROOFLINE_INFERENCE_H
#define SIM_ROOFLINE_INFERENCE_H

#include <stdint.h>

/* A model, as a formula sees it. */
struct inference_model {
    double parameters;                /* Parameters that a token is multiplied with. */
    double parameter_bytes;           /* All that lie in memory: each step reads them once. */
    double kv_bytes_per_token;        /* Of keys and values, which each layer reads. */
    double kv_shared_bytes_per_token; /* Of these, what layers read that other layers hold. */
};

/* Chips that hold a model together, or, where ranks of data hold one each, several copies of it.
 * The copies share the sequences. */
struct inference_chips {
    double count;
    double copies_read; /* Ranks of data that each read all parameters in a step; 0: one. */
    double copies_held; /* Copies that lie in memory; 0: one. */
    double flop_per_s;  /* Of one, in the format of the products. */
    double hbm_bytes_per_s;
    double hbm_bytes;
    double attention_flop_per_s; /* Of one, in the format of attention's products. */
};

/* Bytes of a token in the caches of `layers` layers (7.1.6). `columns`: numbers of a token in the
 * cache of one layer (`cache_columns` of model_counts), such as 2·K·H. Layers that read the cache
 * of another layer take no room of their own (7.2). */
double inference_kv_bytes_per_token(uint64_t layers, uint64_t columns, double element_bytes);

/* A step of generation (7.1.5): the cache is read, and then either parameters are, or products take
 * longer. */
struct inference_step {
    double kv_s;      /* B·KV / (N·W_hbm) */
    double weights_s; /* P_bytes / (N·W_hbm), for each copy that is read. */
    double math_s; /* 2·B·P / (N·C); of prompts with attention, 4·T·S·N·H a layer (7.1.4) */
    double step_s; /* kv_s + max(weights_s, math_s) */
};

/* FLOP of the dot products of attention: two for each column, N·(H+V) of them, and each score.
 * `columns`: `attention_columns` of model_counts. `scores`: pairs of a query and a key that it
 * sees, in all layers together (7.1.4). */
double inference_attention_flop(uint64_t columns, double scores);

/* A pass over `tokens` new tokens with `attention_flop` of prompts, whose attention is bound by
 * products; the cache is read for `cached_tokens` of decodes, whose attention is bound by that. */
struct inference_step inference_pass(const struct inference_model *model,
                                     const struct inference_chips *chips, double tokens,
                                     double attention_flop, double cached_tokens);

/* Sequences of `context` tokens that fit together with the parameters, equally many with each copy
 * of these; 0: not even these do (7.1.6). INFERENCE_ANY_BATCH: these do, and tokens leave nothing
 * behind. */
#define INFERENCE_ANY_BATCH UINT64_MAX
uint64_t inference_max_batch(const struct inference_model *model,
                             const struct inference_chips *chips, double context);

/* Tokens of a step from which on products of large matrices take longer than reading the weights
 * (7.1.3): bytes·C / (2·W_hbm). Experts: E/k times as many; copies: as many for each. */
double inference_critical_tokens(double weight_bytes, double flop_per_s, double hbm_bytes_per_s);

#endif
