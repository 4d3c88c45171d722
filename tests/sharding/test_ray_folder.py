"""The folder of Ray's files: private, and removed by the next run if its own was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from newfound.sharding.ray_workers import PREFIX, private_folder

HOLD = """
import sys
from pathlib import Path
from newfound.sharding.ray_workers import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "file").write_text("x")
    print(folder.parent.name, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders have no locks")


def test_only_the_user_can_enter_the_folder(tmp_path: Path) -> None:
    with private_folder(tmp_path) as folder:
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        assert folder.parent.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("a file")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "others")
    kept = {"others", f"{PREFIX}file", f"{PREFIX}link"}
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        with private_folder(tmp_path) as folder:
            assert (tmp_path / name / "r" / "file").exists()  # its process is alive
            kept_now = {path.name for path in tmp_path.iterdir()}
            assert kept_now == {*kept, name, folder.parent.name}
        process.kill()
    with private_folder(tmp_path) as folder:
        assert {path.name for path in tmp_path.iterdir()} == {*kept, folder.parent.name}
    assert {path.name for path in tmp_path.iterdir()} == kept
