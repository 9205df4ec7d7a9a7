/*
 * The sequences that a pass is charged, of data ranks that have different ones: in a layer all wait
 * for the rank whose attention takes longest. How long it takes is what its ops take on the chip,
 * written once for all ranks, each with the sequences of one of them.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/resource/compute.h"
#include "sim/step/graph_terms.h"
#include "sim/step/inference_sequences.h"
#include "sim/step/ranks.h"

enum { NEAR = 1024 }; /* A time and one that is longer by a part of it are about equal. */

/* Sequences of a rank, by kind. */
struct served {
    struct graph_served part[INFERENCE_PARTS];
};

/* A layer as ops, with the sequences of some rank. */
struct layer {
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
};

static struct served served_at(const struct ranks *ranks, uint64_t n, uint64_t window)
{
    struct served served;
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        served.part[p] = inference_served_at(ranks, (enum inference_part)p, n, window);
    return served;
}

static units_wide scores_of(const struct served *served)
{
    units_wide scores = 0;
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        scores += (units_wide)served->part[p].rows * served->part[p].columns;
    return scores;
}

static void charge(struct ranks *ranks, const struct served *served, bool windowed)
{
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        ranks->inference.served[p][windowed] = served->part[p];
}

/* The first kind of layer that has a window, or that has none. False: the model has no such layer.
 */
static bool layer_write(const struct ranks *ranks, bool windowed, struct layer *ret_layer)
{
    uint32_t kind = 0;
    while (kind < ranks->kinds.count && ranks->kinds.kind[kind].windowed != windowed) kind++;
    if (kind == ranks->kinds.count) return false;
    struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
    graph_terms_of_part(ranks, &part, &ret_layer->terms);
    block_write_layer(&ret_layer->terms, &ranks->plan->model, &ret_layer->graph);
    memset(&ret_layer->sharded, 0, sizeof ret_layer->sharded);
    ret_layer->sharded.graph = &ret_layer->graph;
    return true;
}

static int64_t attention_ps(const struct ranks *ranks, struct layer *layer,
                            const struct served *served)
{
    int64_t sum_ps = 0;
    layer->terms.cache.decodes = served->part[INFERENCE_DECODES];
    layer->terms.cache.prompts = served->part[INFERENCE_PROMPTS];
    for (uint8_t i = 0; i < layer->graph.op_count; i++) {
        const struct graph_op *op = &layer->graph.op[i];
        /* Of rings the one with most scores is charged. */
        if (!op->kind->attends || op->kind->shares_sequence) continue;
        struct work work;
        op->kind->work(&layer->sharded, op, OP_FORWARD, &work);
        sum_ps += compute_time(&ranks->machine->chip, &work, PPM_ONE, PPM_ONE).duration_ps;
    }
    return sum_ps;
}

/* The rank that has been found to take longest. */
struct longest {
    struct served served;
    units_wide scores;
    int64_t attention_ps;
};

/* Of ranks that take about equally long, as shares of cores are rounded, the one with most scores
 * is taken. Where no layer is there, all take equally long. */
static void compare(const struct ranks *ranks, struct layer *layer, const struct served *served,
                    struct longest *longest)
{
    units_wide const scores = scores_of(served);
    int64_t const own_ps = layer == NULL ? 0 : attention_ps(ranks, layer, served);
    int64_t const near_ps = longest->attention_ps / NEAR;
    if (own_ps + near_ps < longest->attention_ps) return;
    if (own_ps <= longest->attention_ps + near_ps && scores <= longest->scores) return;
    int64_t const longer_ps = own_ps > longest->attention_ps ? own_ps : longest->attention_ps;
    *longest = (struct longest){*served, scores, longer_ps};
}

/* Rows of prompts are those of the rank that has most, for which ranks that gather them wait. Most
 * often ranks are alike, and nothing is compared. */
static void charged_find(struct ranks *ranks, bool windowed, uint64_t window)
{
    uint32_t const keepers = inference_keepers(ranks);
    uint64_t const all = inference_sharers(ranks) * keepers;
    struct longest longest = {.scores = 0};
    struct served last = {{{0}}};
    struct layer layer, *written = NULL;
    bool compares = false;
    uint64_t rows = 0;
    for (uint64_t n = 0; n < all; n++) {
        if (!inference_is_charged(ranks, n / keepers)) continue;
        struct served const served = served_at(ranks, n, window);
        rows = units_larger(rows, served.part[INFERENCE_PROMPTS].read);
        if (scores_of(&served) == 0 || memcmp(&served, &last, sizeof last) == 0) continue;
        last = served;
        if (longest.scores == 0) {
            longest = (struct longest){served, scores_of(&served), 0};
            continue;
        }
        if (!compares) {
            compares = true;
            charge(ranks, &longest.served, windowed);
            if (layer_write(ranks, windowed, &layer)) written = &layer;
            if (written != NULL)
                longest.attention_ps = attention_ps(ranks, written, &longest.served);
        }
        compare(ranks, written, &served, &longest);
    }
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        longest.served.part[p].scores =
            inference_scores_all(ranks->plan, ranks->pass.index, (enum inference_part)p, window);
    charge(ranks, &longest.served, windowed);
    ranks->inference.prompt_rows[windowed] = rows;
}

void inference_charge(struct ranks *ranks)
{
    uint64_t const window = ranks->plan->model.attends.window;
    charged_find(ranks, /* windowed= */ false, UINT64_MAX);
    if (window != 0) charged_find(ranks, /* windowed= */ true, window);
}
