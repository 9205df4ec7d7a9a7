/*
 * scenario_text.c: a scenario with every default visible, such that it reads back to the same.
 */
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario_parts.h"

enum { FLAT_DEPTH = 3 };

static const char *scenario_write(struct arena *arena, const struct scenario *scenario,
                                  const struct key *rows)
{
    struct strbuf text = {0};
    struct json_writer writer;
    struct scenario shown;
    struct error error; /* There is no memory; NULL says so. */
    uint32_t known_axes = 0;
    if (scenario_shown(arena, scenario, &shown, &error) != STATUS_OK) return NULL;
    if (scenario_axis_count(arena, &shown.machine, &known_axes, &error) != STATUS_OK) return NULL;
    struct key_source const source = {&shown, &shown,
                                      known_axes == 0 ? MACHINE_AXES_MAX : known_axes};
    json_write_start(&writer, &text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    keys_write(&writer, rows, &source);
    json_write_object_end(&writer);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    strbuf_free(&text);
    return copy;
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
