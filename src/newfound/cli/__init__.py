"""The command line: one module per command, each with `add_parser(commands)` and `run(options)`.

`main` builds the parser and turns errors into exit codes. `flags` defines the flags that several
commands share, `inputs` reads their values, and `output` prints results, notes and progress.
Commands import slow modules inside `run`, so that --help stays fast.
"""
