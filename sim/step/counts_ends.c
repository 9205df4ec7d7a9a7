/* What lies before and behind the layers, and the update. */
#include "sim/base/vector.h"
#include "sim/step/counts_parts.h"
#include "sim/step/graph_terms.h"

void counts_ends_letters(struct letters *x)
{
    const struct local *local = x->local;
    static const enum block_part parts[] = {[COUNTS_EMBEDDING] = BLOCK_EMBEDDING,
                                            [COUNTS_HEAD] = BLOCK_HEAD,
                                            [COUNTS_HEAD_AGAIN] = BLOCK_HEAD,
                                            [COUNTS_MTP] = BLOCK_MTP,
                                            [COUNTS_MTP_AGAIN] = BLOCK_MTP};
    uint64_t const modules = local->predictors;
    uint64_t const counts[] = {[COUNTS_EMBEDDING] = 1,
                               [COUNTS_HEAD] = 1,
                               [COUNTS_HEAD_AGAIN] = modules,
                               [COUNTS_MTP] = modules != 0,
                               [COUNTS_MTP_AGAIN] = modules != 0 ? modules - 1 : 0};
    bool const used[] = {[COUNTS_EMBEDDING] = graph_terms_embedding_used(local),
                         [COUNTS_HEAD_AGAIN] = true,
                         [COUNTS_MTP_AGAIN] = true};
    for (uint32_t end = 0; end < COUNTS_ENDS; end++) {
        struct graph_terms terms;
        x->end[end].count = counts[end];
        if (counts[end] == 0) continue;
        graph_terms_of_end(local, used[end], &terms);
        counts_graph_derive(x, &terms, parts[end], local->plan->model.layers - 1,
                            &x->end[end].graph);
    }
}

static void count_update(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const updates = x->layers + (local_is_llama(local) ? 2 - local->tied : 0);
    counts->vector_flop +=
        counts_twins_share(x) + counts_summed_elements(x) + VECTOR_ADAM * counts_state_elements(x);
    counts->hbm_bytes += 3 * counts_twins_share(x) * x->g + 3 * counts_summed_elements(x) * x->g +
                         counts_state_elements(x) * (x->g + 4 * x->o + 2 * x->w);
    counts->compute_count +=
        (x->twins > 0 ? 2 : 0) + (local->copies > 1 ? 4 : 1) * updates + local->twin_reads;
}

void counts_ends(const struct letters *x, struct workload_counts *counts)
{
    count_update(x, counts);
    for (uint32_t end = 0; end < COUNTS_ENDS; end++)
        if (x->end[end].count != 0) counts_graph_add(x, &x->end[end], counts);
    /* The head's backward pass follows at once, and what it reads lies in buffers. */
    for (enum counts_end end = COUNTS_MTP; end <= COUNTS_MTP_AGAIN; end++)
        counts->activation_bytes += (double)(x->end[end].count * x->end[end].graph.kept_bytes);
}
