"""What measures kernels between matmuls calls."""
bfloat16, float32 = "bfloat16", "float32"


def mean(x, axis, keepdims):
    assert axis == -1 and keepdims
    return x


def dot(x, y):
    return x
