/*
 * inference.h: the closed forms of inference, as the book has them (chapter 7 and 8): numbers of a
 * model and of chips go in, seconds and sequences come out. No mesh, no collective, no overlap but
 * the one that a formula assumes; a simulated step is compared with them, and never made of them.
 */
#ifndef SIM_ROOFLINE_INFERENCE_H
#define SIM_ROOFLINE_INFERENCE_H

#include <stdint.h>

#include "sim/model/model.h"

/* A model, as a formula sees it. */
struct inference_model {
    double parameters;         /* That a token is multiplied with. */
    double parameter_bytes;    /* All that lie in memory: each step reads them once. */
    double kv_bytes_per_token; /* Of the cache, all layers. */
};

/* Chips that hold one copy of the model together. */
struct inference_chips {
    double count;
    double flop_per_s; /* Of one, in the format of the products. */
    double hbm_bytes_per_s;
    double hbm_bytes;
};

/* Bytes of a token's keys and values, all layers (7.1.6): 2·K·H a layer; of latent attention one
 * latent with the columns that are turned. */
double inference_kv_bytes_per_token(const struct model *model, double element_bytes);

/* A step of generation (7.1.5): the cache is read, and then either parameters are, or products take
 * longer. */
struct inference_step {
    double kv_s;      /* B·KV / (N·W_hbm) */
    double weights_s; /* P_bytes / (N·W_hbm) */
    double math_s;    /* 2·B·P / (N·C) */
    double step_s;    /* kv_s + max(weights_s, math_s) */
};

/* `sequences` with `cached_tokens` in the cache altogether, a new token each. */
struct inference_step inference_decode(const struct inference_model *model,
                                       const struct inference_chips *chips, double sequences,
                                       double cached_tokens);

/* 2·P·T / (N·C·mfu), and further FLOP, as of attention (7.1.4); mfu above 0. */
double inference_prefill_s(const struct inference_model *model, const struct inference_chips *chips,
                           double tokens, double attention_flop, double mfu);

/* Sequences of `context` tokens that fit together with the parameters; 0: not even these do
 * (7.1.6). */
uint64_t inference_max_batch(const struct inference_model *model,
                             const struct inference_chips *chips, double context);

/* Largest batch of `context` tokens each whose step takes at most `limit_s` and fits; 0: none. */
uint64_t inference_batch_within(const struct inference_model *model,
                                const struct inference_chips *chips, double context,
                                double limit_s);

/* Tokens of a step from which on products take longer than reading the weights (7.1.3):
 * bytes·C / (2·W_hbm), of large matrices; of a matrix D x F with activations of `activation_bytes`
 * exactly, or 0: no batch is large enough. Experts: E/k times as many. */
double inference_critical_tokens(double weight_bytes, double flop_per_s, double hbm_bytes_per_s);
double inference_critical_tokens_of(double weight_bytes, double activation_bytes, double flop_per_s,
                                    double hbm_bytes_per_s, double rows, double columns);

/* Distinct experts that B tokens hit, each k of E, evenly: E·(1 - (1 - k/E)^B). */
double inference_experts_hit(double experts, double top_k, double tokens);

/* The MLP's collectives of a layer, 2-byte activations, an axis' bandwidth both ways W (7.5, Q7):
 * with F alone over `ranks`, 4·B·D / (M·W) on M axes; with D over X and F over Y·Z as well,
 * 2·B·D / (X·W) + 4·B·F / (YZ·W). */
double inference_1d_s(double batch, double width, double axes, double bytes_per_s);
double inference_2d_s(double batch, double width, double mlp_width, double x, double yz,
                      double bytes_per_s);
/* X of the smallest such sum on N chips, sqrt(N·D / (2·F)). The book prints sqrt(N)/8 for F = 4·D,
 * where sqrt(N/8) is right. */
double inference_2d_best_x(double chips, double width, double mlp_width);
/* Chips above which 2D beats 1D on three axes: 32·(F/D)·(3/4)^2, 72 for F = 4·D; the book says 81,
 * of a constant that it has rounded before it is squared. */
double inference_2d_crossover_chips(double width, double mlp_width);
/* Ranks up to which reading a share of an MLP's matrix, 2·D·F / (Y·W_hbm), takes longer than
 * moving its activations over one axis, 2·B·D / W (7.3.2): F·W / (B·W_hbm). */
double inference_1d_ranks(double batch, double mlp_width, double bytes_per_s,
                          double hbm_bytes_per_s);

/* FLOP of attention a byte, T queries and S keys, G heads of Q on one of K and V, bytes a of an
 * activation and c of a cached number (7.1.4): 4·G·T·S / (2·a·G·T + 2·c·S). Alike and G = 1:
 * S·T / (S + T) in 2-byte numbers. */
double inference_attention_intensity(double group, double queries, double keys,
                                     double activation_bytes, double kv_bytes);

/* Tokens that a loop of speculation gives (7.6.4): K drafts, each accepted with probability a, and
 * one of the target's own: (1 - a^(K+1)) / (1 - a). */
double inference_accepted_tokens(double acceptance, double drafts);
/* A loop: K steps of the draft model, one of the target's, which is bound by weights. */
double inference_speculation_s(double drafts, double target_s, double draft_s);

/* Servers of prefill that keep one of generation busy (8.1.2): a prompt takes prefill_s, and
 * `batch` of them leave each `tokens` steps. */
double inference_prefill_servers(double prefill_s, double step_s, double batch, double tokens);

#endif
