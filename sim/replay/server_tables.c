/* What messages can ask of the servers of a chip at most, and what ops leave to them. */
#include "sim/replay/state.h"
#include "sim/resource/compute.h"

static uint32_t share_ppm(units_wide part, uint64_t whole)
{
    units_wide const ppm = (part * PPM_ONE + whole - 1) / whole;
    return ppm > PPM_ONE ? PPM_ONE : (uint32_t)ppm;
}

/* Whether some message of the program can go by a level: a group spans it, or hosts lie there. */
static bool level_is_used(const struct replay *replay, uint32_t level)
{
    const struct program *program = replay->program;
    if (program->copy_count > 0 && replay->machine->host.level == level) return true;
    for (uint32_t i = 0; i < program->plan_count; i++) {
        const struct group *group = &program->plans[i].group;
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (replay->machine->axis_level[group->dimension[d].axis] == level &&
                group->dimension[d].size > 1)
                return true;
    }
    return false;
}

/* What the links of a chip can ask of its HBM, and whether all of them together could ask more
 * than it has, or more than the VPU that adds what arrives. Only then do clocks have to be kept. */
void servers_build(struct replay *replay)
{
    struct servers *servers = &replay->servers;
    servers->fold = replay->fold;
    servers->chip_count = replay->chip_count;
    const struct fold *fold = replay->fold;
    const struct chip *chip = &replay->machine->chip;
    uint64_t link_most = 0, least[SERVER_COUNT] = {UINT64_MAX, UINT64_MAX};
    uint32_t element_bits = UINT32_MAX; /* Of which there are the most to add. */
    for (uint32_t i = 0; i < replay->program->plan_count; i++) {
        uint32_t const own = plan_element_bits(&replay->program->plans[i]);
        element_bits = own < element_bits ? own : element_bits;
    }
    for (uint32_t i = 0; i < fold->link_class_count; i++) {
        uint64_t const rate = fold->link_classes[i].bytes_per_s;
        link_most = rate > link_most ? rate : link_most;
    }
    for (uint32_t i = 0; i < fold->chip_class_count; i++) {
        const struct fold_chip_class *kind = &fold->chip_classes[i];
        uint64_t const rates[SERVER_COUNT] = {
            units_scale_rate(chip->hbm_bytes_per_s, kind->hbm_ppm, PPM_ONE, PPM_ONE),
            units_scale_rate(chip->vector_flop_per_s, kind->math_ppm, PPM_ONE, PPM_ONE)};
        for (uint32_t server = 0; server < SERVER_COUNT; server++)
            least[server] = rates[server] < least[server] ? rates[server] : least[server];
        servers->differs[SERVER_HBM] = servers->differs[SERVER_HBM] || kind->hbm_ppm != PPM_ONE;
        servers->differs[SERVER_VPU] = servers->differs[SERVER_VPU] || kind->math_ppm != PPM_ONE;
    }
    uint64_t most = link_most * replay->grid.port_count;
    for (uint32_t i = 0; i < replay->machine->level_count; i++)
        if (level_is_used(replay, i))
            most += level_bundle_bytes_per_s(&replay->machine->level[i].tier[0]);
    const struct machine_host *host = &replay->machine->host;
    if (replay->program->copy_count > 0 && host->level == LEVEL_NONE) most += host->bytes_per_s;
    servers->port_ways = replay->grid.port_count;
    servers->read_ways =
        servers->port_ways + replay->machine->level_count + (replay->host != NULL ? 1 : 0);
    servers->most_ppm[SERVER_HBM] = share_ppm(2 * (units_wide)most, least[SERVER_HBM]);
    servers->most_ppm[SERVER_VPU] =
        share_ppm((units_wide)most * 8 / element_bits, least[SERVER_VPU]);
    servers->may_exceed =
        servers->most_ppm[SERVER_HBM] == PPM_ONE || servers->most_ppm[SERVER_VPU] == PPM_ONE;
}

struct op_server server_op(const struct servers *servers, enum server server,
                           const struct compute_time *time, uint32_t parts)
{
    bool const hbm = server == SERVER_HBM;
    int64_t const own_ps = hbm ? time->hbm_ps : time->vpu_ps;
    int64_t const rest_ps = hbm ? time->rest_ps : time->vpu_rest_ps;
    int64_t const shared_ps = own_ps == 0 ? 0 : own_ps + rest_ps; /* Of the whole op. */
    int64_t const spare_ps = (int64_t)((units_wide)(uint64_t)time->duration_ps *
                                       (PPM_ONE - servers->most_ppm[server]) / PPM_ONE);
    bool const spares = own_ps == 0 || shared_ps <= spare_ps;
    return (struct op_server){.shared_ps = shared_ps / parts,
                              .shared_longer = (uint32_t)(shared_ps % parts),
                              .own_ps = (own_ps + parts - 1) / parts,
                              .spare_ps = spares ? (spare_ps - shared_ps) / parts : 0,
                              .spares = spares};
}
