"""Tuning the fusions of a program, with fakes for compiler, clock and the program's runs."""

import math
from dataclasses import dataclass, field, replace

import pytest

from tests.models.test_tuning import QUIET, REPORT, call
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import NamedProblem, Problem
from tuner.core.programs import FIRST, TUNED, CompiledFusion, ExplainedFusion, fusion_numbers
from tuner.core.records import HostConditions
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.requests import CampaignMember, RunRequest
from tuner.db.store import Store
from tuner.models.commands.tune_program import program_lines
from tuner.models.documents import program_document
from tuner.models.fusion_tuning import Comparing, FusionSteps, FusionTuning, ProgramBudget, heaviest_first
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run_work import RunAndTimes
from tuner.models.speedup import TimedFusions, TimedPair
from tuner.models.tunable_fusions import TunableFusions
from tuner.models.tuning import TunedProgram
from tuner.tuning.events import Interruption, ignore_campaign

LIGHT, HEAVY = Matmul(8, 8, 8), Matmul(64, 64, 8)
NAMED = (NamedProblem(LIGHT, "g0, g2", 2), NamedProblem(HEAVY, "g1", 1))
REQUEST = ProgramRequest("module {}", TargetName("fake"), scripts=(), is_compared=True)
SUMMARY = CompiledFusion(
    "contraction", ("linalg.matmul",), "packed", (("panel", 32),), FIRST, "", "f32", 8, 64
)
BUSY = replace(QUIET, waited_share=0.5)
UNTUNED_S = (1e-6, 5e-6, 1e-6)


