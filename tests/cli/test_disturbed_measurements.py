"""Disturbed measurements x everything that prints a ratio of times: none is printed without evidence.

Each row of DISTURBANCES is one way in which a run goes wrong, each row of TEXTS and DOCUMENTS one command
that prints what was measured. Session, store and output are the real ones; times and counters are scripted.
"""

import datetime
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from numpy.random import Generator, default_rng

from tests.cli.conftest import Done, Tuner
from tests.fakes import FakeTarget, Loaded
from tests.forwarding import ForwardingTarget
from tests.models.test_tuning import Programs
from tests.tuning import fakes
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.interfaces import FINAL_EFFORT, AbstractBaselineSource, Effort, LoadedLibrary
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import HostConditions, Measurement
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline
from tuner.db import store
from tuner.models.fusion_tuning import child_fusion_steps
from tuner.models.request import ProgramRequest
from tuner.models.speedup import TimedPair
from tuner.models.tunable_fusions import TunableFusions
from tuner.runtime import timing
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.runner import TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import HostPrograms

Factor = Callable[[int], float]  # of the n-th sample of a round
QUIET_HOST = HostConditions(0.1, 0.0, 0.0, 0.0, 0.0, 1e-3, 0.0)
LOAD = replace(QUIET_HOST, others_cores=2.0, waited_share=0.4)
HOUR = datetime.timedelta(hours=1)


def at_times(sample: int) -> float:
    return 2.0 if sample // 40 % 2 else 1.0


def at_last(sample: int) -> float:
    return 2.0 if sample > 150 else 1.0


def stopped_once(sample: int) -> float:
    """SIGSTOP, and SIGCONT after seconds: one sample lasts as long."""
    return 12_000.0 if sample == 60 else 1.0


@dataclass(frozen=True)
class Disturbance:
    final_times: Factor = lambda _sample: 1.0
    host: HostConditions | None = QUIET_HOST  # readings around the final re-measurement; None: no counters
    search: float = 1.0  # factor of the first times
    is_cut: bool = False  # a limit ends the final re-measurement
    interrupted_at: str = ""  # baseline, search, finals, roofline: where Ctrl-C comes
    clock_steps: datetime.timedelta = datetime.timedelta()  # of the wall clock, with each question
    keeps_ratio: bool = False  # its final re-measurement is quiet, so the ratio is that of a quiet run


DISTURBANCES: Mapping[str, Disturbance] = {
    "quiet": Disturbance(keeps_ratio=True),
    "load throughout": Disturbance(lambda _: 3.0, LOAD, 3.0),
    "load in the search": Disturbance(search=3.0, keeps_ratio=True),
    "load in the finals": Disturbance(at_times, replace(LOAD, reference_drift=1.0)),
    "load in the finals, without counters": Disturbance(at_times, None),
    "load at the end": Disturbance(at_last, replace(QUIET_HOST, reference_drift=0.9, others_cores=0.5)),
    "stop and continue": Disturbance(stopped_once, keeps_ratio=True),
    "the clock steps back": Disturbance(clock_steps=-HOUR, keeps_ratio=True),
    "the clock steps forward": Disturbance(clock_steps=HOUR, keeps_ratio=True),
    "a limit cuts the finals": Disturbance(is_cut=True),
    "Ctrl-C before the first trial": Disturbance(interrupted_at="baseline"),
    "Ctrl-C in the search": Disturbance(interrupted_at="search"),
    "Ctrl-C in the finals": Disturbance(interrupted_at="finals"),
    "Ctrl-C at the roofline": Disturbance(interrupted_at="roofline"),
    "throttling": Disturbance(host=replace(QUIET_HOST, throttled_share=0.3)),
}


class DisturbedTarget(ForwardingTarget, AbstractBaselineSource):
    baseline_threads = 1

    def __init__(self, disturbance: Disturbance) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self._disturbance = disturbance
        self._trials, self._samples = 0, itertools.count(1)

    def load_baselines(self, problem: Problem, rng: Generator) -> tuple[LoadedLibrary, ...]:
        return FakeTarget().load_baselines(problem, rng)

    def measure(self, problem: Problem, loaded: object, effort: Effort, rng: Generator) -> Measurement:
        self._trials += 1
        if self._disturbance.interrupted_at == "search" and self._trials == 5:
            raise KeyboardInterrupt
        taken, factor = self._evaluator.measure(problem, loaded, effort, rng), self._disturbance.search
        time_s = taken.median_s * factor
        host = replace(LOAD if factor > 1 else QUIET_HOST, reference_s=QUIET_HOST.reference_s * factor)
        times = replace(taken, samples_s=(time_s,) * 6, median_s=time_s, interval_s=(time_s, time_s))
        return replace(times, host=host)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: Generator
    ) -> tuple[Measurement, ...]:
        if self._disturbance.interrupted_at == "finals":
            raise KeyboardInterrupt
        if self._disturbance.is_cut:
            raise CandidateError(Stage.RUN, "timed out after 24 s")
        self._samples = itertools.count(1)
        times = timing.measure_together_by(tuple(map(self._stopwatch, loaded)), effort, rng)
        return tuple(replace(each, host=self._disturbance.host) for each in times)

    def _stopwatch(self, one: object) -> timing.Stopwatch:
        assert isinstance(one, Loaded)
        call_s = one.call_s
        return lambda _times: call_s * self._disturbance.final_times(next(self._samples))


