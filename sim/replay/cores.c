#include "sim/replay/cores.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/program/program.h"
#include "sim/resource/compute.h"

/* The most that collectives of one stream have. */
static uint32_t stream_cores(const struct program *program, uint32_t stream)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            bool const travels = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
            if (op->stream != stream || !travels) continue;
            uint32_t const own = program->plans[op->index].protocol.cores;
            most = own > most ? own : most;
        }
    }
    return most;
}

enum status cores_build(struct arena *arena, const struct program *program, const struct chip *chip,
                        struct cores *ret_cores, struct error *reterr)
{
    struct cores *cores = ret_cores;
    void *memory = NULL;
    uint64_t most = 0;
    *cores = (struct cores){.is_on = false};
    for (uint32_t stream = 0; stream < program->stream_count; stream++)
        most += stream_cores(program, stream);
    if (most == 0 || chip->core.count <= 1) return STATUS_OK;
    cores->is_on = true;
    cores->held_most = most < chip->core.count ? (uint32_t)most : chip->core.count - 1;
    uint64_t const row = cores->held_most + 1u;
    STATUS_TRY(
        arena_try(arena, program->work_count * row, sizeof *cores->loss_ppm, &memory, reterr));
    cores->loss_ppm = memory;
    for (uint32_t work = 0; work < program->work_count; work++)
        compute_losses_ppm(chip, &program->works[work], cores->held_most,
                           &cores->loss_ppm[work * row]);
    return STATUS_OK;
}

static uint32_t loss_ppm(const struct cores *cores, uint32_t work, uint32_t held)
{
    uint32_t const at = held < cores->held_most ? held : cores->held_most;
    return cores->loss_ppm[(uint64_t)work * (cores->held_most + 1u) + at];
}

struct op_cores cores_op(const struct cores *cores, uint32_t work, const struct compute_time *time,
                         uint32_t parts)
{
    int64_t const unit_ps = time->mxu_ps > time->vpu_ps ? time->mxu_ps : time->vpu_ps;
    struct op_cores own = {.matter = false};
    if (!cores->is_on || unit_ps == 0) return own;
    int64_t const math_ps = unit_ps + time->vpu_rest_ps;
    uint32_t most_ppm = 0;
    for (uint32_t held = 0; held <= cores->held_most; held++) {
        uint32_t const ppm = loss_ppm(cores, work, held);
        most_ppm = ppm > most_ppm ? ppm : most_ppm;
    }
    units_wide const kept = (units_wide)(uint64_t)time->duration_ps * (PPM_ONE - most_ppm);
    own.work = work;
    own.math_ps = math_ps / parts;
    own.math_longer = (uint32_t)(math_ps % parts);
    own.matter = (units_wide)(uint64_t)math_ps * PPM_ONE > kept;
    return own;
}

/* Adds up what was lost until now, at the rate since the last change. */
static void lost_until(const struct cores *cores, struct cores_state *state, uint32_t work,
                       int64_t now_ps)
{
    uint64_t const span_ps = (uint64_t)(now_ps - state->edge_ps);
    state->lost_ps += (int64_t)((units_wide)span_ps * loss_ppm(cores, work, state->held) / PPM_ONE);
    state->edge_ps = now_ps;
}

int64_t cores_end_ps(const struct cores *cores, uint32_t chip, uint32_t part,
                     const struct op_cores *own, int64_t begin_ps, int64_t now_ps)
{
    struct cores_state *state = &cores->states[chip];
    lost_until(cores, state, own->work, now_ps);
    int64_t const end_ps = begin_ps + own->math_ps + (part < own->math_longer) + state->lost_ps;
    if (end_ps <= now_ps) return end_ps;
    uint32_t const kept_ppm = PPM_ONE - loss_ppm(cores, own->work, state->held);
    units_wide const rest_ps =
        ((units_wide)(uint64_t)(end_ps - now_ps) * PPM_ONE + kept_ppm - 1) / kept_ppm;
    return rest_ps < (units_wide)(TIME_PS_END - now_ps) ? now_ps + (int64_t)rest_ps : TIME_PS_END;
}

void cores_settle(const struct cores *cores, uint32_t chip, uint32_t work, int64_t now_ps)
{
    lost_until(cores, &cores->states[chip], work, now_ps);
}
