/*
 * scenario_text.c: a scenario with every default visible, such that it reads back to the same.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/scenario_parts.h"

enum { FLAT_DEPTH = 3 };

static const char *keys_text(struct arena *arena, const struct key *rows,
                             const struct key_source *source)
{
    struct strbuf text = {0};
    struct json_writer writer;
    json_write_start(&writer, &text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    keys_write(&writer, rows, source);
    json_write_object_end(&writer);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    strbuf_free(&text);
    return copy;
}

/* A key that the text leaves out, and that the preset fills in where the text is read, is shown at
 * its default, too. A key that is shown may be a condition of another one: so round after round,
 * until the preset fills in nothing. */
static const char *text_with_preset(struct arena *arena, struct key_source *source)
{
    const struct key *also[PRESET_KEYS_MAX + 2] = {NULL};
    uint32_t count = 0, before = 0;
    source->also = also;
    do {
        const char *const text = keys_text(arena, scenario_keys, source);
        struct preset_filled filled;
        struct json *document = NULL;
        struct error error; /* Refused is only what the reader of the scenario would refuse. */
        if (text == NULL) return NULL;
        enum status status = json_read_text(arena, "", text, strlen(text), &document, &error);
        if (status == STATUS_OK) status = preset_apply(arena, document, NULL, &filled, &error);
        if (status != STATUS_OK) return status == STATUS_NO_MEMORY ? NULL : text;
        before = count;
        for (uint32_t i = 0; i < filled.count && count < PRESET_KEYS_MAX + 1; i++) {
            const struct key *const row = key_at(scenario_keys, filled.pointer[i], source);
            bool known = row == NULL;
            for (uint32_t k = 0; k < count; k++) known = known || also[k] == row;
            if (!known) also[count++] = row;
        }
        if (count == before) return text;
    } while (true);
}

static const char *scenario_write(struct arena *arena, const struct scenario *scenario,
                                  const struct key *rows)
{
    struct scenario shown;
    struct error error; /* There is no memory; NULL says so. */
    uint32_t known_axes = 0;
    if (scenario_shown(arena, scenario, &shown, &error) != STATUS_OK) return NULL;
    if (scenario_axis_count(arena, &shown.machine, &known_axes, &error) != STATUS_OK) return NULL;
    struct key_source source = {.whole = &shown,
                                .base = &shown,
                                .axis_count = known_axes == 0 ? MACHINE_AXES_MAX : known_axes};
    if (rows == scenario_keys && shown.preset != NULL) return text_with_preset(arena, &source);
    return keys_text(arena, rows, &source);
}

const char *scenario_text(struct arena *arena, const struct scenario *scenario)
{
    return scenario_write(arena, scenario, scenario_keys);
}

/* A chip out of a file is written out, not named. */
const char *scenario_text_of_program(struct arena *arena, const struct scenario *scenario)
{
    struct scenario whole = *scenario;
    whole.machine.chip_path = NULL;
    whole.workload.kind = WORKLOAD_TRAIN_STEP; /* Works say what keys of inference have made, */
    whole.workload.batch_tokens = 0;           /* how gradients of a batch are reduced, */
    whole.workload.model.experts.shared = 0;   /* and when shared experts are computed. */
    return scenario_write(arena, &whole, program_keys);
}
