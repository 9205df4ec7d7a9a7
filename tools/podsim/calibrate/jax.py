#!/usr/bin/env python3
"""Measures JAX's kernels on one GPU or TPU chip, for `podsim calibrate`.

    python3 measure.py [--quick] > rows.txt
    podsim calibrate rows.txt --chip h100-sxm -o mine.json

A line of standard output is a measurement; docs/calibrate.md of podsim has the format. Progress goes
to standard error. Nothing else should use the chip meanwhile. XLA compiles each size by itself, which
takes most of the time; --quick leaves every second size of each side out.

How a kernel is measured: JAX has no clock of the device, so one compiled function holds several calls
of the kernel, each on random operands of its own, and is called again and again without a wait in
between. The time of all calls by the host's clock, over their number, is a sample. The median of 15
samples counts. Operands of small kernels may lie in a cache: `podsim calibrate` leaves out what is
faster than the roofline. Not measured: fp8, a launch, and on TPUs attention, as jax.nn has no fused
kernel there.

With several GPUs, collectives between 2, 4 and 8 of them are measured too: the host's clock around
many calls, each a function of its own. Arrays have 32 MiB or more, since shorter collectives take
less time than the host needs to call them.
"""
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

try:
    from jax import shard_map  # JAX 0.6 or newer.
    UNCHECKED = {"check_vma": False}
except ImportError:
    from jax.experimental.shard_map import shard_map
    UNCHECKED = {"check_rep": False}

COPY_BYTES = 1 << 28  # Operands of all calls in one function, at least, up to COPIES calls.
COPIES = 32
SAMPLE_S = 0.02       # As long as a sample takes at least.
SAMPLES = 15
WARM_UP_S = 3.0       # Of matmuls, until the clock is that of a busy chip.

# The sides of the tables. All combinations are measured.
M = [16, 64, 256, 1024, 4096, 16384]
N = [256, 1024, 4096, 8192, 32768]
K = [256, 1024, 4096, 8192, 32768]
TOKENS = [256, 1024, 2048, 4096, 8192, 16384]
HEADS = [1, 8, 64]  # Heads of keys over all sequences.
GROUPS = [1, 8]     # Heads of queries for each head of keys.
WIDTHS = [64, 128]
BYTES = [1 << 27, 1 << 28, 1 << 29, 1 << 30]
COLLECTIVE_BYTES = [1 << power for power in range(25, 30)]

rows = 0
seed = 0


def say(text):
    print(text, flush=True)


