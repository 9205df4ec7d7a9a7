#include "tools/podsim/pipeline/schedules_trace.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/track.h"
#include "tools/podsim/common/report.h"

enum { UUID_PROCESS = 1, UUID_SCHEDULE = 2, UUID_RANK_FIRST = 3, NAME_BYTES = 96 };

struct picture {
    struct track_writer writer;
    const struct schedule *schedule;
    const struct schedule_played *played;
    const struct schedules_row *row;
};

/* A unit is a millisecond. */
static int64_t ps_of(const struct schedules_row *row, int64_t ticks)
{
    uint64_t const parts = (uint64_t)row->ticks_per_unit / SCHEDULES_UNIT;
    units_wide const scaled = (units_wide)(uint64_t)ticks * (uint64_t)(TIME_PS_PER_S / 1000);
    return (int64_t)(scaled / parts / SCHEDULES_UNIT);
}

/* Arrows: a pass to that of its microbatch on the next stage, by the stage that it leads to. */
static uint64_t arrow(bool forward, uint32_t stage, uint32_t microbatch)
{
    return (uint64_t)(forward ? 1 : 2) << 62 | (uint64_t)stage << 32 | microbatch;
}

static void arrows(struct picture *picture, const struct schedule_pass *pass)
{
    bool const forward = pass->kind == SCHEDULE_FORWARD;
    uint32_t const last = picture->schedule->stage_count - 1;
    uint32_t const from = forward ? 0 : last, to = forward ? last : 0;
    if (pass->kind == SCHEDULE_WEIGHT) return;
    if (pass->stage != from)
        track_flow_to(&picture->writer, arrow(forward, pass->stage, pass->microbatch));
    if (pass->stage != to)
        track_flow_from(
            &picture->writer,
            arrow(forward, forward ? pass->stage + 1u : pass->stage - 1u, pass->microbatch));
}

/* "F 3", or "F 3 & B 1" of two that run as one. */
static void write_pass(struct picture *picture, uint32_t rank, uint32_t index, uint32_t count)
{
    const struct schedule_pass *pass = &picture->schedule->rank[rank].pass[index];
    const struct schedule_lane *lane = &picture->played->lane[rank];
    char name[NAME_BYTES];
    int used = 0;
    for (uint32_t i = 0; i < count; i++) {
        used +=
            snprintf(name + used, sizeof name - (size_t)used, "%s%s %u", i > 0 ? " & " : "",
                     schedule_kind_letter((enum schedule_kind)pass[i].kind), pass[i].microbatch);
        arrows(picture, &pass[i]);
    }
    struct track_argument const arguments[] = {
        {.name = "pass", .string = schedule_kind_name((enum schedule_kind)pass->kind)},
        {.name = "stage", .number = pass->stage},
        {.name = "microbatch", .number = pass->microbatch},
    };
    track_slice_begin(&picture->writer, UUID_RANK_FIRST + rank,
                      ps_of(picture->row, lane->begin[index]), TRACK_COMPUTE, name, arguments, 3);
    track_slice_end(&picture->writer, UUID_RANK_FIRST + rank,
                    ps_of(picture->row, lane->end[index + count - 1]));
}

static void write_rank(struct picture *picture, uint32_t rank)
{
    const struct schedule_rank *list = &picture->schedule->rank[rank];
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "rank %u", rank);
    track_describe(&picture->writer, &(struct track_description){.uuid = UUID_RANK_FIRST + rank,
                                                                 .parent_uuid = UUID_PROCESS,
                                                                 .name = name,
                                                                 .rank = rank + 1});
    for (uint32_t i = 0; i < list->count;) {
        uint32_t const count = list->pass[i].paired ? 2 : 1;
        write_pass(picture, rank, i, count);
        i += count;
    }
}

/* A slice as long as the step that says what was run. */
static void write_schedule(struct picture *picture, const struct options *options)
{
    const char *const times = options_value(options, "--times");
    const struct comparison_row *of = picture->row->of;
    struct track_argument const arguments[] = {
        {.name = "version", .string = report_version()},
        {.name = "times", .string = times == NULL ? "F=1,I=1,W=1,hop=0" : times},
        {.name = "ranks", .number = of->rank_count},
        {.name = "microbatches", .number = of->microbatch_count},
        {.name = "a unit of time", .string = "1 ms"},
    };
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "podsim %s", report_version());
    track_describe(&picture->writer, &(struct track_description){
                                         .uuid = UUID_PROCESS, .name = name, .pid = UUID_PROCESS});
    track_describe(&picture->writer, &(struct track_description){.uuid = UUID_SCHEDULE,
                                                                 .parent_uuid = UUID_PROCESS,
                                                                 .name = "schedule"});
    track_slice_begin(&picture->writer, UUID_SCHEDULE, 0, TRACK_LAYER, of->name, arguments,
                      sizeof arguments / sizeof *arguments);
    track_slice_end(&picture->writer, UUID_SCHEDULE,
                    ps_of(picture->row, picture->played->makespan));
}

enum status schedules_write_trace(struct arena *arena, const struct options *options,
                                  const struct schedules_row *row, struct strbuf *text,
                                  struct error *reterr)
{
    struct picture picture = {.schedule = &row->of->schedule, .played = &row->played, .row = row};
    if (row->played.makespan / (int64_t)row->ticks_per_unit > 1000000)
        return error_set(reterr, STATUS_LIMIT, "--trace",
                         "the step is longer than a million units of time, of which each is a "
                         "millisecond in a timeline");
    STATUS_TRY(track_writer_start(arena, text, &picture.writer, reterr));
    write_schedule(&picture, options);
    for (uint32_t rank = 0; rank < row->of->rank_count; rank++) write_rank(&picture, rank);
    bool const failed = picture.writer.failed || text->failed;
    track_writer_end(&picture.writer);
    if (failed) return error_set(reterr, STATUS_NO_MEMORY, "--trace", "no memory for the timeline");
    return STATUS_OK;
}
