"""Tuning programs, with fakes for compiler, clock and the program's runs."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import HostConditions, Measurement
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.models.commands.tune_program import program_lines
from tuner.models.documents import program_document
from tuner.models.program_times import ProgramTimes
from tuner.models.report import Comparison, ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run_work import time_pair
from tuner.models.speedup import TimedPair
from tuner.models.tuning import ProgramSteps, ProgramTuning
from tuner.tuning.events import Interruption, ignore

ONE, TWO = Matmul(8, 8, 8), Matmul(16, 8, 8)
REQUEST = ProgramRequest("module {}", TargetName("fake"))
REPORT = ProgramReport("main", (), (), (), 2, times=ProgramTimes(2e-6))
KILLED = "program: killed by SIGSEGV"
QUIET = HostConditions(0.5, 0.0, 0.0, 0.0, 0.0, 3e-4, 0.0)


def call(median_s: float, host: HostConditions | None = QUIET) -> Measurement:
    return Measurement((median_s,) * 15, 1, median_s, (median_s, median_s), host=host)


PAIR = TimedPair(call(2.5e-6), call(1e-5), call(2.5e-6))
WRONG = replace(REPORT, comparisons=(Comparison("result 0", 1.0, 1e-6),))


class Programs:
    """Stands for the processes that run programs: hands out reports, keeps what was asked."""

    def __init__(
        self, problems: tuple[Problem, ...], report: ProgramReport = REPORT, pair: TimedPair | None = PAIR
    ) -> None:
        self.problems, self.report, self.pair = problems, report, pair
        self.asked: list[ProgramRequest] = []

    def run(self, request: ProgramRequest) -> ProgramReport:
        self.asked.append(request)
        is_slower = request.scripts is None and self.report.times is not None
        return replace(self.report, times=ProgramTimes(8e-6)) if is_slower else self.report

    def time_pair(self, request: ProgramRequest) -> TimedPair:
        assert request == self.asked[0]
        if self.pair is None:
            raise TunerError(KILLED)
        return self.pair

    @property
    def steps(self) -> ProgramSteps:
        return ProgramSteps(lambda _text, _entry: self.problems, self.run, self.time_pair)


def settings(problem: Problem, **changes: object) -> RunSettings:
    return fakes.settings(**{"trials": 3, "problem": problem} | changes)  # type: ignore[arg-type]


def tuned(programs: Programs, store: Store, backends: Any = None, settings_of: Any = settings) -> Any:
    tuning = ProgramTuning(backends or fakes.backends(), programs.steps, store, Interruption(), ignore)
    return tuning.tune(REQUEST, settings_of)


def test_each_problem_is_tuned_and_the_best_also_of_earlier_runs_used(store: Store) -> None:
    programs = Programs((ONE, TWO))
    found = tuned(programs, store)
    assert [each.problem for each in found.problems] == [ONE, TWO]
    best = [(each.problem, each.tuned.best.script_text) for each in found.problems]
    assert programs.asked[0].scripts == tuple(best)
    assert found.has_worked
    assert not tuned(Programs((ONE,), WRONG), store).has_worked
    first = tuned(Programs((ONE,)), store, settings_of=partial(settings, trials=20))
    again = tuned(Programs((ONE,)), store, settings_of=partial(settings, trials=1, seed=9))
    earlier, later = (found.problems[0].trial.best_s for found in (first, again))
    assert later <= earlier


def test_the_program_is_timed_against_itself_without_scripts(store: Store) -> None:
    programs = Programs((ONE,))
    found = tuned(programs, store)
    assert [request.scripts is None for request in programs.asked] == [False, True]
    assert found.speedup == pytest.approx(4.0)
    plain, gain = program_lines(found)[-2:]
    assert plain == "plain   10 us a call in one process; reliable: the same without scripts"
    assert gain == "gain    4.00 times as fast (95 % interval 4.00 .. 4.00)"


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (TimedPair(*(call(each, replace(QUIET, waited_share=0.5)) for each in (2e-6, 8e-6, 2e-6))), "load"),
        (
            TimedPair(call(2e-6), call(8e-6), call(4.4e-6)),
            "two timings of the same code differ by a factor of 2.2",
        ),
        (TimedPair(call(2e-6, None), call(8e-6, None), call(4.4e-6, None)), "two timings of the same code"),
    ],
    ids=["load", "noise", "noise on a GPU"],
)
def test_a_gain_while_disturbed_is_not_printed(store: Store, pair: TimedPair, reason: str) -> None:
    found = tuned(Programs((ONE,), pair=pair), store)
    line = program_lines(found)[-1]
    assert line.startswith("gain    unknown: ")
    assert reason in line
    document = program_document(found)
    assert (document["speedup"], document["speedup_interval"]) == (None, None)
    assert reason in document["speedup_unknown"]
    assert found.has_worked


def test_without_times_it_runs_once_and_a_problem_of_no_strategy_is_left_to_loops(store: Store) -> None:
    programs = Programs((ONE,), replace(REPORT, times=None))
    on_simulator = partial(settings, target=TargetName("simulator"))
    found = tuned(programs, store, fakes.untimed_backends(), on_simulator)
    assert len(programs.asked) == 1
    assert found.speedup is None
    assert found.has_worked
    assert found.problems[0].trial is not None  # the first that was right

    def only_one(problem: Problem) -> RunSettings:
        if problem == TWO:
            raise UsageError("no strategy can do it")
        return settings(problem)

    programs = Programs((ONE, TWO))
    found = tuned(programs, store, settings_of=only_one)
    assert [problem for problem, _ in programs.asked[0].scripts or ()] == [ONE]
    assert found.problems[1].reason == "no strategy can do it"
    assert found.has_worked


def test_a_mistake_that_spoils_every_problem_and_a_program_without_matmuls_are_refused(store: Store) -> None:
    def refuse(problem: Problem) -> RunSettings:
        raise UsageError("sampler: found 'x'")

    with pytest.raises(UsageError, match="sampler: found 'x'"):
        tuned(Programs((ONE, TWO)), store, settings_of=refuse)
    with pytest.raises(UsageError, match="payload: no matmul of static sizes and known types"):
        tuned(Programs(()), store)


def test_candidates_that_all_fail_are_reported(store: Store) -> None:
    backends = fakes.backends(bind=lambda *_: fakes.ALL_FAIL)
    programs = Programs((ONE,))
    found = tuned(programs, store, backends)
    assert programs.asked[0].scripts == ()
    why = "3 of 3 trials failed at verify: element (0, 1): found 2, expected 1"
    assert found.problems[0].reason == f"no candidate worked: {why}"
    lines = program_lines(found, " --db a.db")[:3]
    assert lines[1:] == [
        f"        stays as loops, or by default: no candidate worked: {why}",
        "        tuner explain 1 --db a.db",
    ]
    assert not found.has_worked


class Failing(Programs):
    """Runs with scripts alone, if times are wanted; its timing fails."""

    def run(self, request: ProgramRequest) -> ProgramReport:
        if request.scripts is None or self.report.times is None:
            raise TunerError(KILLED)
        return super().run(request)


def test_a_program_that_fails_to_run_leaves_what_was_tuned(store: Store) -> None:
    for report in (REPORT, replace(REPORT, times=None)):
        found = tuned(Failing((ONE,), report), store)
        assert found.problems[0].trial is not None
        assert (found.report, found.plain) == (report if report.times else None, None)
        assert program_document(found)["failure"] == "program: killed by SIGSEGV"
        assert program_lines(found)[-1] == "failed  program: killed by SIGSEGV"
        assert not found.has_worked
    found = tuned(Programs((ONE,), pair=None), store)
    assert program_lines(found)[-1] == "gain    unknown: program: killed by SIGSEGV"


def test_an_interruption_ends_it_before_the_program_runs(store: Store) -> None:
    programs, interruption = Programs((ONE, TWO)), Interruption()
    events = (interruption, lambda _: interruption.ask())
    found = ProgramTuning(fakes.backends(), programs.steps, store, *events).tune(REQUEST, settings)
    assert found.is_interrupted
    assert len(found.problems) == 1
    assert programs.asked == []
    assert program_document(found)["program"] is None


def test_the_document_reports_all_of_it(store: Store) -> None:
    found = program_document(tuned(Programs((ONE, TWO)), store))
    assert [each["problem"]["shape"] for each in found["problems"]] == [[8, 8, 8], [16, 8, 8]]
    assert found["problems"][0]["run"]["counts"]["proposed"] == 3
    assert found["problems"][0]["used"]["trial"] > 0
    times = [(each["call_s"], each["reliability"]) for each in (found["program"]["times"], found["plain"])]
    assert times == [(2.5e-6, "reliable"), (1e-5, "reliable")]
    assert found["speedup"] == pytest.approx(4.0)
    assert found["speedup_interval"] == pytest.approx([4.0, 4.0])
    assert found["speedup_unknown"] is None


@pytest.mark.mlir
def test_a_program_and_its_loops_are_timed_interleaved_while_the_machine_is_watched() -> None:
    request = ProgramRequest(Path("examples/two_matmuls.mlir").read_text(), TargetName("cpu"))
    pair = time_pair(request)
    timed = (pair.bound, pair.plain, pair.bound_again)
    assert len({len(each.samples_s) for each in timed}) == 1
    assert min(min(each.samples_s) for each in timed) > 0
    assert pair.bound.host is not None
    assert pair.bound.host == pair.plain.host
    assert pair.bound.host.reference_s > 0
