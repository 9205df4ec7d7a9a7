/*
 * pipeline.h: the stages one after the other, from a file to a trace; each verb goes as far as it
 * needs. Everything lies in one arena.
 */
#ifndef TOOLS_PODSIM_PIPELINE_H
#define TOOLS_PODSIM_PIPELINE_H

#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/program/program.h"
#include "sim/replay/replay.h"
#include "sim/roofline/roofline.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/trace.h"
#include "tools/podsim/options.h"

enum { PIPELINE_SETTINGS_MAX = OPTIONS_GIVEN_MAX + 1 };

enum pipeline_stage {
    PIPELINE_SCENARIO,
    PIPELINE_MACHINE,
    PIPELINE_MESH,
    PIPELINE_PROGRAM,
};

/* Where the scenario comes from, and what the command line changes in it. */
struct pipeline_source {
    const char *path;
    const char *text; /* NULL: read from `path`; else a built-in scenario of that name. */
    uint64_t text_bytes;
    bool full;
    const struct schedule *schedule; /* Of its pipeline, out of a file; NULL: as it says. */
    struct scenario_setting settings[PIPELINE_SETTINGS_MAX];
    uint32_t setting_count;
};

struct pipeline {
    struct arena *arena;
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    struct fold fold;
    struct roofline roofline; /* With the program. */
    struct trace trace;       /* By pipeline_replay(). */
};

/* The file, every --set and --full. */
void pipeline_source_read(const struct options *options, const char *path,
                          struct pipeline_source *ret_source);

/* Builds every stage up to and with `stage`. To be closed whatever is returned. */
enum status pipeline_build(struct pipeline *pipeline, const struct pipeline_source *source,
                           enum pipeline_stage stage, struct error *reterr);
/* Folds and plays what was built up to the program. `options` without the engine, which the
 * scenario names. */
enum status pipeline_replay(struct pipeline *pipeline, const struct pipeline_source *source,
                            const struct replay_options *options, struct error *reterr);
void pipeline_close(struct pipeline *pipeline);

#endif
