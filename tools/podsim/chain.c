#include "tools/podsim/chain.h"

#include "sim/base/arena.h"

void chain_source_read(const struct options *options, const char *path,
                       struct chain_source *ret_source)
{
    *ret_source = (struct chain_source){.path = path, .full = options_has(options, "--full")};
    const char *text = NULL;
    while ((text = options_value_at(options, "--set", ret_source->setting_count)) != NULL)
        ret_source->settings[ret_source->setting_count++].text = text;
}

static enum status scenario_build(struct chain *chain, const struct chain_source *source,
                                  struct error *reterr)
{
    if (source->text == NULL)
        return scenario_read(chain->arena, source->path, source->settings, source->setting_count,
                             &chain->scenario, reterr);
    return scenario_read_text(chain->arena, source->path, source->text, source->text_bytes,
                              source->settings, source->setting_count, &chain->scenario, reterr);
}

enum status chain_build(struct chain *chain, const struct chain_source *source,
                        enum chain_stage stage, struct error *reterr)
{
    *chain = (struct chain){.arena = arena_create(0)};
    struct scenario *scenario = &chain->scenario;
    if (chain->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory to begin with");
    STATUS_TRY(scenario_build(chain, source, reterr));
    if (source->schedule != NULL) scenario->workload.schedule_given = source->schedule;
    scenario->workload.schedule_held_max = source->schedule_held_max;
    scenario->workload.watch = source->watch;
    scenario->workload.drawn = source->drawn;
    if (source->drawn == NULL) {
        void *memory = NULL;
        STATUS_TRY(arena_try(chain->arena, 1, sizeof(struct routing_drawn), &memory, reterr));
        scenario->workload.drawn = memory;
    }
    if (stage < CHAIN_MACHINE) return STATUS_OK;
    STATUS_TRY(machine_build(chain->arena, &scenario->machine, &chain->machine, reterr));
    if (stage < CHAIN_MESH) return STATUS_OK;
    STATUS_TRY(mesh_build(chain->arena, &scenario->mesh, &chain->machine, &chain->mesh, reterr));
    if (stage < CHAIN_PROGRAM) return STATUS_OK;
    STATUS_TRY(workload_lower(chain->arena, &scenario->workload, &chain->machine, &chain->mesh,
                              &chain->program, reterr));
    roofline_train_step(&scenario->workload, &chain->machine, &chain->mesh, &chain->roofline);
    return STATUS_OK;
}

void chain_close(struct chain *chain)
{
    arena_destroy(chain->arena);
    *chain = (struct chain){0};
}
