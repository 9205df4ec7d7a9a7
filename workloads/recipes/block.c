/*
 * A scale for 128 numbers of a row, and of weights for 128 x 128 (DeepSeek-V3's). Blocks of rows
 * are not those of columns, so that the gradient of the weights wants an array of its own: one
 * kernel reads the array once, and writes both. What tp gathers has been cast both ways before.
 */
#include "sim/kernels/recipe.h"

const struct recipe
    recipe_block =
        {
            .name = "block",
            .help = "a scale for 128 numbers, of weights for 128 x 128",
            .source = "DeepSeek-V3, arXiv 2412.19437, 3.3.2; NVIDIA TransformerEngine at d0067d0d, "
                      "transformer_engine/common/recipe/__init__.py (Float8BlockScaling)",
            .cast = WORK_CAST_BLOCK,
            .runs_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
            .way = {[RECIPE_TRANSFORMER_ENGINE] =
                        {
                            .is_there = true,
                            .two_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
                            .travels = true,
                            .weights_stay = true,
                            .one = {[RECIPE_NORMED] = {1, 2, 2},
                                    [RECIPE_FUNCTION] = {1, 2, 2},
                                    [RECIPE_FOUND] = {1, 2, 2},
                                    [RECIPE_GRADIENT] = {1, 2, 2},
                                    [RECIPE_WEIGHT] = {1, 2, 2}},
                            .both = {[RECIPE_NORMED] = {1, 2, 2},
                                     [RECIPE_FUNCTION] = {1, 2, 2},
                                     [RECIPE_FOUND] = {1, 2, 2},
                                     [RECIPE_GRADIENT] = {1, 2, 2},
                                     [RECIPE_WEIGHT] = {1, 2, 2}},
                        }},
};
