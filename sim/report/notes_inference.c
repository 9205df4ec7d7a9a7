#include "sim/report/notes_inference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/graph/parameters.h"
#include "sim/report/generation.h"
#include "sim/report/inference_analysis.h"
#include "sim/report/table.h"
#include "sim/report/words.h"
#include "sim/step/ranks.h"

static bool is_said(const struct analysis *analysis, uint32_t class_index)
{
    const struct analysis_class *of = &analysis->classes[class_index];
    for (uint32_t c = 0; c < class_index; c++)
        if (analysis->classes[c].runs == of->runs && analysis->classes[c].by != NULL &&
            algorithm_equal(analysis->classes[c].by, of->by))
            return true;
    return false;
}

/* Which algorithms `auto` took, each once for every kind of collective. */
static void algorithms_add(struct arena *arena, const struct report_input *input,
                           const struct analysis *analysis, struct notes *notes)
{
    char list[512] = "";
    if (!algorithm_is_chosen(&input->workload->algorithm)) return;
    for (uint32_t c = 0; c < analysis->class_count; c++) {
        const struct analysis_class *of = &analysis->classes[c];
        size_t const used = strlen(list);
        if (of->by == NULL || of->rank_count < 2 || is_said(analysis, c)) continue;
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

/* All new tokens count, whatever a server keeps of them. */
static void drafts_note(struct arena *arena, const struct inference_plan *plan, struct notes *notes)
{
    uint64_t const new_tokens = plan->decodes.new_tokens;
    double const accepted = 0.8; /* As the book has it, and Leviathan et al. in their examples. */
    if (plan->decodes.count == 0 || new_tokens < 2) return;
    notes_add(arena, notes,
              "each sequence verifies %s, and tokens/s count all %s of its tokens: a ceiling, "
              "which is reached if every draft is accepted. If one is with probability a, a step "
              "gives (1 - a^%s)/(1 - a) tokens in the mean (Leviathan et al. 2023): %.3g with a = "
              "%.1f, %.0f%% of tokens/s",
              counted(new_tokens - 1, "draft").text, table_count(new_tokens).text,
              table_count(new_tokens).text,
              (1 - pow(accepted, (double)new_tokens)) / (1 - accepted), accepted,
              100 * (1 - pow(accepted, (double)new_tokens)) / (1 - accepted) / (double)new_tokens);
}

static double ends_s(const struct trace *trace)
{
    int64_t ends_ps = 0;
    for (uint32_t p = 0; p < trace->phase_count; p++) ends_ps += trace->phase[p].ends_ps;
    return units_seconds(ends_ps);
}

/* Of the formula's time for weights, that of some of them. */
static double weights_share_s(const struct workload_plan *plan, enum format format,
                              uint64_t elements, double weights_s)
{
    return weights_s * (double)format_stored_bytes(format, elements) /
           inference_book_model(plan).parameter_bytes;
}

/* Matrices that are looked up only: a tied one is the head's too, which reads it. */
static double embedding_s(const struct workload_plan *plan, double weights_s)
{
    struct model_counts const counts = model_count(&plan->model);
    uint64_t const elements = counts.head_matrix + counts.positions; /* As large as the head's. */
    return weights_share_s(plan, plan->formats.weights, elements, weights_s);
}

/* The head's matrix, in passes without logits. */
static double headless_s(const struct workload_plan *plan, double weights_s)
{
    struct model_counts const counts = model_count(&plan->model);
    bool const tied = plan->model.tied;
    uint32_t const passes = inference_pass_count(plan), heads = inference_head_passes(plan);
    enum format const format = tied ? plan->formats.weights : plan->inference.head;
    uint64_t const elements = tied ? counts.embedding : counts.head_matrix;
    return weights_share_s(plan, format, elements, weights_s) * (passes - heads) / passes;
}

/* What the ranks' weights have more than the formula, or less. */
static const char *weights_rest(const struct report_input *input, double more_s)
{
    if (more_s >= 0) return "ranks hold copies and padding";
    if (model_has_experts(&input->workload->model))
        return "experts that no token asks for are not read";
    return input->mesh->axis[MESH_PP].size > 1
               ? "batches whose prompts are shorter have fewer passes"
               : NULL;
}

enum { REASONS_BYTES = 384 };

/* One more reason, unless it is less than what is said of a difference. */
static void reason_add(char reasons[REASONS_BYTES], const char *why, double more_s, double least_s)
{
    size_t const used = strlen(reasons);
    if (why == NULL || fabs(more_s) < least_s) return;
    (void)snprintf(reasons + used, REASONS_BYTES - used, "%s%s, %s %s", used == 0 ? ": " : "; ",
                   why, table_seconds(fabs(more_s)).text, more_s < 0 ? "less" : "more");
}

static void weights_note(struct arena *arena, const struct report_input *input,
                         const struct inference_analysis *inference, struct notes *notes)
{
    double const book_s = inference->book.weights_s, read_s = inference->weight_load_s;
    double const least_s = book_s * 0.001;
    double const looked_up_s = embedding_s(input->workload, book_s),
                 without_s = headless_s(input->workload, book_s),
                 bytes_per_s = (double)input->machine->chip.hbm_bytes_per_s,
                 again_s = input->roofline->counts.inference.again_bytes / bytes_per_s,
                 wider_s = input->roofline->counts.inference.wider_bytes / bytes_per_s;
    double const more_s = read_s - again_s - wider_s - (book_s - looked_up_s - without_s);
    char reasons[REASONS_BYTES] = "";
    if (fabs(read_s - book_s) < least_s) return;
    reason_add(reasons, "the embedding is looked up and not read", -looked_up_s, least_s);
    reason_add(reasons, "the head is read where a prompt ends", -without_s, least_s);
    reason_add(reasons, "prompts and decodes both read what brings latents up", again_s, least_s);
    reason_add(reasons, "kernels multiply copies of weights in another format", wider_s, least_s);
    reason_add(reasons, weights_rest(input, more_s), more_s, least_s);
    notes_add(arena, notes, "weights take %s to read where the formula says %s%s",
              table_seconds(read_s).text, table_seconds(book_s).text, reasons);
}

/* The least busy attention: what its cores have to do of what all could. */
static void cores_note(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct program *program = input->program;
    uint64_t idle_ppm = 0;
    for (uint32_t i = 0; i < program->work_count; i++)
        if (program->works[i].idle_core_ppm > idle_ppm) idle_ppm = program->works[i].idle_core_ppm;
    if (idle_ppm < PPM_ONE / 4) return;
    notes_add(arena, notes, "attention keeps %.3g of the %u %s busy in the mean: %s",
              (1 - (double)idle_ppm / (double)PPM_ONE) * input->machine->chip.core.count,
              input->machine->chip.core.count, words_of_chip(&input->machine->chip, WORDS_CORES),
              input->workload->inference.whole_units
                  ? "\"split_attention\": false gives each sequence and head of keys one"
                  : "sequences and heads of keys are few, and too short to be split further");
}

/* Whether some collective goes chunk by chunk with a product. */
static bool goes_in_chunks(const struct program *program)
{
    bool any = false;
    for (uint32_t i = 0; i < program->plan_count; i++)
        any = any || program->plans[i].chunk_count != 0;
    return any;
}

static void chunks_note(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    if (!input->workload->collective_matmul || input->mesh->axis[MESH_TP].size < 2 ||
        goes_in_chunks(input->program))
        return;
    notes_add(arena, notes,
              "collective_matmul changes nothing here: over several axes of links an array goes "
              "chunk by chunk only if it is large enough for its pieces to be worth their hops");
}

/* Whether ranks have the same heads of keys, and read the same rows unless these are split. */
static bool heads_are_shared(const struct report_input *input)
{
    return ranks_key_holders(&input->workload->model, input->mesh->axis[MESH_TP].size) > 1 ||
           input->mesh->axis[MESH_TP_D].size > 1;
}

/* KV heads that pad ranks of tp to equal numbers. Latents have none. */
static uint64_t heads_padded(const struct report_input *input)
{
    const struct model *model = &input->workload->model;
    uint32_t const tp = input->mesh->axis[MESH_TP].size;
    struct ranks_heads const heads = ranks_heads_of(model, tp);
    return model_has_mla(model) ? 0 : heads.kv_distinct - model->kv_heads;
}

/* The formula has the cache read by decodes alone, and evenly by all chips. */
static void cache_note(struct arena *arena, const struct report_input *input,
                       const struct inference_analysis *inference, struct notes *notes)
{
    if (inference->kv_load_s <= inference->book.kv_s * 1.001) return; /* The bare MLP has none. */
    bool const prompts = inference_sum(input->workload, INFERENCE_PROMPTS).sequences > 0;
    bool const decodes = inference_sum(input->workload, INFERENCE_DECODES).sequences > 0;
    bool const shared = heads_are_shared(input);
    bool const alike = input->workload->inference.ways.sharding == INFERENCE_REPLICATED;
    bool const apart = input->machine->chip_count > input->mesh->axis[MESH_TP].size;
    uint64_t const padded = heads_padded(input);
    bool const uneven = apart || (shared && !alike) || (!shared && !prompts && padded == 0);
    if (!decodes)
        notes_add(arena, notes,
                  "prompts read their own rows of the cache, which takes %s; the formula has none "
                  "of these reads",
                  table_seconds(inference->kv_load_s).text);
    else
        notes_add(
            arena, notes, "the cache takes %s to read where the formula says %s: %s%s%s%s%s%s%s%s",
            table_seconds(inference->kv_load_s).text, table_seconds(inference->book.kv_s).text,
            padded > 0 ? counted(padded, "KV head").text : "",
            padded > 1    ? " are padding"
            : padded == 1 ? " is padding"
                          : "",
            padded > 0 && (prompts || shared) ? ", " : "",
            prompts ? "prompts read their own rows too" : "", prompts && shared ? ", " : "",
            shared ? "ranks of tp with the same KV heads read the same rows" : "",
            (prompts || shared || padded > 0) && uneven ? ", or " : "",
            uneven ? "ranks have unequal numbers or lengths of sequences" : "");
}

/* Where rows of prompts lie in parts: queries go to parts of tp, and results of parts of tp_d are
 * added up. */
static void prompts_note(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct workload_heads *heads = &input->roofline->counts.heads;
    bool const latents = model_has_mla(&input->workload->model);
    if (heads->spread_passes > 0)
        notes_add(arena, notes,
                  "prompts of %s attend to cached rows of earlier tokens, or to those of another "
                  "layer, and each rank of tp with the same heads keeps only a part: the queries "
                  "of prompts travel between these ranks, and the results come back. With "
                  "\"kv_sharding\": \"replicated\" each rank keeps all, and nothing "
                  "travels",
                  counted(heads->spread_passes, "pass").text);
    if (heads->summed_passes > 0)
        notes_add(arena, notes,
                  "prompts of %s attend where each rank of tp_d keeps a part of the rows of every "
                  "sequence: the ranks add up what each finds for every token of the prompts, in "
                  "fp32%s. With \"kv_sharding\": \"replicated\" each rank keeps all rows, and "
                  "nothing is added up",
                  counted(heads->summed_passes, "pass").text,
                  latents ? ", and prompts attend to latents, as decodes do" : "");
}

/* What the simulated step has that the formula lacks, and what each has otherwise. */
void notes_inference_build(struct arena *arena, const struct report_input *input,
                           const struct analysis *analysis, struct notes *notes)
{
    struct inference_analysis const inference = inference_analysis_of(input, analysis);
    struct inference_shares const shares = inference_shares_of(input, analysis);
    const struct inference_step *book = &inference.book;
    const struct inference_plan *plan = &input->workload->inference;
    drawn_add(arena, "prompts'", &plan->prompts.tokens, notes);
    char bubble[128] = "";
    drawn_add(arena, "contexts'", &plan->decodes.context, notes);
    drafts_note(arena, plan, notes);
    if (inference.stages.batches > 0)
        (void)snprintf(bubble, sizeof bubble, "; no stages that wait for one another, %s",
                       table_seconds(inference.stages.bubble_s).text);
    notes_add(
        arena, notes,
        "the book's formula (7.1.5) gives %s for this step, the simulation %s. The formula "
        "has no collectives, of which %s is exposed here, %s of that hops; no launches, %s; "
        "no norms, look-ups and sampling, %s%s; no activations that products and attention read "
        "and write, %s that math does not hide; and no ends of tile pipelines, %s",
        table_seconds(book->step_s).text, table_seconds(analysis->step_s).text,
        table_seconds(analysis->exposed_s).text, table_seconds(shares.s[INFERENCE_SHARE_HOPS]).text,
        table_seconds(shares.s[INFERENCE_SHARE_LAUNCHES]).text,
        table_seconds(fmax(shares.s[INFERENCE_SHARE_OTHER] - inference.stages.bubble_s, 0)).text,
        bubble, table_seconds(inference.activations.wait_s).text,
        table_seconds(ends_s(input->trace)).text);
    weights_note(arena, input, &inference, notes);
    cache_note(arena, input, &inference, notes);
    prompts_note(arena, input, notes);
    if (inference.math_s > book->math_s * 1.001)
        notes_add(arena, notes,
                  "products take %s where the formula says %s: %srows are padded to %d, matrices "
                  "to the units' sides, and ranks of tp compute some alike",
                  table_seconds(inference.math_s).text, table_seconds(book->math_s).text,
                  plan->decodes.count > 0 ? "attention's of decodes are among them, " : "",
                  WORK_EDGE_ROWS);
    if (inference.hop_floor_s > 0)
        notes_add(arena, notes,
                  "a step is a chain: the hops of its collectives%s take %s whatever the batch, "
                  "%.0f%% of the step",
                  inference.stages.batches > 0 ? " and messages" : "",
                  table_seconds(inference.hop_floor_s).text,
                  100 * inference.hop_floor_s / analysis->step_s);
    cores_note(arena, input, notes);
    chunks_note(arena, input, notes);
    algorithms_add(arena, input, analysis, notes);
}

void notes_generation_build(struct arena *arena, const struct report_input *input,
                            struct notes *notes)
{
    const struct generation *generation = input->generation;
    const struct inference_plan *plan = &input->workload->inference;
    double const total_s = units_seconds(generation_total_ps(generation));
    double const book_s = generation_book_s(generation);
    drawn_add(arena, "prompts'", &plan->prompts.tokens, notes);
    if (generation->page_steps > 1)
        notes_add(arena, notes,
                  "steps are simulated at the end of each page of %s, and all of a page take as "
                  "long: the first of them read up to %s rows of each sequence that are not there "
                  "yet; \"page\": 1 simulates every step",
                  table_count(generation->page_steps).text,
                  table_count(generation->page_steps - 1).text);
    notes_add(arena, notes,
              "a step starts when all chips have ended the one before; what a server does between "
              "steps is not counted");
    notes_add(arena, notes,
              "the book's formula (7.1.5) gives %s for all steps, the simulation %s: it has no "
              "collectives",
              table_seconds(book_s).text, table_seconds(total_s).text);
    prompts_note(arena, input, notes);
    notes_add(arena, notes,
              "memory and the timeline are of the prefill and the last step, which has the most in "
              "the cache");
}
