#include "sim/replay/server.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/replay/arrival_cost.h"

int64_t server_share_ps(int64_t work_ps, int64_t part_ps, int64_t whole_ps)
{
    uint64_t product = 0;
    if (part_ps >= whole_ps) return work_ps;
    if (!__builtin_mul_overflow((uint64_t)work_ps, (uint64_t)part_ps, &product))
        return (int64_t)(product / (uint64_t)whole_ps);
    units_wide const wide = (units_wide)(uint64_t)work_ps * (uint64_t)part_ps;
    return (int64_t)(wide / (uint64_t)whole_ps);
}

/* Breaks of a server that a passage fell into are met one after the other, the latest first. */
struct passage {
    int64_t work_ps;
    int64_t from_ps;
    int64_t until_ps;
    int64_t met_ps;     /* Time of the passage in the breaks so far. */
    int64_t outside_ps; /* Work in the breaks so far; rounded in favour of the debt. */
};

/* Returns the work of a passage in the next break. */
static int64_t passage_meet(struct passage *passage, int64_t begin_ps, int64_t end_ps)
{
    int64_t const first_ps = passage->from_ps > begin_ps ? passage->from_ps : begin_ps;
    int64_t const last_ps = passage->until_ps < end_ps ? passage->until_ps : end_ps;
    int64_t const before_ps = passage->outside_ps;
    if (last_ps <= first_ps) return 0;
    passage->met_ps += last_ps - first_ps;
    passage->outside_ps =
        server_share_ps(passage->work_ps, passage->met_ps, passage->until_ps - passage->from_ps);
    return passage->outside_ps - before_ps;
}

void server_passed(const struct servers *servers, enum server server, uint32_t chip,
                   int64_t work_ps, int64_t from_ps, int64_t until_ps)
{
    struct server_state *state = server_at(servers, server, chip);
    struct server_past *past = server_past_at(servers, server, chip);
    struct passage passage = {.work_ps = work_ps, .from_ps = from_ps, .until_ps = until_ps};
    int64_t settled_ps = 0, end_ps = past->run_begin_ps;
    if (until_ps <= from_ps) return;
    /* A break that lasts takes all; what it has no room for is known when it ends. */
    int64_t const open_ps = past->needed ? 0 : passage_meet(&passage, state->edge_ps, until_ps);
    for (uint32_t i = past->run_count + 1; i-- > 0 && end_ps > from_ps;) {
        int64_t part_ps = passage_meet(&passage, i > 0 ? past->run[i - 1].end_ps : from_ps, end_ps);
        if (part_ps > past->room_ps[i]) part_ps = past->room_ps[i];
        past->room_ps[i] -= part_ps;
        settled_ps += part_ps;
        if (i > 0) end_ps = past->run[i - 1].begin_ps;
        if (i == past->run_count) continue;
        if (servers->notes != NULL) servers->notes[chip].looks_back = true;
        if (servers->look_backs != NULL && past->earlier_ps > from_ps) ++*servers->look_backs;
    }
    int64_t owed_ps = work_ps - settled_ps - open_ps;
    if (!past->needed) {
        int64_t const paid_ps = owed_ps < past->spared_ps ? owed_ps : past->spared_ps;
        past->spared_ps -= paid_ps;
        owed_ps -= paid_ps;
        state->debt_ps += owed_ps;
    }
    state->settled_ps += work_ps - owed_ps - open_ps;
}

/* What has been granted and not been done yet. */
static int64_t unserved_ps(const struct servers *servers, enum server server, uint32_t chip,
                           int64_t now_ps)
{
    int64_t sum_ps = 0;
    if (servers->may_exceed) {
        int64_t const free_ps = server_past_at(servers, server, chip)->free_ps;
        return free_ps > now_ps ? free_ps - now_ps : 0;
    }
    if (server != SERVER_HBM) return 0; /* Only reads are granted before they are done. */
    for (uint32_t way = 0; way < servers->read_ways; way++) {
        const struct server_reads *reads = reads_at(servers, way, chip);
        int64_t const rest_ps = reads->until_ps - now_ps;
        if (rest_ps <= 0) continue;
        sum_ps += server_share_ps(reads->work_ps, rest_ps, reads->until_ps - reads->since_ps);
    }
    return sum_ps;
}

