"""The paper's benchmark: data sets, splits, runs, result lines and speed.

`benchmarks/rendering` renders the tables and figures of this repository from result lines.
"""
