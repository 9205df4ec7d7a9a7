/*
 * scenario_machine.c: the machine and the mesh of a scenario.
 */
#include <math.h>
#include <stddef.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario_parts.h"

/* Slower by a million, or faster by a hundred for what-ifs. */
static const double factor_least = 1e-6;
static const double factor_most = 100;
static const double clock_least = 0.01;
static const int64_t latency_max_ps = TIME_PS_PER_S;

uint32_t scenario_axis_count(struct arena *arena, const struct machine_plan *plan)
{
    struct error unknown = {0};
    struct chip chip;
    const char *units = NULL;
    uint32_t axes = 1;
    bool const known = machine_chip(arena, plan, &chip, &units, &unknown) == STATUS_OK;
    if (known && chip.kind == CHIP_GPU) return plan->nodes == 0 ? 1 : 2;
    if (plan->shape != NULL) {
        for (const char *c = plan->shape; *c != '\0'; c++) axes += *c == 'x';
    } else {
        if (!known || units == NULL) return 0;
        axes = chip.axis_count;
    }
    axes += plan->slices > 1;
    return axes <= MACHINE_AXES_MAX ? axes : 0;
}

/* [3, "*", 0]: one number an axis. */
static enum status at_read(struct json *array, bool any_allowed, uint32_t axis_count,
                           uint32_t ret_at[MACHINE_AXES_MAX], struct error *reterr)
{
    uint32_t const least = axis_count == 0 ? 1 : axis_count;
    uint32_t const most = axis_count == 0 ? MACHINE_AXES_MAX : axis_count;
    STATUS_TRY(scenario_need_array(array, least, most, reterr));
    for (uint32_t i = 0; i < MACHINE_AXES_MAX; i++) ret_at[i] = 0;
    for (uint32_t i = 0; i < json_count(array); i++) {
        static const char *const any[] = {"*", NULL};
        struct json *element = json_at(array, i);
        uint32_t ignored = 0;
        int64_t coordinate = 0;
        if (any_allowed && json_kind(element) == JSON_STRING) {
            STATUS_TRY(json_choice(element, any, &ignored, reterr));
            ret_at[i] = machine_any;
            continue;
        }
        STATUS_TRY(json_as_integer(element, 0, machine_chips_max - 1, &coordinate, reterr));
        ret_at[i] = (uint32_t)coordinate;
    }
    return STATUS_OK;
}

static enum status link_read(struct json *object, uint32_t axis_count,
                             struct machine_link_override *link, struct error *reterr)
{
    static const char *const known[] = {"from", "to", "rate", "latency", NULL};
    struct json *from = NULL, *to = NULL;
    STATUS_TRY(json_need(object, "from", &from, reterr));
    STATUS_TRY(json_need(object, "to", &to, reterr));
    struct json *rate = json_take(object, "rate");
    struct json *latency = json_take(object, "latency");
    STATUS_TRY(json_end(object, known, reterr));
    STATUS_TRY(at_read(from, false, axis_count, link->from, reterr));
    STATUS_TRY(at_read(to, false, axis_count, link->to, reterr));
    if (rate == NULL && latency == NULL)
        return error_set(reterr, STATUS_INVALID, json_where(object),
                         "says neither \"rate\" nor \"latency\", so it changes nothing");
    if (rate != NULL) {
        STATUS_TRY(json_rate(rate, &link->bytes_per_s, reterr));
        if (link->bytes_per_s == 0)
            return error_set(reterr, STATUS_UNSUPPORTED, json_where(rate),
                             "a link without any rate is not modelled; the minimum is 1B/s");
    }
    if (latency != NULL) {
        STATUS_TRY(json_duration(latency, &link->latency_ps, reterr));
        if (link->latency_ps == 0 || link->latency_ps > latency_max_ps)
            return error_set(reterr, STATUS_INVALID, json_where(latency),
                             "a latency must be between 1ps and 1s");
    }
    return STATUS_OK;
}

static enum status factor_read(struct json *object, const char *key, uint32_t *ret_ppm,
                               struct error *reterr)
{
    struct json *member = json_take(object, key);
    double factor = 1;
    if (member != NULL)
        STATUS_TRY(json_as_real(member, factor_least, factor_most, &factor, reterr));
    *ret_ppm = (uint32_t)lround(factor * PPM_ONE);
    return STATUS_OK;
}

