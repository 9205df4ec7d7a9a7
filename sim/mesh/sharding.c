#include "sim/mesh/sharding.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"

static uint32_t axes_of(const struct sharding_dimension *dimension)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < dimension->axis_count; i++) axes |= 1u << dimension->axis[i];
    return axes;
}

uint32_t sharding_axes(const struct sharding *array)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < array->dimension_count; d++) axes |= axes_of(&array->dimension[d]);
    return axes;
}

bool sharding_has(const struct sharding *array, const char *name)
{
    for (uint32_t d = 0; d < array->dimension_count; d++)
        if (strcmp(array->dimension[d].name, name) == 0) return true;
    return false;
}

uint64_t sharding_local_size(const struct sharding_mesh *mesh,
                             const struct sharding_dimension *dimension)
{
    uint64_t size = dimension->size;
    for (uint32_t i = 0; i < dimension->axis_count; i++) size /= mesh->size[dimension->axis[i]];
    return size;
}

static uint64_t ways_of(const struct sharding_mesh *mesh,
                        const struct sharding_dimension *dimension)
{
    uint64_t ways = 1;
    for (uint32_t i = 0; i < dimension->axis_count; i++) ways *= mesh->size[dimension->axis[i]];
    return ways;
}

bool sharding_is_flat(const struct sharding_mesh *mesh, const struct sharding *array)
{
    for (uint32_t d = 0; d < array->dimension_count; d++)
        if (array->dimension[d].size % ways_of(mesh, &array->dimension[d]) != 0) return true;
    return false;
}

uint64_t sharding_local_elements(const struct sharding_mesh *mesh, const struct sharding *array)
{
    units_wide const most = UINT64_MAX;
    uint64_t ways = 1;
    units_wide elements = 1; /* Of all chips, which may be more than one holds in 64 bits. */
    for (uint32_t d = 0; d < array->dimension_count; d++)
        ways *= ways_of(mesh, &array->dimension[d]);
    for (uint32_t d = 0; d < array->dimension_count; d++) {
        elements *= array->dimension[d].size;
        if (elements > most * ways) elements = most * ways;
    }
    /* Most arrays are small, and a division of 128 bits takes long. */
    if (elements <= most) return units_ceil_divide((uint64_t)elements, ways);
    return (uint64_t)((elements - 1) / ways + 1);
}

struct sharding sharding_gathered(const struct sharding *array, uint32_t axes)
{
    struct sharding gathered = *array;
    for (uint32_t d = 0; d < gathered.dimension_count; d++) {
        struct sharding_dimension *dimension = &gathered.dimension[d];
        uint8_t kept = 0;
        for (uint32_t i = 0; i < dimension->axis_count; i++) {
            if (!(axes >> dimension->axis[i] & 1)) dimension->axis[kept++] = dimension->axis[i];
        }
        dimension->axis_count = kept;
    }
    return gathered;
}

/* Adds to a buffer that is known to be long enough; cuts off if it is not. */
static void add(char *buffer, uint32_t buffer_bytes, const char *text)
{
    size_t const length = strlen(buffer);
    (void)snprintf(buffer + length, buffer_bytes - length, "%s", text);
}

const char *sharding_axes_text(const struct sharding_mesh *mesh, uint32_t axes, char *buffer)
{
    uint32_t length = 0;
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        if (axes >> a & 1) buffer[length++] = mesh->letter[a];
    }
    buffer[length] = '\0';
    return buffer;
}

const char *sharding_text(const struct sharding_mesh *mesh, const struct sharding *array,
                          char *buffer)
{
    buffer[0] = '\0';
    add(buffer, SHARDING_TEXT_BYTES, array->name);
    for (uint32_t d = 0; d < array->dimension_count; d++) {
        const struct sharding_dimension *dimension = &array->dimension[d];
        char letters[SHARDING_AXES_MAX + 1] = "";
        for (uint32_t i = 0; i < dimension->axis_count; i++) {
            letters[i] = mesh->letter[dimension->axis[i]];
        }
        add(buffer, SHARDING_TEXT_BYTES, d == 0 ? "[" : ", ");
        add(buffer, SHARDING_TEXT_BYTES, dimension->name);
        if (dimension->axis_count != 0) add(buffer, SHARDING_TEXT_BYTES, "_");
        add(buffer, SHARDING_TEXT_BYTES, letters);
    }
    if (array->dimension_count != 0) add(buffer, SHARDING_TEXT_BYTES, "]");
    if (array->unreduced != 0) {
        char letters[SHARDING_AXES_MAX + 1];
        add(buffer, SHARDING_TEXT_BYTES, " {U_");
        add(buffer, SHARDING_TEXT_BYTES, sharding_axes_text(mesh, array->unreduced, letters));
        add(buffer, SHARDING_TEXT_BYTES, "}");
    }
    return buffer;
}

