"""A budget is kept on slow and busy machines, by what things have taken in the run. The clock is scripted."""

import dataclasses
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import bind, candidate, time_of
from tests.trials import measurement
from tests.tuning import fakes
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import AbstractRunner, Artifact, BoundRecord, Effort, FinalTimes
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Baseline
from tuner.db.store import Store
from tuner.runtime.timing import FEW_SAMPLES
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.target import RunnerSettings
from tuner.tuning.budget import (
    LATE,
    LEAST_EFFORT,
    LEAST_TOP_TRIALS,
    MOST_KEPT,
    OTHERS_TIMED,
    TOP_TRIALS,
    Pace,
    final_effort,
)
from tuner.tuning.events import Interruption
from tuner.tuning.progress import Progress
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

KEPT_WITHIN = 1.2  # times the budget

# A machine by the seconds that things take there


@dataclass(frozen=True)
class Machine:
    command_s: float = 1.2  # until the session begins
    children_s: float = 0.8
    compile_s: float = 0.08
    load_s: float = 0.05
    verify_s: float = 0.04
    time_s: float = 0.22  # of a trial
    samples: int = 17  # of a trial
    sample_s: float = 4.8e-3  # with the untimed call before it
    around_s: float = 2.0  # all seconds of a sample in the final re-measurement, over those of the sample

    def slower(self, factor: float) -> "Machine":
        """Returns a machine on which other programs, too, take the processor; samples are then longer."""
        seconds = {
            name: factor * value
            for name, value in vars(self).items()
            if name.endswith("_s") and name != "around_s"
        }
        return dataclasses.replace(self, **seconds)


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class ClockedRunner(AbstractRunner):
    """Takes the seconds of a machine, on one core: compiling and timing take turns."""

    def __init__(self, order: RunnerOrder, machine: Machine, clock: Clock) -> None:
        self._order = order
        self._machine = machine
        self._clock = clock
        self._started: deque[Candidate] = deque()
        self._to_start_s = machine.children_s
        self.finals: list[tuple[int, Effort]] = []

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        self._started.append(candidate)

    def finish(self) -> BoundRecord:
        machine = self._machine
        chosen = self._started.popleft()
        stages = (
            ("lower", machine.compile_s),
            ("load", machine.load_s),
            ("verify", machine.verify_s),
            ("measure", machine.time_s),
        )
        self._clock.now_s += self._to_start_s + sum(seconds for _, seconds in stages)
        self._to_start_s = 0.0
        script = bind(chosen)
        call_s = machine.sample_s / 2
        taken = Measurement((call_s,) * machine.samples, 1, call_s, (call_s, call_s))
        record = Record(
            self._order.problem,
            chosen,
            TargetName("fake"),
            taken,
            script.sha256,
            f"code of {script.text}",
            stages,
            verdict=Verdict(0.25, 64),
        )
        return BoundRecord(record, script, Artifact(KernelCode.of_host(script.text), record.artifact_sha256))

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        machine = self._machine
        self.finals.append((len(top_trials) - 1, effort))
        began_s = self._clock.now_s
        self._clock.now_s += machine.children_s  # of the baseline
        without_code = {trial.script for trial in top_trials if trial.artifact is None}
        self._clock.now_s += len(without_code) * machine.compile_s + len(top_trials) * machine.load_s
        rounds = 0
        round_s = (len(top_trials) + 1) * machine.around_s * machine.sample_s
        left = effort
        while rounds < effort.min_samples:
            self._clock.now_s += round_s
            rounds += 1
            left = effort.after(self._clock.now_s - began_s)
            if left.within_s == 0.0 and rounds >= FEW_SAMPLES:
                break
        times = tuple(measurement(time_of(int(dict(t.record.candidate.choices)["x"]))) for t in top_trials)
        return FinalTimes(times, Baseline("FakeBLAS 1.0", 1, measurement(2e-3)))

    def close(self) -> None:
        self._clock.now_s += 0.1 * self._machine.command_s


@dataclass(frozen=True)
class Tuned:
    run: TunedRun
    seconds: float  # of the command
    top_trials: int
    effort: Effort


def tuned(
    store: Store,
    machine: Machine,
    budget_s: float | None,
    trials: int | None,
) -> Tuned:
    """Returns a run on a machine whose command began ``machine.command_s`` before the session."""
    clock = Clock()
    runners = []

    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        runners.append(ClockedRunner(order, machine, clock))
        return runners[0]

    began_s = clock.now_s
    clock.now_s += machine.command_s
    parts = fakes.backends(runner=runner, plan=fakes.plan({"x": tuple(range(1000))}))
    settings = fakes.settings(trials, budget_s=budget_s)
    run = begin(settings, parts, store, Interruption(), began_s=began_s, clock=clock)
    return Tuned(run, clock.now_s - began_s, *runners[0].finals[0])


