/* The figures of a step of inference, as lines and as members of JSON. */
#include "sim/report/inference_analysis.h"

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"

/* How many sequences fit a slice, and the smallest slice that would do. "2x4"; of GPUs "16 GPUs".
 */
#define FITS(X)                                                                                    \
    X(BATCH_MOST, "max_batch", WHERE(fit->has_cache, WHOLE(fit->max_batch)),                       \
      IN_WORDS(column_count))                                                                      \
    X(ESTIMATED, "max_batch_is_estimate", WHERE(fit->has_cache, FLAG(fit->is_estimate)), HIDDEN)   \
    X(REFUSED, "max_batch_refused", WHERE(fit->refused.batch > 0, WORDS(fit->refused.reason)),     \
      HIDDEN)                                                                                      \
    X(SLICE, "smallest_slice", HAS_SLICE(SAID(fit->smallest.slice, fit->of_gpus ? gpus : NULL)),   \
      .look = column_words, .none = "none")                                                        \
    X(SLICE_CHIPS, "smallest_slice_chips", HAS_SLICE(WHOLE(fit->smallest.chip_count)), HIDDEN)     \
    X(SLICE_TRIED, "smallest_slice_is_tried", HAS_SLICE(FLAG(fit->is_tried)), HIDDEN)              \
    X(SLICE_ESTIMATED, "smallest_slice_is_estimate",                                               \
      HAS_SLICE(WHERE(fit->slice_is_estimate, FLAG(true))), HIDDEN)
#define HAS_SLICE(value) WHERE(fit->smallest.chip_count > 0, value)

#define TABLE(X)                                                                                   \
    X(PHASE, "phase", WORDS(inference->phase), IN_WORDS(column_words))                             \
    X(BATCH, "batch", WHOLE(inference->sequences), HIDDEN)                                         \
    X(BATCHES, "batches_in_flight",                                                                \
      WHERE(inference->stages.batches > 0, WHOLE(inference->stages.batches)), HIDDEN)              \
    X(TOKENS, "tokens", WHOLE(inference->tokens), HIDDEN)                                          \
    X(CONTEXT, "context_tokens", WHOLE(inference->context_tokens), HIDDEN)                         \
    X(LINEAR, "linear_s", REAL(inference->linear_s), NAMED("linear", column_seconds))              \
    X(ATTENTION, "attention_s", REAL(inference->attention_s), NAMED("attention", column_seconds))  \
    X(OTHER, "other_s", REAL(inference->other_s), NAMED("other ops", column_seconds))              \
    X(WEIGHT_LOAD, "weight_load_s", REAL(inference->weight_load_s), IN_WORDS(column_seconds))      \
    X(KV_LOAD, "kv_load_s", REAL(inference->kv_load_s), IN_WORDS(column_seconds))                  \
    X(ACTIVATION_LOAD, "activation_load_s", REAL(inference->activations.load_s),                   \
      NAMED("activations", column_seconds))                                                        \
    X(MATH, "math_s", REAL(inference->math_s), NAMED("math", column_seconds))                      \
    X(DOMINANT, "dominant",                                                                        \
      SAID(inference_share_word(inference->dominant), dominant_text(inference)),                   \
      IN_WORDS(column_words))                                                                      \
    X(WEIGHTS, "weight_bytes_per_chip", REAL(inference->weight_bytes), IN_WORDS(column_bytes))     \
    X(PREFETCHED, "prefetched_bytes_per_chip", REAL(inference->prefetched_bytes),                  \
      IN_WORDS(column_bytes))                                                                      \
    X(KV_TOKEN, "kv_bytes_per_token", REAL(inference->kv_bytes_per_token), IN_WORDS(column_bytes)) \
    X(KV_READ, "kv_read_bytes_per_chip", REAL(inference->kv_read_bytes), IN_WORDS(column_bytes))   \
    X(ACTIVATIONS, "activation_bytes_per_chip", REAL(inference->activations.bytes),                \
      IN_WORDS(column_bytes))                                                                      \
    X(KV_HELD, "kv_bytes_per_chip", REAL(inference->kv_bytes), HIDDEN)                             \
    X(HOP_FLOOR, "hop_floor_s", REAL(inference->hop_floor_s), NAMED("hop floor", column_seconds))  \
    X(LAUNCH_FLOOR, "launch_floor_s", REAL(inference->launches.floor_s),                           \
      NAMED("launch floor", column_seconds))                                                       \
    X(LAUNCH, "launch", WORDS(inference->launches.by), IN_WORDS(column_words))                     \
    X(LAUNCH_EACH, NULL,                                                                           \
      WHERE(inference->launches.count > 0,                                                         \
            REAL(inference->launches.floor_s / inference->launches.count)),                        \
      IN_WORDS(column_seconds))                                                                    \
    X(LAUNCHES, NULL, WHOLE(inference->launches.count), IN_WORDS(column_count))                    \
    X(CHIP_RATE, "tokens_per_s_per_chip", REAL(inference->tokens_per_s_per_chip),                  \
      IN_WORDS(column_rounded))                                                                    \
    X(BOOK_KV, "kv_s", REAL(inference->book.kv_s), IN_WORDS(column_seconds))                       \
    X(BOOK_WEIGHTS, "weights_s", REAL(inference->book.weights_s), IN_WORDS(column_seconds))        \
    X(BOOK_MATH, "math_s", REAL(inference->book.math_s), IN_WORDS(column_seconds))                 \
    X(BOOK, "step_s", REAL(inference->book.step_s), NAMED("book", column_seconds))

