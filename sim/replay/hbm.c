#include "sim/replay/hbm.h"

#include <string.h>

#include "sim/replay/replay_internal.h"

int64_t hbm_share_ps(int64_t work_ps, int64_t part_ps, int64_t whole_ps)
{
    uint64_t product = 0;
    if (part_ps >= whole_ps) return work_ps;
    if (!__builtin_mul_overflow((uint64_t)work_ps, (uint64_t)part_ps, &product))
        return (int64_t)(product / (uint64_t)whole_ps);
    units_wide const wide = (units_wide)(uint64_t)work_ps * (uint64_t)part_ps;
    return (int64_t)(wide / (uint64_t)whole_ps);
}

static int64_t overlap_ps(int64_t from_ps, int64_t until_ps, int64_t begin_ps, int64_t end_ps)
{
    int64_t const first_ps = from_ps > begin_ps ? from_ps : begin_ps;
    int64_t const last_ps = until_ps < end_ps ? until_ps : end_ps;
    return last_ps > first_ps ? last_ps - first_ps : 0;
}

void hbm_passed(struct hbm_state *hbm, int64_t work_ps, int64_t from_ps, int64_t until_ps)
{
    int64_t const whole_ps = until_ps - from_ps;
    int64_t beside_ps =
        overlap_ps(from_ps, until_ps, hbm->run_begin_ps, hbm->needed ? until_ps : hbm->edge_ps);
    for (uint32_t i = hbm->run_count; i-- > 0 && hbm->run[i].end_ps > from_ps;)
        beside_ps += overlap_ps(from_ps, until_ps, hbm->run[i].begin_ps, hbm->run[i].end_ps);
    if (whole_ps <= 0) return;
    /* Rounded in favour of the debt. */
    int64_t owed_ps = work_ps - hbm_share_ps(work_ps, whole_ps - beside_ps, whole_ps);
    if (!hbm->needed) {
        int64_t const paid_ps = owed_ps < hbm->spared_ps ? owed_ps : hbm->spared_ps;
        hbm->spared_ps -= paid_ps;
        owed_ps -= paid_ps;
        hbm->debt_ps += owed_ps;
    }
    hbm->settled_ps += work_ps - owed_ps;
}

/* What has been granted and not been done yet. */
static int64_t unserved_ps(const struct replay *replay, uint32_t chip, int64_t now_ps)
{
    if (replay->dma_may_exceed) {
        int64_t const free_ps = replay->hbm[chip].free_ps;
        return free_ps > now_ps ? free_ps - now_ps : 0;
    }
    int64_t sum_ps = 0;
    for (uint32_t way = 0; way < replay->read_ways; way++) {
        const struct hbm_reads *reads = &replay->reads[(uint64_t)way * replay->chip_count + chip];
        int64_t const rest_ps = reads->until_ps - now_ps;
        if (rest_ps <= 0) continue;
        sum_ps += hbm_share_ps(reads->work_ps, rest_ps, reads->until_ps - reads->since_ps);
    }
    return sum_ps;
}

/* Keeps the latest run among the ended ones. */
static void run_keep(struct hbm_state *hbm)
{
    struct hbm_run *run = hbm->run;
    if (hbm->run_begin_ps == hbm->edge_ps) return;
    if (hbm->run_count == HBM_RUNS) {
        uint32_t least = 0;
        for (uint32_t i = 1; i + 1 < HBM_RUNS; i++)
            if (run[i + 1].begin_ps - run[i].end_ps < run[least + 1].begin_ps - run[least].end_ps)
                least = i;
        run[least + 1].begin_ps = run[least].begin_ps;
        hbm->run_count--;
        memmove(&run[least], &run[least + 1], (hbm->run_count - least) * sizeof *run);
    }
    run[hbm->run_count++] = (struct hbm_run){.begin_ps = hbm->run_begin_ps, .end_ps = hbm->edge_ps};
}

void hbm_part_begin(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    if (hbm->edge_ps != now_ps) {
        run_keep(hbm);
        hbm->run_begin_ps = now_ps;
        hbm->settled_ps = hbm->dma_ps - unserved_ps(replay, chip, now_ps) - hbm->debt_ps;
    }
    hbm->debt_ps = 0; /* From here on it is what is served and not settled. */
    hbm->edge_ps = hbm->run_begin_ps;
    hbm->needed = true;
}

int64_t hbm_owed_ps(const struct replay *replay, uint32_t chip, int64_t now_ps)
{
    const struct hbm_state *hbm = &replay->hbm[chip];
    return hbm->dma_ps - unserved_ps(replay, chip, now_ps) - hbm->settled_ps;
}

void hbm_part_end(struct replay *replay, uint32_t chip, int64_t owed_ps, int64_t spared_ps,
                  int64_t now_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    SIM_ASSERT(owed_ps >= 0 && spared_ps >= 0);
    hbm->settled_ps += owed_ps;
    hbm->spared_ps = spared_ps;
    hbm->edge_ps = now_ps;
    hbm->needed = false;
}

int64_t hbm_left_ps(const struct replay *replay, uint32_t chip, int64_t now_ps)
{
    return replay->hbm[chip].debt_ps + unserved_ps(replay, chip, now_ps);
}
