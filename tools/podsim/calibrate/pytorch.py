#!/usr/bin/env python3
"""Measures PyTorch's kernels on one GPU, for `podsim calibrate`.

    python3 measure.py [--quick] > rows.txt
    podsim calibrate rows.txt --chip h100-sxm -o mine.json

A line of standard output is a measurement; docs/calibrate.md of podsim has the format. Progress goes
to standard error. Needs PyTorch with CUDA or ROCm, and 24 GB of memory for all sizes: what does not
fit is a line "skipped". Nothing else should use the GPU meanwhile. All sizes take some minutes;
--quick leaves every second size of each side out.

How a kernel is measured: operands are random numbers, because constant ones draw less power. Before
each call a gigabyte is written, so that operands come from HBM and the host is ahead of the GPU.
CUDA events around the call give its time. After a warm-up, the median of 10 to 50 calls counts.

With several GPUs, collectives of NCCL between 2, 4 and 8 of them are measured too, a process for each
GPU. A sample is 20 calls that follow each other, 5 of the largest, the slowest GPU counts, and the
median of 11 samples is taken.
"""
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import torch.nn.functional as functional

FLUSH_BYTES = 1 << 30
WARM_UP_S = 3.0  # Of matmuls, until the clock is that of a busy chip.
POINT_S = 0.1    # As long as the calls of one point take together, within 10 to 50 calls.
LEAST, MOST = 10, 50

# The sides of the tables. All combinations are measured.
M = [16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
N = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
K = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
TOKENS = [128, 256, 512, 1024, 2048, 4096, 8192, 16384]
HEADS = [1, 4, 16, 64]  # Heads of keys over all sequences.
GROUPS = [1, 8]         # Heads of queries for each head of keys.
WIDTHS = [64, 128]
BYTES = [1 << 20, 1 << 24, 1 << 27, 1 << 28, 1 << 29, 1 << 30]
COLLECTIVE_BYTES = [1 << power for power in range(13, 30)]
COLLECTIVE_CALLS, COLLECTIVE_SAMPLES = 20, 11

DEVICE = "cuda"
rows = 0


def say(text):
    print(text, flush=True)


def row(word, times_us, **values):
    """A measurement: its median, and the times that a tenth of the calls are below and above."""
    global rows
    rows += 1
    times_us = sorted(times_us)
    count = len(times_us)
    low, median, high = (times_us[count * tenth // 10] for tenth in (1, 5, 9))
    fields = "".join(f"{key}={value} " for key, value in values.items())
    say(f"{word} {fields}repeats={count} median={median:.4f}us low={low:.4f}us high={high:.4f}us")


class Clock:
    """Times of a call on the GPU."""

    def __init__(self):
        self.flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device=DEVICE)

    def once_us(self, call):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        self.flush.zero_()
        begin.record()
        call()
        end.record()
        return begin, end

    def times_us(self, call):
        for _ in range(3):
            last = self.once_us(call)
        torch.cuda.synchronize()
        about_s = last[0].elapsed_time(last[1]) / 1e3
        count = max(LEAST, min(MOST, int(POINT_S / max(about_s, 1e-6))))
        events = [self.once_us(call) for _ in range(count)]
        torch.cuda.synchronize()
        # A GPU's clock of events has steps; no kernel takes less than one.
        return [max(begin.elapsed_time(end) * 1e3, 1e-3) for begin, end in events]


def measured(clock, word, make, **values):
    """A row of what `make` returns, or why there is none."""
    try:
        row(word, clock.times_us(make()), **values)
    except Exception as error:  # Out of memory, or no such kernel: the other points go on.
        fields = " ".join(f"{key}={value}" for key, value in values.items())
        reason = (str(error).splitlines() or [""])[0]
        text = "".join(c if " " <= c <= "~" else "?" for c in f"{word} {fields}: {reason}")
        say(f"skipped {text[:300]}")
        torch.cuda.empty_cache()


def random(*shape):
    return torch.randn(shape, dtype=torch.bfloat16, device=DEVICE)


# y[m, n] = x[m, k] W[k, n]. TN is the forward product of a linear layer, whose weight is stored as
# [n, k]; NN the gradient of its input; NT the gradient of its weight.
def product_tn(m, n, k):
    x, weight = random(m, k), random(n, k)
    return lambda: torch.mm(x, weight.t())


def product_nn(m, n, k):
    dy, weight = random(m, k), random(k, n)
    return lambda: torch.mm(dy, weight)


def product_nt(m, n, k):
    dy, x = random(k, m), random(k, n)
    return lambda: torch.mm(dy.t(), x)


def product_nt_fp32(m, n, k):
    dy, x = random(k, m), random(k, n)
    return lambda: torch.mm(dy.t(), x, out_dtype=torch.float32)  # PyTorch 2.8 or newer.


def product_fp8(m, n, k):
    """Both operands are cast before, with one scale each. Hopper has TN alone."""
    x, weight = random(m, k).to(torch.float8_e4m3fn), random(n, k).to(torch.float8_e4m3fn)
    one = torch.ones((), dtype=torch.float32, device=DEVICE)
    return lambda: torch._scaled_mm(x, weight.t(), scale_a=one, scale_b=one,
                                    out_dtype=torch.bfloat16, use_fast_accum=True)


PRODUCTS = [
    (product_tn, {"format": "bf16", "layout": "TN"}),
    (product_nn, {"format": "bf16", "layout": "NN"}),
    (product_nt, {"format": "bf16", "layout": "NT"}),
    (product_nt_fp32, {"format": "bf16", "layout": "NT", "result": "fp32"}),
    (product_fp8, {"format": "fp8", "layout": "TN", "cast": "tensor"}),
]


def is_offered(make):
    """Whether the chip and this PyTorch have the product at all."""
    try:
        make(256, 256, 256)()
        torch.cuda.synchronize()
        return True
    except Exception as error:
        print(f"{make.__name__}: {error}", file=sys.stderr)
        return False


def heads_of(tokens, heads, group, width):
    """Queries, keys and values. Up to 8 heads of keys are of one sequence."""
    of_one = min(heads, 8)
    sequences = heads // of_one
    return (random(sequences, of_one * group, tokens, width),
            random(sequences, of_one, tokens, width), random(sequences, of_one, tokens, width))


def attend(query, key, value):
    if query.shape[1] == key.shape[1]:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True,
                                                   enable_gqa=True)  # PyTorch 2.5 or newer.


def forward(tokens, heads, group, width):
    query, key, value = heads_of(tokens, heads, group, width)
    return lambda: attend(query, key, value)


def backward(tokens, heads, group, width):
    operands = [tensor.requires_grad_() for tensor in heads_of(tokens, heads, group, width)]
    result = attend(*operands)
    gradient = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, operands, gradient, retain_graph=True)


