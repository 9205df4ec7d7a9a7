/*
 * list_machines.c: chips and the shapes they come in.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/format.h"
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip.h"
#include "sim/machine/chip_read.h"
#include "sim/machine/machine.h"
#include "sim/machine/network.h"
#include "sim/machine/shape.h"
#include "sim/report/column_table.h"
#include "sim/report/show_machine.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/list/list_text.h"

static enum status chip_at(struct arena *arena, uint32_t index, struct chip *ret_chip,
                           struct error *reterr)
{
    return chip_find(arena, chip_name_at(index), "ideal", "", "", ret_chip, reterr);
}

/* "16x16": a slice of the chip's pod. */
static const char *slice_text(char buffer[SHAPE_TEXT_BYTES], const struct chip *chip,
                              const uint32_t length[CHIP_AXES_MAX])
{
    struct shape slice = {.axis_count = chip->pod.axis_count};
    memcpy(slice.length, length, sizeof slice.length);
    return shape_text(buffer, &slice);
}

#define CHIPS(X)                                                                                   \
    X(CHIP, NULL, WORDS(chip->name), SHOWN(NULL, "chip", -12, column_words))                       \
    X(HBM, NULL, WHOLE(chip->hbm_capacity_bytes), SHOWN(NULL, "HBM", -11, column_bytes))           \
    X(HBM_RATE, NULL, WHOLE(chip->hbm_bytes_per_s), SHOWN(NULL, "HBM rate", -13, column_rate))     \
    X(MATH, NULL, WORDS(math), SHOWN(NULL, "matmul", -19, column_words))                           \
    X(LINKS, NULL, WORDS(links), SHOWN(NULL, "links", -16, column_words))                          \
    X(MOST, NULL, WORDS(is_gpu ? node.text : slice),                                               \
      SHOWN(NULL, "largest slice, or node", -12, column_words))

enum { CHIPS(COLUMN_NAME) CHIPS_TOTAL, CELL_BYTES = 64 };
static const struct column chips[] = {CHIPS(COLUMN_ENTRY)};
static const struct column_line chips_line = COLUMN_ALL(chips);

static void chip_add(const struct chip *chip, struct strbuf *text)
{
    bool const is_gpu = chip->kind == CHIP_GPU;
    /* The format that a chip is known by: bf16, or fp16 before there was bf16. */
    enum format const format = chip->math_flop_per_s[FORMAT_BF16] != 0 ? FORMAT_BF16 : FORMAT_FP16;
    struct counted const node = counted(chip->network.node_chips, "GPU");
    uint64_t const link = is_gpu ? chip->network.nvlink_bytes_per_s : chip->ici_bytes_per_s;
    char math[CELL_BYTES], links[CELL_BYTES], slice[SHAPE_TEXT_BYTES];
    struct column_value ret_values[CHIPS_TOTAL];
    (void)snprintf(math, sizeof math, "%s %s",
                   table_flop_rate((double)chip->math_flop_per_s[format]).text,
                   format_name(format));
    (void)snprintf(links, sizeof links, "%u x %s",
                   is_gpu ? chip->network.nvlink_count : 2 * chip->pod.axis_count,
                   table_rate((double)link).text);
    (void)slice_text(slice, chip, chip->pod.shape);
    CHIPS(COLUMN_FIND)
    column_add_figure_line(&chips_line, ret_values, text);
}

enum status list_chips(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    uint64_t const table = table_open(text);
    column_add_heading_line(&chips_line, text);
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip chip;
        STATUS_TRY(chip_at(arena, i, &chip, reterr));
        chip_add(&chip, text);
    }
    table_close(text, table, 13);
    return STATUS_OK;
}

static const struct column facts_columns[] = {{.width = -35}, {.width = -18}, {.width = -1}};
static const struct column_line facts_line = COLUMN_ALL(facts_columns);

/* Of the user's own chip, once it is known to be one. */
static enum status file_facts(struct arena *arena, const char *path,
                              const struct chip_fact **ret_facts, uint32_t *ret_count,
                              struct error *reterr)
{
    struct json *document = NULL;
    struct chip chip;
    STATUS_TRY(json_read_file(arena, path, &document, reterr));
    enum status const status =
        chip_read(arena, document, NULL, "ideal", "/profiles", &chip, reterr);
    if (status != STATUS_OK) error_in_file(reterr, path);
    STATUS_TRY(status);
    return chip_read_facts(arena, document, ret_facts, ret_count, reterr);
}

enum status list_chip(struct arena *arena, const char *name, struct strbuf *text,
                      struct error *reterr)
{
    const struct chip_fact *facts = NULL;
    uint32_t count = 0;
    if (path_is_json(name))
        STATUS_TRY(file_facts(arena, name, &facts, &count, reterr));
    else
        STATUS_TRY(chip_facts(arena, name, name, &facts, &count, reterr));
    for (uint32_t i = 0; i < count; i++) {
        struct column_value const values[] = {WORDS(facts[i].key), WORDS(facts[i].value),
                                              WORDS(facts[i].source)};
        column_add_figure_line(&facts_line, values, text);
    }
    return STATUS_OK;
}

