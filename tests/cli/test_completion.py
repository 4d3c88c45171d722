"""`newfound completion`: scripts that complete commands, flags and their values."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.commands import Command

from newfound.cli.main import COMMANDS


@pytest.fixture
def script(command: Command, tmp_path: Path) -> Path:
    path = tmp_path / "newfound.bash"
    path.write_text(command("completion", "bash").out)
    return path


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash proposes for the last word."""
    program = (
        f'source "{script}"; COMP_WORDS=(newfound "$@"); COMP_CWORD=$#; '
        '_newfound; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_script_is_valid(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_bash_completes_commands(script: Path) -> None:
    names = [module.__name__.rpartition(".")[2] for module in COMMANDS]
    assert completed(script, "") == names
    assert completed(script, "di") == ["discover"]
    assert "splits" in completed(script, "bench", "")
    assert completed(script, "bench", "spl") == ["splits"]


def test_bash_completes_flags_and_their_values(script: Path) -> None:
    assert completed(script, "discover", "t.csv", "--eff") == ["--effort"]
    assert completed(script, "discover", "--effort", "") == ["fast", "balanced", "best"]
    assert completed(script, "discover", "--effort", "b") == ["balanced", "best"]
    assert completed(script, "demo", "--categories", "") == ["auto"]
    assert completed(script, "export", "run", "--to", "la") == ["labelstudio"]
    assert completed(script, "bench", "run", "--known") == ["--known-ratio"]
    assert completed(script, "completion", "") == ["bash", "zsh", "fish"]
    assert completed(script, "info", "--effort") == []  # a flag of other commands


def test_bash_completes_file_names_for_tables_and_folders(script: Path) -> None:
    assert completed(script, "discover", "") == []
    assert completed(script, "discover", "t.csv", "-o", "") == []
    assert "complete -o bashdefault -o default -F _newfound newfound" in script.read_text()


def test_zsh_script_wraps_the_bash_script(command: Command, script: Path, tmp_path: Path) -> None:
    text = command("completion", "zsh").out
    assert text.endswith(script.read_text())
    assert "bashcompinit\n" in text
    if zsh := shutil.which("zsh"):
        (tmp_path / "newfound.zsh").write_text(text)
        subprocess.run([zsh, "-n", str(tmp_path / "newfound.zsh")], check=True)


def test_fish_script_has_every_command_and_flag(command: Command, tmp_path: Path) -> None:
    text = command("completion", "fish").out
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        assert re.search(rf"-n 'not __fish_seen_subcommand_from [^']+' -f -a {name} -d '", text)
    assert re.search(
        r"'__fish_seen_subcommand_from discover' -l effort -x -a 'fast balanced best' -d '", text
    )
    assert re.search(r"from bench; and __fish_seen_subcommand_from run' -l known-ratio -r", text)
    if fish := shutil.which("fish"):
        (tmp_path / "newfound.fish").write_text(text)
        subprocess.run([fish, "--no-execute", str(tmp_path / "newfound.fish")], check=True)
