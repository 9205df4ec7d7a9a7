/* Evaluators of the sharding notation: what a chip holds, and what a product needs. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/format.h"
#include "sim/mesh/sharding.h"
#include "tests/validation/case_parts.h"

enum { SIZES_MAX = 8 };

/* "mesh": {"X": 4}, "sizes": {"I": 8192} */
static struct sharding_mesh mesh_of(const struct case_row *row)
{
    struct sharding_mesh mesh = {0};
    struct json *axes = row_find(row, "mesh");
    if (axes == NULL) row_fail(row, "a mesh is missing");
    for (; json_key_at(axes, mesh.axis_count) != NULL; mesh.axis_count++) {
        const char *letter = json_key_at(axes, mesh.axis_count);
        mesh.letter[mesh.axis_count] = *letter;
        mesh.size[mesh.axis_count] = (uint32_t)row_operand(row, json_take(axes, letter));
    }
    return mesh;
}

static struct sharding array_of(const struct case_row *row, const struct sharding_mesh *mesh,
                                const char *key)
{
    struct sharding_size sizes[SIZES_MAX + 1] = {{NULL, 0}};
    struct json *members = row_find(row, "sizes");
    for (uint32_t i = 0; members != NULL && i < SIZES_MAX && json_key_at(members, i); i++) {
        const char *name = json_key_at(members, i);
        sizes[i] =
            (struct sharding_size){name, (uint64_t)row_operand(row, json_take(members, name))};
    }
    struct sharding array;
    struct error error = {0};
    row_check(row, sharding_read(mesh, sizes, row_text(row, key), key, &array, &error), &error);
    return array;
}

static struct case_value sharding(const struct case_row *row)
{
    struct sharding_mesh const mesh = mesh_of(row);
    struct sharding const array = array_of(row, &mesh, "array");
    const char *what = row_text(row, "what");
    char buffer[SHARDING_TEXT_BYTES];
    double const ranks = (double)sharding_local_elements(&mesh, &array);
    double chips = 1, whole = 1, replicas = 1;
    for (uint32_t i = 0; i < mesh.axis_count; i++) {
        bool const used = ((sharding_axes(&array) | array.unreduced) >> i & 1) != 0;
        chips *= mesh.size[i];
        replicas *= used ? 1 : mesh.size[i];
    }
    for (uint32_t i = 0; i < array.dimension_count; i++) whole *= (double)array.dimension[i].size;
    enum format const format = row_format(row, "format", FORMAT_BF16);
    double const bytes = (double)format_bytes(format, (uint64_t)ranks);
    if (strcmp(what, "local_shape") == 0)
        return value_text("%s", sharding_shape_text(&mesh, &array, buffer));
    if (strcmp(what, "local_bytes") == 0) return value_number(bytes);
    if (strcmp(what, "all_bytes") == 0) return value_number(bytes * chips);
    if (strcmp(what, "fraction") == 0) return value_number(ranks / whole);
    if (strcmp(what, "replicas") == 0) return value_number(replicas);
    if (strcmp(what, "shards") == 0) return value_number(chips / replicas);
    row_fail(row, "a sharding has no %s", what);
}

struct multiplied {
    struct sharding_mesh mesh;
    struct sharding left, right, wanted;
    struct sharding_product product;
};

static struct multiplied multiplied_of(const struct case_row *row)
{
    struct multiplied of = {.mesh = mesh_of(row)};
    struct error error = {0};
    of.left = array_of(row, &of.mesh, "left");
    of.right = array_of(row, &of.mesh, "right");
    of.wanted = array_of(row, &of.mesh, "wanted");
    row_check(row,
              sharding_multiply(&of.mesh, &of.left, &of.right, &of.wanted, &of.product, &error),
              &error);
    return of;
}

/* What the product of two arrays needs, in the book's words. */
static struct case_value product_needs(const struct case_row *row)
{
    struct multiplied const of = multiplied_of(row);
    const struct sharding_product *product = &of.product;
    const struct {
        const char *name;
        uint32_t axes;
        const char *of;
    } needs[] = {{"AllGather", product->gather_left, of.left.name},
                 {"AllGather", product->gather_right, of.right.name},
                 {"ReduceScatter", product->scatter, of.wanted.name},
                 {"AllReduce", product->all_reduce, of.wanted.name},
                 {"AllGather", product->gather_result, of.wanted.name}};
    struct case_value text = value_text("%s", "");
    char buffer[SHARDING_TEXT_BYTES];
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (needs[i].axes == 0) continue;
        text = value_text("%.60s%s%s_%.8s(%.24s)", text.text, *text.text ? ", " : "", needs[i].name,
                          sharding_axes_text(&of.mesh, needs[i].axes, buffer), needs[i].of);
    }
    return *text.text != '\0' ? text : value_text("nothing");
}

/* FLOP that all chips execute for a product, over those of the product itself. */
static struct case_value product_flop(const struct case_row *row)
{
    struct multiplied const of = multiplied_of(row);
    const struct sharding_product *product = &of.product;
    uint64_t inner = 1;
    for (uint32_t i = 0; i < product->left.dimension_count; i++)
        for (uint32_t j = 0; j < product->right.dimension_count; j++)
            if (strcmp(product->left.dimension[i].name, product->right.dimension[j].name) == 0)
                inner = sharding_local_size(&of.mesh, &product->left.dimension[i]);
    double chips = 1;
    for (uint32_t i = 0; i < of.mesh.axis_count; i++) chips *= of.mesh.size[i];
    double const per_chip =
        2.0 * (double)inner * (double)sharding_local_elements(&of.mesh, &product->result);
    const char *what = row_text(row, "what");
    if (strcmp(what, "per_chip") == 0) return value_number(per_chip);
    if (strcmp(what, "executed") == 0) return value_number(per_chip * chips);
    row_fail(row, "a product has no %s", what);
}

static bool accepted(const struct case_row *row, const struct sharding_mesh *mesh,
                     const char *first, const char *second)
{
    static const struct sharding_size sizes[] = {{"I", 64}, {"J", 64}, {NULL, 0}};
    struct sharding array;
    struct error error = {0};
    const char *text = arena_format(row->arena, "A[I%s%s, J%s%s]", *first ? "_" : "", first,
                                    *second ? "_" : "", second);
    return sharding_read(mesh, sizes, text, "/array", &array, &error) == STATUS_OK;
}

/* How many ways to lay a matrix on two axes the notation accepts, of all that can be written. */
static struct case_value sharding_ways(const struct case_row *row)
{
    struct sharding_mesh const mesh = mesh_of(row);
    static const char *const ordered[] = {"", "X", "Y", "XY", "YX"};
    uint32_t const choices = row_flag_or(row, "ordered", true) ? 5 : 4;
    uint32_t count = 0;
    for (uint32_t i = 0; i < choices; i++)
        for (uint32_t j = 0; j < choices; j++)
            count += accepted(row, &mesh, ordered[i], ordered[j]);
    return value_number(count);
}

const struct case_evaluator case_sharding[] = {
    {"sharding", sharding},
    {"product_needs", product_needs},
    {"product_flop", product_flop},
    {"sharding_ways", sharding_ways},
    {NULL, NULL},
};
