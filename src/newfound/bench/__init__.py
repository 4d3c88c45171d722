"""The paper's benchmark: data sets, splits, runs, result lines and speed.

The tables and figures of this repository are rendered from result lines by `benchmarks/rendering`.
"""
