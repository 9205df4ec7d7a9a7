#include "sim/machine/shape.h"
#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/parse_uint.h"

#include <stdio.h>
#include <string.h>

static const uint32_t shape_length_max = 1u << 20;

const char *shape_axis_name(uint32_t axis)
{
    static const char *const names[CHIP_AXES_MAX] = {"x", "y", "z"};
    SIM_ASSERT(axis < CHIP_AXES_MAX);
    return names[axis];
}

enum status shape_parse(const char *text, const char *where, struct shape *ret_shape,
                        struct error *reterr)
{
    static const char twisted[] = "_twisted";
    struct shape shape = {0, {1, 1, 1}, false};
    for (const char *next = text;; next++) {
        uint64_t length = 0;
        const char *digits = next;
        next = parse_uint(next, shape_length_max, &length);
        bool const ends = *next == '\0' || name_same(next, twisted);
        if (next == digits || (*next != 'x' && !ends)) {
            return error_set(reterr, STATUS_INVALID, where,
                             "\"%.40s\" is not a shape; write lengths with x between them, such as "
                             "16x16x16",
                             text);
        }
        if (length == 0 || length > shape_length_max) {
            return error_set(reterr, STATUS_INVALID, where,
                             "a length in \"%.40s\" is not between 1 and %u", text,
                             shape_length_max);
        }
        if (shape.axis_count == CHIP_AXES_MAX) {
            return error_set(reterr, STATUS_INVALID, where, "\"%.40s\" has more than %d axes", text,
                             CHIP_AXES_MAX);
        }
        shape.length[shape.axis_count++] = (uint32_t)length;
        shape.twisted = *next == '_';
        if (ends) break;
    }
    *ret_shape = shape;
    return STATUS_OK;
}

const char *shape_text(char *buffer, const struct shape *shape)
{
    int used = 0;
    for (uint32_t i = 0; i < shape->axis_count; i++) {
        used += snprintf(buffer + used, (size_t)(SHAPE_TEXT_BYTES - used), i == 0 ? "%u" : "x%u",
                         shape->length[i]);
    }
    if (shape->twisted)
        (void)snprintf(buffer + used, (size_t)(SHAPE_TEXT_BYTES - used), "_twisted");
    return buffer;
}

uint64_t shape_chip_count(const struct shape *shape)
{
    return (uint64_t)shape->length[0] * shape->length[1] * shape->length[2];
}

/* Lengths in rising order; `ret_rank[axis]` is the place of an axis in it. */
static void lengths_sorted(const struct shape *shape, uint32_t axis_count,
                           uint32_t ret_sorted[CHIP_AXES_MAX], uint32_t ret_rank[CHIP_AXES_MAX])
{
    for (uint32_t i = 0; i < CHIP_AXES_MAX; i++) {
        ret_rank[i] = 0;
        for (uint32_t k = 0; k < axis_count && i < axis_count; k++) {
            bool const before = shape->length[k] < shape->length[i] ||
                                (shape->length[k] == shape->length[i] && k < i);
            ret_rank[i] += before;
        }
        if (i >= axis_count) ret_rank[i] = i;
    }
    for (uint32_t i = 0; i < CHIP_AXES_MAX; i++) ret_sorted[ret_rank[i]] = shape->length[i];
}

static struct shape slice_of(const struct chip *chip, uint32_t index)
{
    struct shape slice = {chip->pod.axis_count, {1, 1, 1}, false};
    for (uint32_t i = 0; i < chip->pod.axis_count; i++) slice.length[i] = chip->pod.slice[index][i];
    return slice;
}

static struct shape pod_of(const struct chip *chip)
{
    struct shape pod = {chip->pod.axis_count, {1, 1, 1}, false};
    for (uint32_t i = 0; i < chip->pod.axis_count; i++) pod.length[i] = chip->pod.shape[i];
    return pod;
}

/* A box fits into another in some orientation if it does with both sorted. */
static bool fits_pod(const struct chip *chip, const struct shape *shape)
{
    uint32_t inner[CHIP_AXES_MAX];
    uint32_t outer[CHIP_AXES_MAX];
    uint32_t rank[CHIP_AXES_MAX];
    struct shape const pod = pod_of(chip);
    lengths_sorted(shape, chip->pod.axis_count, inner, rank);
    lengths_sorted(&pod, chip->pod.axis_count, outer, rank);
    for (uint32_t i = 0; i < CHIP_AXES_MAX; i++)
        if (inner[i] > outer[i]) return false;
    return true;
}

bool shape_may_twist(const struct shape *shape)
{
    uint32_t sorted[CHIP_AXES_MAX];
    uint32_t rank[CHIP_AXES_MAX];
    if (shape->axis_count != CHIP_AXES_MAX) return false;
    lengths_sorted(shape, shape->axis_count, sorted, rank);
    return sorted[2] == 2 * sorted[0] && (sorted[1] == sorted[0] || sorted[1] == sorted[2]);
}

