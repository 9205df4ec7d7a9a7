/* The stages of a pipeline, as a layout of stages.h that gives the same ones. */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/schedule/schedule.h"
#include "sim/step/stages.h"

static void stage_add(const struct stage *stage, struct strbuf *text)
{
    if (stage->embedding) strbuf_add(text, "E");
    strbuf_add(text, stage->layer_count == 1 ? "t" : "t*%u", stage->layer_count);
    if (stage->mtp_modules > 0) strbuf_add(text, "m*%u", stage->mtp_modules);
    if (stage->head) strbuf_add(text, "L");
}

/* "Et*7|(t*8|)*14t*7L": stages that are alike once. */
static const char *layout_text(struct arena *arena, const struct stages *stages)
{
    struct strbuf text = {0};
    for (uint32_t s = 0, alike; s < stages->count; s += alike) {
        const struct stage *stage = &stages->stage[s];
        bool const is_inner = s > 0 && s + 1 < stages->count;
        alike = 1;
        while (is_inner && s + alike + 1 < stages->count &&
               stage[alike].layer_count == stage->layer_count)
            alike++;
        if (alike > 1) strbuf_add(&text, "(");
        stage_add(stage, &text);
        if (s + alike < stages->count) strbuf_add(&text, "|");
        if (alike > 1) strbuf_add(&text, ")*%u", alike);
    }
    const char *const copy = text.failed ? NULL : arena_text(arena, text.bytes);
    strbuf_free(&text);
    return copy;
}

enum status stages_layout(struct arena *arena, const struct workload_plan *plan, uint32_t ranks,
                          const char **ret_layout, struct error *reterr)
{
    struct schedule schedule;
    struct stages stages;
    STATUS_TRY(workload_places(arena, plan, ranks, &schedule, reterr));
    STATUS_TRY(stages_build(arena, plan, schedule.stage_count, ranks, &stages, reterr));
    *ret_layout = layout_text(arena, &stages);
    return *ret_layout != NULL ? STATUS_OK
                               : error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a layout");
}
