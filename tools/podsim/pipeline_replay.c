#include "tools/podsim/pipeline.h"

enum status pipeline_replay(struct pipeline *pipeline, const struct pipeline_source *source,
                            const struct replay_options *options, struct error *reterr)
{
    struct replay_options complete = *options;
    complete.engine = pipeline->scenario.run.engine;
    STATUS_TRY(fold_build(pipeline->arena, &pipeline->machine, &pipeline->program, source->full,
                          &pipeline->fold, reterr));
    return replay_run(pipeline->arena, &complete, &pipeline->machine, &pipeline->program,
                      &pipeline->fold, &pipeline->trace, reterr);
}