bool shape_is_cubes(const struct chip *chip, const struct shape *shape)
{
    if (chip->pod.wrap_rule != CHIP_WRAP_CUBES || shape->axis_count != chip->pod.axis_count)
        return false;
    for (uint32_t i = 0; i < chip->pod.axis_count; i++)
        if (shape->length[i] % chip->pod.wrap_length != 0) return false;
    return true;
}

bool shape_wraps(const struct chip *chip, const struct shape *shape, uint32_t axis)
{
    if (axis >= shape->axis_count) return false;
    if (chip->pod.wrap_rule == CHIP_WRAP_FULL_AXIS)
        return shape->length[axis] == chip->pod.wrap_length;
    return shape_is_cubes(chip, shape);
}

static bool is_slice(const struct chip *chip, const struct shape *shape)
{
    uint32_t sorted[CHIP_AXES_MAX];
    uint32_t other[CHIP_AXES_MAX];
    uint32_t rank[CHIP_AXES_MAX];
    lengths_sorted(shape, chip->pod.axis_count, sorted, rank);
    for (uint32_t i = 0; i < chip->pod.slice_count; i++) {
        struct shape const slice = slice_of(chip, i);
        lengths_sorted(&slice, chip->pod.axis_count, other, rank);
        if (memcmp(sorted, other, sizeof sorted) == 0) return true;
    }
    return shape_is_cubes(chip, shape);
}

/* Keeps the candidate whose lengths differ least in sum; the first of equals. */
struct nearest {
    uint32_t wanted[CHIP_AXES_MAX];
    uint32_t best[CHIP_AXES_MAX];
    uint64_t distance;
};

static void nearest_offer(struct nearest *nearest, const uint32_t candidate[CHIP_AXES_MAX])
{
    uint64_t distance = 0;
    for (uint32_t i = 0; i < CHIP_AXES_MAX; i++) {
        uint32_t const wanted = nearest->wanted[i];
        distance += candidate[i] > wanted ? candidate[i] - wanted : wanted - candidate[i];
    }
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    memcpy(nearest->best, candidate, sizeof nearest->best);
}

/* Boxes of whole cubes in the pod, each once, with rising lengths. */
static void nearest_offer_cubes(const struct chip *chip, struct nearest *nearest)
{
    uint32_t pod[CHIP_AXES_MAX];
    uint32_t rank[CHIP_AXES_MAX];
    struct shape const pod_shape = pod_of(chip);
    lengths_sorted(&pod_shape, chip->pod.axis_count, pod, rank);
    uint32_t const edge = chip->pod.wrap_length;
    for (uint32_t a = edge; a <= pod[0]; a += edge)
        for (uint32_t b = a; b <= pod[1]; b += edge)
            for (uint32_t c = b; c <= pod[2]; c += edge)
                nearest_offer(nearest, (const uint32_t[CHIP_AXES_MAX]){a, b, c});
}

/* The slice nearest to a shape, with its axes in the shape's order. */
static struct shape nearest_slice(const struct chip *chip, const struct shape *shape)
{
    struct nearest nearest = {.distance = UINT64_MAX};
    uint32_t rank[CHIP_AXES_MAX];
    uint32_t const axes =
        shape->axis_count > chip->pod.axis_count ? shape->axis_count : chip->pod.axis_count;
    lengths_sorted(shape, axes, nearest.wanted, rank);
    uint32_t const surplus = axes - chip->pod.axis_count; /* The shortest lengths are dropped. */
    for (uint32_t i = 0; i + surplus < CHIP_AXES_MAX; i++)
        nearest.wanted[i] = nearest.wanted[i + surplus];
    for (uint32_t i = chip->pod.axis_count; i < CHIP_AXES_MAX; i++) nearest.wanted[i] = 1;
    for (uint32_t i = 0; i < chip->pod.slice_count; i++) {
        uint32_t candidate[CHIP_AXES_MAX];
        uint32_t unused[CHIP_AXES_MAX];
        struct shape const slice = slice_of(chip, i);
        lengths_sorted(&slice, chip->pod.axis_count, candidate, unused);
        nearest_offer(&nearest, candidate);
    }
    if (chip->pod.wrap_rule == CHIP_WRAP_CUBES) nearest_offer_cubes(chip, &nearest);
    struct shape found = {chip->pod.axis_count, {1, 1, 1}, false};
    for (uint32_t i = 0; i < chip->pod.axis_count; i++)
        found.length[i] = nearest.best[surplus == 0 ? rank[i] : i];
    return found;
}

static const char *slices_text(char *buffer, size_t size_bytes, const struct chip *chip)
{
    size_t used = 0;
    for (uint32_t i = 0; i < chip->pod.slice_count && used < size_bytes; i++) {
        struct shape const shape = slice_of(chip, i);
        char text[SHAPE_TEXT_BYTES];
        used += (size_t)snprintf(buffer + used, size_bytes - used, "%s%s", i == 0 ? "" : ", ",
                                 shape_text(text, &shape));
    }
    return buffer;
}