static const char *wrap_rule_text(const struct chip *chip)
{
    switch (chip->pod.wrap_rule) {
    case CHIP_WRAP_FULL_AXIS:
        return "an axis wraps around if it has the length";
    case CHIP_WRAP_CUBES:
        return "all axes wrap around if all are multiples of";
    }
    return "";
}

enum status list_shapes(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip chip;
        char buffer[SHAPE_TEXT_BYTES];
        STATUS_TRY(chip_at(arena, i, &chip, reterr));
        if (chip.kind == CHIP_GPU) {
            strbuf_add(text, "%s: nodes of %s ", chip.name,
                       counted(chip.network.node_chips, "GPU").text);
            if (chip.network.nvswitch_count == 0)
                strbuf_add(text, "joined each to each");
            else
                strbuf_add(
                    text, "on %s",
                    counted(chip.network.nvswitch_count, network_switch_name(&chip.network)).text);
            strbuf_add(text, "%s\n", chip.network.nic_count == 0 ? ", one node only" : "");
            continue;
        }
        strbuf_add(text, "%s: %s %u\n ", chip.name, wrap_rule_text(&chip), chip.pod.wrap_length);
        for (uint32_t slice = 0; slice < chip.pod.slice_count; slice++)
            strbuf_add(text, " %s", slice_text(buffer, &chip, chip.pod.slice[slice]));
        if (chip.pod.wrap_rule == CHIP_WRAP_CUBES)
            strbuf_add(text, " and whole cubes up to %s",
                       slice_text(buffer, &chip, chip.pod.shape));
        strbuf_add(text, "\n");
    }
    strbuf_add(text, "\n`podsim list shapes CHIP` prints what the product's names mean.\n"
                     "Other shapes are for what-ifs: \"unrealisable\": true in the machine, and\n"
                     "\"wrap\": {\"x\": true} where an axis shall wrap around.\n");
    return STATUS_OK;
}

/* "v5p-8192": the shape that is sold by this name. */
static enum status list_product(struct arena *arena, const char *name, const char *dash,
                                struct strbuf *text, struct error *reterr)
{
    struct chip chip;
    struct shape shape;
    char buffer[SHAPE_TEXT_BYTES];
    const char *const chip_name = arena_format(arena, "%.*s", (int)(dash - name), name);
    if (chip_name == NULL) return error_set(reterr, STATUS_NO_MEMORY, name, "no memory for a name");
    STATUS_TRY(chip_find(arena, chip_name, "ideal", name, "", &chip, reterr));
    if (chip.kind == CHIP_GPU) {
        return error_set(reterr, STATUS_INVALID, name,
                         "GPUs have no product names with a number; a machine of them is "
                         "\"%s:nodes=4\"",
                         chip.name);
    }
    uint64_t const units = strtoull(dash + 1, NULL, 10); /* The largest where it is too large. */
    STATUS_TRY(shape_of_product(&chip, units, name, name, &shape, reterr));
    strbuf_add(text, "%s is %s\n", name, shape_text(buffer, &shape));
    return list_shape(arena, buffer, text, reterr);
}

enum status list_shape(struct arena *arena, const char *name, struct strbuf *text,
                       struct error *reterr)
{
    struct shape shape;
    struct chip named;
    struct error ignored = {0};
    const char *const dash = strrchr(name, '-');
    if (dash != NULL && dash[1] != '\0' && strspn(dash + 1, "0123456789") == strlen(dash + 1))
        return list_product(arena, name, dash, text, reterr);
    if (chip_find(arena, name, "ideal", name, "", &named, &ignored) == STATUS_OK) {
        show_machine_products(&named, text);
        return STATUS_OK;
    }
    STATUS_TRY(shape_parse(name, name, &shape, reterr));
    strbuf_add(text, "%s: %s\n", name, counted(shape_chip_count(&shape), "chip").text);
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip chip;
        struct error error = {0};
        STATUS_TRY(chip_at(arena, i, &chip, reterr));
        if (chip.kind == CHIP_GPU) continue;
        strbuf_add(text, "%s", chip.name);
        strbuf_pad(text, 10);
        if (shape_check(&chip, &shape, name, &error) != STATUS_OK) {
            strbuf_add(text, "%s\n", error.message);
            continue;
        }
        if (shape.twisted) {
            strbuf_add(
                text, "%s\n",
                shape_may_twist(&shape) && shape_is_cubes(&chip, &shape)
                    ? "a twisted torus: the long axes are rings, the short ones shift along "
                      "them"
                    : "cannot be twisted: only k x k x 2k and k x 2k x 2k of whole cubes can");
            continue;
        }
        for (uint32_t axis = 0; axis < shape.axis_count; axis++)
            strbuf_add(text, "%s%s of %u is a %s", axis == 0 ? "" : ", ", shape_axis_name(axis),
                       shape.length[axis], shape_wraps(&chip, &shape, axis) ? "ring" : "line");
        strbuf_add(text, "\n");
    }
    return STATUS_OK;
}
