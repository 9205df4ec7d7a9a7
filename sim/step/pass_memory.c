/*
 * What passes keep, for schedules that go by memory, and formulas of it: the effects of the ops
 * that a stage's passes are lowered to, on templates of its modules that never run.
 */
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/step/pass_times.h"
#include "sim/step/pipeline.h"
#include "sim/step/stages.h"

/* Bytes of a stage and one microbatch. */
struct kept {
    uint64_t forward; /* Bytes that the forward pass saves. */
    uint64_t between; /* Bytes that are there when only the weight gradient is to do. */
    uint64_t rise;    /* The most bytes that the input gradient adds to `forward` on its way. */
};

/* What the ops of a pass have taken, less what they have given back. */
struct change {
    int64_t end, most;
};

/* For a backward pass. */
static bool is_saved(enum program_memory memory)
{
    return memory == PROGRAM_MEMORY_ACTIVATIONS || memory == PROGRAM_MEMORY_ACTIVATED ||
           memory == PROGRAM_MEMORY_MASKS;
}

static struct change change_of(const struct program_template *template)
{
    struct change change = {0, 0};
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t end = 0; end < 2; end++)
            for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
                const struct program_effect *effect = &template->op[i].effect[e];
                if (!is_saved(effect->memory) || effect->at_end != (end == 1)) continue;
                change.end += effect->bytes;
                change.most = change.end > change.most ? change.end : change.most;
            }
    return change;
}

static struct change pass_change(struct pipeline *pipeline, const struct lower_part *module,
                                 enum lower_act act)
{
    struct pipeline_variant variant = {.part = {*module}, .part_count = 1};
    variant.part[0].act = (uint8_t)act;
    uint16_t const index = pipeline_template(pipeline, &variant);
    if (pipeline->lower->build.status != STATUS_OK) return (struct change){0, 0};
    return change_of(&pipeline->lower->build.program->templates[index]);
}

/* One after the other. */
static struct change change_then(struct change one, struct change other)
{
    int64_t const most = one.end + other.most;
    return (struct change){one.end + other.end, most > one.most ? most : one.most};
}

/* The two other passes. */
static void sums_add(struct pipeline *pipeline, const struct lower_part *module, struct kept *kept)
{
    struct change const forward = pass_change(pipeline, module, ACT_FORWARD);
    struct change const weight = pass_change(pipeline, module, ACT_WEIGHT);
    SIM_ASSERT(forward.end >= 0 && weight.end <= 0);
    kept->forward += (uint64_t)forward.end;
    kept->between += (uint64_t)-weight.end;
}

static void input_add(struct change input, struct kept *kept)
{
    int64_t const after = input.end + (int64_t)kept->rise;
    kept->rise = (uint64_t)(after > input.most ? after : input.most);
}

/* Units are added from the first up, and input gradients go through them from the last down. */
static void module_add(struct pipeline *pipeline, struct lower_part module, struct kept *kept)
{
    struct change input = {0, 0};
    if (module.module != MODULE_EMBEDDING) input = pass_change(pipeline, &module, ACT_INPUT);
    sums_add(pipeline, &module, kept);
    input_add(input, kept);
}

/* Layers from `first` to the one that ends its group, or one layer, which has none. Returns how
 * many layers that are. */
static uint32_t layers_add(struct pipeline *pipeline, uint64_t first, struct kept *kept)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    uint64_t last = first;
    struct change input = {0, 0};
    while (ranks->kinds.grouped && layer_set_has(&ranks->kinds.kept, last)) last++;
    for (uint64_t layer = last + 1; layer-- > first;) {
        struct lower_part const part = {.module =
                                            (uint8_t)lower_module_of(ranks_kind_at(ranks, layer)),
                                        .group = (uint8_t)ranks_group_at(ranks, layer)};
        if (layer < last) input = change_then(pass_change(pipeline, &part, ACT_AGAIN), input);
        input = change_then(input, pass_change(pipeline, &part, ACT_INPUT));
        sums_add(pipeline, &part, kept);
    }
    input_add(input, kept);
    return (uint32_t)(last - first + 1);
}

static struct kept stage_kept(struct pipeline *pipeline, const struct stage *stage)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    struct kept kept = {0, 0, 0};
    if (stage->embedding)
        module_add(pipeline, (struct lower_part){.module = MODULE_EMBEDDING}, &kept);
    for (uint32_t i = 0; i < stage->layer_count;)
        i += layers_add(pipeline, (uint64_t)stage->layer_first + i, &kept);
    for (uint32_t i = 0; i < stage->mtp_modules + stage->mtp_heads; i++)
        module_add(
            pipeline,
            (struct lower_part){.module = stage->mtp_modules != 0 ? MODULE_MTP : MODULE_MTP_HEAD,
                                .place = mtp_position_at(ranks, i)},
            &kept);
    if (stage->head) module_add(pipeline, (struct lower_part){.module = MODULE_HEAD}, &kept);
    return kept;
}

/* Up. A stage that saves nothing has nothing to count in. */
static uint32_t ppm_of(uint64_t bytes, uint64_t forward_bytes)
{
    if (forward_bytes == 0) return 0;
    units_wide const ppm = ((units_wide)bytes * PPM_ONE + forward_bytes - 1) / forward_bytes;
    return ppm > UINT32_MAX ? UINT32_MAX : (uint32_t)ppm;
}

static enum status kept_of_stages(struct arena *arena, const struct workload_plan *plan,
                                  const struct machine *machine, const struct mesh *mesh,
                                  uint32_t stage_count, struct schedule_kept *ret_kept,
                                  uint32_t *ret_mean_ppm, struct error *reterr)
{
    struct program unused;
    struct stages stages;
    struct kept all = {0, 0, 0};
    void *memory = NULL;
    struct ranks *ranks = NULL;
    struct lower *lower = NULL;
    STATUS_TRY(ranks_take(arena, plan, machine, mesh, &ranks, reterr));
    STATUS_TRY(lower_begin(arena, ranks, &unused, &lower, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct pipeline), &memory, reterr));
    struct pipeline *pipeline = memory;
    pipeline->lower = lower;
    STATUS_TRY(stages_build(arena, plan, stage_count, ranks_room(ranks, MESH_PP), &stages, reterr));
    for (uint32_t s = 0; s < stage_count; s++) {
        struct kept const kept = stage_kept(pipeline, &stages.stage[s]);
        STATUS_TRY(lower->build.status);
        ret_kept[s].kept_ppm = ppm_of(kept.between, kept.forward);
        ret_kept[s].rise_ppm = ppm_of(kept.rise, kept.forward);
        all.forward += kept.forward;
        all.between += kept.between;
    }
    *ret_mean_ppm = ppm_of(all.between, all.forward);
    return STATUS_OK;
}

enum status pass_memory_estimate(const struct workload_plan *plan, const struct machine *machine,
                                 const struct mesh *mesh, uint32_t stage_count,
                                 struct schedule_kept *ret_kept, uint32_t *ret_mean_ppm,
                                 struct error *reterr)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for templates");
    enum status const status =
        kept_of_stages(arena, plan, machine, mesh, stage_count, ret_kept, ret_mean_ppm, reterr);
    arena_destroy(arena);
    return status;
}
