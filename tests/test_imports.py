"""What is imported when: --help must be quick, the report must do without torch."""

import subprocess
import sys
import time

import pytest

import newfound

HEAVY = ("torch", "pandas", "sklearn", "scipy", "rich", "numpy", "pyarrow", "transformers")


def python(code: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def heavy_modules_after(code: str) -> set[str]:
    shown = python(f"{code}\nimport sys; print(' '.join(m for m in {HEAVY} if m in sys.modules))")
    return set(shown.splitlines()[-1].split()) if shown.strip() else set()


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert (
        heavy_modules_after("import newfound; newfound.InputError; newfound.__version__") == set()
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version"],
        ["oops"],
        ["discover", "--help"],
        ["predict", "--help"],
        ["check", "--help"],
        ["report", "--help"],
        ["export", "--help"],
        ["bench", "--help"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"from newfound.cli.main import main\ntry: main({arguments!r})\nexcept SystemExit: pass"
    assert heavy_modules_after(code) == set()


def test_help_is_fast() -> None:
    # Half a second is the aim; the best of three, and twice that, because machines are shared.
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        python("from newfound.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass")
        times.append(time.perf_counter() - begun)
    assert min(times) < 1.0


@pytest.mark.parametrize(
    "module",
    [
        "data.corpus",
        "data.tables",
        "clustering.metrics",
        "describing.descriptions",
        "describing.text_map",
        "describing.llm_names",
        "report",
        "result",
        "storage.check_file",
        "storage.export",
        "storage.run_folder",
    ],
)
def test_some_modules_do_not_import_torch(module: str) -> None:
    assert "torch" not in heavy_modules_after(f"import newfound.{module}")


def test_estimator_is_imported_lazily() -> None:
    code = "import newfound; print(newfound.CategoryDiscoverer.__module__)"
    assert python(code).strip() == "newfound.estimator"
    with pytest.raises(AttributeError, match="no attribute 'Magic'"):
        _ = newfound.Magic


def test_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "newfound", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("newfound ")
