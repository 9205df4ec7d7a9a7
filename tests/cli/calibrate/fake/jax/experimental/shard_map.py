"""A function of one GPU's part stands for that of all."""


def shard_map(function, mesh, in_specs, out_specs, check_rep):
    assert in_specs == out_specs == ("gpu",) and mesh.axes == ("gpu",) and not check_rep
    return function
