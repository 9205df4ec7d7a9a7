/* A stack out of what was measured, and for kernels between matmuls out of the base, too. */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/calibrate/calibrate.h"

bool calibrate_parts_add(const struct calibration *calibration, bool measured, const char *before,
                         struct strbuf *text)
{
    bool has_part = false;
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++) {
        if ((calibration->function[f].share_ppm != 0) != measured) continue;
        strbuf_add(text, "%s%s", has_part ? ", " : before,
                   work_function_name((enum work_function)f));
        has_part = true;
    }
    if ((calibration->launch_ps != 0) != measured) return has_part;
    strbuf_add(text, "%slaunch", has_part ? ", " : before);
    return true;
}

/* "norm, sum: measured ...; rest, loss: carried over from h100-sxm.te: ..." */
static void between_source(const struct calibration *calibration, struct strbuf *text)
{
    bool const has_own = calibrate_parts_add(calibration, true, "", text);
    if (has_own) strbuf_add(text, ": %s", calibration->source);
    if (calibrate_parts_add(calibration, false, has_own ? "; " : "", text))
        strbuf_add(text, ": carried over from %s: %s", calibration->base_name,
                   calibration->base->between.source);
}

static enum status between_make(struct arena *arena, const struct calibration *calibration,
                                struct kernel_between *ret_between, struct error *reterr)
{
    struct strbuf source = {.bytes = NULL};
    *ret_between = calibration->base->between;
    if (calibration->launch_ps != 0) ret_between->launch_ps = calibration->launch_ps;
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        if (calibration->function[f].share_ppm != 0)
            ret_between->share_ppm[f] = calibration->function[f].share_ppm;
    between_source(calibration, &source);
    ret_between->source = source.failed ? NULL : arena_text(arena, source.bytes);
    strbuf_free(&source);
    if (ret_between->source != NULL) return STATUS_OK;
    return error_no_memory(reterr, "");
}

static void collectives_make(const struct calibration *calibration,
                             struct kernel_collectives *ret_collectives)
{
    const struct chip_nccl *learned = &calibration->collectives.factors;
    *ret_collectives = (struct kernel_collectives){.latency_ppm = learned->latency_ppm,
                                                   .byte_ppm = learned->byte_ppm,
                                                   .nvls_ppm = learned->nvls_ppm};
    if (learned->latency_ppm != 0 || learned->byte_ppm != 0 || learned->nvls_ppm != 0)
        ret_collectives->source = calibration->source;
}

enum status calibrate_stack(struct arena *arena, const struct calibration *calibration,
                            const char *name, struct kernel_stack *ret_stack, struct error *reterr)
{
    const char *library = calibration->rows->libraries;
    *ret_stack = (struct kernel_stack){
        .name = name,
        .title = library != NULL ? library : "own measurements",
        .chip = calibration->chip->name,
    };
    for (uint32_t t = 0; t < calibration->table_count; t++)
        if (calibration->table[t].refusal == NULL)
            ret_stack->table[ret_stack->table_count++] = calibration->table[t].table;
    collectives_make(calibration, &ret_stack->collectives);
    if (calibration->base == NULL || calibration->base->between.fusion == NULL) return STATUS_OK;
    return between_make(arena, calibration, &ret_stack->between, reterr);
}
