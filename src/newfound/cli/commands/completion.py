"""`newfound completion`: a script for shell completion of commands, flags and their values.

The script is generated from the parsers. It is static, so completing a word does not start Python.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from newfound.cli.flags import Commands, new_command

INSTALL = {
    "bash": 'eval "$(newfound completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(newfound completion zsh)" in ~/.zshrc',
    "fish": "newfound completion fish > ~/.config/fish/completions/newfound.fish",
}


@dataclass(frozen=True)
class Flag:
    """A flag and the values that it accepts."""

    names: list[str]
    help: str
    takes_value: bool
    values: list[str]  # if empty, the value is completed as a file name


@dataclass(frozen=True)
class Command:
    """A command or a group of commands, with the words that may follow it."""

    words: list[str]
    commands: dict[str, str]  # name to help
    values: list[str]  # of a positional argument
    flags: list[Flag]


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "completion",
        run,
        "print a script for shell completion",
        "Print a script that completes commands, flags and their values. To install it: "
        + "; ".join(INSTALL.values())
        + ".",
    )
    command.add_argument("shell", choices=tuple(INSTALL), help="shell that the script is for")
    command.set_defaults(commands=commands)


def run(options: argparse.Namespace) -> None:
    """Print the completion script for a shell."""
    top = [Flag(["-h", "--help"], "show help", False, []), Flag(["--version"], "", False, [])]
    found = [Command([], _helps(options.commands), [], top)]
    found += _walk(options.commands, [])
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](found))


def _walk(commands: Commands, words: list[str]) -> Iterator[Command]:
    """Yield all commands of a group, and of its subgroups, recursively."""
    for name, parser in commands.choices.items():
        path = [*words, name]
        groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        flags = [_flag(action) for action in parser._actions if action.option_strings]
        free = [a for a in parser._actions if not a.option_strings and a not in groups]
        values = [value for action in free for value in _values(action)]
        yield Command(path, _helps(groups[0]) if groups else {}, values, flags)
        for group in groups:
            yield from _walk(group, path)


def _helps(commands: Commands) -> dict[str, str]:
    return {action.dest: str(action.help) for action in commands._choices_actions}


def _flag(action: argparse.Action) -> Flag:
    return Flag(list(action.option_strings), str(action.help), action.nargs != 0, _values(action))


def _values(action: argparse.Action) -> list[str]:
    """Return the values of an argument: its choices, or the literals in a metavar such as a|b."""
    if action.choices is not None:
        return [str(value) for value in action.choices]
    shown = action.metavar.split("|") if isinstance(action.metavar, str) else []
    return [value for value in shown if value.islower()] if shown[1:] else []


def _bash(commands: list[Command]) -> str:
    """Return the script for bash."""
    paths = "|".join(f'" {" ".join(c.words)}"' for c in commands if c.words)
    lines = [
        "_newfound() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local path="" words="" i',
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "$path ${COMP_WORDS[i]}" in',
        f'            {paths}) path="$path ${{COMP_WORDS[i]}}" ;;',
        "        esac",
        "    done",
        '    case "$path|$before" in',
    ]
    for command in commands:
        path = "".join(f" {word}" for word in command.words)
        for flag in command.flags:
            if flag.values:  # otherwise bash completes file names
                names = "|".join(f'"{path}|{name}"' for name in flag.names)
                lines.append(f'        {names}) words="{" ".join(flag.values)}" ;;')
    lines += ["        *)", '            case "$path|$word" in']
    for command in commands:
        path = "".join(f" {word}" for word in command.words)
        flags = " ".join(name for flag in command.flags for name in flag.names)
        lines.append(f'                "{path}|"-*) words="{flags}" ;;')
        if following := [*command.commands, *command.values]:
            lines.append(f'                "{path}|"*) words="{" ".join(following)}" ;;')
    lines += [
        "            esac ;;",
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o bashdefault -o default -F _newfound newfound",
    ]
    return "\n".join(lines)


def _zsh(commands: list[Command]) -> str:
    """Return the script for zsh, which can run the one for bash."""
    return "\n".join(
        [
            "(( $+functions[compdef] )) || { autoload -U compinit && compinit }",
            "autoload -U bashcompinit && bashcompinit",
            _bash(commands),
        ]
    )


def _fish(commands: list[Command]) -> str:
    """Return the script for fish."""
    lines = []
    for command in commands:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.words]
        below = " ".join(command.commands)
        here = [*seen, f"not __fish_seen_subcommand_from {below}"] if below else seen
        start = f"complete -c newfound -n {_quoted('; and '.join(here))}"
        for name, help in command.commands.items():
            lines.append(f"{start} -f -a {name} -d {_quoted(help)}")
        if command.values:
            lines.append(f"{start} -f -a {_quoted(' '.join(command.values))}")
        for flag in command.flags:
            names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in flag.names]
            value = f" -x -a {_quoted(' '.join(flag.values))}" if flag.values else " -r"
            lines.append(
                f"{start} {' '.join(names)}{value if flag.takes_value else ''} "
                f"-d {_quoted(flag.help)}"
            )
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return a string in single quotes, escaped for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
