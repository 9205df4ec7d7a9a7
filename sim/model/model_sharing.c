/*
 * Layers that share keys and values: of each `cla_share_factor` layers the first computes them, and
 * the others attend to its cache. Source: cross-layer attention, Brandon et al., arXiv 2405.12981;
 * HunYuanDecoderLayer of vLLM's models/hunyuan_v1.py, whose other layers have q_proj alone.
 */
#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

enum status model_read_sharing(struct arena *arena, struct json *document,
                               const struct model_family *family, struct model *model,
                               struct error *reterr)
{
    static const char use[] = "use_cla", factor[] = "cla_share_factor";
    uint64_t layers = 1;
    bool used = false;
    void *memory = NULL;
    if (family->keys == NULL || family->keys[name_find(use, family->keys)] == NULL)
        return STATUS_OK;
    STATUS_TRY(model_take_flag(document, use, false, &used, reterr));
    STATUS_TRY(model_take_count(document, factor, layers_max, 1, &layers, reterr));
    if (!used || layers == 1) return STATUS_OK;
    STATUS_TRY(arena_try(arena, model->layers, sizeof *model->attends.borrows, &memory, reterr));
    bool *borrows = memory;
    for (uint64_t i = 0; i < model->layers; i++) borrows[i] = i % layers != 0;
    if (model->layers > 1) model->attends.borrows = borrows;
    return STATUS_OK;
}
