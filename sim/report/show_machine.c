#include "sim/report/show_machine.h"

#include <stdbool.h>

#include "sim/base/text.h"
#include "sim/machine/chip.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"

enum { COLUMN_CHIPS = 14, COLUMN_SHAPE = 28, COLUMN_RINGS = 40 };

static void add_rings(const struct chip *chip, const struct shape *shape, struct text *text)
{
    bool any = false;
    for (uint32_t axis = 0; axis < shape->axis_count; axis++) {
        if (!shape_wraps(chip, shape, axis)) continue;
        text_add(text, "%s%s", any ? ", " : "rings on ", shape_axis_name(axis));
        any = true;
    }
    if (!any) text_add(text, "no rings");
}

void show_machine_products(const struct chip *chip, struct text *text)
{
    uint64_t pod_chips = 1;
    for (uint32_t axis = 0; axis < chip->axis_count; axis++) pod_chips *= chip->pod_shape[axis];
    for (uint64_t count = 1; count <= pod_chips; count++) {
        struct shape shape;
        char buffer[SHAPE_TEXT_BYTES];
        if (!shape_standard(chip, count, &shape)) continue;
        text_add(text, "%s-%llu", chip->short_name, (unsigned long long)(count * chip->name_units));
        text_pad(text, COLUMN_CHIPS);
        text_add(text, "%llu chip%s", (unsigned long long)count, count == 1 ? "" : "s");
        text_pad(text, COLUMN_SHAPE);
        text_add(text, "%s", shape_text(buffer, &shape));
        text_pad(text, COLUMN_RINGS);
        add_rings(chip, &shape, text);
        text_add(text, "\n");
    }
}
