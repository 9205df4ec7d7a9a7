#include "sim/report/inference_facts.h"

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/launches.h"
#include "sim/report/table.h"

static const char *const launch_names[] = {[CHIP_LAUNCHES_PROFILE] = "profile",
                                           [CHIP_LAUNCHES_GRAPH] = "graph",
                                           [CHIP_LAUNCHES_EAGER] = "eager"};

static const char *const phase_names[] = {
    [WORKLOAD_TRAIN_STEP] = "train_step",
    [WORKLOAD_PREFILL] = "prefill",
    [WORKLOAD_DECODE] = "decode",
    [WORKLOAD_MIXED] = "mixed",
};

const char *inference_phase(const struct workload_plan *plan)
{
    return phase_names[plan->kind];
}

/* Each class of computes is of one part. */
static void times_add(const struct report_input *input, const struct analysis *analysis,
                      struct inference_facts *facts)
{
    const struct program *program = input->program;
    bool counted[PROGRAM_CLASSES_MAX] = {false};
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t o = 0; o < program->templates[t].op_count; o++) {
            const struct program_op *op = &program->templates[t].op[o];
            double const time_s = analysis->classes[op->class_index].time_s;
            if (op->kind != PROGRAM_OP_COMPUTE || counted[op->class_index]) continue;
            counted[op->class_index] = true;
            *(op->purpose == PROGRAM_PURPOSE_LINEAR      ? &facts->linear_s
              : op->purpose == PROGRAM_PURPOSE_ATTENTION ? &facts->attention_s
                                                         : &facts->other_s) += time_s;
        }
}

/* Of one number of many, with its part of a scale. */
static double stored_bytes(enum format format)
{
    return (double)format_stored_bytes(format, FORMAT_BLOCK) / FORMAT_BLOCK;
}

static double kv_bytes_of(const struct workload_plan *plan)
{
    return inference_kv_bytes_per_token(&plan->model, stored_bytes(plan->inference.cache));
}

/* Of one kind of sequences what lies in the cache, in tokens of all layers: layers with a window
 * keep and read less. */
static double cached_tokens(const struct workload_plan *plan, enum inference_part part)
{
    uint64_t const keys = inference_keys_most_of(plan, part);
    double const windowed =
        (double)model_window_layers(&plan->model, keys) / (double)plan->model.layers;
    double const all = (double)inference_sum(plan, part).context_tokens;
    if (windowed == 0) return all;
    return (1 - windowed) * all + windowed * (double)inference_window_tokens(plan, part);
}

/* Of all weights and the whole cache, each once. */
static double whole_bytes(const struct workload_plan *plan)
{
    double const tokens =
        cached_tokens(plan, INFERENCE_DECODES) + cached_tokens(plan, INFERENCE_PROMPTS);
    return inference_book_model(plan).parameter_bytes + tokens * kv_bytes_of(plan);
}

struct inference_model inference_book_model(const struct workload_plan *plan)
{
    struct model_counts const counts = model_count(&plan->model);
    uint64_t const head = plan->model.tied ? 0 : plan->model.vocabulary * plan->model.width;
    return (struct inference_model){
        .parameters = (double)counts.active,
        .parameter_bytes = (double)(counts.total - head) * stored_bytes(plan->formats.weights) +
                           (double)head * stored_bytes(plan->inference.head),
        .kv_bytes_per_token = kv_bytes_of(plan),
    };
}

struct inference_chips inference_book_chips(const struct workload_plan *plan,
                                            const struct machine *machine)
{
    const struct chip *chip = &machine->chip;
    return (struct inference_chips){
        .count = (double)machine->chip_count,
        .flop_per_s = (double)chip->math_flop_per_s[plan->formats.matmuls],
        .hbm_bytes_per_s = (double)chip->hbm_bytes_per_s,
        .hbm_bytes = (double)chip->hbm_capacity_bytes,
    };
}

struct inference_step inference_book_step(const struct workload_plan *plan,
                                          const struct inference_model *model,
                                          const struct inference_chips *chips)
{
    uint32_t const passes = inference_pass_count(plan);
    struct inference_step sum = {0};
    for (uint32_t p = 0; p < passes; p++) {
        double const read = p + 1 < passes ? 0 : cached_tokens(plan, INFERENCE_DECODES);
        struct inference_step const step =
            inference_decode(model, chips, (double)inference_pass_sum(plan, p).tokens, read);
        sum.kv_s += step.kv_s;
        sum.weights_s += step.weights_s;
        sum.math_s += step.math_s;
        sum.step_s += step.step_s;
    }
    return sum;
}