enum { FITS(COLUMN_NAME) FITS_TOTAL };
enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column fit_columns[] = {FITS(COLUMN_ENTRY)};
static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

/* In the words of inference_shares.h. */
static const char *const dominant_texts[INFERENCE_SHARE_COUNT] = {
    [INFERENCE_SHARE_WEIGHTS] = "reading weights",
    [INFERENCE_SHARE_KV] = "attention, which reads the cache",
    [INFERENCE_SHARE_MATH] = "products",
    [INFERENCE_SHARE_HOPS] = "the hops of its collectives",
    [INFERENCE_SHARE_BYTES] = "the bytes of its collectives",
    [INFERENCE_SHARE_LAUNCHES] = "launches",
    [INFERENCE_SHARE_OTHER] = "ops without products",
};

static const char *dominant_text(const struct inference_analysis *inference)
{
    bool const waits = inference->stages.bubble_s > inference->other_s;
    return waits && inference->dominant == INFERENCE_SHARE_OTHER
               ? "bubbles, as stages are without work"
               : dominant_texts[inference->dominant];
}

static void find(const struct inference_analysis *inference, struct column_value *ret_values)
{
    TABLE(COLUMN_FIND)
}

static void find_fit(const struct inference_fit *fit, const char *gpus,
                     struct column_value *ret_values)
{
    FITS(COLUMN_FIND)
}

void inference_fit_put(const struct inference_fit *fit, struct json_writer *json)
{
    struct column_value values[FITS_TOTAL];
    find_fit(fit, "", values);
    column_put(fit_columns, values, 0, FITS_TOTAL - 1, json);
}

void inference_analysis_write(const struct inference_analysis *inference, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    find(inference, values);
    json_put_object(json, "inference");
    column_put(columns, values, 0, KV_HELD, json);
    inference_fit_put(&inference->fit, json);
    json_put_object(json, "hbm_gib");
    inference_fit_put(&inference->fit_of_gib, json);
    json_write_object_end(json);
    column_put(columns, values, HOP_FLOOR, CHIP_RATE, json);
    json_put_object(json, "book");
    column_put(columns, values, BOOK_KV, BOOK, json);
    json_write_object_end(json);
    json_write_object_end(json);
}

#define FIGURE(name) CELL(columns, values, name)

enum { WORDS_COLUMN = 23 };

/* The name of a line, and its first figure. */
static void line_begin(const struct column_value *values, uint32_t column, struct strbuf *text)
{
    table_line(text, columns[column].heading[1]);
    strbuf_add(text, "%s", columns[column].look(values[column]).text);
}

