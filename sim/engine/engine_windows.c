/* Events that come from windows (windows.h). */
#include <stddef.h>

#include "sim/engine/engine_state.h"

enum status engine_take_windows(struct arena *arena, struct engine *engine, int64_t lookahead_ps,
                                engine_window_fn *handler, engine_window_ahead_fn *ahead,
                                struct error *reterr)
{
    SIM_ASSERT(!engine->is_reference && engine->pending_count == 0);
    /* A chip may be a lookahead ahead of another one, and post as much meanwhile as waits. */
    engine->options.pending_max *= 2;
    engine->pending_max = 0;
    engine->window_handler = handler;
    engine->window_ahead = ahead;
    return windows_create(arena, lookahead_ps, engine->options.chip_count,
                          engine->options.pending_max, &engine->windows, reterr);
}

/* Hands the groups of a layer of a window, or of one of its rounds, over. */
static void serve_groups(struct engine *engine, uint32_t layer, bool is_round)
{
    struct windows *windows = engine->windows;
    for (uint32_t g = 0; g < windows->group_count; g++) {
        struct window_group *group = &windows->groups[g];
        if (group->layer != layer) continue;
        if (!is_round) windows_sift(windows, group);
        if (g + 1 < windows->group_count && engine->window_ahead != NULL)
            engine->window_ahead(engine->options.owner, group[1].key, group[1].chips,
                                 group[1].count);
        if (group->count == 0) continue; /* All are apart. */
        engine->popped_count++;
        engine->pending_count -= group->count;
        engine->event_count += group->count;
        engine->window_handler(engine->options.owner, group->key, group->chips, group->at_ps,
                               group->count);
    }
}

void engine_window_serve(struct engine *engine)
{
    if (!windows_open(engine->windows)) { /* What is left was posted after TIME_PS_END. */
        SIM_ASSERT(engine->windows->has_passed_end);
        engine->has_passed_end = true;
        engine->pending_count = 0;
        return;
    }
    engine->now_ps = engine->windows->begin_ps;
    for (uint32_t n = 0; n < WINDOW_LAYERS; n++) serve_groups(engine, n, /* is_round= */ false);
    while (windows_round(engine->windows)) serve_groups(engine, 0, /* is_round= */ true);
}