const char *sharding_shape_text(const struct sharding_mesh *mesh, const struct sharding *array,
                                char *buffer)
{
    buffer[0] = '\0';
    if (sharding_is_flat(mesh, array)) {
        (void)snprintf(buffer, SHARDING_TEXT_BYTES, "[%llu]",
                       (unsigned long long)sharding_local_elements(mesh, array));
        return buffer;
    }
    for (uint32_t d = 0; d < array->dimension_count; d++) {
        char size[32];
        (void)snprintf(size, sizeof size, "%s%llu", d == 0 ? "[" : ", ",
                       (unsigned long long)sharding_local_size(mesh, &array->dimension[d]));
        add(buffer, SHARDING_TEXT_BYTES, size);
    }
    add(buffer, SHARDING_TEXT_BYTES, "]");
    return buffer;
}

static const struct sharding_dimension *dimension_find(const struct sharding *array,
                                                       const char *name)
{
    for (uint32_t d = 0; d < array->dimension_count; d++) {
        if (name_same(array->dimension[d].name, name)) return &array->dimension[d];
    }
    return NULL;
}

/* The dimension that an axis splits, or NULL. */
static const struct sharding_dimension *split_by(const struct sharding *array, uint32_t axis)
{
    for (uint32_t d = 0; d < array->dimension_count; d++) {
        if (axes_of(&array->dimension[d]) >> axis & 1) return &array->dimension[d];
    }
    return NULL;
}

/* Decides one axis; see sharding.h for the cases. */
static void axis_decide(uint32_t axis, const struct sharding *left, const struct sharding *right,
                        const struct sharding *wanted, struct sharding_product *product)
{
    const struct sharding_dimension *of_left = split_by(left, axis);
    const struct sharding_dimension *of_right = split_by(right, axis);
    const struct sharding_dimension *of_wanted = split_by(wanted, axis);
    if (of_left == NULL && of_right == NULL) return;
    bool const left_kept = of_left != NULL && dimension_find(wanted, of_left->name) != NULL;
    bool const right_kept = of_right != NULL && dimension_find(wanted, of_right->name) != NULL;
    uint32_t const bit = 1u << axis;
    bool const both_contracted = of_left != NULL && of_right != NULL && !left_kept && !right_kept;
    if (both_contracted && name_same(of_left->name, of_right->name)) {
        product->result.unreduced |= bit;
        *(of_wanted != NULL ? &product->scatter : &product->all_reduce) |= bit;
        return;
    }
    if (of_left != NULL && !left_kept) product->gather_left |= bit;
    if (of_right != NULL && !right_kept) product->gather_right |= bit;
    if (left_kept && right_kept) {
        bool const keep_left = of_wanted != NULL && name_same(of_wanted->name, of_left->name);
        *(keep_left ? &product->gather_right : &product->gather_left) |= bit;
    }
}

enum status sharding_multiply(const struct sharding_mesh *mesh, const struct sharding *left,
                              const struct sharding *right, const struct sharding *wanted,
                              struct sharding_product *ret_product, struct error *reterr)
{
    struct sharding_product product = {0};
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        axis_decide(a, left, right, wanted, &product);
    }
    product.left = sharding_gathered(left, product.gather_left);
    product.right = sharding_gathered(right, product.gather_right);

    uint32_t const unreduced = product.result.unreduced;
    product.result = *wanted;
    product.result.unreduced = unreduced;
    for (uint32_t d = 0; d < wanted->dimension_count; d++) {
        const char *name = wanted->dimension[d].name;
        const struct sharding_dimension *from = dimension_find(&product.left, name);
        if (from == NULL) from = dimension_find(&product.right, name);
        if (from == NULL) {
            return error_set(reterr, STATUS_INVALID, wanted->name,
                             "dimension %s is neither in %s nor in %s", name, left->name,
                             right->name);
        }
        product.result.dimension[d] = *from;
        product.gather_result |= axes_of(from) & ~axes_of(&wanted->dimension[d]);
    }
    product.scattered = *wanted;
    product.scattered.unreduced = product.all_reduce;
    *ret_product = product;
    return STATUS_OK;
}

