#!/usr/bin/env python3
"""Prints how far look-ups of attention miss measurements beyond a table's edge.

    tools/kernels/beyond.py FOLDER

FOLDER is tabulate.py's. Of each measured kernel at one edge, the time at another is found as
attention_steps() in sim/kernels/kernel_family.c finds it outside of a grid, and compared with the
measurement there. A line has the rows of all chips, the last ones SimuMax's forward kernels on a
B200, from vLLM's of 16,384 tokens. `fill` is the steps that a tile has beyond its blocks of keys;
`whole` has whole waves of tiles of all keys instead.
"""
import sys

import attention
import tables
import tabulate
import training

FILLS = [0, 1, 2, 3]
TILE = 128
EDGES = [(0, 4096, 16384), (0, 8192, 16384), (1, 32, 256), (1, 256, 1024)]


def ceil_divide(amount, by):
    return -(-amount // by)


def whole_steps(shape, cores):
    blocks = ceil_divide(shape[0], TILE)
    return ceil_divide(blocks * shape[1] * shape[2], cores) * blocks


def causal_steps(fill):
    def steps(shape, cores):
        blocks = ceil_divide(shape[0], TILE)
        longest = blocks + fill
        mean = blocks * (blocks + 1 + 2 * fill) / 2 * shape[1] * shape[2] / cores
        return max(longest, mean + longest * max(0, 2 / 3 - blocks / (2 * cores)))
    return steps


FORMS = {"whole": whole_steps} | {f"fill {fill}": causal_steps(fill) for fill in FILLS}


def measured(folder, file_chip, stack):
    """Microseconds by shape, and the roofline's."""
    version = tabulate.VERSIONS[file_chip][stack]
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[file_chip])
    flop_per_s, bytes_per_s = tables.amount(rates["bf16"]), tables.amount(bytes_per_s)

    def least_us(shape):
        return attention.roofline_us(shape, False, 2, flop_per_s, bytes_per_s)
    shares = {}
    for shape, share in attention.rows_of(folder, (file_chip, stack, version), False)["bf16"]:
        shares.setdefault(shape, []).append(share)
    return {shape: least_us(shape) / tables.median(of) for shape, of in shares.items()}, least_us


def found_us(us, least_us, steps, shape, other, cores):
    return max(us[shape] * steps(other, cores) / steps(shape, cores), least_us(other))


def errors_of(engines, stack, steps, side, edge, beyond):
    errors = []
    for (file_chip, name), (us, least_us) in engines.items():
        cores = tabulate.CORES[tables.CHIPS[file_chip]]
        for shape in us:
            other = shape[:side] + (beyond,) + shape[side + 1:]
            if name == stack and shape[side] == edge and other in us:
                found = found_us(us, least_us, steps, shape, other, cores)
                errors.append(found / us[other] - 1)
    return errors


def print_blind(folder, us, least_us, cores):
    for row in training.csv_rows(folder, "b200", "train_attention"):
        shape = (int(row["seq_len"]), int(row["kv_heads"]),
                 int(row["heads"]) // int(row["kv_heads"]), int(row["v_head_dim"]))
        near = (16384,) + shape[1:]
        is_equal = row["qk_head_dim"] == row["v_head_dim"]
        if row["direction"] == "fwd" and is_equal and shape[0] > near[0] and near in us:
            off = {name: found_us(us, least_us, steps, near, shape, cores)
                   / float(row["latency_us"]) - 1 for name, steps in FORMS.items()}
            print("SimuMax b200", shape, "  ".join(f"{name} {100 * error:+.1f} %"
                                                   for name, error in off.items()))


def main():
    folder = sys.argv[1]
    engines = {(file_chip, stack): measured(folder, file_chip, stack)
               for file_chip in tabulate.VERSIONS for stack in ("vllm", "trtllm")}
    for side, edge, beyond in EDGES:
        for stack in ("vllm", "trtllm"):
            print(f"{attention.SIDES[side]} {edge} to {beyond}, {stack}")
            for name, steps in FORMS.items():
                errors = errors_of(engines, stack, steps, side, edge, beyond)
                apart = sorted(map(abs, errors))
                print(f"  {name}: {len(errors)} rows, median {100 * tables.median(errors):+.1f} %,"
                      f" half within {100 * apart[len(apart) // 2]:.1f} %, nine of ten within "
                      f"{100 * apart[len(apart) * 9 // 10]:.1f} %")
    print_blind(folder, *engines[("b200_sxm", "vllm")], tabulate.CORES["b200"])


if __name__ == "__main__":
    main()
