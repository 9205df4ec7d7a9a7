#include "sim/report/result_mesh.h"

#include "sim/base/json.h"
#include "sim/mesh/mesh.h"
#include "sim/report/column_table.h"
#include "sim/roofline/roofline.h"

#define AXES(X)                                                                                    \
    X(AXIS, "axis", WORDS(mesh_role_name(axis->role)), HIDDEN)                                     \
    X(RANKS, "ranks", WHOLE(axis->size), HIDDEN)

#define PARTS(X)                                                                                   \
    X(PART, "machine_axis", WORDS(machine_axis_name(of->machine, part->axis)), HIDDEN)             \
    X(PART_SIZE, "size", WHOLE(part->size), HIDDEN)                                                \
    X(PART_STRIDE, "stride", WHOLE(part->stride), HIDDEN)

#define PADDING(X)                                                                                 \
    X(WHAT, "what", WORDS(of->what), HIDDEN)                                                       \
    X(ROLE, "axis", WORDS(of->role), HIDDEN)                                                       \
    X(PADDED_RANKS, "ranks", WHOLE(of->ranks), HIDDEN)                                             \
    X(SIZE, "size", WHOLE(of->size), HIDDEN)                                                       \
    X(PADDED, "padded", WHOLE(of->padded), HIDDEN)

enum { AXES(COLUMN_NAME) AXES_TOTAL };
enum { PARTS(COLUMN_NAME) PARTS_TOTAL };
enum { PADDING(COLUMN_NAME) PADDING_TOTAL };

static const struct column axes[] = {AXES(COLUMN_ENTRY)};
static const struct column parts[] = {PARTS(COLUMN_ENTRY)};
static const struct column padding[] = {PADDING(COLUMN_ENTRY)};

struct parts_of {
    const struct machine *machine;
    const struct mesh_axis *axis;
};

static void find_axis(const struct mesh_axis *axis, struct column_value *ret_values)
{
    AXES(COLUMN_FIND)
}

static void find_part(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct parts_of *of = owner;
    const struct mesh_part *part = &of->axis->part[row];
    PARTS(COLUMN_FIND)
}

static void find_padding(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct padding *of = (const struct padding *)owner + row;
    PADDING(COLUMN_FIND)
}

static const struct column_table parts_table = {parts, PARTS_TOTAL, {0}, find_part};
static const struct column_table padding_table = {padding, PADDING_TOTAL, {0}, find_padding};

/* Other axes whose ranks are among those of ep. */
static void write_ep_over(struct json_writer *json, const struct mesh *mesh)
{
    json_put_array(json, "axes");
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        if (mesh_ep_over(mesh, (enum mesh_role)role))
            json_write_string(json, mesh_role_name((enum mesh_role)role));
    json_write_array_end(json);
}

void result_mesh_write(struct json_writer *json, const struct machine *machine,
                       const struct mesh *mesh)
{
    json_put_array(json, "mesh");
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        struct parts_of const of = {machine, &mesh->axis[mesh->order[i]]};
        struct column_value values[AXES_TOTAL];
        find_axis(of.axis, values);
        json_write_object(json);
        column_put(axes, values, 0, AXES_TOTAL - 1, json);
        json_write_key(json, "parts");
        column_put_rows(&parts_table, &of, of.axis->part_count, json);
        if (of.axis->role == MESH_EP && mesh->ep_over != 0) write_ep_over(json, mesh);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void result_padding_write(struct json_writer *json, const struct paddings *paddings)
{
    json_write_key(json, "padding");
    column_put_rows(&padding_table, paddings->of, paddings->count, json);
}
