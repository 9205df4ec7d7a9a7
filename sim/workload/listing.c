/*
 * The steps of a listing, in the notation of the book (chapters 3 and 5): arrays with their
 * shardings, *_D for a product that contracts D, {U_X} for what is unreduced over X.
 */
#include "sim/workload/listing.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/workload/padding.h"

enum { SHAPE_COLUMN = 66, BYTES_COLUMN = 88, REMARK_COLUMN = 99 };

void listing_tell(struct listing *listing, enum collective_kind kind, const char *group,
                  uint64_t size_bytes)
{
    struct workload_listing *made = listing->made;
    SIM_ASSERT(made->listed_count < WORKLOAD_LISTED_MAX);
    made->listed[made->listed_count++] =
        (struct workload_listed){listing->section, kind, group, size_bytes};
}

void listing_tell_axes(struct listing *listing, enum collective_kind kind, uint32_t axes,
                       enum format format, uint64_t elements)
{
    const struct local *local = listing->local;
    const char *group = axes == local->axis_y ? mesh_role_name(MESH_TP)
                        : axes == local->axis_x && local->shards > 1
                            ? mesh_role_name(local->shard_role)
                            : local->replica_name;
    listing_tell(listing, kind, group, format_bytes(format, elements));
}

void listing_step(struct listing *listing, const struct sharding *array, enum format format,
                  const char *remark, const char *what, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, what);
    (void)vsnprintf(line, sizeof line, what, arguments);
    va_end(arguments);
    text_add(listing->text, "%3u. %s", ++listing->step, line);
    if (array != NULL) {
        const struct sharding_mesh *axes = &listing->local->axes;
        char buffer[SHARDING_TEXT_BYTES];
        char bytes[QUANTITY_TEXT_BYTES];
        text_pad(listing->text, SHAPE_COLUMN);
        text_add(listing->text, "%s", sharding_shape_text(axes, array, buffer));
        text_pad(listing->text, BYTES_COLUMN);
        text_add(listing->text, "%s",
                 quantity_text_bytes(
                     bytes, (double)format_bytes(format, sharding_local_elements(axes, array))));
    }
    if (remark[0] != '\0') {
        text_pad(listing->text, REMARK_COLUMN);
        text_add(listing->text, "(%s)", remark);
    }
    text_add(listing->text, "\n");
}

struct sharding listing_gather(struct listing *listing, const struct sharding *array, uint32_t axes,
                               enum format format, const char *remark)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    struct sharding const gathered = sharding_gathered(array, axes);
    char result[SHARDING_TEXT_BYTES];
    char operand[SHARDING_TEXT_BYTES];
    char letters[SHARDING_AXES_MAX + 1];
    if (axes == 0) return gathered;
    listing_step(listing, &gathered, format, remark, "%s = AllGather_%s(%s)",
                 sharding_text(mesh, &gathered, result), sharding_axes_text(mesh, axes, letters),
                 sharding_text(mesh, array, operand));
    return gathered;
}

struct sharding listing_reduce(struct listing *listing, const struct sharding_product *product,
                               enum format format, const char *remark)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    struct sharding from = product->result;
    char result[SHARDING_TEXT_BYTES];
    char operand[SHARDING_TEXT_BYTES];
    char letters[SHARDING_AXES_MAX + 1];
    if (product->scatter != 0) {
        listing_step(listing, &product->scattered, format, remark, "%s = ReduceScatter_%s(%s)",
                     sharding_text(mesh, &product->scattered, result),
                     sharding_axes_text(mesh, product->scatter, letters),
                     sharding_text(mesh, &from, operand));
        from = product->scattered;
    }
    if (product->all_reduce != 0) {
        struct sharding to = from;
        to.unreduced = 0;
        listing_step(listing, &to, format, remark, "%s = AllReduce_%s(%s)",
                     sharding_text(mesh, &to, result),
                     sharding_axes_text(mesh, product->all_reduce, letters),
                     sharding_text(mesh, &from, operand));
        from = to;
    }
    return from;
}

