/*
 * play.h: a scenario, given as text, through all stages; for tests of what must come out.
 */
#ifndef TESTS_SUPPORT_PLAY_H
#define TESTS_SUPPORT_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/program/program.h"
#include "sim/replay/replay.h"
#include "sim/report/report.h"
#include "sim/roofline/roofline.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/trace.h"

struct strbuf;

struct play {
    struct arena *arena;
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    struct fold fold;
    struct trace trace;
    struct roofline roofline;
};

struct play_options {
    bool full;
    bool record;
    bool every_layer;      /* `every_layer` of struct replay_options. */
    bool windows;          /* `windows` of struct replay_options. */
    bool short_stretches;  /* `short_stretches` of struct replay_options. */
    bool every_message;    /* `every_message` of struct replay_options. */
    bool count_waits;      /* `count_waits` of struct replay_options. */
    bool lower_only;       /* Stops before fold and replay. */
    uint64_t memory_bytes; /* At most, of the arena; 0: as much as it takes. */
    const char *engine;
    uint64_t segment_bytes; /* Of a turn at a link; 0: the replay's own. */
    uint32_t steps_max;     /* As a run is asked for (struct replay_options). */
    const uint32_t *shown;  /* Chips to record; NULL: the first. */
    uint32_t shown_count;
    const struct scenario_setting *settings;
    uint32_t setting_count;
    const struct schedule *schedule; /* Of the pipeline, out of a file. */
};

/* The caller closes the play whatever the status. Options may be NULL. */
enum status play_try(struct play *play, const char *text, const struct play_options *options,
                     struct error *reterr);
/* The stages behind the scenario, which the caller has read into the play, with an arena. */
enum status play_stages(struct play *play, const struct play_options *options,
                        struct error *reterr);
/* Fails the test, with the error, if a stage refuses. */
void play_run(struct play *play, const char *text, const struct play_options *options);
/* Plays a file of the source tree. Fails the test, with the error, if a stage refuses. */
void play_run_file(struct play *play, const char *path, const struct play_options *options);
/* Appends the JSON of the result. False where the scenario is invalid; another error fails the
 * test.
 */
bool play_result(const char *text, const struct play_options *options, struct strbuf *ret_result,
                 struct trace *ret_trace);
void play_close(struct play *play);

/* What the reports of a played scenario are made of. */
struct report_input play_report(const struct play *play);

#endif