static struct inference_step book_of(const struct report_input *input)
{
    struct inference_model const model = inference_book_model(input->workload);
    struct inference_chips const chips = inference_book_chips(input->workload, input->machine);
    return inference_book_step(input->workload, &model, &chips);
}

struct inference_facts inference_facts_of(const struct report_input *input,
                                          const struct analysis *analysis)
{
    const struct workload_plan *plan = input->workload;
    const struct roofline *roofline = input->roofline;
    const struct chip *chip = &input->machine->chip;
    struct inference_sum const sum = inference_sum_all(plan);
    struct inference_shares const shares = inference_shares_of(input, analysis);
    struct inference_facts facts = {
        .phase = inference_phase(plan),
        .sequences = sum.sequences,
        .tokens = sum.tokens,
        .context_tokens = sum.context_tokens,
        .weight_bytes = roofline->counts.inference.weight_bytes,
        .kv_bytes_per_token = kv_bytes_of(plan),
        .kv_read_bytes = roofline->counts.inference.kv_read_bytes,
        .kv_bytes = roofline->counts.memory.cache_bytes,
        .fit = inference_fit_of(input, whole_bytes(plan), chip->hbm_capacity_bytes),
        .fit_of_gib =
            inference_fit_of(input, whole_bytes(plan), chip_gib_bytes(chip->hbm_capacity_bytes)),
        .weight_load_s = roofline->counts.inference.weight_bytes / (double)chip->hbm_bytes_per_s,
        .kv_load_s = roofline->counts.inference.kv_read_bytes / (double)chip->hbm_bytes_per_s,
        .math_s = roofline->math_s,
        .hop_floor_s = roofline->latency_s,
        .launch_floor_s = launches_are_eager(input->machine)
                              ? launches_host_s(input)
                              : roofline->counts.compute_count * units_seconds(chip->launch.op_ps),
        .launches = launches_are_eager(input->machine) ? launches_count(input) : 0,
        .launch = launch_names[chip->launch.by],
        .dominant = inference_shares_most(&shares),
        .tokens_per_s_per_chip = analysis->tokens_per_s / (double)input->machine->chip_count,
        .book = book_of(input),
    };
    times_add(input, analysis, &facts);
    return facts;
}

static void fit_put(const struct inference_fit *fit, struct json_writer *json)
{
    json_put_unsigned(json, "max_batch", fit->max_batch);
    if (fit->chip_count == 0) return;
    json_put_string(json, "smallest_slice", fit->slice);
    json_put_unsigned(json, "smallest_slice_chips", fit->chip_count);
}

void inference_facts_write(const struct inference_facts *facts, struct json_writer *json)
{
    json_put_object(json, "inference");
    json_put_string(json, "phase", facts->phase);
    json_put_unsigned(json, "batch", facts->sequences);
    json_put_unsigned(json, "tokens", facts->tokens);
    json_put_unsigned(json, "context_tokens", facts->context_tokens);
    json_put_real(json, "linear_s", facts->linear_s);
    json_put_real(json, "attention_s", facts->attention_s);
    json_put_real(json, "other_s", facts->other_s);
    json_put_real(json, "weight_load_s", facts->weight_load_s);
    json_put_real(json, "kv_load_s", facts->kv_load_s);
    json_put_real(json, "math_s", facts->math_s);
    json_put_string(json, "dominant", inference_share_word(facts->dominant));
    json_put_real(json, "weight_bytes_per_chip", facts->weight_bytes);
    json_put_real(json, "kv_bytes_per_token", facts->kv_bytes_per_token);
    json_put_real(json, "kv_read_bytes_per_chip", facts->kv_read_bytes);
    json_put_real(json, "kv_bytes_per_chip", facts->kv_bytes);
    fit_put(&facts->fit, json);
    json_put_object(json, "hbm_gib");
    fit_put(&facts->fit_of_gib, json);
    json_write_object_end(json);
    json_put_real(json, "hop_floor_s", facts->hop_floor_s);
    json_put_real(json, "launch_floor_s", facts->launch_floor_s);
    json_put_string(json, "launch", facts->launch);
    json_put_real(json, "tokens_per_s_per_chip", facts->tokens_per_s_per_chip);
    json_put_object(json, "book");
    json_put_real(json, "kv_s", facts->book.kv_s);
    json_put_real(json, "weights_s", facts->book.weights_s);
    json_put_real(json, "math_s", facts->book.math_s);
    json_put_real(json, "step_s", facts->book.step_s);
    json_write_object_end(json);
    json_write_object_end(json);
}

