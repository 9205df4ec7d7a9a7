/*
 * mesh_keys.c: the rows of `mesh`. The order of its keys in the file is kept.
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/scenario/scenario_parts.h"

/* The rows have checked each key by itself. ["tp", "pp", "dp"]: which axis takes neighbours where
 * several share an axis of the machine. */
static enum status order_read(struct json *array, struct mesh_plan *plan, struct error *reterr)
{
    enum mesh_role ignored[MESH_ROLE_COUNT];
    if (array == NULL) return STATUS_OK;
    plan->order_count = json_count(array);
    for (uint32_t i = 0; i < plan->order_count; i++) {
        uint32_t role = 0;
        STATUS_TRY(json_choice(json_at(array, i), mesh_role_names, &role, reterr));
        plan->order[i] = (enum mesh_role)role;
    }
    return mesh_plan_order(plan, ignored, reterr);
}

static enum status mesh_read(const struct key *row, const struct key_reader *reader,
                             struct json *mesh, struct error *reterr)
{
    struct mesh_plan *plan = key_field(row, reader);
    STATUS_TRY(key_object_read(row, reader, mesh, reterr));
    for (uint32_t i = 0; mesh != NULL && i < json_count(mesh); i++) {
        const char *key = json_key_at(mesh, i);
        uint32_t const role = name_find(key, mesh_role_names);
        if (role == MESH_ROLE_COUNT) continue;
        struct json *parts = json_take(mesh, key);
        struct mesh_axis_plan *axis = &plan->axis[plan->axis_count++];
        axis->role = (enum mesh_role)role;
        axis->part_count = json_count(parts);
        for (uint32_t k = 0; k < axis->part_count; k++)
            STATUS_TRY(json_as_string(json_at(parts, k), &axis->part[k], reterr));
    }
    return mesh == NULL ? STATUS_OK : order_read(json_take(mesh, "order"), plan, reterr);
}

static void mesh_write(struct json_writer *writer, const struct key *row,
                       const struct key_source *source)
{
    const struct mesh_plan *plan = key_field_of(row, source);
    json_write_object(writer);
    for (uint32_t i = 0; i < plan->axis_count; i++) {
        json_put_array(writer, mesh_role_names[plan->axis[i].role]);
        for (uint32_t k = 0; k < plan->axis[i].part_count; k++)
            json_write_string(writer, plan->axis[i].part[k]);
        json_write_array_end(writer);
    }
    enum mesh_role order[MESH_ROLE_COUNT];
    struct error unused;
    if (plan->axis_count > 1 && mesh_plan_order(plan, order, &unused) == STATUS_OK) {
        json_put_array(writer, "order");
        for (uint32_t i = 0; i < plan->axis_count; i++)
            json_write_string(writer, mesh_role_names[order[i]]);
        json_write_array_end(writer);
    }
    json_write_object_end(writer);
}

const struct key_kind mesh_kind = {.read = mesh_read,
                                   .write = mesh_write,
                                   .waits = true,
                                   .schema = key_object_schema,
                                   .begin = '{'};

const struct key mesh_keys[] = {
#define X(role, text, meaning)                                                                     \
    KEY(text, key_words, .least = 1, .most = MACHINE_AXES_MAX,                                     \
        .values.words = "axes of the machine, or parts of them", .preset_text = "none",            \
        .help = meaning),
    MESH_ROLE_TABLE(X)
#undef X
        KEY("order", key_words, .least = 1, .most = MESH_ROLE_COUNT, .choices = mesh_role_names,
            .preset_text = "`tp`, `tp_d`, `cp`, `ep`, `fsdp`, `dp`, `pp`",
            .help = "the order of mesh axes that share an axis of the machine, the innermost "
                    "first: the "
                    "first takes neighbours"),
    {0},
};
