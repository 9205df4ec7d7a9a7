/*
 * One scale an array, from its own largest number. A kernel reads the array for that number, and
 * another reads it again and casts it. A norm of Transformer Engine finds the number itself, and
 * torch.compile does in each kernel that writes such an array: a small kernel then joins what the
 * blocks of threads have found. Where two arrays are wanted, the cast writes both.
 */
#include "sim/kernels/recipe.h"

const struct recipe recipe_current = {
    .name = "current",
    .help = "one scale an array, from its own largest number",
    .source = "NVIDIA TransformerEngine at d0067d0d, transformer_engine/common/recipe/__init__.py "
              "(Float8CurrentScaling), pytorch/csrc/extensions/normalization.cpp "
              "(FUSED_NORM_AMAX_FP8); pytorch/ao at 36027d82, torchao/float8/config.py "
              "(tensorwise), torchao/testing/training/roofline_utils.py",
    .cast = WORK_CAST_TENSOR,
    .runs_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
    .way = {[RECIPE_TORCHAO] =
                {
                    .is_there = true,
                    .is_default = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
                    .two_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
                    .travels = true,
                    .one = {[RECIPE_NORMED] = {2, 2, 1},
                            [RECIPE_FUNCTION] = {2, 2, 1},
                            [RECIPE_FOUND] = {3, 4, 1},
                            [RECIPE_GRADIENT] = {2, 2, 1},
                            [RECIPE_WEIGHT] = {3, 4, 1}},
                    .both = {[RECIPE_NORMED] = {2, 2, 2},
                             [RECIPE_FUNCTION] = {2, 2, 2},
                             [RECIPE_FOUND] = {3, 4, 2},
                             [RECIPE_GRADIENT] = {2, 2, 2},
                             [RECIPE_WEIGHT] = {3, 4, 1}},
                    .second = {1, 1, 1},
                    .weight_backward = {1, 2, 1},
                },
            [RECIPE_TRANSFORMER_ENGINE] =
                {
                    .is_there = true,
                    .two_on = {[RECIPE_CHIP_TN] = true},
                    .travels = true,
                    .weights_stay = true,
                    .one = {[RECIPE_NORMED] = {1, 2, 1},
                            [RECIPE_FUNCTION] = {2, 4, 1},
                            [RECIPE_FOUND] = {2, 4, 1},
                            [RECIPE_GRADIENT] = {2, 4, 1},
                            [RECIPE_WEIGHT] = {2, 4, 1}},
                    .both = {[RECIPE_NORMED] = {1, 2, 2},
                             [RECIPE_FUNCTION] = {2, 4, 2},
                             [RECIPE_FOUND] = {2, 4, 2},
                             [RECIPE_GRADIENT] = {2, 4, 2},
                             [RECIPE_WEIGHT] = {2, 4, 2}},
                    .second = {1, 1, 1},
                }},
};