/* "D", "NH": what both operands have and the result has not. */
static void contracted_text(const struct sharding_product *product, char *buffer,
                            uint32_t buffer_bytes)
{
    buffer[0] = '\0';
    for (uint32_t i = 0; i < product->left.dimension_count; i++) {
        const char *name = product->left.dimension[i].name;
        bool in_right = false;
        bool in_result = false;
        for (uint32_t d = 0; d < product->right.dimension_count; d++) {
            if (strcmp(product->right.dimension[d].name, name) == 0) in_right = true;
        }
        for (uint32_t d = 0; d < product->result.dimension_count; d++) {
            if (strcmp(product->result.dimension[d].name, name) == 0) in_result = true;
        }
        if (!in_right || in_result) continue;
        size_t const length = strlen(buffer);
        (void)snprintf(buffer + length, buffer_bytes - length, "%s", name);
    }
}

struct sharding listing_product(struct listing *listing, const struct sharding_product *product,
                                enum format format, const char *remark, const char *reduce_remark)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    char result[SHARDING_TEXT_BYTES];
    char left[SHARDING_TEXT_BYTES];
    char right[SHARDING_TEXT_BYTES];
    char contracted[SHARDING_NAME_BYTES * 2];
    contracted_text(product, contracted, sizeof contracted);
    listing_step(listing, &product->result, format, remark, "%s = %s *_%s %s",
                 sharding_text(mesh, &product->result, result),
                 sharding_text(mesh, &product->left, left), contracted,
                 sharding_text(mesh, &product->right, right));
    return listing_reduce(listing, product, format, reduce_remark);
}

static void paddings_add(struct text *text, const struct local *local)
{
    struct paddings paddings;
    padding_list(local, &paddings);
    for (uint32_t i = 0; i < paddings.count; i++) {
        const struct padding *of = &paddings.of[i];
        text_add(text, "  padded over %s of %s: %s, %llu to %llu\n",
                 counted(of->ranks, "rank").text, of->role, of->what, (unsigned long long)of->size,
                 (unsigned long long)of->padded);
    }
}

static void heading_add(struct text *text, const struct local *local)
{
    char bytes[QUANTITY_TEXT_BYTES];
    const struct workload_plan *plan = local->plan;
    const struct local_layer *layer = &local->layer[local_last_kind(local)];
    text_add(text, "%s, one layer of %llu, on one chip\n", plan->model.name,
             (unsigned long long)plan->model.layers);
    for (uint32_t a = 0; a < local->axes.axis_count; a++) {
        char const letter = local->axes.letter[a];
        bool const sharded = letter == 'X' && local->mesh->axis[MESH_FSDP].size > 1;
        const char *roles = letter == 'Y' ? mesh_role_name(MESH_TP)
                            : sharded     ? mesh_role_name(MESH_FSDP)
                                          : local->replica_name;
        text_add(text, "  %c = %s of %s\n", letter, counted(local->axes.size[a], "rank").text,
                 roles);
    }
    text_add(
        text, "  B = %s a microbatch, %llu on one data rank; D = %llu, F = %llu\n",
        counted(local->rows * local->data, "token").text, (unsigned long long)local->rows,
        (unsigned long long)local->width,
        (unsigned long long)(layer->experts ? plan->model.experts.width : plan->model.mlp_width));
    if (local_is_latent(local))
        text_add(text, "  C = %llu columns: %llu of Q, %llu of K and V, %llu turned ones of K\n",
                 (unsigned long long)local->latent_columns,
                 (unsigned long long)plan->model.latent.query_rank,
                 (unsigned long long)plan->model.latent.kv_rank,
                 (unsigned long long)plan->model.latent.rope);
    if (layer->experts)
        text_add(text,
                 "  %llu experts, %llu of each token; on one chip %llu of them with %llu rows each "
                 "and %llu columns\n",
                 (unsigned long long)plan->model.experts.count,
                 (unsigned long long)plan->model.experts.top_k,
                 (unsigned long long)local->experts.count, (unsigned long long)local->experts.rows,
                 (unsigned long long)local->experts.columns);
    paddings_add(text, local);
    for (uint32_t u = 0; local->shards > 1 && u < layer->unit_count; u++) {
        text_add(text, "  %s travels as one: %s gathered\n", layer->unit[u].name,
                 quantity_text_bytes(
                     bytes, (double)format_bytes(plan->formats.weights, layer->unit[u].elements)));
    }
    if (plan->formats.matmuls != plan->formats.activations)
        text_add(text,
                 "  linear layers multiply in %s, which is also what only they read; the rest "
                 "is in %s\n",
                 format_name(plan->formats.matmuls), format_name(plan->formats.activations));
    if (local_offloads_optimizer(local))
        text_add(text, "  the moments lie in the host's memory: each layer is updated one slot "
                       "behind its backward pass\n");
    if (local_offloads_activations(local))
        text_add(text,
                 "  what a layer saves lies in the host's memory, but for the last layer's\n");
}

