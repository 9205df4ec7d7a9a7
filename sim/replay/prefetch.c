#include "sim/replay/prefetch.h"

#include "sim/base/units.h"
#include "sim/program/program.h"
#include "sim/replay/server.h"
#include "sim/replay/streams.h"
#include "sim/resource/compute.h"

void prefetch_build(const struct program *program, const struct chip *chip,
                    struct role_table *roles, struct prefetch *ret_prefetch)
{
    bool is_on = false, has_any = false;
    for (uint32_t w = 0; w < program->work_count; w++)
        has_any = has_any || program->works[w].prefetch_bytes > 0;
    for (uint32_t r = 0; has_any && r < program->role_count; r++) {
        const struct program_role *role = &program->roles[r];
        uint64_t bytes = 0;
        for (uint32_t b = 0; b < role->block_count; b++) {
            const struct program_template *template =
                &program->templates[role->block[b].template_index];
            for (uint32_t i = 0; i < template->op_count; i++)
                if (template->op[i].kind == PROGRAM_OP_COMPUTE)
                    bytes += role->block[b].repeat *
                             program->works[template->op[i].index].prefetch_bytes;
        }
        roles[r].prefetch_bytes = bytes;
        is_on = is_on || bytes > 0;
    }
    *ret_prefetch = (struct prefetch){.room_bytes = compute_vmem_rest_bytes(chip), .is_on = is_on};
}

void prefetch_start(struct prefetch *prefetch, uint32_t chip, uint64_t all_bytes)
{
    prefetch->states[chip] = (struct prefetch_state){.all_bytes = all_bytes};
}

/* What VMEM has room for, of the weights that have not come. */
static uint64_t wanted_bytes(const struct prefetch *prefetch, uint32_t chip)
{
    const struct prefetch_state *state = &prefetch->states[chip];
    uint64_t const left = state->all_bytes - state->begun_bytes;
    uint64_t const most = left < prefetch->room_bytes ? left : prefetch->room_bytes;
    return most - state->there_bytes;
}

void prefetch_wait(struct prefetch *prefetch, const struct servers *servers, uint32_t chip,
                   int64_t now_ps)
{
    if (wanted_bytes(prefetch, chip) == 0) return;
    struct prefetch_state *state = &prefetch->states[chip];
    state->streams = true;
    state->since_ps = now_ps;
    server_part_begin(servers, SERVER_HBM, chip, now_ps);
}

/* The wait has ended: what messages have left of HBM's time was for weights. */
static void wait_end(struct prefetch *prefetch, const struct servers *servers, uint32_t chip,
                     uint64_t rate, int64_t now_ps)
{
    struct prefetch_state *state = &prefetch->states[chip];
    uint64_t const wanted = wanted_bytes(prefetch, chip);
    int64_t const waited_ps = now_ps - state->since_ps;
    int64_t const owed_ps = server_owed_ps(servers, SERVER_HBM, chip, now_ps);
    int64_t const paid_ps = owed_ps < waited_ps ? owed_ps : waited_ps;
    int64_t const free_ps = waited_ps - paid_ps;
    int64_t const wanted_ps = units_duration_ps(wanted, rate);
    uint64_t came = wanted;
    if (free_ps < wanted_ps)
        came = (uint64_t)((units_wide)(uint64_t)free_ps * rate / (uint64_t)TIME_PS_PER_S);
    state->streams = false;
    state->there_bytes += came;
    state->sum_bytes += came;
    server_part_end(servers, SERVER_HBM, chip, paid_ps,
                    free_ps > wanted_ps ? free_ps - wanted_ps : 0, now_ps);
    server_at(servers, SERVER_HBM, chip)->debt_ps = owed_ps - paid_ps;
}

void prefetch_take(struct prefetch *prefetch, const struct servers *servers, uint32_t chip,
                   uint64_t bytes, uint64_t rate, int64_t now_ps)
{
    struct prefetch_state *state = &prefetch->states[chip];
    if (state->streams) wait_end(prefetch, servers, chip, rate, now_ps);
    state->own_bytes = bytes < state->there_bytes ? bytes : state->there_bytes;
    state->there_bytes -= state->own_bytes;
    state->begun_bytes += bytes;
}
