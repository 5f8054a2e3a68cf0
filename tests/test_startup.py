"""The commands that people type to look around start at once: nothing heavy is imported for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numba_cuda_mlir", "torch_mlir", "optuna", "cuda", "torch"}
RUN = """
import json, sys
from tuner.cli import main
sys.argv = ["tuner", *sys.argv[1:]]
try:
    code = main()
except SystemExit as stop:
    code = stop.code
print(json.dumps([code or 0, sorted({name.split(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


def run_tuner(*arguments: str) -> tuple[int, set[str]]:
    """Runs the command in a fresh interpreter; returns its exit code and the packages it imported."""
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    code, names = json.loads(done.stderr.splitlines()[-1])
    return code, set(names)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("command", [("--help",), ("tune", "--help"), ("history", "--help"), ("--version",)])
def test_help_imports_nothing_heavy(command: tuple[str, ...]) -> None:
    code, names = run_tuner(*command)
    assert code == 0
    assert not names & (HEAVY | {"alembic", "sqlalchemy", "yaml"})


@pytest.mark.slow
def test_history_imports_nothing_heavy_but_its_database_library(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'history.db'}"
    run_tuner("db", "upgrade", "--db", database)  # makes the tables
    code, names = run_tuner("history", "--db", database)
    assert code == 0
    assert "sqlalchemy" in names
    assert not names & (HEAVY | {"alembic", "numpy"})


COMPLETE = """
import json, rlcompleter, sys, tuner
names, heavy = dir(tuner), "numpy" in sys.modules
matches = rlcompleter.Completer({"tuner": tuner}).attr_matches("tuner.Mat")
print(json.dumps([names == sorted(tuner.__all__), heavy, matches]))
"""


def test_a_shell_of_python_completes_the_public_names() -> None:
    done = subprocess.run([sys.executable, "-c", COMPLETE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, False, ["tuner.Matmul("]]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "command",
    [
        ("nosuch",),
        ("tune", "matmul", "512x512"),
        ("tune", "matmul", "8x8x8", "--trials", "-1"),
        ("tune", "matmul", "8x8x8", "--budget", "5x"),
        ("tune", "matmul", "8x8x8", "--sampler", "nosuch"),
        ("tune", "matmul", "8x8x8", "--layout", "nosuch"),
        ("tune", "matmul", "8x8x8", "--epilogue", "nosuch"),
        ("tune", "nosuch", "8x8x8"),
        ("tune", "matmul", "8x8x8", "--resume", "1"),
        ("tune", "matmul"),
        ("tune", "matmul", "8x8x8", "--nosuch"),
        ("history", "--nosuch"),
        ("tune", "missing.mlir"),
        ("show", "nosuch"),
        ("show", "1", "--run", "2"),
        ("explain", "nosuch"),
        ("explain", "matmul", "8x8", "direct(m=1)"),
        ("diff", "nosuch", "1"),
        ("export",),
        ("export", "nosuch"),
        ("tune", "matmul", "8x8x8", "--strategy", "nosuch"),
        ("export", "matmul", "8x8"),
        ("export", "matmul", "8x8x8", "--constants", "--format", "payload"),
        ("export", "--format", "library"),
        ("export", "--untuned"),
        ("apply", "missing.mlir"),
        ("check", "missing.mlir"),
        ("check",),
        ("report", "--run", "1", "--campaign", "2"),
        ("portfolio", "nosuch", "--configs", "2"),
        ("bundle", "export", "--nosuch"),
        ("measure", "--seconds", "nosuch"),
        ("run", "missing.mlir"),
        ("run", "--nosuch"),
        ("lower", "missing.mlir", "--to", "ptx"),
        ("lower", "matmul", "8x8x8", "--to", "nosuch"),
        ("lower", "--trial", "nosuch"),
        ("judge", "missing.mlir"),
        ("judge", "-", "--problem", "nosuch"),
    ],
)
def test_a_word_that_no_command_takes_is_refused_before_anything_heavy_is_imported(
    command: tuple[str, ...],
) -> None:
    code, names = run_tuner(*command)
    assert code == 2
    assert not names & (HEAVY | {"alembic", "sqlalchemy", "yaml", "numpy"})


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "command",
    [
        ("tune", "matmul", "8x8x8", "--target", "nosuch"),
        ("tune", "matmul", "8x8x8", "--baseline", "nosuch"),
        ("judge", "-", "--target", "nosuch"),
        ("show", "1"),
        ("explain", "1"),
        ("diff", "1", "2"),
        ("lower", "--trial", "1"),
        ("export", "--trial", "1"),
    ],
)
def test_what_no_target_or_database_has_is_refused_before_a_compiler_is_imported(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # no database
    code, names = run_tuner(*command)
    assert code == 2
    assert not names & (HEAVY | {"alembic"})


END = """
import atexit, gc, json, sys, time
atexit.register(lambda: print(json.dumps([gc.get_freeze_count(), len(gc.get_objects())])))
from tuner.__main__ import main
time.monotonic = lambda: float("tuner.cli" in sys.modules)
from click import Group, get_current_context
Group.invoke = lambda self, context: print(context.meta["tuner.began_s"])
sys.argv = ["tuner", "targets"]
main()
"""


def test_a_command_counts_from_before_its_imports_and_ends_without_a_search_for_cycles() -> None:
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True, check=True)
    began_s, end = map(json.loads, done.stdout.splitlines())
    assert began_s == 0.0  # by a clock that tells whether the commands are imported
    frozen, searched = end
    assert frozen > 10_000 > searched
