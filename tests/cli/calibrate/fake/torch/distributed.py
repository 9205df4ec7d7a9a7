"""Collectives that let the clock run: as between GPUs of 400 GB/s, and 20 us for a call."""
import types

import torch

ReduceOp = types.SimpleNamespace(AVG="avg", MAX="max")
ranks = 0


def init_process_group(backend, init_method, rank, world_size):
    global ranks
    assert backend == "nccl" and init_method.startswith("tcp://127.0.0.1:") and rank < world_size
    ranks = world_size


def destroy_process_group():
    pass


def passed(numbers, times):
    torch.now_us += 20 + times * 2 * numbers * (ranks - 1) / ranks / 400e3


def all_reduce(tensor, op):
    if op == ReduceOp.AVG:
        passed(tensor.numbers(), 2)


def all_gather_into_tensor(whole, part):
    assert whole.numbers() == ranks * part.numbers()
    passed(whole.numbers(), 1)


def reduce_scatter_tensor(part, whole):
    assert whole.numbers() == ranks * part.numbers()
    passed(whole.numbers(), 1)


def all_to_all_single(to, of):
    assert to.numbers() == of.numbers()
    passed(of.numbers(), 1)
