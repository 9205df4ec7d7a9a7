#include "sim/workload/layout.h"

#include <stdio.h>
#include <string.h>

/* "B" over the data ranks, "D" over the ranks of the parameters: axes by their bits. */
static struct sharding_dimension dimension(const char *name, uint64_t size, uint32_t axes)
{
    struct sharding_dimension made = {.size = size};
    (void)snprintf(made.name, sizeof made.name, "%s", name);
    for (uint32_t a = 0; a < SHARDING_AXES_MAX; a++) {
        if (axes >> a & 1) made.axis[made.axis_count++] = (uint8_t)a;
    }
    return made;
}

static struct sharding array(const char *name, uint32_t count,
                             const struct sharding_dimension *dimensions)
{
    struct sharding made = {.dimension_count = count};
    (void)snprintf(made.name, sizeof made.name, "%s", name);
    memcpy(made.dimension, dimensions, count * sizeof *dimensions);
    return made;
}

/* The gradient's name, "dW_in", with the same split. */
static struct sharding gradient_of(const struct sharding *array_of)
{
    struct sharding gradient = *array_of;
    gradient.name[0] = 'd';
    (void)snprintf(gradient.name + 1, sizeof gradient.name - 1, "%.*s",
                   (int)sizeof gradient.name - 2, array_of->name);
    return gradient;
}

static struct sharding_product multiply(const struct local *local, const struct sharding *left,
                                        const struct sharding *right, const struct sharding *wanted)
{
    struct sharding_product product;
    struct error error;
    enum status const status =
        sharding_multiply(&local->axes, left, right, wanted, &product, &error);
    SIM_ASSERT(status == STATUS_OK);
    return product;
}

static void matrix_derive(const struct local *local, struct layout_matrix *matrix)
{
    struct sharding const d_right = gradient_of(&matrix->right);
    struct sharding const d_left = gradient_of(&matrix->left);
    struct sharding const d_weight = gradient_of(&matrix->weight);
    matrix->forward = multiply(local, &matrix->left, &matrix->weight, &matrix->right);
    matrix->d_weight = multiply(local, &matrix->left, &d_right, &d_weight);
    matrix->d_left = multiply(local, &d_right, &matrix->weight, &d_left);
}

/* The arrays between the blocks: [B_X, D_Y], or [B_XY, D] when they are split by tokens. */
static struct sharding between(const struct local *local, const char *name)
{
    bool const by_tokens = local->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    uint32_t const batch = local->axis_z | local->axis_x;
    uint64_t const tokens = local->rows * local->data;
    struct sharding_dimension const dimensions[2] = {
        dimension("B", tokens, batch | (by_tokens ? local->axis_y : 0)),
        dimension("D", local->block_columns, by_tokens ? 0 : local->axis_y),
    };
    return array(name, 2, dimensions);
}

/* The axes that split D of the weights. */
static uint32_t weight_axes(const struct local *local)
{
    return local->shards > 1 ? local->axis_x : 0;
}

void layout_mlp(const struct local *local, struct layout_block *ret_layout)
{
    struct layout_block layout;
    struct sharding_dimension const b =
        dimension("B", local->rows * local->data, local->axis_z | local->axis_x);
    struct sharding_dimension const f =
        dimension("F", local->mlp_columns * local->tp, local->axis_y);
    struct sharding_dimension const d = dimension("D", local->width, weight_axes(local));
    layout.in[0].weight = array("W_in", 2, (struct sharding_dimension[]){d, f});
    layout.in[0].left = between(local, "In");
    layout.in[0].right = array("Tmp", 2, (struct sharding_dimension[]){b, f});
    matrix_derive(local, &layout.in[0]);
    layout.out.weight = array("W_out", 2, (struct sharding_dimension[]){f, d});
    layout.out.left = layout.in[0].right;
    layout.out.right = between(local, "Out");
    matrix_derive(local, &layout.out);
    *ret_layout = layout;
}

void layout_attention(const struct local *local, struct layout_block *ret_layout)
{
    struct layout_block layout;
    struct sharding_dimension const b =
        dimension("B", local->rows * local->data, local->axis_z | local->axis_x);
    struct sharding_dimension const d = dimension("D", local->width, weight_axes(local));
    struct sharding_dimension const n = dimension("N", local->heads * local->tp, local->axis_y);
    struct sharding_dimension const h = dimension("H", local->plan->model.head_width, 0);
    layout.in[0].weight = array("W_Q", 3, (struct sharding_dimension[]){d, n, h});
    layout.in[0].left = between(local, "In");
    layout.in[0].right = array("Q", 3, (struct sharding_dimension[]){b, n, h});
    matrix_derive(local, &layout.in[0]);
    layout.out.weight = array("W_O", 3, (struct sharding_dimension[]){n, h, d});
    layout.out.left = array("A", 3, (struct sharding_dimension[]){b, n, h});
    layout.out.right = between(local, "Out");
    matrix_derive(local, &layout.out);
    *ret_layout = layout;
}
