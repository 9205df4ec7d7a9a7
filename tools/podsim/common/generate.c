#include "tools/podsim/common/generate.h"

#include "sim/base/digest.h"
#include "tools/podsim/common/report.h"

struct playing {
    struct session *whole;
    const struct session_source *source;
    const struct replay_options *options;
    struct generation *generation;
    double done; /* Share of the steps. */
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    const struct playing *playing = owner;
    struct replay_progress const all = {
        .share = playing->done,
        .events = playing->whole->trace.work.events + progress->events,
        .now_ps = progress->now_ps,
    };
    return playing->options->watch(playing->options->watch_owner, &all);
}

/* Of a part that has ended. */
static enum status goes_on(struct playing *playing, struct error *reterr)
{
    struct replay_progress const none = {.share = 0};
    if (playing->options->watch == NULL || watch(playing, &none)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}

static void work_add(struct trace *whole, const struct trace *part, uint64_t last)
{
    whole->digest += digest_record(part->step_ps, last, part->digest);
    whole->work.events += part->work.events;
    whole->work.transfers += part->work.transfers;
    whole->work.bound_checks += part->work.bound_checks;
}

/* The prefill, or the step `last` alone. */
static enum status part_play(struct playing *playing, uint32_t index, uint64_t last,
                             struct session *part, struct error *reterr)
{
    struct replay_options options = *playing->options;
    struct report_input input;
    if (options.watch != NULL) options.watch = watch;
    options.watch_owner = playing;
    STATUS_TRY(session_part_build(playing->whole, index, part, reterr));
    STATUS_TRY(session_replay(part, playing->source, &options, reterr));
    report_from_session(part, &input);
    STATUS_TRY(generation_add(part->arena, &input, last, playing->generation, reterr));
    work_add(&playing->whole->trace, &part->trace, last);
    return goes_on(playing, reterr);
}

enum status generate_play(struct session *session, const struct session_source *source,
                          const struct replay_options *options, struct generation *ret_generation,
                          struct error *reterr)
{
    uint64_t const output = session_output(session);
    uint64_t last = 0;
    uint32_t count = 0;
    struct playing playing = {session, source, options, ret_generation, 0};
    struct report_input input;
    report_from_session(session, &input);
    while (session_part_last(session, count, &last)) count++;
    STATUS_TRY(generation_begin(session->arena, &input, output, count, ret_generation, reterr));
    for (uint32_t index = 0; session_part_last(session, index, &last); index++) {
        struct session part;
        playing.done = (double)last / (double)output;
        enum status const status = part_play(&playing, index, last, &part, reterr);
        session_close(&part);
        STATUS_TRY(status);
    }
    generation_end(ret_generation);
    return STATUS_OK;
}