enum { LABEL = 13 };

static void label(struct strbuf *text, const char *name)
{
    strbuf_add(text, "%s", name);
    strbuf_pad(text, LABEL);
}

/* In the words of inference_shares.h. */
static const char *dominant_text(const struct inference_facts *facts)
{
    static const char *const words[INFERENCE_SHARE_COUNT] = {
        [INFERENCE_SHARE_WEIGHTS] = "reading weights",
        [INFERENCE_SHARE_KV] = "attention, which reads the cache",
        [INFERENCE_SHARE_MATH] = "products",
        [INFERENCE_SHARE_HOPS] = "the hops of its collectives",
        [INFERENCE_SHARE_BYTES] = "the bytes of its collectives",
        [INFERENCE_SHARE_LAUNCHES] = "launches",
        [INFERENCE_SHARE_OTHER] = "ops without products",
    };
    return words[facts->dominant];
}

/* "2x4"; of GPUs "16 GPUs". */
static void slice_add(const struct inference_fit *fit, struct strbuf *text)
{
    if (fit->chip_count == 0)
        strbuf_add(text, "none");
    else
        strbuf_add(text, "%s", fit->of_gpus ? counted(fit->chip_count, "GPU").text : fit->slice);
}

static void launches_print(const struct inference_facts *facts, struct strbuf *text)
{
    label(text, "launch floor");
    strbuf_add(text, "%s   ", table_seconds(facts->launch_floor_s).text);
    if (facts->launches > 0)
        strbuf_add(text, "eager: the host needs %s for each of %s ops\n",
                   table_seconds(facts->launch_floor_s / facts->launches).text,
                   table_count((uint64_t)facts->launches).text);
    else if (facts->launch_floor_s > 0)
        strbuf_add(text, "%s: overheads of computes, one after the other\n", facts->launch);
    else
        strbuf_add(text, "%s: launches take nothing\n", facts->launch);
}

void inference_facts_print(const struct inference_facts *facts, struct strbuf *text)
{
    strbuf_add(text, "\n");
    label(text, facts->phase);
    strbuf_add(text, "most time goes to %s\n", dominant_text(facts));
    label(text, "linear");
    strbuf_add(text, "%s   weight load %s: %s a chip\n", table_seconds(facts->linear_s).text,
               table_seconds(facts->weight_load_s).text, table_bytes(facts->weight_bytes).text);
    label(text, "attention");
    strbuf_add(text, "%s   KV load %s: %s of the cache a chip; %s a token in all\n",
               table_seconds(facts->attention_s).text, table_seconds(facts->kv_load_s).text,
               table_bytes(facts->kv_read_bytes).text, table_bytes(facts->kv_bytes_per_token).text);
    label(text, "other ops");
    strbuf_add(text, "%s\n", table_seconds(facts->other_s).text);
    label(text, "math");
    strbuf_add(text, "%s   products at the chip's rate, while HBM reads\n",
               table_seconds(facts->math_s).text);
    label(text, "hop floor");
    strbuf_add(text, "%s   collectives without bytes, one after the other\n",
               table_seconds(facts->hop_floor_s).text);
    launches_print(facts, text);
    label(text, "book");
    strbuf_add(text, "%s   cache %s + the larger of weights %s and math %s\n",
               table_seconds(facts->book.step_s).text, table_seconds(facts->book.kv_s).text,
               table_seconds(facts->book.weights_s).text, table_seconds(facts->book.math_s).text);
    label(text, "room");
    strbuf_add(text, "%s sequences of this length fit; %s tokens/s a chip\n",
               table_count(facts->fit.max_batch).text,
               table_count((uint64_t)(facts->tokens_per_s_per_chip + 0.5)).text);
    label(text, "slice");
    strbuf_add(text, "%s", facts->fit.chip_count == 0 ? "" : "at least ");
    slice_add(&facts->fit, text);
    strbuf_add(text, " for these weights and this cache");
    if (facts->fit_of_gib.max_batch != facts->fit.max_batch) {
        strbuf_add(text, "; if GB are GiB ");
        slice_add(&facts->fit_of_gib, text);
        strbuf_add(text, ", and %s fit", table_count(facts->fit_of_gib.max_batch).text);
    }
    strbuf_add(text, "\n");
}
