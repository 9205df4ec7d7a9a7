/*
 * scenario_text.c: a scenario with every default visible, such that it reads back to the same.
 */
#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/machine/shape.h"
#include "sim/scenario/scenario_parts.h"

enum { FLAT_DEPTH = 3 };

const char *const scenario_durations[] = {"ps", "ns", "us", "ms", "s", NULL};

const char *scenario_amount_text(char *buffer, uint64_t amount, const char *const *units)
{
    while (amount % 1000 == 0 && units[1] != NULL) {
        amount /= 1000;
        units++;
    }
    (void)snprintf(buffer, SCENARIO_AMOUNT_BYTES, "%llu%s", (unsigned long long)amount, *units);
    return buffer;
}

static void write_text(struct json_writer *writer, const char *key, const char *value)
{
    json_write_key(writer, key);
    json_write_string(writer, value);
}

static void write_count(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_unsigned(writer, value);
}

static void write_flag(struct json_writer *writer, const char *key, bool value)
{
    json_write_key(writer, key);
    json_write_boolean(writer, value);
}

static void write_at(struct json_writer *writer, const char *key,
                     const uint32_t at[MACHINE_AXES_MAX], uint32_t axis_count)
{
    json_write_key(writer, key);
    json_write_array(writer);
    for (uint32_t axis = 0; axis < axis_count; axis++) {
        if (at[axis] == machine_any)
            json_write_string(writer, "*");
        else
            json_write_unsigned(writer, at[axis]);
    }
    json_write_array_end(writer);
}