def row(word, times_us, **values):
    """A measurement: its median, and the times that a tenth of the samples are below and above."""
    global rows
    rows += 1
    times_us = sorted(times_us)
    count = len(times_us)
    low, median, high = (times_us[count * tenth // 10] for tenth in (1, 5, 9))
    fields = "".join(f"{key}={value} " for key, value in values.items())
    say(f"{word} {fields}repeats={count} median={median:.4f}us low={low:.4f}us high={high:.4f}us")


def random(*shape):
    global seed
    seed += 1
    return jax.random.normal(jax.random.PRNGKey(seed), shape, dtype=jnp.bfloat16)


def times_us(kernel, make, operand_bytes):
    """Samples of a call of `kernel` on what `make` returns, which is new for each call."""
    copies = max(1, min(COPIES, COPY_BYTES // operand_bytes))
    operands = [make() for _ in range(copies)]
    function = jax.jit(lambda all_of: [kernel(*of) for of in all_of])
    return [time / copies for time in function_times_us(function, operands)]


def function_times_us(function, operands):
    """Samples of a call of a compiled function."""
    jax.block_until_ready(function(operands))  # Compiles.

    def calls_s(count):
        begin = time.perf_counter()
        for _ in range(count):
            last = function(operands)
        jax.block_until_ready(last)
        return time.perf_counter() - begin

    calls_s(2)
    count = max(2, int(SAMPLE_S / max(calls_s(4) / 4, 1e-7)))
    return [calls_s(count) * 1e6 / count for _ in range(SAMPLES)]


def measured(word, call, make, operand_bytes, less_us=0.0, **values):
    """A row, less the time of what the kernel contains; or why there is none. Returns the median."""
    try:
        times = sorted(time_us - less_us for time_us in times_us(call, make, operand_bytes))
        if times[0] <= 0:
            raise RuntimeError("takes no longer than what it contains")
        row(word, times, **values)
        return times[len(times) // 2]
    except Exception as error:  # Out of memory, or no such kernel: the other points go on.
        fields = " ".join(f"{key}={value}" for key, value in values.items())
        reason = (str(error).splitlines() or [""])[0]
        text = "".join(c if " " <= c <= "~" else "?" for c in f"{word} {fields}: {reason}")
        say(f"skipped {text[:300]}")
        return None


def product(contracted, result):
    """x times y over one side of each."""
    dimensions = ((contracted[:1], contracted[1:]), ((), ()))
    return lambda x, y: jax.lax.dot_general(x, y, dimensions, preferred_element_type=result)


# y[m, n] = x[m, k] W[k, n]. TN is the forward product of a layer, whose weight is stored as [n, k];
# NN the gradient of its input; NT the gradient of its weight.
LAYOUTS = [
    ("TN", "bf16", product((1, 1), jnp.bfloat16), lambda m, n, k: (random(m, k), random(n, k))),
    ("NN", "bf16", product((1, 0), jnp.bfloat16), lambda m, n, k: (random(m, k), random(k, n))),
    ("NT", "bf16", product((0, 0), jnp.bfloat16), lambda m, n, k: (random(k, m), random(k, n))),
    ("NT", "fp32", product((0, 0), jnp.float32), lambda m, n, k: (random(k, m), random(k, n))),
]


def products(sides):
    for layout, result, kernel, make in LAYOUTS:
        for m in sides(M):
            print(f"matmul {layout} into {result} m={m}", file=sys.stderr)
            for n in sides(N):
                for k in sides(K):
                    measured("matmul", kernel, lambda: make(m, n, k), 2 * (m * k + n * k + m * n),
                             format="bf16", layout=layout, result=result, m=m, n=n, k=k)


def attend(query, key, value):
    return jax.nn.dot_product_attention(query, key, value, is_causal=True, implementation="cudnn")


def attend_and_back(query, key, value, gradient):
    result, back = jax.vjp(attend, query, key, value)
    return result, back(gradient)


def attention_of(tokens, heads, group, width):
    """Both passes of one shape. Up to 8 heads of keys are of one sequence. The gradients are
    measured together with the forward pass, whose time is taken off."""
    of_one = min(heads, 8)
    sequences = heads // of_one
    queries = (sequences, tokens, of_one * group, width)
    keys = (sequences, tokens, of_one, width)
    moved = 2 * tokens * heads * (group + 1) * width * 2
    sides = {"format": "bf16", "tokens": tokens, "heads": heads, "group": group, "width": width}
    forward_us = measured("attention", attend, lambda: (random(*queries), random(*keys), random(*keys)),
                          moved, **sides)
    if forward_us is None:
        say(f"skipped attention_backward tokens={tokens} heads={heads} group={group} width={width}")
        return
    measured("attention_backward", attend_and_back,
             lambda: (random(*queries), random(*keys), random(*keys), random(*queries)), 2 * moved,
             less_us=forward_us, **sides)


def attentions(sides):
    for tokens in sides(TOKENS):
        print(f"attention tokens={tokens}", file=sys.stderr)
        for heads in sides(HEADS):
            for group in GROUPS:
                for width in WIDTHS:
                    attention_of(tokens, heads, group, width)


# Kernels between matmuls: how many arrays of bf16 they read and write. XLA computes in fp32 inside.
def norm(x):
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5)
    return (wide * scale).astype(jnp.bfloat16)


BETWEEN = [
    ("norm", norm, 1, 2),
    ("sum", lambda x, y: x + y, 2, 3),
    ("function", jax.nn.gelu, 1, 2),
    ("rest", lambda x: -x, 1, 2),
]
WIDTH = 8192


def between():
    for kernel, call, read, arrays in BETWEEN:
        for moved in BYTES:
            lines = moved // 2 // arrays // WIDTH
            measured("between", call, lambda: tuple(random(lines, WIDTH) for _ in range(read)), moved,
                     kernel=kernel, bytes=2 * arrays * lines * WIDTH)


# What a GPU does with its part of an array. A size is a GPU's array of AllReduce and AllToAll, and the
# whole array of AllGather and ReduceScatter, as in nccl-tests.
COLLECTIVES = {
    "all_reduce": lambda own: jax.lax.psum(own, "gpu"),
    "all_gather": lambda own: jax.lax.all_gather(own, "gpu", tiled=True),
    "reduce_scatter": lambda own: jax.lax.psum_scatter(own, "gpu", tiled=True),
    "all_to_all": lambda own: jax.lax.all_to_all(own, "gpu", 0, 0, tiled=True),
}


def collective_times_us(kind, ranks, size):
    mesh = Mesh(jax.devices()[:ranks], ("gpu",))
    parts = PartitionSpec("gpu")
    whole = size // 2 if kind == "all_gather" else size // 2 * ranks
    operand = jax.device_put(random(whole), NamedSharding(mesh, parts))
    function = jax.jit(shard_map(COLLECTIVES[kind], mesh=mesh, in_specs=parts, out_specs=parts,
                                 **UNCHECKED))
    return function_times_us(function, operand)


def collectives(sides):
    if len(jax.devices()) < 2:
        say("skipped all of collectives: there is one GPU")
    for ranks in (2, 4, 8):
        if ranks > len(jax.devices()):
            continue
        print(f"collectives ranks={ranks}", file=sys.stderr)
        for kind in COLLECTIVES:
            for size in sides(COLLECTIVE_BYTES):
                try:
                    row("collective", collective_times_us(kind, ranks, size), kind=kind, ranks=ranks,
                        bytes=size)
                except Exception as error:
                    print(f"collective {kind}: {error}", file=sys.stderr)
                    say(f"skipped collective kind={kind} ranks={ranks} bytes={size}")


def query(what):
    """What nvidia-smi says, or "unknown"."""
    try:
        found = subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", "-i", "0"],
                               capture_output=True, text=True, timeout=20, check=True)
        return found.stdout.strip().splitlines()[0]
    except Exception:
        return "unknown"


def warm_up():
    x, y = random(4096, 4096), random(4096, 4096)
    function = jax.jit(jnp.dot)
    end = time.time() + WARM_UP_S
    while time.time() < end:
        for _ in range(20):
            last = function(x, y)
        jax.block_until_ready(last)


def quick(sides):
    """Every second size, and the last."""
    return sorted(set(sides[::2] + sides[-1:]))


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--quick"]):
        sys.exit(__doc__)
    device = jax.devices()[0]
    if device.platform == "cpu":
        sys.exit("JAX finds no GPU and no TPU")
    sides = quick if arguments else list
    say("podsim_rows 1")
    say("script jax")
    say(f"device {device.device_kind}")
    say(f"driver {query('driver_version')}")
    say(f"library JAX {jax.__version__}")
    warm_up()
    clock_at_first = query("clocks.sm")
    products(sides)
    if device.platform == "tpu":
        say("skipped all of attention: jax.nn has no fused kernel on TPUs")
    else:
        attentions(sides)
    between()
    if device.platform != "tpu":
        collectives(sides)
    say(f"clock {clock_at_first} after the warm-up, {query('clocks.sm')} at the end")
    say(f"end {rows}")


if __name__ == "__main__":
    main()
