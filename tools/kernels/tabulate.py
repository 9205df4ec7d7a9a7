#!/usr/bin/env python3
"""Makes the kernel tables of topology/kernels/ from published measurements.

    tools/kernels/tabulate.py FOLDER

FOLDER holds the measurements as CSV, named <chip>.<family>.<stack>-<version>.csv or .csv.gz: gemm
with gemm_dtype, m, n, k, latency_us; attention_context and attention_decode with num_heads,
num_key_value_heads, batch_size, isl or step, latency_us. Rates are those of topology/chips. Only
maintainers run it, once for each new version of the measurements: podsim reads what it writes, and
needs no Python.
"""
import sys

import attention
import matmuls
import tables

# The publisher's chip, stack and version, and the family of its matmuls.
STACKS = [
    ("a100_sxm", "sglang", "0.5.10", "gemm"),
    ("h100_sxm", "sglang", "0.5.14", "gemm_bf16"),
    ("h200_sxm", "sglang", "0.5.14", "gemm_bf16"),
    ("b200_sxm", "sglang", "0.5.14", "gemm_bf16"),
    ("gb200", "sglang", "0.5.14", "gemm_bf16"),
    ("h100_sxm", "trtllm", "1.3.0rc20", "gemm"),
    ("h200_sxm", "trtllm", "1.3.0rc20", "gemm"),
    ("b200_sxm", "trtllm", "1.3.0rc20", "gemm"),
    ("gb200", "trtllm", "1.3.0rc20", "gemm"),
]
TITLES = {"sglang": "SGLang", "trtllm": "TensorRT-LLM", "vllm": "vLLM"}
ATTENTION = {"trtllm"}  # Stacks with measurements of attention.


def main():
    folder = sys.argv[1]
    for chip, stack, version, family in STACKS:
        name = tables.CHIPS[chip]
        document = {
            "podsim_kernels": 1,
            "chip": name,
            "stack": stack,
            "title": f"{TITLES[stack]} {version}",
            "matmul": matmuls.made(folder, (chip, family, stack, version)),
        }
        if stack in ATTENTION:
            document["attention"] = attention.made(folder, (chip, stack, version), False)
            document["decode"] = attention.made(folder, (chip, stack, version), True)
        tables.write(f"{name}.{stack}", document)


main()
