/*
 * chain.h: from a file to a trace, a stage after the other: scenario, machine, mesh, program; each
 * verb goes as far as it needs. Everything lies in one arena.
 */
#ifndef TOOLS_PODSIM_COMMON_CHAIN_H
#define TOOLS_PODSIM_COMMON_CHAIN_H

#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/program/program.h"
#include "sim/replay/replay.h"
#include "sim/roofline/roofline.h"
#include "sim/scenario/scenario.h"
#include "sim/step/routing_load.h"
#include "sim/trace/trace.h"
#include "tools/podsim/common/options.h"

enum { CHAIN_SETTINGS_MAX = OPTIONS_GIVEN_MAX + 1 };

enum chain_stage {
    CHAIN_SCENARIO,
    CHAIN_MACHINE,
    CHAIN_MESH,
    CHAIN_GRAPH, /* Of a part of the model; nothing of the chain. */
    CHAIN_PROGRAM,
};

/* Where the scenario comes from, and what the command line changes in it. */
struct chain_source {
    const char *path;
    const char *text; /* Of a built-in scenario or of standard input; NULL: read from `path`. */
    uint64_t text_bytes;
    struct arena *arena; /* Where the text of standard input lies; NULL: it is another's. */
    bool full;
    bool is_program;                 /* The text is a program's (sim/scenario/program_file.h). */
    const struct schedule *schedule; /* Of its pipeline, out of a file; NULL: as it says. */
    uint32_t schedule_held_max;      /* Of a pipeline's ranks; see struct workload_plan. */
    const struct watch *watch;       /* While it is built; NULL: nobody waits. */
    struct routing_drawn *drawn;     /* Of several chains, one after the other; NULL: of one. */
    struct scenario_setting settings[CHAIN_SETTINGS_MAX];
    uint32_t setting_count;
};

struct chain {
    struct arena *arena;
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    struct fold fold;
    bool is_program;          /* Read, not lowered: there are no workload and no roofline. */
    struct roofline roofline; /* With the program. */
    struct trace trace;       /* By chain_replay(). */
};

/* What an operand names, with every --set and --full: a file; where there is none, the built-in
 * scenario of that name; "-" is standard input; with --program, a program's text. To be closed
 * whatever is returned.
 * STATUS_NOT_FOUND: neither file nor scenario. */
enum status chain_source_read(const struct options *options, const char *operand,
                              struct chain_source *ret_source, struct error *reterr);
void chain_source_close(struct chain_source *source);

/* Builds every stage up to and with `stage`. To be closed whatever is returned. */
enum status chain_build(struct chain *chain, const struct chain_source *source,
                        enum chain_stage stage, struct error *reterr);
/* Folds and plays what was built up to the program. `options` without the engine and the steps,
 * which the scenario names. */
enum status chain_replay(struct chain *chain, const struct chain_source *source,
                         const struct replay_options *options, struct error *reterr);
void chain_close(struct chain *chain);

#endif