/* Whether the layers at the top are ones that the book lists, in the order in which it does. */
static bool is_book(const struct local *local)
{
    return local_last_kind(local) == LOCAL_DENSE && !local_is_latent(local) && local->cp == 1 &&
           local->pp == 1;
}

static void forward_add(struct listing *listing, const struct layout_block *attention,
                        const struct layout_block *mlp)
{
    const char *batch = listing->local->axis_z != 0   ? "B_ZX"
                        : listing->local->axis_x != 0 ? "B_X"
                                                      : "B";
    text_add(listing->text, "\nForward pass: need to compute Loss[%s]\n", batch);
    if (attention != NULL) listing_attention_forward(listing, attention);
    listing_mlp_forward(listing, mlp);
    if (attention == NULL) listing_step(listing, NULL, 0, "", "Loss[%s] = ...", batch);
}

/* "dW_out[F_Y, D_X], dW_in[D_X, F_Y]", as the backward pass has to compute them. */
static void goals_add(struct listing *listing, const struct layout_block *layout)
{
    char buffer[SHARDING_TEXT_BYTES];
    const struct sharding_mesh *mesh = &listing->local->axes;
    text_add(listing->text, "%s", sharding_text(mesh, &layout->out.state, buffer));
    for (uint32_t i = 0; i < layout->in_count; i++) {
        text_add(listing->text, ", %s", sharding_text(mesh, &layout->in[i].state, buffer));
    }
}

/* Weights that are gathered for the repetition stay for the gradients, and stand with these. */
static void repeated_tell(struct listing *listing)
{
    const struct workload_listing *made = listing->made;
    bool const whole = listing->local->plan->remat == WORKLOAD_REMAT_LAYER;
    uint32_t const count = whole ? made->listed_count : listing->read_count;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(made->listed[i].group, mesh_role_name(MESH_TP)) == 0 ||
            strcmp(made->listed[i].group, "sequence") == 0)
            listing_tell(listing, made->listed[i].kind, made->listed[i].group,
                         made->listed[i].size_bytes);
}

static void section_begin(struct listing *listing, enum workload_section section)
{
    listing->section = section;
    listing->step = 0;
    listing->gathered = listing->reduced = 0;
}

static void backward_add(struct listing *listing, const struct layout_block *attention,
                         const struct layout_block *mlp)
{
    uint32_t const forward_steps = listing->step;
    bool const whole = listing->local->plan->remat == WORKLOAD_REMAT_LAYER;
    uint32_t const all = attention == NULL ? forward_steps - 1 : forward_steps;
    section_begin(listing, WORKLOAD_SECTION_BACKWARD);
    text_add(listing->text, "\nBackward pass: need to compute ");
    goals_add(listing, mlp);
    if (attention != NULL) {
        text_add(listing->text, ",\n  ");
        goals_add(listing, attention);
    }
    text_add(listing->text, "\n");
    if (workload_remat_repeats(listing->local->plan->remat)) {
        text_add(listing->text,
                 "  remat %s: first steps 1 to %u of the forward pass again, with their "
                 "collectives\n",
                 whole ? "layer" : "block", whole ? all : listing->read_step);
        repeated_tell(listing);
    }
    listing_mlp_backward(listing, mlp);
    if (attention != NULL) listing_attention_backward(listing, attention);
}

