#include "sim/replay/prefetch.h"

#include "sim/replay/state.h"
#include "sim/resource/compute.h"

void prefetch_build(struct replay *replay)
{
    const struct program *program = replay->program;
    for (uint32_t r = 0; r < program->role_count; r++) {
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
        replay->roles[r].prefetch_bytes = bytes;
        replay->prefetch.is_on = replay->prefetch.is_on || bytes > 0;
    }
    replay->prefetch.room_bytes = compute_vmem_rest_bytes(&replay->machine->chip);
}

void prefetch_start(struct replay *replay, uint32_t chip)
{
    if (replay->prefetch.is_on)
        replay->prefetch.states[chip] = (struct prefetch_state){.since_ps = 0};
}

/* What VMEM has room for, of the weights that have not come. */
static uint64_t wanted_bytes(const struct replay *replay, uint32_t chip)
{
    const struct prefetch_state *state = &replay->prefetch.states[chip];
    uint64_t const left = role_at(replay, chip)->prefetch_bytes - state->begun_bytes;
    uint64_t const most = left < replay->prefetch.room_bytes ? left : replay->prefetch.room_bytes;
    return most - state->there_bytes;
}

void prefetch_wait(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    if (!replay->prefetch.is_on || wanted_bytes(replay, chip) == 0) return;
    struct prefetch_state *state = &replay->prefetch.states[chip];
    state->streams = true;
    state->since_ps = now_ps;
    server_part_begin(&replay->servers, SERVER_HBM, chip, now_ps);
}

/* The wait has ended: what messages have left of HBM's time was for weights. */
static void wait_end(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct prefetch_state *state = &replay->prefetch.states[chip];
    const struct fold_chip_class *kind =
        &replay->fold->chip_classes[replay->chips[chip].chip_class];
    uint64_t const rate = units_scale_ppm(replay->machine->chip.hbm_bytes_per_s, kind->hbm_ppm);
    uint64_t const wanted = wanted_bytes(replay, chip);
    int64_t const waited_ps = now_ps - state->since_ps;
    int64_t const owed_ps = server_owed_ps(&replay->servers, SERVER_HBM, chip, now_ps);
    int64_t const paid_ps = owed_ps < waited_ps ? owed_ps : waited_ps;
    int64_t const free_ps = waited_ps - paid_ps;
    int64_t const wanted_ps = units_duration_ps(wanted, rate);
    uint64_t came = wanted;
    if (free_ps < wanted_ps)
        came = (uint64_t)((units_wide)(uint64_t)free_ps * rate / (uint64_t)TIME_PS_PER_S);
    state->streams = false;
    state->there_bytes += came;
    state->sum_bytes += came;
    server_part_end(&replay->servers, SERVER_HBM, chip, paid_ps,
                    free_ps > wanted_ps ? free_ps - wanted_ps : 0, now_ps);
    server_at(&replay->servers, SERVER_HBM, chip)->debt_ps = owed_ps - paid_ps;
}

void prefetch_take(struct replay *replay, const struct program_op *op, uint32_t part, uint32_t chip,
                   int64_t now_ps)
{
    if (!replay->prefetch.is_on) return;
    struct prefetch_state *state = &replay->prefetch.states[chip];
    uint64_t const all = replay->program->works[op->index].prefetch_bytes;
    uint64_t const bytes = all / op->parts + (part < all % op->parts);
    if (state->streams) wait_end(replay, chip, now_ps);
    state->own_bytes = bytes < state->there_bytes ? bytes : state->there_bytes;
    state->there_bytes -= state->own_bytes;
    state->begun_bytes += bytes;
}
