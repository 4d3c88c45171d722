"""One module per command, each with `add_parser(commands)` and `run(options)`."""