/* Keeps the latest run among the ended ones. If it was none, its two breaks are one. */
static inline __attribute__((always_inline)) void run_keep(struct server_past *past,
                                                           int64_t edge_ps)
{
    struct server_run *run = past->run;
    int64_t *room_ps = past->room_ps;
    if (past->run_begin_ps == edge_ps) return;
    if (past->run_count > 0) past->earlier_ps = run[past->run_count - 1].begin_ps;
    if (past->run_count == SERVER_RUNS) {
        uint32_t least = 0;
        for (uint32_t i = 1; i + 1 < SERVER_RUNS; i++)
            if (run[i + 1].begin_ps - run[i].end_ps < run[least + 1].begin_ps - run[least].end_ps)
                least = i;
        run[least + 1].begin_ps = run[least].begin_ps;
        memmove(&room_ps[least + 1], &room_ps[least + 2],
                (past->run_count - least - 1) * sizeof *room_ps);
        past->run_count--;
        memmove(&run[least], &run[least + 1], (past->run_count - least) * sizeof *run);
    }
    run[past->run_count++] = (struct server_run){.begin_ps = past->run_begin_ps, .end_ps = edge_ps};
    room_ps[past->run_count] = 0;
}

/* What the break since the latest run has left at an instant, with `served_ps` that is served or
 * paid by then; negative where that is more than the break is long. */
static int64_t break_left_ps(const struct server_state *state, int64_t served_ps, int64_t now_ps)
{
    return now_ps - state->edge_ps - (served_ps - state->settled_ps);
}

void server_run_push(struct server_past *past, const struct server_push *push, bool has_room)
{
    if (has_room) past->room_ps[past->run_count] = push->room_ps;
    past->run_begin_ps = push->begin_ps;
    run_keep(past, push->end_ps);
}

static void push_note(struct server_notes *notes, enum server server,
                      const struct server_past *past, int64_t edge_ps)
{
    uint32_t const number = notes->count[server];
    if (past->run_begin_ps == edge_ps) return;
    if (number == SERVER_PUSHES_MAX) {
        notes->looks_back = true;
        return;
    }
    notes->push[server][number] =
        (struct server_push){past->run_begin_ps, edge_ps, past->room_ps[past->run_count]};
    notes->count[server]++;
}

/* A break ends. */
static void break_end(struct server_state *state, struct server_past *past, int64_t served_ps,
                      int64_t now_ps)
{
    int64_t left_ps = break_left_ps(state, served_ps, now_ps);
    run_keep(past, state->edge_ps);
    left_ps += past->room_ps[past->run_count];
    past->room_ps[past->run_count] = left_ps > 0 ? left_ps : 0;
    state->settled_ps = served_ps + (left_ps < 0 ? left_ps : 0);
    past->run_begin_ps = now_ps;
}

void server_part_begin(const struct servers *servers, enum server server, uint32_t chip,
                       int64_t now_ps)
{
    struct server_state *state = server_at(servers, server, chip);
    struct server_past *past = server_past_at(servers, server, chip);
    if (state->edge_ps != now_ps && servers->notes != NULL && servers->notes[chip].is_on)
        push_note(&servers->notes[chip], server, past, state->edge_ps);
    if (state->edge_ps != now_ps)
        break_end(state, past,
                  state->dma_ps - unserved_ps(servers, server, chip, now_ps) - state->debt_ps,
                  now_ps);
    state->debt_ps = 0; /* From here on it is what is served and not settled. */
    state->edge_ps = past->run_begin_ps;
    past->needed = true;
}

int64_t server_owed_ps(const struct servers *servers, enum server server, uint32_t chip,
                       int64_t now_ps)
{
    const struct server_state *state = server_at(servers, server, chip);
    return state->dma_ps - unserved_ps(servers, server, chip, now_ps) - state->settled_ps;
}

void server_part_end(const struct servers *servers, enum server server, uint32_t chip,
                     int64_t owed_ps, int64_t spared_ps, int64_t now_ps)
{
    struct server_state *state = server_at(servers, server, chip);
    struct server_past *past = server_past_at(servers, server, chip);
    SIM_ASSERT(owed_ps >= 0 && spared_ps >= 0);
    state->settled_ps += owed_ps;
    state->edge_ps = now_ps;
    past->spared_ps = spared_ps;
    past->needed = false;
    if (servers->notes != NULL) servers->notes[chip].spared[server] = true;
}

int64_t servers_left_ps(const struct servers *servers, uint32_t chip, int64_t now_ps)
{
    int64_t most_ps = 0;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        const struct server_state *state = server_at(servers, server, chip);
        int64_t const owed_ps = state->debt_ps + unserved_ps(servers, server, chip, now_ps);
        int64_t const room_ps = break_left_ps(state, state->dma_ps - owed_ps, now_ps);
        int64_t const left_ps = owed_ps - (room_ps < 0 ? room_ps : 0);
        if (left_ps > most_ps) most_ps = left_ps;
    }
    return most_ps;
}
