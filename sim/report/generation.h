/*
 * generation.h: a generation that was simulated: how long the prefill takes, and each step behind
 * it. A step starts when all chips have ended the one before, so times add up; the steps of a page
 * take as long as the last of them, which was simulated.
 */
#ifndef SIM_REPORT_GENERATION_H
#define SIM_REPORT_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/report/inference_analysis.h"

struct arena;
struct column_line;
struct json_writer;
struct strbuf;

/* The prefill, or the steps of a page. */
struct generation_page {
    char name[64];        /* "prefill", "1", "1 to 64" */
    uint64_t first, last; /* Steps, counted from 1; 0: it is the prefill. */
    int64_t step_ps;      /* The time of one step. */
    int64_t end_ps;       /* The end of the last step, since the start of the prefill. */
    double compute_s, exposed_s, idle_s;
    struct inference_analysis inference;
};

/* Of all steps behind the prefill. */
struct generation_times {
    int64_t least_ps, most_ps;
    int64_t half_ps; /* Half of the steps take no longer. */
    int64_t tail_ps; /* 99 of 100 take no longer. */
};

struct generation {
    struct generation_page *page; /* The prefill first. */
    uint32_t page_count;
    bool infers;         /* A model is known; without one `inference`, `fit` and the like are 0. */
    uint64_t page_steps; /* Steps of a full page. */
    uint64_t sequences, output;
    uint64_t chips;
    struct generation_times times;
    struct inference_fit fit; /* What fits up to the last token, with the buffers of the prefill. */
    struct inference_fit fit_of_gib; /* What fits up to there if the data sheet's GB are GiB. */
};

/* Room for `pages`, the prefill among them. The input is of the prefill with the last step behind
 * it; without a roofline it is of a program's text. STATUS_NO_MEMORY. */
enum status generation_begin(struct arena *arena, const struct report_input *input, uint64_t output,
                             uint32_t pages, struct generation *ret_generation,
                             struct error *reterr);
/* The next page: the input is of its last step, or of the prefill, and `last` that step. */
enum status generation_add(struct arena *arena, const struct report_input *input, uint64_t last,
                           struct generation *generation, struct error *reterr);
/* When all are there. */
void generation_end(struct generation *generation);

int64_t generation_total_ps(const struct generation *generation);
/* The book's formula for the whole, each step by itself. */
double generation_book_s(const struct generation *generation);
/* Tokens that all sequences get, the first ones among them. */
uint64_t generation_tokens(const struct generation *generation);

/* Lines of the summary; the member "generation" of a result; a row for each page. */
void generation_print(const struct generation *generation, struct strbuf *text);
void generation_write(const struct generation *generation, struct json_writer *json);
/* The columns of CSV. */
extern const struct column_line generation_cells;
void generation_write_csv(const struct generation *generation, struct strbuf *text);

#endif
