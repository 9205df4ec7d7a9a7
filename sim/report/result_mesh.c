#include "sim/report/result_mesh.h"

#include "sim/base/json.h"
#include "sim/mesh/mesh.h"
#include "sim/roofline/roofline.h"

void result_mesh_write(struct json_writer *json, const struct machine *machine,
                       const struct mesh *mesh)
{
    json_put_array(json, "mesh");
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        const struct mesh_axis *axis = &mesh->axis[mesh->order[i]];
        json_write_object(json);
        json_put_string(json, "axis", mesh_role_name(axis->role));
        json_put_unsigned(json, "ranks", axis->size);
        json_put_array(json, "parts");
        for (uint32_t p = 0; p < axis->part_count; p++) {
            json_write_object(json);
            json_put_string(json, "machine_axis", machine_axis_name(machine, axis->part[p].axis));
            json_put_unsigned(json, "size", axis->part[p].size);
            json_put_unsigned(json, "stride", axis->part[p].stride);
            json_write_object_end(json);
        }
        json_write_array_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void result_padding_write(struct json_writer *json, const struct paddings *paddings)
{
    json_put_array(json, "padding");
    for (uint32_t i = 0; i < paddings->count; i++) {
        const struct padding *of = &paddings->of[i];
        json_write_object(json);
        json_put_string(json, "what", of->what);
        json_put_string(json, "axis", of->role);
        json_put_unsigned(json, "ranks", of->ranks);
        json_put_unsigned(json, "size", of->size);
        json_put_unsigned(json, "padded", of->padded);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}
