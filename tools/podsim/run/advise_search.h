/*
 * advise_search.h: neighbours while they are simulated. Internal to advise.
 */
#ifndef TOOLS_PODSIM_RUN_ADVISE_SEARCH_H
#define TOOLS_PODSIM_RUN_ADVISE_SEARCH_H

#include "tools/podsim/common/pool.h"
#include "tools/podsim/run/advise.h"

struct advise_search {
    const struct session_source *source;
    const struct session *session; /* The session of the scenario itself. */
    struct worker *worker;
    struct pool pool; /* Neighbours that do not depend on one another are simulated together. */
    struct advise *advise;
    bool shards; /* Replicas that do not fit become shards: dp is called fsdp in every split. */
};

/* Plays the scenario with the settings of each row, unless that has been done, on as many threads
 * as there are. */
enum status advise_rows_add(struct advise_search *search, const struct advise_row *rows,
                            uint32_t count, struct error *reterr);
enum status advise_row_add(struct advise_search *search, struct advise_row row,
                           struct error *reterr);

/* The best so far: advise->best. */
void advise_best_find(struct advise *advise);

/* Neighbours of a step of inference (advise_inference.c). */
enum status advise_inference(struct advise_search *search, struct error *reterr);

/* Length in steps of a page of a neighbour's answer. Each step takes the time of the page's last
 * one. It is the scenario's page, or a longer one where the answer would have more than
 * ADVISE_PAGES_MAX pages. */
uint64_t advise_page(const struct inference_generation *of);

#endif
