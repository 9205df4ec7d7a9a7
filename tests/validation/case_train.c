/*
 * Evaluators of training steps: the accounting (sim/step/counts.h), the rules of the roofline
 * and the step as it is played. A row's parameters become a scenario's text, so that all of its
 * reading and checking is on the way.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/fold/fold.h"
#include "sim/graph/parameters.h"
#include "sim/machine/shape.h"
#include "sim/replay/replay.h"
#include "sim/roofline/roofline.h"
#include "sim/scenario/scenario.h"
#include "tests/support/counts.h"
#include "tests/validation/case_parts.h"
#include "tests/validation/case_workload.h"

/* "x y" to {"x": true, "y": true, "z": false} on as many axes as the shape has. */
static void add_wrap(struct strbuf *text, const char *shape, const char *axes)
{
    uint32_t axis_count = 1;
    for (const char *at = shape; *at != '\0'; at++) axis_count += *at == 'x';
    strbuf_add(text, ", \"unrealisable\": true, \"wrap\": {");
    for (uint32_t axis = 0; axis < axis_count; axis++)
        strbuf_add(text, "%s\"%s\": %s", axis == 0 ? "" : ", ", shape_axis_name(axis),
                   strchr(axes, *shape_axis_name(axis)) != NULL ? "true" : "false");
    strbuf_add(text, "}");
}

/* "fsdp=x,y tp=z" to {"fsdp": ["x", "y"], "tp": ["z"]} */
static void add_mesh(struct strbuf *text, const char *mesh)
{
    strbuf_add(text, "{\"");
    for (; *mesh != '\0'; mesh++) {
        if (*mesh == '=')
            strbuf_add(text, "\": [\"");
        else if (*mesh == ',')
            strbuf_add(text, "\", \"");
        else if (*mesh == ' ')
            strbuf_add(text, "\"], \"");
        else
            strbuf_add(text, "%c", *mesh);
    }
    strbuf_add(text, "\"]}");
}

/* A GPU has nodes, a TPU a shape and slices. */
static void add_machine(struct strbuf *text, const struct case_row *row)
{
    static const char *const counts[] = {"nodes", "gpus", "slices"};
    bool const gpu = row_has(row, "nodes") || row_has(row, "gpus");
    const char *shape = row_text_or(row, "shape", "2x2x1");
    strbuf_add(text, "{\"podsim\": 1, \"title\": \"case\", \"machine\": {\"chip\": \"%s\", ",
               row_text_or(row, "chip", "tpu-v5p"));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (row_has(row, counts[i]))
            strbuf_add(text, "\"%s\": %llu, ", counts[i],
                       (unsigned long long)row_count(row, counts[i]));
    if (!gpu) strbuf_add(text, "\"shape\": \"%s\", ", shape);
    strbuf_add(text, "\"profile\": \"%s\"", row_text_or(row, "profile", "ideal"));
    if (row_has(row, "wrap"))
        add_wrap(text, shape, row_text(row, "wrap"));
    else if (row_flag_or(row, "unrealisable", false))
        strbuf_add(text, ", \"unrealisable\": true");
    strbuf_add(text, "}");
}

static void add_workload(struct strbuf *text, const struct case_row *row)
{
    static const char *const numbers[] = {"sequence_length", "zero", "accumulate"};
    static const char *const words[] = {"remat",          "attention", "gather",
                                        "backward_order", "schedule",  "layout"};
    strbuf_add(text, "\"workload\": {\"kind\": \"train_step\", \"allow_oversubscription\": true, ");
    if (row_has(row, "model") || row_has(row, "N"))
        strbuf_add(text, "\"model\": \"%s\"", row_text_or(row, "model", "llama-3-8b"));
    else
        strbuf_add(text,
                   "\"model\": {\"kind\": \"mlp\", \"D\": %llu, \"F\": %llu, \"layers\": %llu, "
                   "\"matrices\": %llu}",
                   (unsigned long long)row_count(row, "D"), (unsigned long long)row_count(row, "F"),
                   (unsigned long long)row_count_or(row, "L", 1),
                   (unsigned long long)row_count_or(row, "matrices", 2));
    const char *batch = row_has(row, "batch_tokens") ? "batch_tokens" : "sequence_length";
    strbuf_add(text, ", \"batch_tokens\": %llu", (unsigned long long)row_count(row, batch));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (row_has(row, numbers[i]))
            strbuf_add(text, ", \"%s\": %llu", numbers[i],
                       (unsigned long long)row_count(row, numbers[i]));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (row_has(row, words[i]))
            strbuf_add(text, ", \"%s\": \"%s\"", words[i], row_text(row, words[i]));
    if (!row_flag_or(row, "mtp", true)) strbuf_add(text, ", \"mtp\": false");
    if (row_has(row, "format"))
        strbuf_add(text, ", \"formats\": {\"weights\": \"%s\", \"activations\": \"%s\"}",
                   row_text(row, "format"), row_text(row, "format"));
    strbuf_add(text, "}");
}

struct step {
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
};

