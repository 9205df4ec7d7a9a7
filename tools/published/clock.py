#!/usr/bin/env python3
"""Finds the clock of a step from published rows that podsim may learn from.

    tools/published/clock.py PODSIM CHIP FORMAT

FORMAT is bf16 or fp8. The rows are steps of training of dense models with a stack of kernels, on
CHIP without a power cap: those of workloads/residuals.json, no row of a test. Each is simulated
with several shares of the chip's clock in that format. The script prints the share at which the
median error vanishes, the same with one publication left out, the errors of that publication at
the share of the others, and the same for each stack, and for each model where one publication has
all rows. It writes nothing. Only maintainers run it.
"""
import glob
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHARES = [0.6, 0.7, 0.8, 0.9, 1.0]
KEYS = {"bf16": "clock", "fp8": "clock_fp8"}
STACK_PART = 0.05
STACK_ROWS = 10


def has_experts(model):
    if isinstance(model, str):
        with open(os.path.join(ROOT, "workloads/models", model + ".json")) as file:
            model = json.load(file)
    return "expert" in json.dumps(model)


def is_capped(row):
    """Whether the chip was allowed less power than its maker gives it."""
    with open(os.path.join(ROOT, "topology/chips", row["chip"] + ".json")) as file:
        power = json.load(file).get("power")
    return power is not None and row.get("power_w", math.inf) < float(power["value"][:-1])


def measured_rows():
    """By name: each step of a dense model without a cap."""
    rows = {}
    for path in glob.glob(os.path.join(ROOT, "workloads/published/*.json")):
        with open(path) as file:
            group = json.load(file)
        for row in group["rows"]:
            row = group.get("common", {}) | row
            is_step = row.get("kind", "train_step") == "train_step" and "model" in row
            if is_step and not is_capped(row) and not has_experts(group["models"][row["model"]]):
                rows[row["id"]] = row
    return rows


def scenario_of(podsim, row):
    return subprocess.run([podsim, "validate", "--published", "--show", row["id"]],
                          capture_output=True, text=True, check=True).stdout


def has_eight_bits(scenario):
    formats = json.loads(scenario)["workload"].get("formats", {})
    return formats.get("matmuls", "bf16").startswith("fp8")


def rows_of(podsim, chip, format_name):
    measured = measured_rows()
    with open(os.path.join(ROOT, "workloads/residuals.json")) as file:
        residuals = json.load(file)["rows"]
    rows = [row | {"measured_s": measured[row["id"]]["seconds"],
                   "model": measured[row["id"]]["model"],
                   "scenario": scenario_of(podsim, row)} for row in residuals
            if row["id"] in measured and row["chip"] == chip and row["stack"]]
    return [row for row in rows if has_eight_bits(row["scenario"]) == (format_name == "fp8")]


def predicted_s(podsim, scenario, key, share):
    run = subprocess.run([podsim, "run", "-", "--quiet", "--json", "-", "--set",
                          "/machine/%s=%g" % (key, share)],
                         input=scenario, capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    return (result.get("period_time_ps") or result["step_time_ps"]) / 1e12


def times_of(podsim, row, key):
    return [predicted_s(podsim, row["scenario"], key, share) for share in SHARES]


def error_at(row, share):
    """Time is linear in the inverse of the share between two that were simulated."""
    high = next((i for i in range(1, len(SHARES)) if share <= SHARES[i]), len(SHARES) - 1)
    low = high - 1
    part = (1 / share - 1 / SHARES[low]) / (1 / SHARES[high] - 1 / SHARES[low])
    seconds = row["times_s"][low] * (1 - part) + row["times_s"][high] * part
    return seconds / row["measured_s"] - 1


def share_of(rows, middle=statistics.median):
    """The share at which the middle error vanishes; infinity where even a whole clock is too slow."""
    low, high = 0.3, 1.2
    if middle([error_at(row, high) for row in rows]) > 0:
        return math.inf
    for _ in range(40):
        share = (low + high) / 2
        low, high = (share, high) if middle([error_at(row, share) for row in rows]) > 0 \
            else (low, share)
    return share


def clock_of(rows, stack):
    """The clock of a stack: where the median error of its rows vanishes, or the nearest share that is
    within STACK_PART of where that of all rows does. A few rows say no more than all do."""
    chip = share_of(rows)
    own = [row for row in rows if row["stack"] == stack]
    share = share_of(own) if len(own) >= STACK_ROWS else chip
    return min(max(share, chip * (1 - STACK_PART)), chip * (1 + STACK_PART))


def figures(rows, shares):
    """Errors of rows, each at the share of its stack."""
    errors = [error_at(row, shares[row["stack"]]) for row in rows]
    return errors, "mean %+.1f %%, mean absolute %.1f %%" % (
        100 * statistics.mean(errors), 100 * statistics.mean(map(abs, errors)))


def shares_of(rows, stacks):
    return {stack: clock_of(rows, stack) for stack in stacks}


def print_parts(rows, word):
    """Each part at the clocks of the others, and all parts so."""
    all_errors = []
    for name in sorted({row[word] for row in rows}):
        part = [row for row in rows if row[word] == name]
        others = [row for row in rows if row[word] != name]
        print("%-20s %2d rows, share %.3f" % (name, len(part), share_of(part)), end="")
        if others:
            shares = shares_of(others, sorted({row["stack"] for row in part}))
            errors, text = figures(part, shares)
            all_errors += errors
            print("; at %s of the others: %s" % (", ".join("%.3f" % share for share in shares.values()),
                                                 text), end="")
        print()
    if all_errors:
        print("each at the clocks of the others: mean absolute %.1f %%"
              % (100 * statistics.mean(map(abs, all_errors))))


def main():
    if len(sys.argv) != 4 or sys.argv[3] not in KEYS:
        sys.exit(__doc__)
    podsim, chip, format_name = sys.argv[1:]
    rows = rows_of(podsim, chip, format_name)
    for row in rows:
        row["times_s"] = times_of(podsim, row, KEYS[format_name])
    if not rows:
        sys.exit("no row on %s in %s" % (chip, format_name))
    stacks = sorted({row["stack"] for row in rows})
    share = share_of(rows)
    print("%d rows: the median error vanishes at %.3f, the mean at %.3f"
          % (len(rows), share, share_of(rows, statistics.mean)))
    for at in sorted(SHARES + [round(share, 2)]):
        print("  at %.2f: %s" % (at, figures(rows, dict.fromkeys(stacks, at))[1]))
    for stack, clock in shares_of(rows, stacks).items():
        own = [row for row in rows if row["stack"] == stack]
        print("%-20s %2d rows, share %.3f, clock %.3f: %s" % (stack, len(own), share_of(own), clock,
                                                            figures(own, {stack: clock})[1]))
    print("all at the clocks of their stacks: %s" % figures(rows, shares_of(rows, stacks))[1])
    publications = len({row["publication"] for row in rows})
    print_parts(rows, "publication" if publications > 1 else "model")
    for row in rows:
        print("  %-48s %s" % (row["id"], " ".join("%+5.1f%%" % (100 * error_at(row, at))
                                                   for at in SHARES)))


main()
