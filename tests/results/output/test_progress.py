import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.progress import Progress

from tests.trials import measurement, run, trial
from tests.tuning.fakes import MACHINE, settings
from tuner.core.processors import PresentLoad
from tuner.core.reliability import unreliable
from tuner.core.runs import Counts
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
    line = trial_line(DONE, settings(trials=10))
    assert (
        line
        == "5/10 trials: 3 measured, 2 failed, 1 reused (same code); best 1 us (1.024 GFLOP/s); 10 s left"
    )
    disturbed = trial_line(replace(DONE, best_reliability=unreliable("load")), settings(trials=10))
    assert "best 1 us (1.024 GFLOP/s), unreliable: load; 10 s left" in disturbed
    assert "left" not in trial_line(DONE, settings(trials=None, budget_s=5.0))
    assert trial_line(DONE, settings(trials=None, budget_s=60.0)).startswith("5 trials: ")


@pytest.mark.parametrize(
    ("trials", "budget_s", "left_s"),
    [
        (10, None, 10.0),
        (None, 60.0, 50.0),
        (10, 13.0, 3.0),
        (10, 300.0, 10.0),
        (None, 5.0, 0.0),
        (None, None, None),
    ],
)
def test_time_left_is_that_of_the_nearer_budget(
    trials: int | None, budget_s: float | None, left_s: float | None
) -> None:
    assert time_left_s(DONE, settings(trials=trials, budget_s=budget_s)) == left_s


@pytest.mark.parametrize(("trials", "budget_s", "share"), [(10, None, 0.5), (100, 20.0, 0.5), (5, 5.0, 1.0)])
def test_the_share_done_is_that_of_the_nearer_budget(
    trials: int, budget_s: float | None, share: float
) -> None:
    assert share_done(DONE, settings(trials=trials, budget_s=budget_s)) == share


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


def test_plain_lines_are_throttled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_terminal_gets_a_moving_line() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, highlight=False)
    with Progress("{task.description}", console=console) as bar:
        observe = LiveProgress(console, bar)
        observe(STARTED)
        observe(DONE)
        bar.refresh()
    assert "15 of 20 combinations are feasible" in screen.getvalue()
    assert "5/10 trials: 3 measured" in screen.getvalue()


def test_only_the_run_under_way_moves() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with Progress("{task.description}", console=console) as bar:
        observe = LiveProgress(console, bar)
        for event in (STARTED, DONE, STARTED):  # a program tunes one matmul after another
            observe(event)
        assert [task.description for task in bar.tasks] == ["starting"]


def test_what_is_no_terminal_gets_plain_lines() -> None:
    with progress() as observe:
        assert isinstance(observe, PlainProgress)
