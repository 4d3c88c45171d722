"""The command line.

`main` builds the parser and turns errors into exit codes. `commands` has one module per command,
each with `add_parser(commands)` and `run(options)`. `flags` defines the flags that several commands
share, `inputs` reads their values, and `output` prints results, notes and progress. Commands import
slow modules inside `run`, so that --help stays fast.
"""