static struct step step_of(const struct case_row *row, uint64_t layers)
{
    struct step step;
    struct strbuf text = {0};
    struct error error = {0};
    add_machine(&text, row);
    strbuf_add(&text, ", \"mesh\": ");
    add_mesh(&text, row_text_or(row, "mesh", "dp=x,y,z"));
    strbuf_add(&text, ", ");
    add_workload(&text, row);
    strbuf_add(&text, ", \"run\": {\"prefetch_layers\": %llu, \"collective_matmul\": %s}}",
               (unsigned long long)row_count_or(row, "prefetch_layers", 1),
               row_flag_or(row, "collective_matmul", true) ? "true" : "false");
    if (text.failed) row_fail(row, "no memory");
    row_check(row,
              scenario_read_text(row->arena, "case.json", text.bytes, text.size_bytes, NULL, 0,
                                 &step.scenario, &error),
              &error);
    strbuf_free(&text);
    if (row_has(row, "N")) step.scenario.workload.model = row_model(row);
    if (layers != 0) step.scenario.workload.model.layers = layers;
    row_check(row, machine_build(row->arena, &step.scenario.machine, &step.machine, &error),
              &error);
    row_check(row, mesh_build(&step.scenario.mesh, &step.machine, &step.mesh, &error), &error);
    inference_stages_set(&step.scenario.workload, step.mesh.axis[MESH_PP].size);
    row_check(row,
              workload_lower(row->arena, &step.scenario.workload, &step.machine, &step.mesh,
                             &step.program, &error),
              &error);
    return step;
}

/* A chip's or the machine's share of a step, per token of the whole batch where it is FLOP. */
static struct case_value counts(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    struct workload_counts counts;
    counts_make(&step.scenario.workload, &step.machine, &step.mesh, &counts);
    const struct workload_traffic *fsdp = &counts.role[MESH_FSDP], *tp = &counts.role[MESH_TP];
    const struct workload_traffic *dp = &counts.role[MESH_DP];
    double const chips = step.machine.chip_count;
    const struct workload_plan *plan = &step.scenario.workload;
    uint64_t const parameters = model_count(&plan->model).active;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"matmul_flop", counts.matmul_flop},
        {"machine_flop", counts.matmul_flop * chips},
        {"parameter_flop", 6 * (double)parameters * (double)plan->batch_tokens},
        {"attention_flop", counts.useful_attention_flop},
        {"parameter_bytes", counts.memory.parameter_bytes},
        {"optimizer_bytes", counts.memory.optimizer_bytes},
        {"state_bytes", counts.memory.parameter_bytes + counts.memory.optimizer_bytes},
        {"gradient_bytes", counts.memory.gradient_bytes},
        {"activation_bytes", counts.memory.activation_bytes},
        {"machine_activation_bytes", counts.memory.activation_bytes * chips},
        {"gathered_bytes", counts.held_anyway.gathered_bytes},
        {"fsdp_gather_bytes", fsdp->gather_bytes},
        {"fsdp_scatter_bytes", fsdp->scatter_bytes},
        {"tp_gather_bytes", tp->gather_bytes},
        {"tp_scatter_bytes", tp->scatter_bytes},
        {"dp_bytes", 2 * dp->all_reduce_bytes + dp->gather_bytes + dp->scatter_bytes},
    };
    const char *what = row_text(row, "what");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, what) == 0) return value_number(numbers[i].value);
    row_fail(row, "counts have no %s", what);
}

/* What a step over stages computes in one kind of passes, of all that it computes. */
static double phase_share(const struct step *step, enum program_phase phase)
{
    double in_phase = 0, in_all = 0;
    for (uint32_t r = 0; r < step->program.role_count; r++) {
        const struct program_role *role = &step->program.roles[r];
        for (uint32_t b = 0; b < role->block_count; b++) {
            const struct program_block *block = &role->block[b];
            const struct program_template *template =
                &step->program.templates[block->template_index];
            double flop = 0;
            for (uint32_t i = 0; i < template->op_count; i++)
                if (template->op[i].kind == PROGRAM_OP_COMPUTE)
                    flop += (double)work_matmul_flop(&step->program.works[template->op[i].index]);
            in_all += flop * block->repeat;
            if (block->phase == phase) in_phase += flop * block->repeat;
        }
    }
    return in_phase / in_all;
}

static struct case_value share(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    const char *what = row_text(row, "what");
    if (strcmp(what, "forward") == 0)
        return value_number(phase_share(&step, PROGRAM_PHASE_FORWARD));
    if (strcmp(what, "input") == 0) return value_number(phase_share(&step, PROGRAM_PHASE_BACKWARD));
    if (strcmp(what, "weight") == 0) return value_number(phase_share(&step, PROGRAM_PHASE_WEIGHT));
    row_fail(row, "a step has no share of %s", what);
}

/* How often ranks of a pipeline do an op of that name, all together. */
static struct case_value messages(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    uint64_t count = 0;
    for (uint32_t r = 0; r < step.program.role_count; r++) {
        const struct program_role *role = &step.program.roles[r];
        for (uint32_t b = 0; b < role->block_count; b++) {
            const struct program_template *template =
                &step.program.templates[role->block[b].template_index];
            for (uint32_t i = 0; i < template->op_count; i++)
                if (strcmp(template->op[i].name, row_text(row, "op")) == 0)
                    count += role->block[b].repeat;
        }
    }
    return value_number((double)count);
}