/* ZeRO-1 and 2: after the update of its shard, each rank gathers what the others have updated. */
static void update_add(struct listing *listing, const struct layout_block *layout)
{
    enum format const format = listing->local->plan->formats.weights;
    for (uint32_t i = 0; i <= layout->in_count; i++) {
        const struct layout_matrix *matrix = i == 0 ? &layout->out : &layout->in[i - 1];
        struct sharding updated = matrix->state;
        memmove(updated.name, updated.name + 1, strlen(updated.name));
        (void)listing_gather(listing, &updated, listing->local->axis_x, format,
                             "after the update of this rank's part");
        listing_weight_tell(listing, layout, matrix, listing->local->axis_x);
    }
}

/* As the book does. */
static void book_add(struct listing *listing)
{
    const struct local *local = listing->local;
    bool const llama = local_is_llama(local);
    struct layout_block attention, mlp;
    layout_mlp(local, &mlp);
    if (llama) layout_attention(local, &attention);
    forward_add(listing, llama ? &attention : NULL, &mlp);
    backward_add(listing, llama ? &attention : NULL, &mlp);
    if (local->state_shards == local->shards) return;
    text_add(listing->text, "\nUpdate: ZeRO-%u\n", local->plan->zero);
    section_begin(listing, WORKLOAD_SECTION_UPDATE);
    update_add(listing, &mlp);
    if (llama) update_add(listing, &attention);
}

/* As the program has it. */
static void program_add(struct listing *listing, const struct program *program)
{
    text_add(listing->text, "\nForward pass\n");
    section_begin(listing, WORKLOAD_SECTION_FORWARD);
    (void)listing_template(listing, program, "layer forward");
    text_add(listing->text, "\nBackward pass\n");
    section_begin(listing, WORKLOAD_SECTION_BACKWARD);
    if (!listing_template(listing, program, "layer backward")) {
        (void)listing_template(listing, program, "layer input gradient");
        (void)listing_template(listing, program, "layer weight gradient");
    }
    text_add(listing->text, "\nUpdate\n");
    section_begin(listing, WORKLOAD_SECTION_UPDATE);
    (void)listing_template(listing, program, "update layer");
}

/* Modules that predict further tokens; their layer is as the others. */
static void predictors_add(struct listing *listing, const struct program *program)
{
    uint64_t const count = listing->local->predictors;
    if (count == 0) return;
    text_add(listing->text, "\nMulti-token prediction, each of %s behind the last layer: forward\n",
             counted(count, "module").text);
    section_begin(listing, WORKLOAD_SECTION_PREDICTORS);
    (void)listing_template(listing, program, "mtp forward");
    text_add(listing->text, "\nMulti-token prediction: backward\n");
    section_begin(listing, WORKLOAD_SECTION_PREDICTORS);
    if (listing_template(listing, program, "mtp backward")) return;
    (void)listing_template(listing, program, "mtp input gradient");
    (void)listing_template(listing, program, "mtp weight gradient");
}

enum status workload_listing(struct arena *arena, const struct workload_plan *plan,
                             const struct machine *machine, const struct mesh *mesh,
                             struct workload_listing *ret_listing, struct error *reterr)
{
    struct local local;
    struct program program;
    struct text text = {0};
    STATUS_TRY(local_build(plan, machine, mesh, &local, reterr));
    STATUS_TRY(workload_lower(arena, plan, machine, mesh, &program, reterr));
    struct listing listing = {.text = &text, .local = &local, .made = ret_listing};
    *ret_listing = (struct workload_listing){.listed_count = 0};
    heading_add(&text, &local);
    if (is_book(&local))
        book_add(&listing);
    else
        program_add(&listing, &program);
    predictors_add(&listing, &program);
    listing_streams(&text, &program);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    text_free(&text);
    if (copy == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the listing");
    ret_listing->text = copy;
    return STATUS_OK;
}
