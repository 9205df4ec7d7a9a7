/*
 * A scale for each row of what a product multiplies, and for each column of the other operand
 * (torchao). The kernel that writes an array casts it by rows on the way and writes it transposed
 * in 16 bits, too; a second kernel casts that. Only whole rows have scales, so tp gathers 16 bits.
 * A weight is cast by each pass: by rows forward; transposed, then cast, backward.
 */
#include "sim/kernels/recipe.h"

const struct recipe
    recipe_rowwise =
        {
            .name = "rowwise",
            .help = "a scale for each row, and for each column of the other operand",
            .source = "pytorch/ao at 36027d82, torchao/float8/config.py (rowwise), "
                      "torchao/float8/float8_linear.py, torchao/testing/training/roofline_utils.py",
            .cast = WORK_CAST_ROW,
            .runs_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
            .way = {[RECIPE_TORCHAO] =
                        {
                            .is_there = true,
                            .two_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
                            .one = {[RECIPE_WEIGHT] = {1, 2, 1}},
                            .both = {[RECIPE_NORMED] = {1, 2, 4},
                                     [RECIPE_FUNCTION] = {1, 2, 4},
                                     [RECIPE_FOUND] = {2, 4, 4},
                                     [RECIPE_GRADIENT] = {1, 2, 4},
                                     [RECIPE_WEIGHT] = {1, 2, 1}},
                            .weight_backward = {2, 4, 3},
                        }},
};
