#include "tools/podsim/common/chain.h"

enum status chain_replay(struct chain *chain, const struct chain_source *source,
                         const struct replay_options *options, struct error *reterr)
{
    struct replay_options complete = *options;
    complete.engine = chain->scenario.run.engine;
    complete.steps_max = chain->scenario.run.steps;
    complete.arbitration = chain->scenario.run.arbitration;
    STATUS_TRY(fold_build(chain->arena, &chain->machine, &chain->program, source->full,
                          &chain->fold, reterr));
    return replay_run(chain->arena, &complete, &chain->machine, &chain->program, &chain->fold,
                      &chain->trace, reterr);
}