# Kernels between matmuls: how many arrays of bf16 they read and write.
def norm(count):
    width = 8192
    x, weight = random(count // width, width), random(width)
    return lambda: functional.layer_norm(x, (width,), weight)


def residual_sum(count):
    x, y = random(count), random(count)
    return lambda: torch.add(x, y)


def activation(count):
    x = random(count)
    return lambda: functional.gelu(x)


def copy(count):
    x = random(count)
    return lambda: x.clone()


BETWEEN = [("norm", norm, 2), ("sum", residual_sum, 3), ("function", activation, 2), ("rest", copy, 2)]


def launch_us():
    """The time of a kernel of one number, within a graph of 200 that wait for each other."""
    count, times = 200, []
    x = torch.zeros(1, device=DEVICE)
    x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            x.add_(1)
    for _ in range(5):
        graph.replay()
    for _ in range(30):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / count)
    return times


# A size is a GPU's array of AllReduce and AllToAll, and the whole array of AllGather and ReduceScatter,
# as in nccl-tests. AllReduces take the mean: numbers stay finite in place.
COLLECTIVES = {
    "all_reduce": lambda whole, part, other: distributed.all_reduce(whole, op=distributed.ReduceOp.AVG),
    "all_gather": lambda whole, part, other: distributed.all_gather_into_tensor(whole, part),
    "reduce_scatter": lambda whole, part, other: distributed.reduce_scatter_tensor(part, whole),
    "all_to_all": lambda whole, part, other: distributed.all_to_all_single(other, whole),
}


