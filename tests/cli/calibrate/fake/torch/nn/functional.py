"""What measures attention and kernels between matmuls calls."""
import torch


def scaled_dot_product_attention(query, key, value, is_causal, enable_gqa=False):
    sequences, heads, tokens, width = query.shape
    assert is_causal and key.shape == value.shape == (sequences, key.shape[1], tokens, width)
    assert enable_gqa == (heads != key.shape[1]) and heads % key.shape[1] == 0
    moved = 2 * (2 * query.numbers() + 2 * key.numbers())
    return torch.kernel(2 * sequences * heads * tokens * (tokens + 1) * width, moved, query)


def layer_norm(x, sides, weight):
    assert sides == weight.shape == x.shape[1:]
    return torch.kernel(0, 4 * x.numbers(), x)


def gelu(x):
    return torch.kernel(0, 4 * x.numbers(), x)