static enum status chip_override_read(struct json *object, uint32_t axis_count,
                                      struct machine_chip_override *chip, struct error *reterr)
{
    static const char *const known[] = {"at", "math", "hbm", NULL};
    struct json *at = NULL;
    STATUS_TRY(json_need(object, "at", &at, reterr));
    STATUS_TRY(factor_read(object, "math", &chip->math_ppm, reterr));
    STATUS_TRY(factor_read(object, "hbm", &chip->hbm_ppm, reterr));
    STATUS_TRY(json_end(object, known, reterr));
    STATUS_TRY(at_read(at, true, axis_count, chip->at, reterr));
    if (json_take(object, "math") == NULL && json_take(object, "hbm") == NULL)
        return error_set(reterr, STATUS_INVALID, json_where(object),
                         "says neither \"math\" nor \"hbm\", so it changes nothing");
    return STATUS_OK;
}

static enum status links_read(struct arena *arena, struct json *array, uint32_t axis_count,
                              struct machine_plan *plan, struct error *reterr)
{
    void *memory = NULL;
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(scenario_need_array(array, 0, MACHINE_OVERRIDES_MAX, reterr));
    STATUS_TRY(
        arena_try(arena, json_count(array), sizeof(struct machine_link_override), &memory, reterr));
    struct machine_link_override *links = memory;
    for (uint32_t i = 0; i < json_count(array); i++)
        STATUS_TRY(link_read(json_at(array, i), axis_count, &links[i], reterr));
    plan->links = links;
    plan->link_count = json_count(array);
    return STATUS_OK;
}

static enum status chips_read(struct arena *arena, struct json *array, uint32_t axis_count,
                              struct machine_plan *plan, struct error *reterr)
{
    void *memory = NULL;
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(scenario_need_array(array, 0, MACHINE_OVERRIDES_MAX, reterr));
    STATUS_TRY(
        arena_try(arena, json_count(array), sizeof(struct machine_chip_override), &memory, reterr));
    struct machine_chip_override *chips = memory;
    for (uint32_t i = 0; i < json_count(array); i++)
        STATUS_TRY(chip_override_read(json_at(array, i), axis_count, &chips[i], reterr));
    plan->chips = chips;
    plan->chip_count = json_count(array);
    return STATUS_OK;
}

static enum status wrap_read(struct json *object, int8_t wrap[CHIP_AXES_MAX], struct error *reterr)
{
    static const char *const known[] = {"x", "y", "z", NULL};
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) wrap[axis] = -1;
    if (object == NULL) return STATUS_OK;
    STATUS_TRY(json_as_object(object, reterr));
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        struct json *member = json_take(object, known[axis]);
        bool wraps = false;
        if (member == NULL) continue;
        STATUS_TRY(json_as_boolean(member, &wraps, reterr));
        wrap[axis] = wraps;
    }
    return json_end(object, known, reterr);
}

/* A chip is looked for beside the scenario first, as a model is. */
static enum status chip_file_read(struct arena *arena, const char *base_folder, const char *where,
                                  struct machine_plan *plan, struct error *reterr)
{
    struct stat found;
    const char *path = NULL;
    STATUS_TRY(path_beside(arena, base_folder, plan->chip, &path, reterr));
    if (stat(path, &found) != 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "there is no file \"%.80s\" that could describe a chip; `podsim list "
                         "chips` prints the names of the catalogue",
                         plan->chip);
    if (!S_ISREG(found.st_mode))
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.80s\" is a folder, not the file of a chip", plan->chip);
    plan->chip = plan->chip_path = path;
    return json_read_file(arena, path, &plan->chip_document, reterr);
}

/* A name of the catalogue, the path of a file, or the chip itself. */
static enum status chip_read_plan(struct arena *arena, struct json *chip, const char *base_folder,
                                  struct machine_plan *plan, struct error *reterr)
{
    if (json_kind(chip) == JSON_OBJECT) {
        struct json *name = NULL;
        STATUS_TRY(json_need(chip, "name", &name, reterr));
        plan->chip_document = chip;
        return json_as_string(name, &plan->chip, reterr);
    }
    if (json_kind(chip) != JSON_STRING)
        return error_set(reterr, STATUS_INVALID, json_where(chip),
                         "must be a chip's name such as \"h100-sxm\", the path of a chip's file "
                         "such as \"./my-chip.json\", or an object with what such a file holds");
    STATUS_TRY(json_as_string(chip, &plan->chip, reterr));
    if (!path_is(plan->chip)) return STATUS_OK;
    return chip_file_read(arena, base_folder, json_where(chip), plan, reterr);
}

