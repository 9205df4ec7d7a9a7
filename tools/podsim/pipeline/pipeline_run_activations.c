/* What ranks hold of activations, in their whole shares of a microbatch. */
#include "sim/base/arena.h"
#include "tools/podsim/pipeline/pipeline_run.h"

/* What a slot of the template leaves behind of saved activations. */
static int64_t slot_saved_bytes(const struct program_template *template)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t e = 0; e < template->op[i].effect_count; e++)
            if (template->op[i].effect[e].memory == PROGRAM_MEMORY_ACTIVATIONS)
                bytes += template->op[i].effect[e].bytes;
    return bytes;
}

/* By stages of the rank: what a forward pass saves; -1: not looked at yet. */
static void stages_look(const struct program *program, uint32_t rank,
                        const struct schedule *schedule, int64_t *saved_bytes)
{
    const struct program_role *role = &program->roles[rank];
    const struct schedule_rank *list = &schedule->rank[rank];
    uint32_t b = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        bool const paired = pass->paired || (i > 0 && list->pass[i - 1].paired);
        bool const counts =
            pass->kind == SCHEDULE_FORWARD && !paired && saved_bytes[pass->stage] < 0;
        if (counts) saved_bytes[pass->stage] = 0;
        while (b < role->block_count && role->block[b].pass < i + 1) b++;
        for (; b < role->block_count && role->block[b].pass == i + 1; b++)
            if (counts)
                saved_bytes[pass->stage] +=
                    role->block[b].repeat *
                    slot_saved_bytes(&program->templates[role->block[b].template_index]);
    }
}

enum status pipeline_run_activations_take(struct arena *arena, struct pipeline_run_row *row,
                                          const struct program *program, struct error *reterr)
{
    const struct schedule *schedule = &row->of->schedule;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof(double), &memory, reterr));
    row->activations = memory;
    STATUS_TRY(arena_try(arena, schedule->stage_count, sizeof(int64_t), &memory, reterr));
    int64_t *saved_bytes = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        int64_t sum_bytes = 0, stages = 0;
        for (uint32_t s = 0; s < schedule->stage_count; s++) saved_bytes[s] = -1;
        stages_look(program, r, schedule, saved_bytes);
        for (uint32_t s = 0; s < schedule->stage_count; s++) {
            sum_bytes += saved_bytes[s] < 0 ? 0 : saved_bytes[s];
            stages += saved_bytes[s] >= 0;
        }
        double const held = (double)row->role[r].memory.each_peak_bytes[PROGRAM_MEMORY_ACTIVATIONS];
        /* Of two copies a rank holds twice as many stages as a microbatch passes through. */
        if (sum_bytes > 0)
            row->activations[r] =
                held * (double)stages / ((double)sum_bytes * schedule->chunk_count);
    }
    return STATUS_OK;
}
