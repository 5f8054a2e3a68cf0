import io
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from tests.trials import measurement, run, trial
from tests.tuning.fakes import MACHINE, settings
from tuner.core.errors import UsageError
from tuner.core.processors import PresentLoad
from tuner.core.reliability import unreliable
from tuner.core.runs import Counts
from tuner.results.output.files import write_atomically, write_folder
from tuner.results.output.progress import (
    LiveProgress,
    PlainProgress,
    event_line,
    progress,
    share_done,
    time_left_s,
    trial_line,
)
from tuner.tuning.events import (
    BaselineFailed,
    BaselineMeasured,
    Event,
    MachineBusy,
    NoiseMeasured,
    RemeasurementStarted,
    RunStarted,
    TrialDone,
    WaitsForLock,
    WaitsForNode,
)

STARTED = RunStarted(3, settings(trials=10), MACHINE, 20, 15, proposed_before=0)
RECORD = trial(4, measurement(1e-6)).record
DONE = TrialDone(104, 4, RECORD, Counts(5, 3, 0, 2, 1), RECORD, elapsed_s=10.0)
BASELINE = run().baseline
assert BASELINE is not None


def test_a_trial_line_reports_counts_best_and_time_left() -> None:
    line = "5/10 trials: 3 measured, 2 failed, 1 reused (same code); best 1 us (1.024 GFLOP/s); 10 s left"
    assert trial_line(DONE, settings(trials=10)) == line
    disturbed = trial_line(replace(DONE, best_reliability=unreliable("load")), settings(trials=10))
    assert "best 1 us (1.024 GFLOP/s), unreliable: load; 10 s left" in disturbed
    assert "left" not in trial_line(DONE, settings(trials=None, budget_s=5.0))
    assert trial_line(DONE, settings(trials=None, budget_s=60.0)).startswith("5 trials: ")


@pytest.mark.parametrize(
    ("trials", "budget_s", "left_s", "share"),
    [
        *((10, None, 10.0, 0.5), (None, 60.0, 50.0, None), (10, 13.0, 3.0, None), (10, 300.0, 10.0, None)),
        *((None, 5.0, 0.0, None), (None, None, None, None), (100, 20.0, 10.0, 0.5), (5, 5.0, 0.0, 1.0)),
    ],
)
def test_time_left_and_the_share_done_are_those_of_the_nearer_budget(
    trials: int | None, budget_s: float | None, left_s: float | None, share: float | None
) -> None:
    chosen = settings(trials=trials, budget_s=budget_s)
    assert time_left_s(DONE, chosen) == left_s
    assert share is None or share_done(DONE, chosen) == share


@pytest.mark.parametrize(
    ("event", "options"),
    [
        (
            RunStarted(3, settings(), MACHINE, 20, 15, 0, ("'x > 9' leaves f nothing",)),
            (
                "run 3: matmul 8x8x8 f32 nn none, fake, 1 thread on fake; 15 of 20 combinations are "
                "feasible\nnote: 'x > 9' leaves f nothing"
            ),
        ),
        (STARTED, "run 3: matmul 8x8x8 f32 nn none, fake, 1 thread on fake; 15 of 20 combinations"),
        (
            MachineBusy(3, PresentLoad(busy=1.84, stolen=0.0), 2),
            "note: 1.8 of 2 processors are busy with other programs; times will be unreliable\nhint: once",
        ),
        (
            MachineBusy(3, PresentLoad(1.0, 0.0), 1),
            "note: 1.0 of 1 processor is busy with other programs; times",
        ),
        (MachineBusy(3, PresentLoad(0.1, 0.9), 2), "note: the hypervisor gives 0.9 of 2 away; times will"),
        (BaselineMeasured(BASELINE), "baseline: FakeBLAS 1.0 2 ms (0.000512 GFLOP/s)"),
        (
            BaselineMeasured(BASELINE, unreliable("load")),
            "baseline: FakeBLAS 1.0 2 ms (0.000512 GFLOP/s), unreliable: load",
        ),
        (BaselineFailed("no BLAS"), "baseline: not measured: no BLAS"),
        (RemeasurementStarted(8), "final re-measurement: timing the best 8 again, interleaved"),
        (NoiseMeasured(0.0123), "noise floor: 1.23%"),
        (DONE, "trial 104: measured"),
        (WaitsForLock("process 7"), "waiting for process 7: it times on the same device"),
        (WaitsForNode("no node compiles cpu"), "waiting for the fleet: no node compiles cpu"),
    ],
)
def test_every_event_has_a_line(event: Event, options: str) -> None:
    assert event_line(event, settings()).startswith(options)


