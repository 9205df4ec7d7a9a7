#include "sim/kernels/autocast.h"

#include <stddef.h>

/*
 * PyTorch aten/src/ATen/autocast_mode.h (CastPolicy lower_precision_fp and fp32, cached_cast) and
 * docs/source/amp.rst (Autocast Op Reference); Hugging Face transformers modeling_llama.py
 * (LlamaRMSNorm, LlamaRotaryEmbedding, apply_rotary_pos_emb). In bytes an element: read, written.
 *
 * Each linear layer casts its input (4, 2), since only weights are kept cast. The gradient comes
 * back by the cast's own (2, 4). A weight is cast once a forward pass (4, 2), and its gradient
 * backward (2, 4).
 *
 * RMSNorm, as a formula of torch, of a stream in fp32: square (4, 4), mean (4), times its root
 * (4, 4), times the weight (4, 4), and two kernels of a number a row. There is no cast to fp32
 * (2, 4) and none back (4, 2). Backward the same two are left out, and the first kernel reads two
 * arrays of 4 bytes, and writes one.
 *
 * Layernorm in fp32: one kernel (4, 4); backward two, which read the gradient and the input twice
 * and write once (16, 4). Of a stream in 16 bits the input is cast before (2, 4), and its gradient
 * behind (4, 2).
 *
 * Sum of a stream in fp32 and a result of 16 bits (6, 4); backward the sum of gradients of the
 * stream (8, 4), which is cast for the product behind it (4, 2).
 *
 * Rotation: angles have the format of the stream. Products with cosine and sine are in fp32
 * (2, 4 each) as is their sum (8, 4), and attention casts that (4, 2). Backward the gradient is
 * cast (2, 4), and its products with cosine and sine in fp32 (4, 4 each) are cast (4, 2 each).
 */
const struct autocast_kernels autocast_eager = {
    .source = "PyTorch aten/src/ATen/autocast_mode.h (lower_precision_fp, fp32, cached_cast), "
              "docs/source/amp.rst (Autocast Op Reference); Hugging Face transformers "
              "modeling_llama.py (LlamaRMSNorm, LlamaRotaryEmbedding)",
    .input = {{1, 4, 2}, {1, 2, 4}},
    .weight = {1, 4, 2},
    .gradient = {1, 2, 4},
    .norm = {{6, 14, 10}, {10, 38, 22}},
    .centred = {{1, 2, 2}, {2, 12, 2}},
    .centred_narrow = {{2, 4, 6}, {3, 16, 4}},
    .rotation = {{6, 17, 15}, {9, 25, 21}},
    .sum = {{1, 4, 2}, {2, 10, 6}},
};

/*
 * PyTorch torch/_inductor: casts are pointwise, and belong to the kernel before or behind. Operands
 * of products come from memory, so weights are cast by kernels (4, 2), their gradients too (2, 4).
 * What a norm's kernel reads and writes of a stream in fp32 is 2 bytes wider; what products read is
 * in 16 bits.
 */
const struct autocast_kernels autocast_compiled = {
    .source =
        "PyTorch torch/_inductor: casts belong to kernels of pointwise ops; products are calls "
        "of libraries, whose operands come from memory",
    .weight = {1, 4, 2},
    .gradient = {1, 2, 4},
    .norm = {{1, 2, 0}, {2, 2, 2}},
    .centred = {{1, 2, 0}, {2, 2, 2}},
    .sum_fused = {{0, 0, 2}, {0, 2, 2}},
};

/* NULL: as without autocast. */
static const struct function_pass *passes_of(const struct autocast_kernels *kernels,
                                             enum autocast autocast, enum work_function function,
                                             bool centred)
{
    bool const wide = autocast == AUTOCAST_WIDE;
    if (function == WORK_FUNCTION_NORM && centred)
        return wide ? kernels->centred : kernels->centred_narrow;
    if (!wide) return NULL;
    return function == WORK_FUNCTION_NORM   ? kernels->norm
           : function == WORK_FUNCTION_SUM  ? kernels->sum
           : function == WORK_FUNCTION_ROPE ? kernels->rotation
                                            : NULL;
}

struct function_pass autocast_pass(const struct fusion *fusion, enum autocast autocast,
                                   enum work_function function, bool centred, bool backward,
                                   struct function_pass made)
{
    if (autocast == AUTOCAST_NONE || fusion->autocast == NULL) return made;
    const struct function_pass *passes = passes_of(fusion->autocast, autocast, function, centred);
    return passes != NULL && passes[backward].kernels != 0 ? passes[backward] : made;
}

bool autocast_widens_norm(const struct fusion *fusion, enum autocast autocast, bool centred)
{
    if (autocast == AUTOCAST_NONE || fusion->autocast == NULL) return false;
    if (fusion->autocast->input[0].kernels == 0) return false;
    return autocast == AUTOCAST_WIDE || centred;
}
