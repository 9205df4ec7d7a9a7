#!/bin/sh
# The programs of `podsim calibrate --script` run, with libraries that compute nothing, and what
# they print becomes a stack: scripts.sh PODSIM ROOT. Skipped without Python. Programs for CUDA are
# compiled where nvcc is.
set -eu
podsim=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -c 'import contextlib, types' 2> "$work/why"; then
    echo "python3 is not here: $(tail -n 1 "$work/why")"
    exit 77
fi
export PYTHONPATH="$root/tests/cli/calibrate/fake" PYTHONDONTWRITEBYTECODE=1
for name in pytorch jax; do
    "$podsim" calibrate --script $name > "$work/whole-$name.py"
    # No chip is there to become warm. A file jax.py would be imported in place of the library.
    sed 's/^WARM_UP_S = 3\.0/WARM_UP_S = 0.0/' "$work/whole-$name.py" > "$work/measure-$name.py"
    if cmp -s "$work/whole-$name.py" "$work/measure-$name.py"; then
        echo "$name: the warm-up is not where it was"
        exit 1
    fi
    python3 "$work/measure-$name.py" --quick > "$work/$name.rows" 2> "$work/$name.err"
    "$podsim" calibrate "$work/$name.rows" --chip h100-sxm -o "$work/$name.json" > "$work/summary"
    cat "$work/summary"
    grep -q '^  matmul bf16 TN  *[1-9].* rows, spread 0\.0%' "$work/summary"
    grep -q '^  attention_backward bf16  *[1-9].* rows, spread 0\.0%' "$work/summary"
    grep -q '^  between norm ' "$work/summary"
    grep -q '^ *a byte by NVLS [01]\.[0-9]* times ' "$work/summary"
    if grep -E '^(left out|warning)' "$work/summary"; then exit 1; fi
    # 550 GFLOP take 555.3 us at 990 TFLOP/s, and with these libraries 3 us and 916.3 us.
    python3 - "$work/$name.json" << 'END'
import json
import sys

with open(sys.argv[1]) as file:
    table = next(table for table in json.load(file)["matmul"] if table["layout"] == "NN")
at = 0
for side, length in (("m", 16384), ("n", 4096), ("k", 4096)):
    at = at * len(table[side]) + table[side].index(length)
assert abs(table["share_ppm"][at] - 604090) < 100, table["share_ppm"][at]
END
    if python3 "$work/measure-$name.py" --qick > "$work/out" 2> "$work/err"; then exit 1; fi
    grep -q 'measure.py \[--quick\]' "$work/err"
done
# What had no room is said, and the points are filled.
"$podsim" calibrate "$work/pytorch.rows" --chip h100-sxm -o - 2>&1 > "$work/out" |
    grep -q '^  matmul format=bf16 layout=TN .*: no room$'
# What programs for CUDA have in common is written once, and stands behind the comment of each.
shared="$root/tools/podsim/calibrate/shared.cu"
for name in cuda overlap nccl; do
    "$podsim" calibrate --script $name > "$work/$name.cu"
    end=$(grep -n -m 1 '^ \*/$' "$work/$name.cu" | cut -d : -f 1)
    tail -n +$((end + 1)) "$work/$name.cu" | head -n "$(wc -l < "$shared")" | cmp - "$shared"
    if grep -E '^(static void (must|cuda)|struct Memory)' \
        "$root/tools/podsim/calibrate/$name.cu"; then exit 1; fi
done
if command -v nvcc > /dev/null; then
    compile() { # PROGRAM FLAG...
        program=$1
        shift
        nvcc -std=c++17 -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror "$@" \
            -c -o "$work/measure.o" "$work/$program.cu"
    }
    compile cuda
    # With the declarations of cuDNN's graphs that the program needs.
    mkdir "$work/include"
    for header in "$root"/tests/cli/calibrate/fake/cuda/*.hpp; do
        cp "$header" "$work/include/$(basename "$header" .hpp).h"
    done
    compile cuda -isystem "$work/include"
    compile overlap
    cuda=$(dirname "$(command -v nvcc)")/..
    if [ -e "$cuda/include/nccl.h" ] || [ -e /usr/include/nccl.h ]; then
        compile nccl
    else
        echo "nccl.h is not here: nccl.cu is not compiled"
    fi
else
    echo "nvcc is not here: programs for CUDA are not compiled"
fi