/* And what it is, below that of the line before. */
static void line_begin_words(const struct column_value *values, uint32_t column,
                             struct strbuf *text)
{
    line_begin(values, column, text);
    strbuf_pad(text, WORDS_COLUMN);
}

static void launches_print(const struct inference_analysis *inference,
                           const struct column_value *values, struct strbuf *text)
{
    line_begin_words(values, LAUNCH_FLOOR, text);
    if (inference->launches.count > 0)
        strbuf_add(text, "eager: the host needs %s for each of %s ops\n", FIGURE(LAUNCH_EACH),
                   FIGURE(LAUNCHES));
    else if (inference->launches.floor_s > 0)
        strbuf_add(text, "%s: overheads of computes, one after the other\n", FIGURE(LAUNCH));
    else
        strbuf_add(text, "%s: launches take no time\n", FIGURE(LAUNCH));
}

/* Before the name of a slice, if there is one. */
static const char *slice_bound(const struct inference_fit *fit)
{
    if (fit->smallest.chip_count == 0) return "";
    return fit->slice_is_estimate ? "about " : "at least ";
}

/* The words of the line. */
static void slice_add(const struct inference_fit *fit, const struct column_value *values,
                      struct strbuf *line)
{
    strbuf_add(line, "%s%s for these weights%s", slice_bound(fit), CELL(fit_columns, values, SLICE),
               fit->has_cache ? " and this cache" : "");
    if (fit->smallest.chip_count == 0) return;
    if (!fit->is_tried)
        strbuf_add(line, "; no layout of a smaller one was found");
    else if (fit->smallest.chip_count > 1)
        strbuf_add(line, ", evenly divided");
}

static void slice_print(const struct inference_fit *fit, const struct column_value *values,
                        struct strbuf *text)
{
    struct strbuf line = {0};
    slice_add(fit, values, &line);
    table_line(text, "slice");
    table_wrap_close(text, TABLE_LINE_COLUMNS, &line);
}

void inference_slice_print(const struct report_input *input, struct strbuf *text)
{
    struct column_value values[FITS_TOTAL];
    struct inference_fit const fit =
        inference_analysis_fit(input, input->machine->chip.hbm_capacity_bytes);
    struct counted const gpus = counted(fit.smallest.chip_count, "GPU");
    find_fit(&fit, gpus.text, values);
    if (fit.smallest.chip_count > 0) {
        slice_print(&fit, values, text);
        return;
    }
    table_line(text, "slice");
    strbuf_add(text, "none holds these weights%s\n", fit.has_cache ? " and this cache" : "");
}

static const char *fit_verb(const struct inference_fit *fit)
{
    return fit->max_batch == 1 ? "fits" : "fit";
}

/* No scenario has more sequences than LENGTHS_MAX. */
static const char *fit_bound(const struct inference_fit *fit)
{
    if (fit->max_batch == LENGTHS_MAX) return "at least ";
    return fit->is_estimate ? "about " : "";
}

/* "136 sequences of this length fit", "1 sequence of this length fits with the prompts". */
static void room_add(const struct inference_fit *fit, const struct column_value *values,
                     struct strbuf *text)
{
    strbuf_add(text, "%s%s %s of this length %s%s", fit_bound(fit),
               CELL(fit_columns, values, BATCH_MOST), counted_noun(fit->max_batch, "sequence").text,
               fit_verb(fit), fit->with_prompts ? " with the prompts" : "");
}

/* Where memory does not end the batches, what does. */
static void refused_print(const struct inference_fit *fit, struct strbuf *text)
{
    struct strbuf line = {0};
    if (fit->refused.batch == 0) return;
    strbuf_pad(text, TABLE_LINE_COLUMNS);
    strbuf_add(&line, "%s are refused: %s", table_count(fit->refused.batch).text,
               fit->refused.reason);
    table_wrap_close(text, TABLE_LINE_COLUMNS, &line);
}

