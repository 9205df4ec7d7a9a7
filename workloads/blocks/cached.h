/*
 * cached.h: attention to the cache, for every block that has rows in it: however the rows lie on
 * the ranks of tp, of tp_d and of cp.
 */
#ifndef WORKLOADS_BLOCKS_CACHED_H
#define WORKLOADS_BLOCKS_CACHED_H

#include "sim/graph/write.h"

/* How arrays are named that are made on the way, where ranks keep parts of the cache. */
struct cached_texts {
    const char *query, *found;             /* "Q" and "A". */
    const char *query_width, *found_width; /* Columns of a head: "H". */
    const char *axes, *head_axes; /* Mesh axes that tokens and heads lie on: "ZXW" and "Y". */
    const char *gathered[2];      /* Rows of prompts in the cache, of all ranks that have parts. */
    const char *gathered_own[2];  /* Rows that the pass computed, of all ranks that have parts. */
    const char *result;           /* "A[B_ZXW, N_YW, H]" */
};

/* Arrays that keys and values lie in: of the cache, and of the pass' own tokens. */
struct cached_rows {
    uint8_t count, own_count; /* 0: only the cache has them. */
    bool gathers_own; /* Ranks of cp gather rows of their own even where each keeps all of its. */
    tensor cached[2], own[2];
};

/* Attention of `query` to the cache. `rotated`: the part of the query that is rotated by position,
 * or GRAPH_NONE. Returns the attention's result, [tokens, heads, width]. */
tensor cached_attention(struct graph *graph, const struct cached_texts *of, tensor query,
                        tensor rotated, const struct cached_rows *rows);

/* Attention of the sequences that answer alone, where the block has ops of its own for the prompts
 * of the pass. `query` has the tokens of these sequences, and so has what is returned. */
tensor cached_answers_attention(struct graph *graph, const struct cached_texts *of, tensor query,
                                const struct cached_rows *rows);

/* Rows of prompts from all ranks that have parts of them, by one collective. */
void cached_rows_gather(struct graph *graph, uint8_t count, const tensor *rows,
                        const char *const *texts, tensor *ret_rows);

#endif
