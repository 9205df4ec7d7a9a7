/*
 * One scale an array, from the largest numbers of the last steps. The cast reads the array once,
 * and finds its largest number for later steps on the way. Hopper multiplies fp8 as TN alone, so
 * the same kernel writes a transposed copy, and an array that tp gathers is transposed when it is
 * there. Kernels of norms write fp8 themselves. The scales of all arrays follow from the maxima
 * once a step: a few numbers, which are not counted.
 *
 * XLA knows the scale before the array, so kernels of norms and functions that it makes itself
 * write fp8. It casts what its calls of libraries leave: results of attention, gradients. Weights
 * are cast in each pass, behind their gather.
 */
#include "sim/kernels/recipe.h"

const struct recipe recipe_delayed =
    {
        .name = "delayed",
        .help = "one scale an array, from the largest numbers of earlier steps",
        .source =
            "NVIDIA TransformerEngine at d0067d0d, transformer_engine/common/recipe/__init__.py "
            "(DelayedScaling), pytorch/csrc/extensions/normalization.cpp (FULLY_FUSED), "
            "pytorch/csrc/quantizer.cpp (Float8Quantizer), pytorch/quantization.py "
            "(get_default_fp8_recipe); google/flax flax/linen/fp8_ops.py (Fp8DirectDotGeneralOp), "
            "openxla/xla xla/service/gpu/transforms/gemm_rewriter.cc",
        .cast = WORK_CAST_TENSOR,
        .runs_on = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
        .way = {[RECIPE_XLA] =
                    {
                        .is_there = true,
                        .two_on = {[RECIPE_CHIP_TN] = true},
                        .is_default = {[RECIPE_CHIP_TN] = true, [RECIPE_CHIP_BLOCKS] = true},
                        .norms_write = true,
                        .travels = true,
                        .one = {[RECIPE_FOUND] = {1, 2, 1},
                                [RECIPE_GRADIENT] = {1, 2, 1},
                                [RECIPE_WEIGHT] = {1, 2, 1}},
                        .both = {[RECIPE_NORMED] = {1, 1, 1},
                                 [RECIPE_FUNCTION] = {1, 1, 1},
                                 [RECIPE_FOUND] = {1, 2, 2},
                                 [RECIPE_GRADIENT] = {1, 2, 2},
                                 [RECIPE_WEIGHT] = {1, 2, 2}},
                        .second = {1, 1, 1},
                        .weight_backward = {1, 2, 1},
                    },
                [RECIPE_TRANSFORMER_ENGINE] =
                    {
                        .is_there = true,
                        .two_on = {[RECIPE_CHIP_TN] = true},
                        .is_default = {[RECIPE_CHIP_TN] = true},
                        .norms_write = true,
                        .travels = true,
                        .weights_stay = true,
                        .one = {[RECIPE_FUNCTION] = {1, 2, 1},
                                [RECIPE_FOUND] = {1, 2, 1},
                                [RECIPE_GRADIENT] = {1, 2, 1},
                                [RECIPE_WEIGHT] = {1, 2, 1}},
                        .both = {[RECIPE_NORMED] = {1, 1, 1},
                                 [RECIPE_FUNCTION] = {1, 2, 2},
                                 [RECIPE_FOUND] = {1, 2, 2},
                                 [RECIPE_GRADIENT] = {1, 2, 2},
                                 [RECIPE_WEIGHT] = {1, 2, 2}},
                        .second = {1, 1, 1},
                    }},
};