@pytest.mark.parametrize("budget_s", [10.0, 15.0, 60.0])
@pytest.mark.parametrize("factor", [1.0, 1.5, 2.0, 2.8])
def test_a_budget_is_kept_within_a_fifth_on_slow_and_busy_machines(
    store: Store, factor: float, budget_s: float
) -> None:
    done = tuned(store, Machine().slower(factor), budget_s, None)
    assert 0.75 * budget_s <= done.seconds <= KEPT_WITHIN * budget_s
    assert done.top_trials >= LEAST_TOP_TRIALS
    assert done.run.rounds[0].quality.noise is not None


def test_slow_compilations_that_take_turns_with_timing_end_the_search_in_time(store: Store) -> None:
    done = tuned(store, Machine(compile_s=0.8), 10.0, None)
    assert done.seconds <= KEPT_WITHIN * 10.0


def test_a_quiet_machine_times_all_top_trials_again_however_short_the_budget(store: Store) -> None:
    done = tuned(store, Machine(), 10.0, None)
    assert done.top_trials == min(TOP_TRIALS, done.run.counts.measured)
    assert done.run.counts.measured >= 6
    whole = tuned(store, Machine(), 60.0, None)
    assert dataclasses.replace(whole.effort, within_s=None) == final_effort(60.0)


def test_without_a_budget_nothing_ends_a_final_early(store: Store) -> None:
    done = tuned(store, Machine().slower(5.0), None, 12)
    assert (done.top_trials, done.effort.within_s) == (TOP_TRIALS, None)


SECONDS = st.floats(0.0, 5.0)
PACES = st.builds(Pace, SECONDS, SECONDS, st.floats(0.5, 10.0), st.floats(0.0, 0.5), SECONDS)


@given(pace=PACES, budget_s=st.floats(1.0, 600.0), search_s=st.floats(0.0, 600.0), top=st.integers(1, 8))
def test_the_least_of_a_final_is_kept_before_what_it_could_use(
    pace: Pace, budget_s: float, search_s: float, top: int
) -> None:
    kept_s = pace.kept_s(budget_s, search_s, top)
    assert kept_s <= MOST_KEPT * budget_s
    least_s = pace.final_s(LEAST_EFFORT, min(top, LEAST_TOP_TRIALS))
    assert kept_s >= min(least_s, MOST_KEPT * budget_s)
    assert kept_s <= max(least_s, pace.final_s(final_effort(search_s), top))


@given(pace=PACES, left_s=st.floats(-5.0, 60.0), top=st.integers(1, 8))
def test_a_planned_final_fits_into_what_is_left_or_is_the_least_one(
    pace: Pace, left_s: float, top: int
) -> None:
    effort, timed = pace.planned_final(60.0, 50.0, left_s, top)
    assert min(top, LEAST_TOP_TRIALS) <= timed <= top
    assert effort.within_s == pytest.approx(max(0.0, left_s + LATE * 60.0 - pace.end_s))
    assert LEAST_EFFORT.budget_s <= effort.budget_s <= final_effort(50.0).budget_s
    fits = pace.final_s(LEAST_EFFORT, timed) <= left_s
    assert fits or timed <= LEAST_TOP_TRIALS


def test_a_pace_is_that_of_the_trials_and_the_first_of_them_counts_for_little() -> None:
    assert Pace.of(Progress(()), None, 0.0) == Pace()
    progress = Progress(())
    for number, timing_s in enumerate((5.0, 0.4, 0.4)):
        taken = Measurement((4e-3,) * 10, 1, 4e-3, (4e-3, 4e-3))
        stages = (("bind", 9.0), ("transform", 0.1), ("load", 0.2), ("verify", 9.0), ("measure", timing_s))
        progress.propose(number, number)
        progress.take(
            number, Record(fakes.settings().problem, candidate(7), TargetName("fake"), taken, stage_s=stages)
        )
    pace = Pace.of(progress, 2.0, 3.0)
    assert (pace.start_s, pace.again_s, pace.sample_s) == pytest.approx((2.0, 0.2, 8e-3))
    assert pace.slowness == pytest.approx(0.4 / (2 * 10 * 8e-3 + 0.06))
    longer_s = pace.final_s(final_effort(60.0), 8) - pace.final_s(final_effort(60.0), 4)
    assert longer_s == pytest.approx(4 * 0.2 + 4 * pace.slowness * (2 * 0.3 + 0.06))
    assert OTHERS_TIMED == 4