/* The first compute op of that name in the program of a step. */
static struct case_value op(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    const char *name = row_text(row, "op");
    for (uint32_t t = 0; t < step.program.template_count; t++) {
        const struct program_template *template = &step.program.templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *found = &template->op[i];
            if (found->kind != PROGRAM_OP_COMPUTE || strcmp(found->name, name) != 0) continue;
            const struct work *work = &step.program.works[found->index];
            double const flop = (double)work_matmul_flop(work);
            double const bytes = (double)(work->hbm_read_bytes + work->hbm_write_bytes);
            if (strcmp(row_text(row, "what"), "intensity") == 0) return value_number(flop / bytes);
            row_fail(row, "an op has no %s", row_text(row, "what"));
        }
    }
    row_fail(row, "the step has no op %s", name);
}

static struct case_value rules(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    struct roofline roofline;
    counts_roofline(&step.scenario.workload, &step.machine, &step.mesh, &roofline);
    const struct roofline_rules *rules = &roofline.rules;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"alpha", rules->alpha},
        {"tokens_per_chip", rules->tokens_per_chip},
        {"fsdp_critical_tokens", rules->fsdp_critical_tokens},
        {"fsdp_exact_tokens", rules->fsdp_exact_tokens},
        {"dp_critical_tokens", rules->dp_critical_tokens},
        {"dp_exact_tokens", rules->dp_exact_tokens},
        {"experts_critical_tokens", rules->experts_critical_tokens},
        {"experts_exact_tokens", rules->experts_exact_tokens},
        {"tp_critical_width", rules->tp_critical_width},
        {"tp_exact_width", rules->tp_exact_width},
        {"tp_mlp_width", rules->tp_mlp_width},
        {"mixed_best_ranks", rules->mixed_best_ranks},
        {"mixed_critical_tokens", rules->mixed_critical_tokens},
        {"math", roofline.math_s},
        {"ideal", roofline.ideal_s},
        {"lower", roofline.lower_s},
        {"upper", roofline.upper_s},
    };
    const char *what = row_text(row, "what");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, what) == 0) return value_number(numbers[i].value);
    row_fail(row, "the rules have no %s", what);
}

static struct trace played(const struct case_row *row, const struct step *step)
{
    struct fold fold;
    struct trace trace;
    struct error error = {0};
    struct replay_options const options = {.engine = "fast"};
    row_simulates();
    row_check(row, fold_build(row->arena, &step->machine, &step->program, false, &fold, &error),
              &error);
    row_check(
        row,
        replay_run(row->arena, &options, &step->machine, &step->program, &fold, &trace, &error),
        &error);
    return trace;
}

/* What one more layer costs in the middle of the step: the ends, which no schedule hides, are the
 * same with twice as many layers. */
static struct case_value layer_more(const struct case_row *row, const struct trace *less,
                                    uint64_t layers, const char *what)
{
    struct step const step = step_of(row, 2 * layers);
    struct trace const more = played(row, &step);
    const struct trace_phase *of_less = &less->phase[PROGRAM_PHASE_FORWARD];
    const struct trace_phase *of_more = &more.phase[PROGRAM_PHASE_FORWARD];
    int64_t ps = more.step_ps - less->step_ps;
    if (strcmp(what, "forward_layer") == 0)
        ps = of_more->end_ps - of_more->begin_ps - (of_less->end_ps - of_less->begin_ps);
    if (strcmp(what, "forward_layer_math") == 0) ps = of_more->compute_ps - of_less->compute_ps;
    return value_number(units_seconds(ps) / (double)layers);
}

static struct case_value play(const struct case_row *row)
{
    struct step const step = step_of(row, 0);
    const char *what = row_text(row, "what");
    struct trace const trace = played(row, &step);
    uint64_t const layers = step.scenario.workload.model.layers;
    double const forward_s = units_seconds(trace.phase[PROGRAM_PHASE_FORWARD].compute_ps);
    double const backward_s = units_seconds(trace.phase[PROGRAM_PHASE_BACKWARD].compute_ps);
    if (strcmp(what, "step") == 0) return value_number(units_seconds(trace.step_ps));
    if (strcmp(what, "sent") == 0) return value_number((double)trace.roles[0].sent_bytes);
    if (strcmp(what, "exposed") == 0) return value_number(units_seconds(trace.exposed_ps));
    if (strcmp(what, "forward_math") == 0) return value_number(forward_s / (double)layers);
    if (strcmp(what, "backward_math") == 0) return value_number(backward_s / (double)layers);
    if (strcmp(what, "layer") == 0 || strcmp(what, "forward_layer") == 0 ||
        strcmp(what, "forward_layer_math") == 0)
        return layer_more(row, &trace, layers, what);
    row_fail(row, "a played step has no %s", what);
}

const struct case_evaluator case_train[] = {
    {"counts", counts}, {"op", op},  {"messages", messages}, {"share", share}, {"rules", rules},
    {"play", play},     {NULL, NULL}};
