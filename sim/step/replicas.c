/*
 * Finds the slowest replica of a model, where no replica waits for another before the step's end.
 * Each replica goes through batches of its own, which are as unlike as their sequences are. The
 * times of its passes are estimated stage by stage, from products, attention and messages over tp
 * (pass_times.h). Passes follow one another in the order of the schedule: a stage begins a pass
 * when it has ended its pass before, and the stage before it has ended the same pass. Messages
 * between stages take equally long in all replicas, or nearly so, and are left out.
 */
#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/step/graph_terms.h"
#include "sim/step/pass_times.h"
#include "sim/step/ranks.h"

enum {
    STAGES_MAX = 64,     /* With more stages replicas are not compared. */
    CANDIDATES_MAX = 16, /* Of more replicas those with most of some amount are estimated. */
};

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* Layers beyond even shares lie about evenly on stages here, and on the last stages in a step. */
static uint64_t layers_before(const struct ranks *ranks, uint32_t stage)
{
    return ranks->plan->model.layers * stage / ranks->pp;
}

static uint64_t times_of(const struct ranks *ranks, const struct step_part *part, uint32_t stage)
{
    uint64_t const first = layers_before(ranks, stage);
    if (part->part == BLOCK_EMBEDDING) return stage == 0;
    if (part->part == BLOCK_HEAD) return stage + 1 == ranks->pp && ranks_has_head(ranks);
    if (part->part == BLOCK_MTP) return 0;
    return step_layers(ranks, first, layers_before(ranks, stage + 1) - first).of[part->kind];
}

/* The time of the pass of `ranks` on each stage. */
static void stages_time(const struct ranks *ranks, int64_t stage_ps[STAGES_MAX])
{
    struct step_part part[STEP_PARTS_MAX];
    uint32_t const part_count = step_parts(ranks, part);
    for (uint32_t s = 0; s < ranks->pp; s++) stage_ps[s] = 0;
    for (uint32_t p = 0; p < part_count; p++) {
        int64_t const part_ps = pass_part_ps(ranks, &part[p]);
        for (uint32_t s = 0; s < ranks->pp; s++)
            stage_ps[s] += (int64_t)times_of(ranks, &part[p], s) * part_ps;
    }
}

/* The time of a step, in which each stage runs its passes one after the other. */
static int64_t step_ps(const struct ranks *ranks, uint32_t batches,
                       int64_t pass_ps[STAGES_MAX][STAGES_MAX])
{
    bool const round = inference_goes_round(&ranks->plan->inference);
    int64_t end_ps[STAGES_MAX] = {0}, most_ps = 0;
    for (uint32_t n = 0; n < batches; n++) {
        int64_t before_ps = round ? end_ps[ranks->pp - 1] : 0;
        for (uint32_t s = 0; s < ranks->pp; s++) {
            uint32_t const pass = round ? (batches - s % batches + n) % batches : n;
            int64_t const own_ps = end_ps[s];
            end_ps[s] = later(own_ps, before_ps) + pass_ps[pass][s];
            before_ps = round ? own_ps : end_ps[s];
            most_ps = later(most_ps, end_ps[s]);
        }
    }
    return most_ps;
}

/* The time of a step of one replica by itself. Each batch is one pass, as replicas are apart, and
 * there are at most as many batches as stages. */
static enum status replica_time(const struct ranks *ranks, uint64_t replica, int64_t *ret_ps,
                                struct error *reterr)
{
    struct ranks own = *ranks;
    int64_t pass_ps[STAGES_MAX][STAGES_MAX];
    uint32_t const batches = inference_batch_count(&ranks->plan->inference);
    SIM_ASSERT(batches <= STAGES_MAX);
    own.inference.charged.replica = replica;
    own.pass.index = UINT32_MAX;
    for (uint32_t b = 0; b < batches; b++) {
        STATUS_TRY(ranks_pass_set(&own, b, reterr));
        stages_time(&own, pass_ps[b]);
    }
    *ret_ps = step_ps(ranks, batches, pass_ps);
    return STATUS_OK;
}

/* Whether a replica is among those that may be the slowest. */
static bool may_be_slowest(const struct inference_replicas *charged, uint64_t replica)
{
    for (uint32_t i = 0; i < INFERENCE_FULLEST; i++)
        if (charged->fullest[i] == replica) return true;
    return false;
}

/* Of equally slow replicas, the replica that reads most is taken. */
enum status ranks_replica_choose(struct ranks *ranks, struct error *reterr)
{
    struct inference_replicas *charged = &ranks->inference.charged;
    uint64_t const replicas = ranks->data / ranks->cp;
    uint64_t slowest = charged->replica;
    uint32_t const pass = ranks->pass.index;
    int64_t slowest_ps = 0;
    if (!charged->apart || !charged->ragged || ranks->pp > STAGES_MAX) return STATUS_OK;
    STATUS_TRY(replica_time(ranks, slowest, &slowest_ps, reterr));
    for (uint64_t replica = 0; replica < replicas; replica++) {
        int64_t own_ps = 0;
        if (!inference_replica_has_all(ranks, replica)) continue;
        if (replicas > CANDIDATES_MAX && !may_be_slowest(charged, replica)) continue;
        STATUS_TRY(replica_time(ranks, replica, &own_ps, reterr));
        if (own_ps <= slowest_ps) continue;
        slowest = replica;
        slowest_ps = own_ps;
    }
    if (slowest == charged->replica) return STATUS_OK;
    charged->replica = slowest;
    ranks->pass.index = UINT32_MAX;
    return ranks_pass_set(ranks, pass, reterr);
}
