#include "sim/report/inference_analysis.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/report/inference_whole.h"
#include "sim/report/launches.h"
#include "sim/roofline/roofline_bounds.h"

const char *inference_phase(const struct workload_plan *plan)
{
    return workload_kind_names[plan->kind];
}

/* Each class of computes is of one part. What HBM still owes to messages behind the last op is time
 * of compute, of none. */
static void times_add(const struct report_input *input, const struct analysis *analysis,
                      struct inference_analysis *inference)
{
    double excess_s = 0;
    const struct program *program = input->program;
    bool counted[PROGRAM_CLASSES_MAX] = {false};
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t o = 0; o < program->templates[t].op_count; o++) {
            const struct program_op *op = &program->templates[t].op[o];
            const struct analysis_class *row = &analysis->classes[op->class_index];
            double const time_s = row->time_s - row->idle_s;
            if (op->kind != PROGRAM_OP_COMPUTE || counted[op->class_index]) continue;
            counted[op->class_index] = true;
            if (op->purpose != PROGRAM_PURPOSE_OTHER) excess_s += row->hbm_excess_s;
            if (op->purpose == PROGRAM_PURPOSE_LINEAR) inference->linear_s += time_s;
            if (op->purpose == PROGRAM_PURPOSE_ATTENTION) inference->attention_s += time_s;
        }
    inference->activations.wait_s = fmin(inference->activations.load_s, excess_s);
    inference->other_s =
        fmax(analysis->compute_s - inference->linear_s - inference->attention_s, 0);
}

struct inference_model inference_book_model(const struct workload_plan *plan)
{
    struct model_counts const counts = model_count(&plan->model);
    return (struct inference_model){
        .parameters = (double)counts.active,
        .parameter_bytes =
            (double)(counts.total - counts.head_matrix) *
                format_stored_number_bytes(plan->formats.weights) +
            (double)counts.head_matrix * format_stored_number_bytes(plan->inference.head),
        .kv_bytes_per_token = inference_whole_read_bytes(plan),
        .kv_shared_bytes_per_token = inference_whole_shared_bytes(plan),
    };
}

struct inference_chips inference_book_chips(const struct workload_plan *plan,
                                            const struct machine *machine, const struct mesh *mesh)
{
    const struct chip *chip = &machine->chip;
    bool const gathers = plan->inference.weights == INFERENCE_GATHERED;
    double const copies = (double)mesh->axis[MESH_DP].size * (double)mesh->axis[MESH_CP].size;
    return (struct inference_chips){
        .count = (double)machine->chip_count,
        .copies_read = copies * (double)mesh->axis[MESH_FSDP].size,
        .copies_held = gathers ? 1 : copies,
        .flop_per_s = (double)chip->math_flop_per_s[plan->formats.matmuls],
        .hbm_bytes_per_s = (double)chip->hbm_bytes_per_s,
        .hbm_bytes = (double)chip->hbm_capacity_bytes,
        .attention_flop_per_s = (double)chip->math_flop_per_s[plan->formats.activations],
    };
}

struct inference_step inference_book_step(const struct workload_plan *plan,
                                          const struct inference_model *model,
                                          const struct inference_chips *chips)
{
    uint64_t const columns = model_count(&plan->model).attention_columns;
    uint32_t const passes = inference_pass_count(plan);
    struct inference_step sum = {0};
    for (uint32_t p = 0; p < passes; p++) {
        double const read = p + 1 < passes ? 0 : inference_whole_tokens(plan, INFERENCE_DECODES);
        double const scores = (double)inference_scores(plan, p, INFERENCE_PROMPTS);
        struct inference_step const step =
            inference_pass(model, chips, (double)inference_pass_sum(plan, p).tokens,
                           inference_attention_flop(columns, scores), read);
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
    struct inference_chips const chips =
        inference_book_chips(input->workload, input->machine, input->mesh);
    return inference_book_step(input->workload, &model, &chips);
}

struct inference_fit inference_analysis_fit(const struct report_input *input, uint64_t hbm_bytes)
{
    struct inference_whole const whole = {inference_whole_bytes, input};
    struct inference_fit fit = inference_fit_of(input, &whole, hbm_bytes);
    bool const of_gb = hbm_bytes == input->machine->chip.hbm_capacity_bytes;
    const struct report_slice *slice = of_gb ? &input->slices.of_gb : &input->slices.of_gib;
    inference_fit_tried(slice, &fit);
    fit.with_prompts = input->workload->kind == WORKLOAD_MIXED;
    return fit;
}

struct inference_analysis inference_analysis_of(const struct report_input *input,
                                                const struct analysis *analysis)
{
    const struct workload_plan *plan = input->workload;
    const struct roofline *roofline = input->roofline;
    const struct chip *chip = &input->machine->chip;
    struct inference_sum const sum = inference_sum_all(plan);
    struct inference_shares const shares = inference_shares_of(input, analysis);
    struct inference_analysis inference = {
        .phase = inference_phase(plan),
        .sequences = sum.sequences,
        .stages = {.batches =
                       plan->inference.stages > 1 ? inference_batch_count(&plan->inference) : 0,
                   .bubble_s = analysis->bubble_s},
        .tokens = sum.tokens,
        .context_tokens = sum.context_tokens,
        .weight_bytes = roofline->counts.inference.weight_bytes,
        .prefetched_bytes = (double)input->trace->prefetched_bytes,
        .kv_bytes_per_token = inference_whole_read_bytes(plan) - inference_whole_shared_bytes(plan),
        .kv_read_bytes = roofline->counts.inference.kv_read_bytes,
        .kv_bytes = roofline->counts.memory.cache_bytes,
        .fit = inference_analysis_fit(input, chip->hbm_capacity_bytes),
        .fit_of_gib = inference_analysis_fit(input, chip_gib_bytes(chip->hbm_capacity_bytes)),
        .weight_load_s = roofline->counts.inference.weight_bytes / (double)chip->hbm_bytes_per_s,
        .kv_load_s = roofline->counts.inference.kv_read_bytes / (double)chip->hbm_bytes_per_s,
        .activations = {.bytes = roofline->counts.inference.activation_bytes,
                        .load_s = roofline->counts.inference.activation_bytes /
                                  (double)chip->hbm_bytes_per_s},
        .math_s = roofline->math_s,
        .hop_floor_s = analysis->hop_chain_s + roofline->stages.hops_s,
        .launches.floor_s = launches_are_eager(input->machine)
                                ? launches_host_s(input)
                                : roofline_overheads_s(input->machine, &roofline->counts),
        .launches.count = launches_are_eager(input->machine) ? launches_count(input) : 0,
        .launches.by = chip_launch_names[chip->launch.by],
        .dominant = inference_shares_most(&shares),
        .tokens_per_s_per_chip = analysis->tokens_per_s / (double)input->machine->chip_count,
        .book = book_of(input),
    };
    inference_fit_found(&input->largest, &inference.fit, &inference.fit_of_gib);
    times_add(input, analysis, &inference);
    return inference;
}
