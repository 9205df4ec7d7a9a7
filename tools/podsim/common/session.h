/*
 * session.h: from a file to a trace, a stage after the other: scenario, machine, mesh, program;
 * each verb goes as far as it needs. Everything lies in one arena.
 */
#ifndef TOOLS_PODSIM_COMMON_SESSION_H
#define TOOLS_PODSIM_COMMON_SESSION_H

#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/measure/choices.h"
#include "sim/mesh/mesh.h"
#include "sim/program/program.h"
#include "sim/replay/replay.h"
#include "sim/roofline/roofline.h"
#include "sim/scenario/scenario.h"
#include "sim/step/routing_load.h"
#include "sim/trace/trace.h"
#include "tools/podsim/common/options.h"

enum { SESSION_SETTINGS_MAX = OPTIONS_GIVEN_MAX + 1, SESSION_PRESET_BYTES = 64 };

enum session_stage {
    SESSION_SCENARIO,
    SESSION_MACHINE,
    SESSION_MESH,
    SESSION_GRAPH, /* The graph of a part of the model, and no program. */
    SESSION_PROGRAM,
};

/* Where the scenario comes from, and what the command line changes in it. */
struct session_source {
    const char *path;
    /* The text of a built-in scenario or of a pipe; NULL: it is read from `path`. */
    const char *text;
    uint64_t text_bytes;
    struct arena *arena; /* The memory of a text that was read before; NULL: none was. */
    bool is_piped;       /* The text came by standard input or a pipe: no path gives it again. */
    bool full;
    bool is_program; /* The text is a program's (sim/scenario/program_file.h). */
    /* The pipeline's schedule out of a file; NULL: the scenario's. */
    const struct schedule *schedule;
    uint32_t schedule_held_max;  /* Microbatches that ranks of a pipeline hold; see struct
                                    workload_plan. */
    const struct cancel *cancel; /* While a run is made ready; NULL: nobody waits. */
    /* What several sessions draw, one after the other; NULL: the session's own. */
    struct routing_drawn *drawn;
    /* The scenario's machine, built before; NULL: the session's own. */
    const struct machine *machine;
    /* The chooser of the same machine; NULL: the session's own. */
    const struct plan_chooser *chooser;
    struct scenario_setting settings[SESSION_SETTINGS_MAX];
    uint32_t setting_count;
    uint32_t set_count;                /* The first of `settings`, as many as --set gives. */
    char preset[SESSION_PRESET_BYTES]; /* The setting of `--preset`. */
    const char *preset_name;           /* What `--preset` gives; NULL: nothing. */
};

struct session {
    struct arena *arena;
    struct scenario scenario;
    const char *title; /* The scenario's, with what the command line has changed. */
    struct machine machine;
    struct mesh mesh;
    struct program program;
    struct fold fold;
    bool is_program; /* Read, not lowered: there are no workload and no roofline. */
    const struct program_text_part *pages; /* Programs behind the one that was read. */
    uint32_t page_count;                   /* The number of `pages`. */
    struct roofline roofline;              /* With the program. */
    struct trace trace;                    /* By session_replay(). */
};

/* What an operand names, with every --set and --full: a file; where there is none, the built-in
 * scenario of that name; "-" is standard input, and a pipe is read to its end; with --program, a
 * program's text. To be closed whatever is returned.
 * STATUS_NOT_FOUND: neither file nor scenario; STATUS_INVALID: a program's text without --program.
 */
enum status session_source_read(const struct options *options, const char *operand,
                                struct session_source *ret_source, struct error *reterr);
/* session_source_read() that takes a program's text without --program, too: its first line says
 * what it is. */
enum status session_source_read_either(const struct options *options, const char *operand,
                                       struct session_source *ret_source, struct error *reterr);
void session_source_close(struct session_source *source);

/* What `auto` chooses by in its steps; its machine is built. */
struct choices_args session_choices(const struct session *session);

/* Builds every stage up to and with `stage`. To be closed whatever is returned. */
enum status session_build(struct session *session, const struct session_source *source,
                          enum session_stage stage, struct error *reterr);
/* The steps behind the prefill of a generation, of a scenario or of a text that has pages; 0: it is
 * none. */
uint64_t session_output(const struct session *session);
/* The last step of the prefill, 0, or of a page, which a run simulates by itself, from index 0 on;
 * false: there are no more, or it is no generation. */
bool session_part_last(const struct session *session, uint32_t index, uint64_t *ret_last);
/* Of a generation that was built up to the program a part alone. It borrows scenario, machine and
 * mesh. To be closed whatever is returned, before the other. */
enum status session_part_build(const struct session *whole, uint32_t index,
                               struct session *ret_part, struct error *reterr);
/* The program alone, without its roofline, of another number of sequences in a step of inference
 * that was built. Unless it `plays` later, its collectives go by whatever algorithms: what it holds
 * at least is the same. It borrows as above. To be closed whatever is returned, before the other.
 */
enum status session_batch_build(const struct session *whole, uint64_t batch, bool plays,
                                struct session *ret_part, struct error *reterr);
/* /workload/batch of a step of inference. */
uint64_t session_batch(const struct session *session);
/* Folds and plays what was built up to the program. `options` without the engine and the steps,
 * which the scenario names. STATUS_STUCK: among others, the step is below its roofline. */
enum status session_replay(struct session *session, const struct session_source *source,
                           const struct replay_options *options, struct error *reterr);
void session_close(struct session *session);

#endif