static void write_links(struct json_writer *writer, const struct machine_plan *plan,
                        uint32_t axis_count)
{
    static const char *const rates[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL};
    json_write_key(writer, "links");
    json_write_array(writer);
    for (uint32_t i = 0; i < plan->link_count; i++) {
        const struct machine_link_override *link = &plan->links[i];
        char buffer[SCENARIO_AMOUNT_BYTES];
        json_write_object(writer);
        write_at(writer, "from", link->from, axis_count);
        write_at(writer, "to", link->to, axis_count);
        if (link->bytes_per_s != 0)
            write_text(writer, "rate", scenario_amount_text(buffer, link->bytes_per_s, rates));
        if (link->latency_ps != 0)
            write_text(
                writer, "latency",
                scenario_amount_text(buffer, (uint64_t)link->latency_ps, scenario_durations));
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static void write_chips(struct json_writer *writer, const struct machine_plan *plan,
                        uint32_t axis_count)
{
    json_write_key(writer, "chips");
    json_write_array(writer);
    for (uint32_t i = 0; i < plan->chip_count; i++) {
        const struct machine_chip_override *chip = &plan->chips[i];
        json_write_object(writer);
        write_at(writer, "at", chip->at, axis_count);
        json_write_key(writer, "math");
        json_write_real(writer, (double)chip->math_ppm / PPM_ONE);
        json_write_key(writer, "hbm");
        json_write_real(writer, (double)chip->hbm_ppm / PPM_ONE);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static void write_machine(struct json_writer *writer, const struct machine_plan *plan,
                          uint32_t axis_count)
{
    json_write_key(writer, "machine");
    json_write_object(writer);
    write_text(writer, "chip", plan->chip);
    if (plan->shape != NULL) write_text(writer, "shape", plan->shape);
    write_text(writer, "profile", plan->profile);
    if (plan->nodes != 0) write_count(writer, "nodes", plan->nodes);
    if (plan->gpus != 0) write_count(writer, "gpus", plan->gpus);
    if (plan->slices != 0) write_count(writer, "slices", plan->slices);
    scenario_network_write(writer, &plan->network);
    write_flag(writer, "unrealisable", plan->unrealisable);
    json_write_key(writer, "wrap");
    json_write_object(writer);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        if (plan->wrap[axis] >= 0) write_flag(writer, shape_axis_name(axis), plan->wrap[axis] != 0);
    json_write_object_end(writer);
    write_links(writer, plan, axis_count);
    write_chips(writer, plan, axis_count);
    json_write_object_end(writer);
}

static void write_mesh(struct json_writer *writer, const struct mesh_plan *plan)
{
    static const char *const names[] = {
#define X(name, text, help) text,
        MESH_ROLE_TABLE(X)
#undef X
    };
    json_write_key(writer, "mesh");
    json_write_object(writer);
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        json_write_key(writer, names[plan->axis[i].role]);
        json_write_array(writer);
        for (uint32_t k = 0; k < plan->axis[i].part_count; k++)
            json_write_string(writer, plan->axis[i].part[k]);
        json_write_array_end(writer);
    }
    json_write_object_end(writer);
}

static void write_model(struct json_writer *writer, const struct model *model)
{
    if (model->kind != MODEL_MLP) {
        write_text(writer, "model", model->name);
        return;
    }
    json_write_key(writer, "model");
    json_write_object(writer);
    write_text(writer, "kind", "mlp");
    write_count(writer, "D", model->width);
    write_count(writer, "F", model->mlp_width);
    write_count(writer, "layers", model->layers);
    write_count(writer, "matrices", model->matrices);
    json_write_object_end(writer);
}

static bool mesh_has(const struct mesh_plan *mesh, enum mesh_role role)
{
    for (uint32_t i = 0; i < mesh->axis_count; i++)
        if (mesh->axis[i].role == role) return true;
    return false;
}

static void write_workload(struct json_writer *writer, const struct workload_plan *plan,
                           const struct mesh_plan *mesh)
{
    json_write_key(writer, "workload");
    json_write_object(writer);
    write_text(writer, "kind", "train_step");
    write_model(writer, &plan->model);
    write_count(writer, "batch_tokens", plan->batch_tokens);
    write_count(writer, "sequence_length", plan->sequence_length);
    write_text(writer, "remat", scenario_remat_names[plan->remat]);
    write_count(writer, "zero", plan->zero);
    write_count(writer, "accumulate", plan->accumulate);
    write_text(writer, "attention", scenario_attention_names[plan->attention]);
    json_write_key(writer, "formats");
    json_write_object(writer);
    write_text(writer, "weights", format_name(plan->formats.weights));
    write_text(writer, "activations", format_name(plan->formats.activations));
    write_text(writer, "gradients", format_name(plan->formats.gradients));
    write_text(writer, "optimizer", format_name(plan->formats.optimizer));
    json_write_object_end(writer);
    write_text(writer, "gather", scenario_gather_names[plan->gather]);
    write_text(writer, "backward_order", scenario_backward_names[plan->backward_order]);
    write_text(writer, "activations", scenario_activations_names[plan->activations]);
    if (mesh_has(mesh, MESH_CP)) {
        write_text(writer, "context", scenario_context_names[plan->context]);
        write_text(writer, "context_order", scenario_context_order_names[plan->context_order]);
    }
    write_text(writer, "offload", scenario_offload_names[plan->offload]);
    if (model_has_experts(&plan->model)) {
        json_write_key(writer, "routing_skew");
        json_write_real(writer, (double)plan->routing_skew_ppm / PPM_ONE);
        json_write_key(writer, "capacity_factor");
        json_write_real(writer, (double)plan->capacity_ppm / PPM_ONE);
    }
    if (plan->schedule != NULL) write_text(writer, "schedule", plan->schedule);
    if (plan->layout != NULL) write_text(writer, "layout", plan->layout);
    if (plan->regather != WORKLOAD_REGATHER_MICROBATCH)
        write_text(writer, "regather", scenario_regather_names[plan->regather]);
    if (plan->model.predictors != 0 || plan->without_predictors)
        write_flag(writer, "mtp", !plan->without_predictors);
    write_flag(writer, "allow_oversubscription", plan->allow_oversubscription);
    json_write_object_end(writer);
}

static void write_run(struct json_writer *writer, const struct scenario *scenario)
{
    json_write_key(writer, "run");
    json_write_object(writer);
    write_count(writer, "prefetch_layers", scenario->workload.prefetch_layers);
    write_flag(writer, "collective_matmul", scenario->workload.collective_matmul);
    write_count(writer, "seed", scenario->run.seed);
    write_text(writer, "algorithm", scenario->workload.algorithm);
    write_text(writer, "engine", scenario->run.engine);
    json_write_object_end(writer);
}

const char *scenario_text(struct arena *arena, const struct scenario *scenario)
{
    struct text text = {0};
    struct json_writer writer;
    uint32_t const known_axes = scenario_axis_count(arena, &scenario->machine);
    json_write_start(&writer, &text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    write_count(&writer, "podsim", 1);
    write_text(&writer, "title", scenario->title);
    write_text(&writer, "question", scenario->question);
    write_machine(&writer, &scenario->machine, known_axes == 0 ? MACHINE_AXES_MAX : known_axes);
    write_mesh(&writer, &scenario->mesh);
    write_workload(&writer, &scenario->workload, &scenario->mesh);
    write_run(&writer, scenario);
    json_write_object_end(&writer);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    text_free(&text);
    return copy;
}
