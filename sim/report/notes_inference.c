#include "sim/report/notes_inference.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/collective/algorithm.h"
#include "sim/report/inference_facts.h"
#include "sim/report/table.h"

static bool is_said(const struct analysis *facts, uint32_t class_index)
{
    const struct analysis_class *of = &facts->classes[class_index];
    for (uint32_t c = 0; c < class_index; c++)
        if (name_same(facts->classes[c].kind, of->kind) &&
            name_same(facts->classes[c].algorithm, of->algorithm))
            return true;
    return false;
}

/* Which algorithms `auto` took, each once for every kind of collective. */
static void algorithms_add(struct arena *arena, const struct report_input *input,
                           const struct analysis *facts, struct notes *notes)
{
    char list[512] = "";
    if (algorithm_of(input->workload->algorithm).means != ALGORITHM_AUTO) return;
    for (uint32_t c = 0; c < facts->class_count; c++) {
        const struct analysis_class *of = &facts->classes[c];
        size_t const used = strlen(list);
        if (of->algorithm == NULL || of->rank_count < 2 || is_said(facts, c)) continue;
        (void)snprintf(list + used, sizeof list - used, "%s%s by %s", used == 0 ? "" : ", ",
                       of->kind, of->algorithm);
    }
    if (list[0] != '\0') notes_add(arena, notes, "algorithm \"auto\" took %s", list);
}

/* What a seed has drawn of a distribution. */
static void drawn_add(struct arena *arena, const char *what, const struct lengths *lengths,
                      struct notes *notes)
{
    const struct lengths_distribution *of = &lengths->of;
    uint64_t least = UINT64_MAX, most = 0;
    double sum = 0;
    if (of->mean == 0) return;
    for (uint32_t i = 0; i < lengths->count; i++) {
        least = lengths->tokens[i] < least ? lengths->tokens[i] : least;
        most = lengths->tokens[i] > most ? lengths->tokens[i] : most;
        sum += (double)lengths->tokens[i];
    }
    notes_add(arena, notes, "%s lengths are drawn (%s, mean %s): %s to %s tokens, %s in the mean",
              what, lengths_shape_names[of->shape], table_count(of->mean).text,
              table_count(least).text, table_count(most).text,
              table_count((uint64_t)(sum / lengths->count + 0.5)).text);
}

/* All of it is the simulated step's difference from the formula, term by term. */
void notes_inference_build(struct arena *arena, const struct report_input *input,
                           const struct analysis *facts, struct notes *notes)
{
    struct inference_facts const inference = inference_facts_of(input, facts);
    const struct inference_step *book = &inference.book;
    const struct inference_plan *plan = &input->workload->inference;
    double const hbm = (double)input->machine->chip.hbm_bytes_per_s;
    double const weights_s = inference.weight_bytes / hbm, kv_s = inference.kv_read_bytes / hbm;
    drawn_add(arena, "prompts'", &plan->prompts.tokens, notes);
    drawn_add(arena, "contexts'", &plan->decodes.context, notes);
    notes_add(arena, notes,
              "the book's formula (7.1.5) gives %s for this step, the simulation %s: it has no "
              "collectives, of which %s is exposed here, and hides each product's math behind all "
              "weights",
              table_seconds(book->step_s).text, table_instant(facts->step_s).text,
              table_seconds(facts->exposed_s).text);
    if (weights_s < book->weights_s * 0.999)
        notes_add(arena, notes,
                  "weights take %s to read where the formula says %s: of the embedding only the "
                  "rows of the batch are read, and of experts those that are asked",
                  table_seconds(weights_s).text, table_seconds(book->weights_s).text);
    if (kv_s > book->kv_s * 1.001)
        notes_add(arena, notes,
                  "the cache takes %s to read where the formula says %s: prompts read their own "
                  "rows too, ranks of tp that hold the same heads of keys read the same ones, or "
                  "the ranks' sequences are not equally long",
                  table_seconds(kv_s).text, table_seconds(book->kv_s).text);
    if (inference.hop_floor_s > 0)
        notes_add(arena, notes,
                  "a step is a chain: the hops of its collectives take %s whatever the batch, "
                  "%.0f%% of the step",
                  table_seconds(inference.hop_floor_s).text,
                  100 * inference.hop_floor_s / facts->step_s);
    algorithms_add(arena, input, facts, notes);
}
