/*
 * scenario.h: a scenario file: defaults filled, units converted. Defaults that chip, machine or
 * schedule give are left to whoever knows these.
 */
#ifndef SIM_SCENARIO_SCENARIO_H
#define SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arbitration.h"
#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/step/workload.h"

struct arena;
struct json;
struct preset_filled;
struct strbuf;

struct run_plan {
    uint64_t seed;
    const char *engine; /* "fast" or "reference" */
    enum arbitration arbitration;
    uint32_t steps; /* The most steps that are simulated to find the period; 1: the step alone. */
};

struct scenario {
    uint64_t version; /* The version of the format: 1. */
    const char *title;
    const char *question; /* What the scenario answers, or "". */
    /* What filled in keys that the scenario leaves out (preset.h); NULL: nothing. */
    const char *preset;
    /* The preset's stack, which has no tables of the chip; NULL: none is lacking (preset.h). */
    const char *lacking_stack;
    const struct preset_filled *filled; /* By `preset`. NULL: nothing. */
    struct machine_plan machine;
    struct mesh_plan mesh;
    struct workload_plan workload;
    struct json *model_config; /* The config.json that stands in the scenario; NULL: the model has a
                                  name, or is an MLP. */
    struct run_plan run;
};

/* One `--set /pointer=value`. */
struct scenario_setting {
    const char *text;
};

/* Reads a file (at most 16 MiB), applies the settings, refuses what it does not know. */
enum status scenario_read(struct arena *arena, const char *path,
                          const struct scenario_setting *settings, uint32_t setting_count,
                          struct scenario *ret_scenario, struct error *reterr);

/* Where a setting ("/run/prefetch_layers=2") changes which ops a program has, what they wait for,
 * or how long hosts take: what the text of a program has fixed. NULL: nowhere. */
enum status scenario_shapes_program(struct arena *arena, const char *setting,
                                    const char **ret_place, struct error *reterr);

/* As scenario_read(), from memory; `name` is what errors call it. For tests and fuzzing. */
enum status scenario_read_text(struct arena *arena, const char *name, const char *text,
                               uint64_t text_bytes, const struct scenario_setting *settings,
                               uint32_t setting_count, struct scenario *ret_scenario,
                               struct error *reterr);

/* Of a step of inference that was read: another number of sequences, as /workload/batch says it,
 * whose lengths are drawn anew where they have a distribution. Errors: sequences that are named one
 * by one; more tokens than can be counted. */
enum status scenario_batch_set(struct arena *arena, uint64_t batch, struct scenario *scenario,
                               struct error *reterr);

/* Refuses an algorithm that no collective has, where no step is lowered that says which it has. */
enum status scenario_algorithm_check(const struct scenario *scenario, struct error *reterr);

/*
 * A machine as a command line says it: "CHIP[:SHAPE][,key=value]..." or "CHIP[:key=value,...]" with
 * the keys of a scenario's machine and of its network, such as
 *
 *     tpu-v5e:8x16    v5p-8192    tpu-v5p:4x4x8,slices=2    h100-sxm:nodes=4
 *     gb200-nvl72:nodes=8,policy=hash,sharp=on,leaf.oversubscription=2
 *
 * or a .json file with a machine or a whole scenario. The chip may be a file, too,
 * "./my-chip.json:nodes=4", as in a scenario. `where` is what errors call it, "--machine".
 */
enum status scenario_machine_parse(struct arena *arena, const char *text, const char *where,
                                   struct machine_plan *ret_plan, struct error *reterr);

/* Reads the text of scenario_machine_parse() into the member "machine" of a scenario. A chip in a
 * file stays its path. */
enum status scenario_machine_json(struct arena *arena, const char *text, const char *where,
                                  struct json **ret_machine, struct error *reterr);

/* The scenario with every default visible, as JSON text in the arena (for `show scenario`). NULL:
 * there is no memory. */
const char *scenario_text(struct arena *arena, const struct scenario *scenario);

/* The JSON Schema (draft 2020-12) of scenarios. It says each key by itself, but for those of a chip
 * and a model that stand in the scenario. Only readers refuse values that do not go with other
 * keys, names that are in no catalogue, and text out of range. */
void scenario_schema(struct strbuf *text);

/* The tables of docs/scenario.md, each under its heading, in Markdown. */
void scenario_tables(struct strbuf *text);

/* The scenario that a program's text begins with: all keys but those of the workload, and in full a
 * chip that the scenario has in another file. NULL: there is no memory. */
const char *scenario_text_of_program(struct arena *arena, const struct scenario *scenario);

/* Reads the same. Its workload is empty but for what `run` says. */
enum status scenario_read_of_program(struct arena *arena, const char *name, const char *text,
                                     uint64_t text_bytes, const struct scenario_setting *settings,
                                     uint32_t setting_count, struct scenario *ret_scenario,
                                     struct error *reterr);

#endif