/* Reading. */

struct reader {
    const struct sharding_mesh *mesh;
    const struct sharding_size *sizes;
    const char *text;
    const char *at;
    const char *where;
    uint32_t used; /* Axes that the array has so far, a bit each. */
    struct error *error;
};

static enum status refuse(const struct reader *reader, const char *expected)
{
    return error_set(reader->error, STATUS_INVALID, reader->where,
                     "\"%s\" is no sharding: expected %s at character %lld, as in "
                     "\"W_in[D_X, F_Y] {U_Z}\"",
                     reader->text, expected, (long long)(reader->at - reader->text) + 1);
}

static void blanks_skip(struct reader *reader)
{
    while (*reader->at == ' ') reader->at++;
}

static bool accept(struct reader *reader, char c)
{
    blanks_skip(reader);
    if (*reader->at != c) return false;
    reader->at++;
    return true;
}

static enum status axis_read(struct reader *reader, uint8_t *ret_axis)
{
    for (uint32_t a = 0; a < reader->mesh->axis_count; a++) {
        if (reader->mesh->letter[a] != *reader->at) continue;
        if (reader->used >> a & 1) return refuse(reader, "each axis once");
        reader->used |= 1u << a;
        reader->at++;
        *ret_axis = (uint8_t)a;
        return STATUS_OK;
    }
    return refuse(reader, "a mesh axis");
}

/* A name: letters and digits and, for arrays, underscores. */
static enum status name_read(struct reader *reader, bool underscores, char *ret_name)
{
    uint32_t length = 0;
    blanks_skip(reader);
    while (isalnum((unsigned char)*reader->at) || (underscores && *reader->at == '_')) {
        if (length + 1 == SHARDING_NAME_BYTES) return refuse(reader, "a shorter name");
        ret_name[length++] = *reader->at++;
    }
    ret_name[length] = '\0';
    return length == 0 ? refuse(reader, "a name") : STATUS_OK;
}

static enum status dimension_read(struct reader *reader, struct sharding_dimension *dimension)
{
    STATUS_TRY(name_read(reader, false, dimension->name));
    const struct sharding_size *size = reader->sizes;
    while (size->name != NULL && !name_same(size->name, dimension->name)) size++;
    if (size->name == NULL) return refuse(reader, "a dimension whose size is known");
    dimension->size = size->size;
    if (*reader->at != '_') return STATUS_OK;
    reader->at++;
    do {
        if (dimension->axis_count == SHARDING_AXES_MAX) return refuse(reader, "fewer axes");
        STATUS_TRY(axis_read(reader, &dimension->axis[dimension->axis_count]));
        dimension->axis_count++;
    } while (isalpha((unsigned char)*reader->at));
    return STATUS_OK;
}

static enum status unreduced_read(struct reader *reader, struct sharding *array)
{
    if (!accept(reader, 'U') || *reader->at != '_') return refuse(reader, "\"U_\"");
    reader->at++;
    do {
        uint8_t axis = 0;
        STATUS_TRY(axis_read(reader, &axis));
        array->unreduced |= 1u << axis;
    } while (isalpha((unsigned char)*reader->at));
    return accept(reader, '}') ? STATUS_OK : refuse(reader, "\"}\"");
}

enum status sharding_read(const struct sharding_mesh *mesh, const struct sharding_size *sizes,
                          const char *text, const char *where, struct sharding *ret_array,
                          struct error *reterr)
{
    struct sharding array = {0};
    struct reader reader = {mesh, sizes, text, text, where, 0, reterr};
    STATUS_TRY(name_read(&reader, true, array.name));
    if (!accept(&reader, '[')) return refuse(&reader, "\"[\"");
    do {
        if (array.dimension_count == SHARDING_DIMENSIONS_MAX) {
            return refuse(&reader, "fewer dimensions");
        }
        STATUS_TRY(dimension_read(&reader, &array.dimension[array.dimension_count]));
        array.dimension_count++;
    } while (accept(&reader, ','));
    if (!accept(&reader, ']')) return refuse(&reader, "\"]\"");
    if (accept(&reader, '{')) STATUS_TRY(unreduced_read(&reader, &array));
    blanks_skip(&reader);
    if (*reader.at != '\0') return refuse(&reader, "nothing more");
    *ret_array = array;
    return STATUS_OK;
}
