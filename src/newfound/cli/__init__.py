"""The command line: one module per command, each with `add_parser(commands)` and `run(options)`.

`main` puts the parsers together and turns errors into exit codes; `flags` has the flags that
several commands share, `inputs` what they stand for, `output` how results, notes and progress are
printed. A command imports what is slow to import inside `run`, so that --help stays quick.
"""
