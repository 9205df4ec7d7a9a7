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

struct sharding layout_gradient(const struct sharding *array_of)
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
    struct sharding const d_right = layout_gradient(&matrix->right);
    struct sharding const d_left = layout_gradient(&matrix->left);
    matrix->forward = multiply(local, &matrix->left, &matrix->weight, &matrix->right);
    matrix->d_weight = multiply(local, &matrix->left, &d_right, &matrix->state);
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

/* The axes that split D of the weights, and of the gradients as they are wanted. */
static uint32_t weight_axes(const struct local *local)
{
    return local->shards > 1 ? local->axis_x : 0;
}

static uint32_t state_axes(const struct local *local)
{
    return local->state_shards > 1 ? local->axis_x : 0;
}

void layout_mlp(const struct local *local, struct layout_block *ret_layout)
{
    static const char *const gated[] = {"W_gate", "W_up"};
    static const char *const gated_results[] = {"Gate", "Up"};
    struct layout_block layout = {.in_count = (uint32_t)local->mlp_in_count};
    struct sharding_dimension const b =
        dimension("B", local->rows * local->data, local->axis_z | local->axis_x);
    struct sharding_dimension const f =
        dimension("F", local->mlp_columns * local->tp, local->axis_y);
    struct sharding_dimension const d = dimension("D", local->width, weight_axes(local));
    struct sharding_dimension const state = dimension("D", local->width, state_axes(local));
    for (uint32_t i = 0; i < layout.in_count; i++) {
        struct layout_matrix *in = &layout.in[i];
        bool const one = layout.in_count == 1;
        in->weight = array(one ? "W_in" : gated[i], 2, (struct sharding_dimension[]){d, f});
        in->state = array(one      ? "dW_in"
                          : i == 0 ? "dW_gate"
                                   : "dW_up",
                          2, (struct sharding_dimension[]){state, f});
        in->left = between(local, "In");
        in->right = array(one ? "Tmp" : gated_results[i], 2, (struct sharding_dimension[]){b, f});
        matrix_derive(local, in);
    }
    layout.out.weight = array("W_out", 2, (struct sharding_dimension[]){f, d});
    layout.out.state = array("dW_out", 2, (struct sharding_dimension[]){f, state});
    layout.out.left = array("Tmp", 2, (struct sharding_dimension[]){b, f});
    layout.out.right = between(local, "Out");
    matrix_derive(local, &layout.out);
    *ret_layout = layout;
}

void layout_attention(const struct local *local, struct layout_block *ret_layout)
{
    static const char *const weights[] = {"W_Q", "W_K", "W_V"};
    static const char *const states[] = {"dW_Q", "dW_K", "dW_V"};
    static const char *const results[] = {"Q", "K", "V"};
    const struct model *model = &local->plan->model;
    struct layout_block layout = {.in_count = 3};
    struct sharding_dimension const b =
        dimension("B", local->rows * local->data, local->axis_z | local->axis_x);
    struct sharding_dimension const d = dimension("D", local->width, weight_axes(local));
    struct sharding_dimension const state = dimension("D", local->width, state_axes(local));
    struct sharding_dimension const n = dimension("N", local->heads * local->tp, local->axis_y);
    /* A head that several chips hold is there as often: K times its holders. */
    struct sharding_dimension const k = dimension("K", local->kv_heads * local->tp, local->axis_y);
    struct sharding_dimension const h = dimension("H", model->head_width, 0);
    for (uint32_t i = 0; i < layout.in_count; i++) {
        struct layout_matrix *in = &layout.in[i];
        struct sharding_dimension const heads = i == 0 ? n : k;
        in->weight = array(weights[i], 3, (struct sharding_dimension[]){d, heads, h});
        in->state = array(states[i], 3, (struct sharding_dimension[]){state, heads, h});
        in->left = between(local, "In");
        in->right = array(results[i], 3, (struct sharding_dimension[]){b, heads, h});
        matrix_derive(local, in);
    }
    layout.out.weight = array("W_O", 3, (struct sharding_dimension[]){n, h, d});
    layout.out.state = array("dW_O", 3, (struct sharding_dimension[]){n, h, state});
    layout.out.left = array("A", 3, (struct sharding_dimension[]){b, n, h});
    layout.out.right = between(local, "Out");
    matrix_derive(local, &layout.out);
    *ret_layout = layout;
}
