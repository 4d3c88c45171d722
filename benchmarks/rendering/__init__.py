"""Tables and figures of this repository, rendered from the result lines in `benchmarks/`.

Run `python -m benchmarks.rendering --help` in the root of the repository.
"""
