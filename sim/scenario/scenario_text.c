/*
 * scenario_text.c: a scenario with every default visible, such that it reads back to the same.
 */
#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/machine/shape.h"
#include "sim/scenario/key.h"
#include "sim/scenario/scenario_parts.h"

enum { FLAT_DEPTH = 3 };

const char *const scenario_rates[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL};
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

static void write_at(struct json_writer *writer, const char *key,
                     const uint32_t at[MACHINE_AXES_MAX], uint32_t axis_count)
{
    json_put_array(writer, key);
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
    json_put_array(writer, "links");
    for (uint32_t i = 0; i < plan->link_count; i++) {
        const struct machine_link_override *link = &plan->links[i];
        char buffer[SCENARIO_AMOUNT_BYTES];
        json_write_object(writer);
        write_at(writer, "from", link->from, axis_count);
        write_at(writer, "to", link->to, axis_count);
        if (link->bytes_per_s != 0)
            json_put_string(writer, "rate",
                            scenario_amount_text(buffer, link->bytes_per_s, scenario_rates));
        if (link->latency_ps != 0)
            json_put_string(
                writer, "latency",
                scenario_amount_text(buffer, (uint64_t)link->latency_ps, scenario_durations));
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static void write_chips(struct json_writer *writer, const struct machine_plan *plan,
                        uint32_t axis_count)
{
    json_put_array(writer, "chips");
    for (uint32_t i = 0; i < plan->chip_count; i++) {
        const struct machine_chip_override *chip = &plan->chips[i];
        json_write_object(writer);
        write_at(writer, "at", chip->at, axis_count);
        json_put_real(writer, "math", (double)chip->math_ppm / PPM_ONE);
        json_put_real(writer, "hbm", (double)chip->hbm_ppm / PPM_ONE);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

/* `whole`: a chip out of a file is written out, not named. */
static void write_machine(struct json_writer *writer, const struct machine_plan *plan,
                          uint32_t axis_count, bool whole)
{
    json_put_object(writer, "machine");
    if (plan->chip_document != NULL && (whole || plan->chip_path == NULL))
        json_put_value(writer, "chip", plan->chip_document);
    else
        json_put_string(writer, "chip", plan->chip);
    if (plan->shape != NULL) json_put_string(writer, "shape", plan->shape);
    json_put_string(writer, "profile", plan->profile);
    if (plan->clock_ppm != 0) json_put_real(writer, "clock", (double)plan->clock_ppm / PPM_ONE);
    if (plan->nodes != 0) json_put_unsigned(writer, "nodes", plan->nodes);
    if (plan->gpus != 0) json_put_unsigned(writer, "gpus", plan->gpus);
    if (plan->slices != 0) json_put_unsigned(writer, "slices", plan->slices);
    /* Slices are joined by one switch until a tier of switches is named. */
    scenario_network_write(writer, &plan->network, plan->slices <= 1);
    json_put_boolean(writer, "unrealisable", plan->unrealisable);
    json_put_object(writer, "wrap");
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        if (plan->wrap[axis] >= 0)
            json_put_boolean(writer, shape_axis_name(axis), plan->wrap[axis] != 0);
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
    json_put_object(writer, "mesh");
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        json_put_array(writer, names[plan->axis[i].role]);
        for (uint32_t k = 0; k < plan->axis[i].part_count; k++)
            json_write_string(writer, plan->axis[i].part[k]);
        json_write_array_end(writer);
    }
    enum mesh_role order[MESH_ROLE_COUNT];
    struct error unused;
    if (plan->axis_count > 1 && mesh_plan_order(plan, order, &unused) == STATUS_OK) {
        json_put_array(writer, "order");
        for (uint32_t i = 0; i < plan->axis_count; i++) json_write_string(writer, names[order[i]]);
        json_write_array_end(writer);
    }
    json_write_object_end(writer);
}

static void write_section(struct json_writer *writer, const char *name, const struct key *rows,
                          const struct scenario *scenario)
{
    json_put_object(writer, name);
    keys_write(writer, rows, scenario);
    json_write_object_end(writer);
}

static const char *scenario_write(struct arena *arena, const struct scenario *scenario,
                                  bool of_program)
{
    struct text text = {0};
    struct json_writer writer;
    uint32_t const known_axes = scenario_axis_count(arena, &scenario->machine);
    json_write_start(&writer, &text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    json_put_unsigned(&writer, "podsim", 1);
    json_put_string(&writer, "title", scenario->title);
    json_put_string(&writer, "question", scenario->question);
    write_machine(&writer, &scenario->machine, known_axes == 0 ? MACHINE_AXES_MAX : known_axes,
                  of_program);
    write_mesh(&writer, &scenario->mesh);
    if (!of_program) write_section(&writer, "workload", workload_keys, scenario);
    write_section(&writer, "run", run_keys, scenario);
    json_write_object_end(&writer);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    text_free(&text);
    return copy;
}

const char *scenario_text(struct arena *arena, const struct scenario *scenario)
{
    return scenario_write(arena, scenario, /* of_program= */ false);
}

const char *scenario_text_of_program(struct arena *arena, const struct scenario *scenario)
{
    return scenario_write(arena, scenario, /* of_program= */ true);
}
