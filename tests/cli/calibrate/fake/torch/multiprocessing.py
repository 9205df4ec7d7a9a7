"""Processes that run one after the other, in this one."""
import types


class SimpleQueue:
    def put(self, what):
        self.what = what

    def get(self):
        return self.what


def get_context(way):
    assert way == "spawn"
    return types.SimpleNamespace(SimpleQueue=SimpleQueue)


def spawn(function, args, nprocs):
    for rank in reversed(range(nprocs)):
        function(rank, *args)