/* A share of the clock of the data sheet. */
static enum status clock_read(struct json *object, uint32_t *ret_ppm, struct error *reterr)
{
    struct json *member = json_take(object, "clock");
    double share = 0;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_as_real(member, clock_least, 1, &share, reterr));
    *ret_ppm = (uint32_t)lround(share * PPM_ONE);
    return STATUS_OK;
}

enum status scenario_machine_read(struct arena *arena, struct json *object, const char *base_folder,
                                  struct machine_plan *ret_plan, struct error *reterr)
{
    static const char *const known[] = {"chip",   "shape",   "profile", "unrealisable", "clock",
                                        "wrap",   "links",   "chips",   "nodes",        "gpus",
                                        "slices", "network", NULL};
    struct machine_plan plan = {.profile = "ideal"};
    struct json *chip = NULL;
    STATUS_TRY(json_need(object, "chip", &chip, reterr));
    STATUS_TRY(chip_read_plan(arena, chip, base_folder, &plan, reterr));
    STATUS_TRY(clock_read(object, &plan.clock_ppm, reterr));
    STATUS_TRY(scenario_take_text(object, "shape", &plan.shape, reterr));
    STATUS_TRY(scenario_take_text(object, "profile", &plan.profile, reterr));
    STATUS_TRY(scenario_take_flag(object, "unrealisable", &plan.unrealisable, reterr));
    STATUS_TRY(scenario_take_count(object, "nodes", 1, machine_chips_max, &plan.nodes, reterr));
    STATUS_TRY(scenario_take_count(object, "gpus", 1, machine_chips_max, &plan.gpus, reterr));
    STATUS_TRY(scenario_take_count(object, "slices", 1, machine_chips_max, &plan.slices, reterr));
    STATUS_TRY(scenario_network_read(json_take(object, "network"), &plan.network, reterr));
    STATUS_TRY(wrap_read(json_take(object, "wrap"), plan.wrap, reterr));
    struct json *links = json_take(object, "links");
    struct json *chips = json_take(object, "chips");
    STATUS_TRY(json_end(object, known, reterr));
    uint32_t const axis_count = scenario_axis_count(arena, &plan);
    STATUS_TRY(links_read(arena, links, axis_count, &plan, reterr));
    STATUS_TRY(chips_read(arena, chips, axis_count, &plan, reterr));
    *ret_plan = plan;
    return STATUS_OK;
}

/* ["tp", "pp", "dp"]: which axis takes neighbours where several share an axis of the machine. */
static enum status order_read(struct json *array, const char *const *names, struct mesh_plan *plan,
                              struct error *reterr)
{
    enum mesh_role ignored[MESH_ROLE_COUNT];
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(scenario_need_array(array, 1, MESH_ROLE_COUNT, reterr));
    plan->order_count = json_count(array);
    for (uint32_t i = 0; i < plan->order_count; i++) {
        uint32_t role = 0;
        STATUS_TRY(json_choice(json_at(array, i), names, &role, reterr));
        plan->order[i] = (enum mesh_role)role;
    }
    return mesh_plan_order(plan, ignored, reterr);
}

enum status scenario_mesh_read(struct json *object, struct mesh_plan *ret_plan,
                               struct error *reterr)
{
    static const char *const roles[] = {
#define X(name, text, help) text,
        MESH_ROLE_TABLE(X)
#undef X
            NULL};
    static const char *const known[] = {
#define X(name, text, help) text,
        MESH_ROLE_TABLE(X)
#undef X
            "order",
        NULL};
    struct mesh_plan plan = {.axis_count = 0};
    STATUS_TRY(json_as_object(object, reterr));
    struct json *order = json_take(object, "order");
    for (uint32_t i = 0; i < json_count(object); i++) {
        const char *key = json_key_at(object, i);
        uint32_t const role = name_find(key, roles);
        if (role == MESH_ROLE_COUNT) continue; /* json_end() says so below. */
        struct json *parts = json_take(object, key);
        struct mesh_axis_plan *axis = &plan.axis[plan.axis_count++];
        STATUS_TRY(scenario_need_array(parts, 1, MACHINE_AXES_MAX, reterr));
        axis->role = (enum mesh_role)role;
        axis->part_count = json_count(parts);
        for (uint32_t k = 0; k < axis->part_count; k++)
            STATUS_TRY(json_as_string(json_at(parts, k), &axis->part[k], reterr));
    }
    STATUS_TRY(json_end(object, known, reterr));
    STATUS_TRY(order_read(order, roles, &plan, reterr));
    *ret_plan = plan;
    return STATUS_OK;
}