class DisturbedPrograms(Programs):
    def __init__(self, disturbance: Disturbance) -> None:
        super().__init__((Matmul(8, 8, 8),))
        self._disturbance = disturbance

    def time_pair(self, request: ProgramRequest) -> TimedPair:
        if self._disturbance.is_cut:
            raise TunerError("timed out after 24 s")
        count = itertools.count(1)

        def stopwatch(call_s: float) -> timing.Stopwatch:
            return lambda _times: call_s * self._disturbance.final_times(next(count))

        stopwatches = tuple(map(stopwatch, (1e-3, 2e-3, 1e-3)))
        times = timing.measure_together_by(stopwatches, FINAL_EFFORT, default_rng(0))
        return TimedPair(*(replace(each, host=self._disturbance.host) for each in times))


def parts(disturbance: Disturbance) -> Backends:
    """Returns backends whose measurements are disturbed; stock mlir-opt does not run its best script."""

    def baseline(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        if disturbance.interrupted_at == "baseline":
            raise KeyboardInterrupt
        return fakes.baseline(problem, threads, seed, wait)

    def roofline(problem: Problem, threads: int, wait: LockWait) -> Roofline:
        if disturbance.interrupted_at == "roofline":
            raise KeyboardInterrupt
        return Roofline(2e6, 1e9)  # of which the best reaches half

    target = DisturbedTarget(disturbance)
    return fakes.backends(
        runner=lambda order, how: TrialRunner.local(order, target, target, how.seed),
        baseline=baseline,
        roofline=roofline,
        bind=lambda *_: fakes.bind_with_custom_op,
        programs=HostPrograms(),
    )


@dataclass(eq=False)
class Disturbed:
    disturbance: Disturbance
    tuner: Tuner
    tuned: Done  # the command's own output

    @cache  # noqa: B019 - asked again by several tests; it lives as long as they
    def ask(self, options: str) -> Done:
        return self.tuner(*options.split())

    def asked(self, options: str) -> str:
        return _all(self.ask(options))

    @cached_property
    def best(self) -> str:
        """Returns the best trial; trial 1 where none was timed."""
        found = self.ask("show run:1 --json").json["best"]
        return "1" if found is None else str(found["trial"])

    @cached_property
    def other(self) -> str:
        trials = [str(each["trial"]) for each in self.ask("history --sort median --json").json]
        return (*trials[2:], "1")[0]  # the second is of the same code as the first

    def page(self, *options: str) -> str:
        file = self.tuner.database.parent / "report.html"
        self.tuner("report", *options, "-o", str(file))
        text = re.sub(r"<(style|script)\b.*?</\1>", "", file.read_text(), flags=re.DOTALL)
        rows = re.sub(r"</t[dh]>", " | ", text)  # the others are lines
        return re.sub(r"<[^>]*>", "\n", re.sub(r"<t[dh][^>]*>", "", rows))

    @cached_property
    def script(self) -> Path:
        file = self.tuner.database.parent / "best.mlir"
        self.tuner("export --trial", self.best, "-o", str(file))
        return file

    def program(self) -> str:
        """Tunes a program on the same machine; its calls are timed interleaved, with and without scripts."""
        folder = self.tuner.database.parent
        tuner = Tuner(folder / "program.db", parts(self.disturbance))
        (folder / "program.mlir").write_text("module {}")
        programs = DisturbedPrograms(self.disturbance)
        none = TunableFusions(why_none="the module is empty")
        no_fusions = replace(child_fusion_steps(), fusions=lambda _request, _cache: none)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tuner.models.commands.tune_program.child_process_steps", lambda: programs.steps)
            patch.setattr("tuner.models.commands.tune_program.child_fusion_steps", lambda: no_fusions)
            return _all(tuner("tune", str(folder / "program.mlir"), "--trials", "6"))

    def gate(self) -> str:
        file = str(self.tuner.database.parent / "gate.json")
        self.tuner("check --baseline", file, "--record", self.best)
        return _all(self.tuner("check --baseline", file))


def _all(done: Done) -> str:
    return done.out + done.err


# Output -> what it prints, and the ratio that it prints of a quiet run ("" where it prints none).
TEXTS: Mapping[str, tuple[Callable[[Disturbed], str], str]] = {
    "tune": (lambda run: _all(run.tuned), "2.00 times as fast as FakeBLAS 1.0 (2 ms)"),
    "history --runs": (lambda run: run.asked("history --runs"), ""),
    "history": (lambda run: run.asked("history"), ""),
    "history --best": (lambda run: run.asked("history --best"), ""),
    "show trial": (lambda run: run.asked(f"show {run.best}"), ""),
    "show run": (lambda run: run.asked("show run:1"), "51.2% of what 1 thread can do"),
    "diff": (lambda run: run.asked(f"diff {run.best} {run.other}"), "takes +100.0% time"),
    "report": (Disturbed.page, "2.00x (2.00 .. 2.00)"),
    "export": (lambda run: run.script.read_text() if run.script.exists() else "", "ratio 2.000"),
    "export --stock": (lambda run: run.asked(f"export --trial {run.best} --stock"), "+100.0% time"),
    "check --best": (lambda run: run.asked("check --best"), ""),
    "gate": (Disturbed.gate, ""),
    "tune PROGRAM": (Disturbed.program, "gain    2.00 times as fast (95 % interval 2.00 .. 2.00)"),
    "check": (lambda run: _all(run.tuner("check", str(run.script))), "ratio     not distinguishable"),
}
DOCUMENTS: Mapping[str, Callable[[Disturbed], str]] = {
    "history --runs --json": lambda run: "history --runs --json",
    "history --json": lambda run: "history --sort median --json",
    "show run --json": lambda run: "show run:1 --json",
    "show trial --json": lambda run: f"show {run.best} --json",
    "diff --json": lambda run: f"diff {run.best} {run.other} --json",
}
HAVE_RATIOS = {"history --runs --json", "show run --json", "diff --json"}
# What goes with a ratio, and percentages that are not ratios of measured times.
COMPANY = re.compile(
    r"unreliable: .*|reliable +no: .*|lost, no times: .*"  # with its reason
    r"|two timings of the same code differ by \d+%|the reference kernel [a-z ]+ by \d+%"  # reasons elsewhere
    r"|(waited|held the processes back for) \d+% of the time"
    r"|differ by (a factor of [\d.]+|more than 5%)"
    r"|noise floor:? [\d.]+ ?%|idle \d+% of the search|9[59] % interval|intervals are 95 %"
    r"|ratio +[\d.]+ \(99 % interval [^)]*\), \d+ sessions"  # of a check, which has evidence of its own
    r"|[+-]?[\d.]+% \| [+-]?[\d.]+% \.\. [+-]?[\d.]+%"  # a cell, and the next one its interval
    r"|^\d+%$"  # importance of a knob, by PED-ANOVA
    r"|full colour from 99 %, then 95, 90, 75, 50 %",  # legend of a map
    re.IGNORECASE | re.MULTILINE,
)
RATIO = re.compile(r"\d ?%|\b\d+\.\d\dx|ratio +[\d.]+|\b[\d.]+ times\b")


@pytest.fixture(scope="module", params=DISTURBANCES, ids=str)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    """Gives a database after a disturbed run, with what ``tune`` printed."""
    disturbance = DISTURBANCES[request.param]
    tuner = Tuner(tmp_path_factory.mktemp("disturbed") / "results.db", parts(disturbance))
    with pytest.MonkeyPatch.context() as patch:
        asked = [0]

        def stepped() -> datetime.datetime:
            asked[0] += 1
            return datetime.datetime.now(datetime.UTC) + asked[0] % 2 * disturbance.clock_steps

        patch.setattr(store, "_now", stepped)
        tuned = tuner("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    return Disturbed(disturbance, tuner, tuned)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("output", TEXTS)
def test_a_ratio_is_printed_with_evidence_only(run: Disturbed, output: str) -> None:
    printed, ratio = TEXTS[output]
    text = re.sub(r"\n(?: {10,}|// {3})", " ", printed(run))  # what was wrapped
    if run.disturbance.keeps_ratio:
        assert ratio in text, text
        return
    assert [line for line in COMPANY.sub("", text).splitlines() if RATIO.search(line)] == [], text


@pytest.mark.parametrize("output", ["tune", "show run"])
def test_why_times_are_unreliable_is_said_once(run: Disturbed, output: str) -> None:
    best = run.ask("show run:1 --json").json["best"]
    why = None if best is None else best["unreliable"]
    text = re.sub(r"\s+", " ", TEXTS[output][0](run))
    assert why is None or text.count(why.partition(":")[0]) == 1, text


@pytest.mark.drawn(2)
@pytest.mark.parametrize("output", DOCUMENTS)
def test_a_ratio_in_json_is_null_without_evidence(run: Disturbed, output: str) -> None:
    done = run.ask(DOCUMENTS[output](run))
    ratios = list(_ratios(done.json)) if done.out else []
    if run.disturbance.keeps_ratio:
        assert None not in ratios
        assert bool(ratios) == (output in HAVE_RATIOS)
    else:
        assert {each for each in ratios if each is not None} == set()


def _ratios(document: Any) -> Iterator[float | None]:
    if isinstance(document, list):
        for each in document:
            yield from _ratios(each)
    elif isinstance(document, dict):
        for key, value in document.items():
            if key not in ("ratio", "slowdown"):
                yield from _ratios(value)
            elif value is not None or document[f"{key}_interval"] is None:
                yield value


@pytest.mark.drawn(2)
def test_a_disturbed_run_says_what_is_wrong_wherever_it_is_listed(run: Disturbed) -> None:
    listed = run.ask("history --runs").out + run.ask("show run:1").out
    document = run.ask("history --runs --json").json[0]
    is_marked = "unreliable" in listed or document["status"] == "interrupted"
    assert is_marked == (not run.disturbance.keeps_ratio)
