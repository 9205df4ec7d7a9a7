/* Recipes of fp8: what a step has of a stack, and what it cannot have. */
#include <stdio.h>
#include <string.h>

#include "sim/kernels/kernels.h"
#include "sim/step/ranks.h"
#include "sim/step/refusals.h"

static const char where[] = "/workload/fp8_recipe";

enum { NAMES_BYTES = 128 };

/* Chips with fp4 multiply numbers of blocks with their scales. */
static enum recipe_chip chip_of(const struct chip *chip)
{
    return chip->math_flop_per_s[FORMAT_FP4] != 0 ? RECIPE_CHIP_BLOCKS : RECIPE_CHIP_TN;
}

static const struct fusion *fusion_of(const struct chip *chip)
{
    return chip->kernels.stack == NULL ? NULL : chip->kernels.stack->between.fusion;
}

static enum recipe_library library_of(const struct chip *chip)
{
    const struct fusion *fusion = fusion_of(chip);
    return fusion == NULL ? RECIPE_LIBRARY_NONE : fusion->linear;
}

/* Whether the stack has a table for the products of a recipe. */
static bool has_products(const struct chip *chip, const struct recipe *recipe)
{
    return kernel_table_of(chip->kernels.stack, FORMAT_FP8, KERNEL_TN, FORMAT_BF16, recipe->cast) !=
           NULL;
}

static bool is_in_fp8(const struct workload_plan *plan)
{
    return !workload_serves(plan) && plan->formats.matmuls == FORMAT_FP8;
}

static bool runs(const struct chip *chip, const struct recipe *recipe)
{
    return recipe->runs_on[chip_of(chip)] && recipe->way[library_of(chip)].is_there;
}

uint32_t workload_recipe(const struct workload_plan *plan, const struct chip *chip)
{
    enum recipe_library const library = library_of(chip);
    if (plan->software.fp8_recipe != WORKLOAD_RECIPE_DEFAULT) return plan->software.fp8_recipe;
    if (!is_in_fp8(plan) || library == RECIPE_LIBRARY_NONE) return WORKLOAD_RECIPE_NONE;
    for (uint32_t i = 0; recipe_at(i) != NULL; i++)
        if (recipe_at(i)->way[library].is_default[chip_of(chip)] &&
            has_products(chip, recipe_at(i)))
            return WORKLOAD_RECIPE_FIRST + i;
    return WORKLOAD_RECIPE_NONE;
}

struct graph_casting workload_casts(const struct workload_plan *plan, const struct chip *chip)
{
    uint32_t const place = workload_recipe(plan, chip);
    if (place < WORKLOAD_RECIPE_FIRST || workload_serves(plan))
        return (struct graph_casting){.recipe = NULL};
    const struct recipe *recipe = recipe_at(place - WORKLOAD_RECIPE_FIRST);
    const struct recipe_way *way = &recipe->way[library_of(chip)];
    const struct fusion *fusion = fusion_of(chip);
    return (struct graph_casting){.recipe = recipe,
                                  .way = way,
                                  .norms_belong = fusion != NULL && fusion->norms_belong,
                                  .two = way->two_on[chip_of(chip)]};
}

/* "delayed", "current": recipes that the chip runs with the library of its stack. */
static const char *names_of(const struct chip *chip, char names[NAMES_BYTES])
{
    size_t used = 0;
    names[0] = '\0';
    for (uint32_t i = 0; recipe_at(i) != NULL; i++)
        if (runs(chip, recipe_at(i)) && used < NAMES_BYTES)
            used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s\"%s\"",
                                     used == 0 ? "" : ", ", recipe_at(i)->name);
    return names;
}

enum status refusals_casts(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct chip *chip = &ranks->machine->chip;
    char names[NAMES_BYTES];
    uint32_t const place = workload_recipe(plan, chip);
    if (place < WORKLOAD_RECIPE_FIRST) return STATUS_OK;
    const struct recipe *recipe = recipe_at(place - WORKLOAD_RECIPE_FIRST);
    if (plan->formats.matmuls != FORMAT_FP8)
        return error_set(reterr, STATUS_INVALID, where,
                         "a recipe needs products in fp8, and \"matmuls\" are %s; set \"formats\": "
                         "{\"matmuls\": \"fp8\"}",
                         format_name(plan->formats.matmuls));
    if (chip->kernels.stack == NULL)
        return error_set(reterr, STATUS_INVALID, where,
                         "a recipe needs kernels of a stack, and \"machine\" names no \"stack\"; "
                         "\"te\" has recipes");
    if (chip->math_flop_per_s[FORMAT_FP8] == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s multiplies no fp8; \"h100-sxm\" and \"b200\" do", chip->name);
    if (library_of(chip) == RECIPE_LIBRARY_NONE)
        return error_set(
            reterr, STATUS_UNSUPPORTED, where,
            "%s has no linear layers that train in fp8 by a recipe; \"none\" takes its "
            "products as they are",
            chip->kernels.stack->title);
    if (!runs(chip, recipe))
        return error_set(reterr, STATUS_UNSUPPORTED, where, "%s runs no \"%s\" on %s; it has %s",
                         recipe_library_name(library_of(chip)), recipe->name, chip->name,
                         names_of(chip, names));
    if (!has_products(chip, recipe))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s has no table of fp8 products without casts; \"none\" takes the "
                         "tables that it has",
                         chip->kernels.stack->title);
    return STATUS_OK;
}