void inference_fit_print(const struct inference_fit *fit, struct strbuf *text)
{
    struct column_value values[FITS_TOTAL];
    struct counted const gpus = counted(fit->smallest.chip_count, "GPU");
    find_fit(fit, gpus.text, values);
    table_line(text, "room");
    room_add(fit, values, text);
    strbuf_add(text, " up to the last token\n");
    refused_print(fit, text);
    slice_print(fit, values, text);
}

static void fits_print(const struct inference_analysis *inference,
                       const struct column_value *values, struct strbuf *text)
{
    struct column_value fit[FITS_TOTAL], of_gib[FITS_TOTAL];
    struct strbuf line = {0};
    struct counted const gpus = counted(inference->fit.smallest.chip_count, "GPU");
    struct counted const gpus_of_gib = counted(inference->fit_of_gib.smallest.chip_count, "GPU");
    find_fit(&inference->fit, gpus.text, fit);
    find_fit(&inference->fit_of_gib, gpus_of_gib.text, of_gib);
    table_line(text, "room");
    if (inference->fit.has_cache)
        room_add(&inference->fit, fit, text);
    else
        strbuf_add(text, "no cache limits the tokens");
    strbuf_add(text, "; %s tokens/s a chip\n", FIGURE(CHIP_RATE));
    refused_print(&inference->fit, text);
    slice_add(&inference->fit, fit, &line);
    if (inference->fit_of_gib.max_batch != inference->fit.max_batch)
        strbuf_add(&line, "; if GB are GiB %s%s, and %s%s %s %s",
                   slice_bound(&inference->fit_of_gib), CELL(fit_columns, of_gib, SLICE),
                   fit_bound(&inference->fit_of_gib), CELL(fit_columns, of_gib, BATCH_MOST),
                   counted_noun(inference->fit_of_gib.max_batch, "sequence").text,
                   fit_verb(&inference->fit_of_gib));
    table_line(text, "slice");
    table_wrap_close(text, TABLE_LINE_COLUMNS, &line);
}

void inference_analysis_print(const struct inference_analysis *inference, struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    find(inference, values);
    strbuf_add(text, "\n");
    table_line(text, FIGURE(PHASE));
    strbuf_add(text, "most time goes to %s\n", FIGURE(DOMINANT));
    line_begin_words(values, LINEAR, text);
    strbuf_add(text, "weight load %s: %s a chip%s", FIGURE(WEIGHT_LOAD), FIGURE(WEIGHTS),
               inference->stages.batches > 0 ? " in the mean" : "");
    if (inference->prefetched_bytes > 0)
        strbuf_add(text, ", %s while compute waits", FIGURE(PREFETCHED));
    strbuf_add(text, "\n");
    if (inference->kv_bytes_per_token > 0) {
        line_begin_words(values, ATTENTION, text);
        strbuf_add(text, "KV load %s: %s of the cache a chip; %s a token in all\n", FIGURE(KV_LOAD),
                   FIGURE(KV_READ), FIGURE(KV_TOKEN));
    }
    line_begin(values, OTHER, text);
    strbuf_add(text, "\n");
    line_begin_words(values, ACTIVATION_LOAD, text);
    strbuf_add(text, "%s a chip: what products and attention read and write besides\n",
               FIGURE(ACTIVATIONS));
    line_begin_words(values, MATH, text);
    strbuf_add(text, "products at the chip's rate, while HBM reads\n");
    line_begin_words(values, HOP_FLOOR, text);
    table_wrap(text, TABLE_LINE_COLUMNS,
               inference->stages.batches > 0 ? "collectives and messages of stages without bytes, "
                                               "one after the other"
                                             : "collectives without bytes, one after the other");
    launches_print(inference, values, text);
    line_begin_words(values, BOOK, text);
    strbuf_add(text, "cache %s + the larger of weights %s and math %s\n", FIGURE(BOOK_KV),
               FIGURE(BOOK_WEIGHTS), FIGURE(BOOK_MATH));
    fits_print(inference, values, text);
}