enum status shape_check(const struct chip *chip, const struct shape *shape, const char *where,
                        struct error *reterr)
{
    char text[SHAPE_TEXT_BYTES];
    char other[SHAPE_TEXT_BYTES];
    char pod[SHAPE_TEXT_BYTES];
    char slices[256];
    struct shape const nearest = nearest_slice(chip, shape);
    struct shape const pod_shape = pod_of(chip);
    static const char advice[] = "\"unrealisable\": true simulates it, a machine that is not sold";
    (void)shape_text(text, shape);
    (void)shape_text(other, &nearest);
    if (shape->axis_count != chip->pod.axis_count) {
        return error_set(reterr, STATUS_INVALID, where,
                         "a slice of %s has %u axes, %s has %u; the nearest is %s, or %s: %s "
                         "with the links of %s",
                         chip->title, chip->pod.axis_count, text, shape->axis_count, other, advice,
                         chip->title, counted(shape->axis_count, "axis").text);
    }
    if (!fits_pod(chip, shape)) {
        return error_set(reterr, STATUS_INVALID, where,
                         "%s does not fit the pod of %s, %s, in any orientation; the nearest is "
                         "%s, or %s",
                         text, chip->title, shape_text(pod, &pod_shape), other, advice);
    }
    if (is_slice(chip, shape)) return STATUS_OK;
    (void)slices_text(slices, sizeof slices, chip);
    if (chip->pod.wrap_rule == CHIP_WRAP_FULL_AXIS) {
        return error_set(reterr, STATUS_INVALID, where,
                         "%s cannot be sliced into %s, only into %s; the nearest is %s, or %s",
                         chip->title, text, slices, other, advice);
    }
    return error_set(reterr, STATUS_INVALID, where,
                     "%s cannot be sliced into %s: slices are whole cubes of %ux%ux%u or one of "
                     "%s; the nearest is %s, or %s",
                     chip->title, text, chip->pod.wrap_length, chip->pod.wrap_length,
                     chip->pod.wrap_length, slices, other, advice);
}

/* Among the boxes of whole cubes with this many chips, the one with the least sum of lengths. */
static bool standard_cubes(const struct chip *chip, uint64_t chip_count, struct shape *ret_shape)
{
    uint32_t const edge = chip->pod.wrap_length;
    uint32_t least = UINT32_MAX;
    for (uint32_t a = edge; (uint64_t)a * a * a <= chip_count; a += edge) {
        if (chip_count % a != 0) continue;
        for (uint32_t b = a; (uint64_t)a * b * b <= chip_count; b += edge) {
            uint64_t const c = chip_count / a / b;
            if ((uint64_t)a * b * c != chip_count || c % edge != 0 || c > shape_length_max)
                continue;
            struct shape const box = {3, {a, b, (uint32_t)c}, false};
            uint32_t const sum = a + b + (uint32_t)c;
            if (sum >= least || !fits_pod(chip, &box)) continue;
            least = sum;
            *ret_shape = box;
        }
    }
    return least != UINT32_MAX;
}

bool shape_standard(const struct chip *chip, uint64_t chip_count, struct shape *ret_shape)
{
    for (uint32_t i = 0; i < chip->pod.slice_count; i++) {
        struct shape const shape = slice_of(chip, i);
        if (shape_chip_count(&shape) != chip_count) continue;
        *ret_shape = shape;
        return true;
    }
    struct shape const pod = pod_of(chip);
    if (chip->pod.wrap_rule != CHIP_WRAP_CUBES || chip_count > shape_chip_count(&pod)) return false;
    return standard_cubes(chip, chip_count, ret_shape);
}

bool shape_smallest(const struct chip *chip, uint64_t chip_count, struct shape *ret_shape)
{
    struct shape const pod = pod_of(chip);
    uint64_t const most = shape_chip_count(&pod);
    for (uint64_t chips = chip_count; chips <= most; chips++)
        if (shape_standard(chip, chips, ret_shape)) return true;
    return false;
}

enum status shape_of_product(const struct chip *chip, uint64_t units, const char *name,
                             const char *where, struct shape *ret_shape, struct error *reterr)
{
    uint64_t const wanted = units / chip->pod.name_units;
    if (units % chip->pod.name_units == 0 && shape_standard(chip, wanted, ret_shape))
        return STATUS_OK;
    struct shape const pod = pod_of(chip);
    uint64_t const most = shape_chip_count(&pod);
    uint64_t const centre = wanted > most ? most : wanted;
    struct shape shape = {0};
    uint64_t near = 0;
    /* A pod is a slice itself, so there is one within its size. */
    for (uint64_t step = 0; near == 0; step++) {
        SIM_ASSERT(step <= most);
        if (step <= centre && shape_standard(chip, centre - step, &shape))
            near = centre - step;
        else if (shape_standard(chip, centre + step, &shape))
            near = centre + step;
    }
    char text[SHAPE_TEXT_BYTES];
    return error_set(reterr, STATUS_INVALID, where,
                     "\"%.40s\" is no slice of %s (names count %s); the nearest is %s-%llu, %s",
                     name, chip->title, chip->pod.name_units == 1 ? "chips" : "2 cores a chip",
                     chip->short_name, (unsigned long long)(near * chip->pod.name_units),
                     shape_text(text, &shape));
}