@dataclass
class Clock:
    """A clock that a step moves on."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Programs:
    """Stands for the processes that run a program of three fusions; keeps what was asked.

    A call takes as long as its fusions, in process n ``placement[n]`` times that: but for ``whole``, by which
    a call of tuned schedules differs from the sum.
    """

    tuned_s: tuple[float, ...]  # of each fusion
    whole: float = 1.0
    placement: tuple[float, ...] = (1.0,)
    host: HostConditions = QUIET
    seconds: float = 2.0  # of a process
    clock: Clock = field(default_factory=Clock)
    asked: list[ProgramRequest] = field(default_factory=list)

    def untuned(self, request: ProgramRequest) -> ProgramReport:
        self.clock.now_s += self.seconds
        assert (request.database, request.is_explained, request.is_compared) == ("", True, False)
        fusions = tuple(ExplainedFusion(SUMMARY, time_s, reliability=RELIABLE) for time_s in UNTUNED_S)
        return replace(REPORT, fusions=fusions)

    def run(self, request: ProgramRequest) -> RunAndTimes:
        self.clock.now_s += self.seconds
        self.asked.append(request)
        kept = {
            number for each in NAMED if each.problem in request.kept for number in fusion_numbers(each.name)
        }
        changed = frozenset(range(3)) - kept
        times = [self.tuned_s[n] if n in changed else UNTUNED_S[n] for n in range(3)]
        fusions = tuple(
            ExplainedFusion(
                replace(SUMMARY, origin=TUNED if n in changed else FIRST),
                times[n],
                before_s=UNTUNED_S[n],
                reliability=RELIABLE,
            )
            for n in range(3)
        )
        scale = self.placement[(len(self.asked) - 1) % len(self.placement)]
        whole_s = sum(times) * scale * (self.whole if changed else 1.0)
        pair = TimedPair(*(call(time_s, self.host) for time_s in (whole_s, sum(UNTUNED_S) * scale, whole_s)))
        return RunAndTimes(REPORT, TimedFusions(pair, fusions, changed))


def tuned(
    store: Store, programs: Programs, *, trials: int | None = 4, budget_s: float | None = None
) -> TunedProgram:
    """Returns a program of fusions that take what ``programs`` says, after a campaign without a compiler."""

    def request_of(problem: Problem, threads: int) -> RunRequest:
        return RunRequest(problem, "fake", threads=threads, trials=trials, budget_s=budget_s)

    steps = FusionSteps(lambda _request, _cache: TunableFusions(NAMED), programs.untuned, programs.run)
    tuning = FusionTuning(
        fakes.backends(), steps, store, "results.db", Interruption(), ignore_campaign, programs.clock
    )
    return tuning.tune(REQUEST, tuning.find(REQUEST, "program"), request_of, "program")


def gain_of(program: TunedProgram) -> str:
    """Returns the line that says whether tuning was worth it."""
    (line,) = (line for line in program_lines(program) if line.startswith("gain"))
    return line


def test_a_faster_program_is_kept_with_the_interval_of_three_processes(store: Store) -> None:
    programs = Programs((0.5e-6, 2e-6, 0.5e-6), placement=(1.0, 1.1, 1.2))
    found = tuned(store, programs)
    assert gain_of(found) == "gain    2.33 times as fast (95 % interval 2.33 .. 2.33): worth it"
    assert [request.is_compared for request in programs.asked] == [True, False, False]
    assert all(request.kept == () for request in programs.asked)
    assert found.report is not None
    assert found.report.times is not None
    times = found.report.times
    assert times.call_s == pytest.approx(3.3e-6)
    assert times.processes == 3
    assert times.interval_s == pytest.approx((3.0e-6, 3.6e-6))
    assert "time    3.3 us a call (3 us .. 3.6 us in 3 processes), host to host; reliable" in program_lines(
        found
    )
    assert program_document(found)["program"]["times"]["processes"] == 3
    result = store.campaign(1).result
    assert result is not None
    assert [result.uses(named.name) for named in NAMED] == [True, True]


def test_a_fusion_that_is_slower_with_its_tuned_schedule_gets_the_initial_one_back(store: Store) -> None:
    programs = Programs((0.5e-6, 9e-6, 0.5e-6))  # as a whole: 10 in place of 7 us
    found = tuned(store, programs)
    assert [len(request.kept) for request in programs.asked] == [0, 1, 1, 1]
    assert programs.asked[-1].kept == (HEAVY,)
    assert found.speedup == pytest.approx(7 / 6)
    result = store.campaign(1).result
    assert result is not None
    assert [result.uses(named.name) for named in NAMED] == [True, False]


@pytest.mark.parametrize(("host", "gain"), [(QUIET, "none: "), (BUSY, "unknown: ")], ids=["quiet", "busy"])
@pytest.mark.parametrize(
    "programs",
    [
        Programs((1e-6, 5.9e-6, 1e-6)),  # .87 of the speed, as was once kept
        Programs((0.5e-6, 2e-6, 0.5e-6), whole=3.0),  # each fusion is faster, the whole is not
        Programs((1e-6, 5e-6, 1e-6)),  # equal
    ],
    ids=["slower", "slower as a whole", "equal"],
)
def test_a_tuned_program_is_never_slower_than_the_untuned_one(
    store: Store, programs: Programs, host: HostConditions, gain: str
) -> None:
    programs = replace(programs, host=host, asked=[])
    found = tuned(store, programs)
    assert gain_of(found).startswith(f"gain    {gain}")
    assert gain_of(found).endswith("; it keeps its initial configurations")
    assert set(programs.asked[-1].kept) == {LIGHT, HEAVY}
    assert programs.asked[-1].is_compared
    assert found.report is not None
    assert found.plain is not None
    assert found.report.times == found.plain.times
    assert found.has_worked
    assert found.speedup is None
    result = store.campaign(1).result
    assert result is not None
    assert [result.uses(named.name) for named in NAMED] == [False, False]


def test_on_a_busy_machine_what_is_faster_in_each_process_is_kept_without_a_ratio(store: Store) -> None:
    found = tuned(store, Programs((0.5e-6, 2e-6, 0.5e-6), host=BUSY))
    assert gain_of(found).startswith("gain    unknown: ")
    result = store.campaign(1).result
    assert result is not None
    assert result.uses("g1")


class FasterInOneProcess(Programs):
    """In the first process the tuned program is faster, in the next one slower."""

    def run(self, request: ProgramRequest) -> RunAndTimes:
        ran = super().run(request)
        assert ran.times is not None
        pair = TimedPair(call(5e-6), call(7e-6), call(5e-6))
        if len(self.asked) > 1:
            pair = TimedPair(call(7.5e-6), call(7e-6), call(7.5e-6))
        return replace(ran, times=replace(ran.times, pair=pair))


def test_what_is_faster_in_one_process_of_three_is_not_kept(store: Store) -> None:
    found = tuned(store, FasterInOneProcess((0.5e-6, 4e-6, 0.5e-6)))
    assert "over 3 processes is 0.714 .. 1.071; it keeps its initial configurations" in gain_of(found)


def test_a_program_that_fails_leaves_its_trials_and_says_why(store: Store) -> None:
    class Failing(Programs):
        def run(self, request: ProgramRequest) -> RunAndTimes:
            raise TunerError("program: killed by SIGSEGV")

        def untuned(self, request: ProgramRequest) -> ProgramReport:
            raise TunerError("program: killed by SIGSEGV")

    found = tuned(store, Failing((1e-6,) * 3))
    assert program_lines(found)[-1] == "failed  program: killed by SIGSEGV"
    assert found.campaign is not None
    assert found.campaign.trials == 4
    assert not found.has_worked


def test_the_heaviest_fusion_is_first_by_its_measured_or_estimated_time() -> None:
    members = tuple(
        CampaignMember(fakes.settings(problem=named.problem), named.name, named.count) for named in NAMED
    )

    def names(fusions: tuple[ExplainedFusion, ...]) -> list[str]:
        return [member.name for member in heaviest_first(members, fusions)]

    measured = tuple(ExplainedFusion(SUMMARY, time_s, reliability=RELIABLE) for time_s in UNTUNED_S)
    assert names(measured) == ["g1", "g0, g2"]
    assert names((measured[0], measured[0], measured[0])) == ["g0, g2", "g1"]  # it occurs twice
    heavy = ExplainedFusion(replace(SUMMARY, flop=10**9))
    assert names((ExplainedFusion(SUMMARY), heavy, measured[0])) == ["g1", "g0, g2"]
    noisy = replace(measured[1], reliability=unreliable("load"))
    assert names((measured[0], noisy, measured[0])) == ["g0, g2", "g1"]
    assert names(()) == ["g0, g2", "g1"]


def test_trials_of_a_program_begin_with_its_heaviest_fusion(store: Store) -> None:
    tuned(store, Programs((0.5e-6, 2e-6, 0.5e-6)))
    assert [run.settings.problem for run in store.campaign(1).runs] == [HEAVY, LIGHT]


@pytest.mark.parametrize(
    ("spent_s", "last_s", "campaign_s"),
    [
        (10.0, 5.0, 45.0),  # what is left
        (20.0, 10.0, 36.0),  # most of the budget: all ends after 66 s
        (30.0, 20.0, 19.0),  # what ends in time
        (60.0, 20.0, 0.0),  # nothing is left
    ],
)
def test_most_of_a_budget_is_for_the_campaign_and_it_is_kept_within_a_fifth(
    spent_s: float, last_s: float, campaign_s: float
) -> None:
    budget = ProgramBudget(60.0, 100.0)
    assert budget.campaign_s(100.0 + spent_s, last_s) == pytest.approx(campaign_s)
    assert spent_s + campaign_s + last_s <= 1.2 * 60 or campaign_s == 0
    assert budget.left_s(100.0 + spent_s) == pytest.approx(69 - spent_s)


def test_without_a_budget_nothing_is_limited() -> None:
    assert ProgramBudget(None, 0.0).campaign_s(1e9, 1e9) is None
    assert ProgramBudget(None, 0.0).left_s(1e9) == math.inf


def test_a_budget_too_short_for_a_trial_times_the_untuned_program_and_says_so(store: Store) -> None:
    programs = Programs((0.5e-6, 2e-6, 0.5e-6), seconds=9.0)
    found = tuned(store, programs, trials=None, budget_s=10.0)
    assert programs.asked == []
    lines = program_lines(found)
    assert lines[-2].startswith(
        "not run no fusion was tried: finding its fusions and timing it took 9 of 10 s"
    )
    assert lines[-1].startswith("plain   2 us a call")
    assert len(found.fusions) == 3
    assert found.has_worked
    assert store.campaigns() == ()


def test_a_process_that_would_end_after_the_budget_is_not_begun() -> None:
    for ends_s, processes in ((math.inf, 3), (5.0, 2), (3.0, 1), (0.0, 1)):
        programs = Programs((0.5e-6, 2e-6, 0.5e-6))
        compared = Comparing(programs.run, NAMED, programs.clock).compare(REQUEST, ends_s)
        assert compared.timed is not None
        assert len(compared.timed.pairs) == len(programs.asked) == processes


def test_fusions_that_had_no_trial_are_named(store: Store) -> None:
    found = tuned(store, Programs((0.5e-6, 2e-6, 0.5e-6)), trials=1)
    line = "untried   1 of 2 fusions had no trial, and keep their initial configurations: g0, g2"
    assert line in program_lines(found)
    assert [bool(problem.reason) for problem in found.problems] == [False, True]