def collective_times_us(kind, ranks, size, flush):
    """Samples of a call, as this GPU has them."""
    whole, part, other = random(size // 2), random(size // 2 // ranks), random(size // 2)
    calls = COLLECTIVE_CALLS if size < 1 << 25 else COLLECTIVE_CALLS // 4
    times = []
    for sample in range(1 + COLLECTIVE_SAMPLES):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        flush.zero_()  # The host is ahead of the GPU then.
        COLLECTIVES[kind](whole, part, other)  # GPUs wait for each other here.
        begin.record()
        for _ in range(calls):
            COLLECTIVES[kind](whole, part, other)
        end.record()
        torch.cuda.synchronize()
        if sample > 0:
            times.append(begin.elapsed_time(end) * 1e3 / calls)
    return times


def collective_process(rank, ranks, port, sizes, results):
    """What the process of one GPU does. The first one hands over (kind, size, times)."""
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                   world_size=ranks)
    flush, found = torch.empty(FLUSH_BYTES // 2, dtype=torch.int32, device=DEVICE), []
    warm_up()
    for kind in COLLECTIVES:
        for size in sizes:
            times = torch.tensor(collective_times_us(kind, ranks, size, flush), device=DEVICE)
            distributed.all_reduce(times, op=distributed.ReduceOp.MAX)
            found.append((kind, size, times.tolist()))
    if rank == 0:
        results.put(found)
    distributed.destroy_process_group()


def collectives(sides):
    if torch.cuda.device_count() < 2:
        say("skipped all of collectives: there is one GPU")
    for ranks in (2, 4, 8):
        if ranks > torch.cuda.device_count():
            continue
        print(f"collectives ranks={ranks}", file=sys.stderr)
        try:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            results = multiprocessing.get_context("spawn").SimpleQueue()
            multiprocessing.spawn(collective_process, nprocs=ranks,
                                  args=(ranks, port, sides(COLLECTIVE_BYTES), results))
            for kind, size, times_us in results.get():
                row("collective", times_us, kind=kind, ranks=ranks, bytes=size)
        except Exception as error:
            print(f"collectives: {error}", file=sys.stderr)
            say(f"skipped collective ranks={ranks}")


def query(what):
    """What nvidia-smi says, or "unknown"."""
    try:
        found = subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", "-i", "0"],
                               capture_output=True, text=True, timeout=20, check=True)
        return found.stdout.strip().splitlines()[0]
    except Exception:
        return "unknown"


def head():
    say("podsim_rows 1")
    say("script pytorch")
    say(f"device {torch.cuda.get_device_name(0)}")
    say(f"driver {query('driver_version')}")
    built = torch.version.cuda or torch.version.hip
    nccl = ".".join(str(number) for number in torch.cuda.nccl.version())
    say(f"library PyTorch {torch.__version__}, built with {built}, NCCL {nccl}")


def warm_up():
    x, y = random(4096, 4096), random(4096, 4096)
    end = time.time() + WARM_UP_S
    while time.time() < end:
        for _ in range(20):
            torch.mm(x, y)
        torch.cuda.synchronize()


def quick(sides):
    """Every second size, and the last."""
    return sorted(set(sides[::2] + sides[-1:]))


def products(clock, sides):
    for make, values in PRODUCTS:
        if not is_offered(make):
            say("skipped all of matmul " + " ".join(f"{key}={value}" for key, value in values.items()))
            continue
        for m in sides(M):
            print(f"{make.__name__} m={m}", file=sys.stderr)
            for n in sides(N):
                for k in sides(K):
                    measured(clock, "matmul", lambda: make(m, n, k), **values, m=m, n=n, k=k)


def attentions(clock, sides):
    for word, make in (("attention", forward), ("attention_backward", backward)):
        for tokens in sides(TOKENS):
            print(f"{word} tokens={tokens}", file=sys.stderr)
            for heads in sides(HEADS):
                for group in GROUPS:
                    for width in WIDTHS:
                        measured(clock, word, lambda: make(tokens, heads, group, width), format="bf16",
                                 tokens=tokens, heads=heads, group=group, width=width)


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--quick"]):
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    sides = quick if arguments else list
    head()
    clock = Clock()
    warm_up()
    clock_at_first = query("clocks.sm")
    products(clock, sides)
    attentions(clock, sides)
    for kernel, make, arrays in BETWEEN:
        for moved in BYTES:
            count = moved // 2 // arrays // 8192 * 8192
            measured(clock, "between", lambda: make(count), kernel=kernel, bytes=2 * arrays * count)
    try:
        row("launch", launch_us())
    except Exception as error:
        print(f"launch: {error}", file=sys.stderr)
        say("skipped launch: no graph of kernels")
    collectives(sides)
    say(f"clock {clock_at_first} after the warm-up, {query('clocks.sm')} at the end")
    say(f"end {rows}")


if __name__ == "__main__":
    main()