def test_plain_lines_are_rare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    observe = PlainProgress()
    observe(STARTED)
    for _ in range(100):
        observe(DONE)
    observe(NoiseMeasured(0.01))
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["run 3", "noise floor"]
    monkeypatch.setattr("tuner.results.output.progress.PLAIN_EVERY_S", 0.0)
    observe(DONE)
    assert "5/10 trials" in capsys.readouterr().err


def test_a_terminal_gets_a_line_that_moves_for_the_run_under_way_and_a_pipe_plain_lines() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, highlight=False)
    with Progress("{task.description}", console=console) as bar:
        observe = LiveProgress(console, bar)
        observe(STARTED)
        observe(DONE)
        bar.refresh()
        observe(STARTED)  # a program tunes one matmul after another
        assert [task.description for task in bar.tasks] == ["starting"]
    assert "15 of 20 combinations are feasible" in screen.getvalue()
    assert "5/10 trials: 3 measured" in screen.getvalue()
    with progress() as plain:
        assert isinstance(plain, PlainProgress)


# Files that commands write, whatever is at the place.


def test_a_file_is_written_whole_through_a_link_and_to_a_device(tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    path.write_text("old")
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert list(tmp_path.iterdir()) == [path]
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomically(link, b"newer")
    assert link.is_symlink()
    assert path.read_text() == "newer"
    write_atomically(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (lambda folder: folder / "none" / "best.mlir", "No such file or directory"),
        (lambda folder: Path("/proc/best.mlir"), "cannot be written"),
        (lambda folder: Path("/dev/full"), "No space left on device"),
        (lambda folder: folder, "Is a directory"),
    ],
)
def test_what_cannot_be_written_is_named(file: Callable[[Path], Path], reason: str, tmp_path: Path) -> None:
    path = file(tmp_path)
    with pytest.raises(UsageError, match=f"{path}: cannot be written") as found:
        write_atomically(path, b"new")
    assert reason in str(found.value)
    assert list(tmp_path.iterdir()) == []


# Several files of a command in one folder, whatever is at the place.


def test_a_missing_folder_is_made_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "library"
    paths = write_folder(folder, {"a.mlir": b"a", "x86_64/f32.yaml": b"b"})
    assert [path.read_bytes() for path in paths] == [b"a", b"b"]
    assert write_folder(folder, {"a.mlir": b"c"}) == (folder / "a.mlir",)
    assert (folder / "a.mlir").read_bytes() == b"c"
    assert sorted(path.name for path in folder.iterdir()) == ["a.mlir", "x86_64"]


def test_a_folder_that_cannot_be_written_is_one_line_and_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("old")
    for folder, texts, message in (
        (path, {"a.mlir": b"a"}, r"a.mlir: is a file, not a folder to write into"),
        (tmp_path, {"a.mlir": b"new", "a.mlir/b.yaml": b"b"}, "cannot be written: "),
        (Path("/proc/none/library"), {"a.mlir": b"a"}, "/proc/none/library: cannot be written: "),
    ):
        with pytest.raises(UsageError, match=message):
            write_folder(folder, texts)
        assert [each.name for each in tmp_path.iterdir()] == ["a.mlir"]
        assert path.read_text() == "old"
