#include "sim/report/analysis.h"
#include "tools/podsim/common/session.h"

enum status session_replay(struct session *session, const struct session_source *source,
                           const struct replay_options *options, struct error *reterr)
{
    struct replay_options complete = *options;
    complete.engine = session->scenario.run.engine;
    complete.steps_max = session->scenario.run.steps;
    complete.arbitration = session->scenario.run.arbitration;
    STATUS_TRY(fold_build(session->arena, &session->machine, &session->program, source->full,
                          &session->fold, reterr));
    STATUS_TRY(replay_run(session->arena, &complete, &session->machine, &session->program,
                          &session->fold, &session->trace, reterr));
    if (session->is_program) return STATUS_OK;
    return analysis_bound_check(&session->roofline, &session->trace, reterr);
}
