#include "sim/kernels/recipe.h"

#include <stddef.h>

static const struct recipe *const recipes[] = {
#define RECIPE(name) &recipe_##name,
#include "workloads/recipes.def"
#undef RECIPE
};

const struct recipe *recipe_at(uint32_t index)
{
    return index < sizeof recipes / sizeof *recipes ? recipes[index] : NULL;
}

const char *recipe_library_name(enum recipe_library library)
{
    static const char *const names[RECIPE_LIBRARIES] = {
        [RECIPE_LIBRARY_NONE] = "no library",
        [RECIPE_TRANSFORMER_ENGINE] = "Transformer Engine",
        [RECIPE_TORCHAO] = "torchao",
        [RECIPE_XLA] = "XLA",
    };
    return names[library];
}
