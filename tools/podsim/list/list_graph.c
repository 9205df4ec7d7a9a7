/* list_graph.c: kinds of ops, blocks of models, recipes of fp8. */
#include "sim/base/strbuf.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/kernels/recipe.h"
#include "sim/model/model_read.h"
#include "tools/podsim/list/list_text.h"

static bool op_at(uint32_t index, struct list_entry *ret_entry)
{
    if (index >= op_kind_count) return false;
    const struct op_kind *kind = op_kind_table[index];
    *ret_entry = (struct list_entry){kind->name, kind->help, kind->source, NULL};
    return true;
}

const struct list_entries list_ops = {"op", 0, op_at, NULL};

static bool recipe_entry_at(uint32_t index, struct list_entry *ret_entry)
{
    const struct recipe *recipe = recipe_at(index);
    if (recipe == NULL) return false;
    *ret_entry = (struct list_entry){recipe->name, recipe->help, recipe->source, NULL};
    return true;
}

const struct list_entries list_recipes = {"recipe", 0, recipe_entry_at, NULL};

static bool block_at(uint32_t index, struct list_entry *ret_entry)
{
    if (index >= block_count) return false;
    const struct block *block = block_table[index];
    *ret_entry = (struct list_entry){block->name, block->help, block->source, NULL};
    return true;
}

/* Built-in models that have it. */
static enum status models_add(struct arena *arena, uint32_t index, struct strbuf *text,
                              struct error *reterr)
{
    const char *name = NULL;
    bool is_first = true;
    strbuf_add(text, "models");
    for (uint32_t i = 0; (name = model_name_at(i)) != NULL; i++) {
        struct model model;
        STATUS_TRY(model_read_name_or_path(arena, name, NULL, name, &model, reterr));
        if (!block_is_of(block_table[index], &model)) continue;
        list_name_add(name, is_first, LIST_FACT_COLUMN, text);
        is_first = false;
    }
    strbuf_add(text, "\n");
    return STATUS_OK;
}

const struct list_entries list_blocks = {"block", 0, block_at, models_add};
