/*
 * A scale, a power of two, for 32 numbers of a row. Tensor cores of Blackwell multiply with these
 * scales. A block along a row is not one along a column, so one kernel reads the array once and
 * writes two arrays: by rows and by columns.
 */
#include "sim/kernels/recipe.h"

const struct recipe
    recipe_mxfp8 =
        {
            .name = "mxfp8",
            .help = "a scale for 32 numbers, in the tensor cores of Blackwell",
            .source = "OCP Microscaling Formats (MX) 1.0; NVIDIA TransformerEngine at d0067d0d, "
                      "transformer_engine/common/recipe/__init__.py (MXFP8BlockScaling), "
                      "pytorch/quantization.py (get_default_fp8_recipe)",
            .cast = WORK_CAST_MX,
            .runs_on = {[RECIPE_CHIP_BLOCKS] = true},
            .way = {[RECIPE_TRANSFORMER_ENGINE] =
                        {
                            .is_there = true,
                            .two_on = {[RECIPE_CHIP_BLOCKS] = true},
                            .is_default = {[RECIPE_CHIP_BLOCKS] = true},
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
