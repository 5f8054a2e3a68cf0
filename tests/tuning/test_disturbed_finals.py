"""A disturbed final re-measurement names no trial that undisturbed times show to be slower."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from tests.fakes import FakeTarget, Loaded
from tests.forwarding import ForwardingTarget
from tests.trials import measurement, trial
from tests.tuning import fakes
from tests.tuning.fakes import present
from tuner.analysis.selected_result import select_result
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.records import HostConditions, Measurement
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.round_quality import NOISE_LIMIT, RoundQuality
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.output.progress import event_line
from tuner.runtime.workers.runner import TrialRunner
from tuner.targets.backends import Backends
from tuner.tuning.events import Event, Interruption, RoundDisturbed
from tuner.tuning.remeasurement import KEPT, is_disturbed, is_kept, quality_that_counts
from tuner.tuning.request import RunLimit
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

QUIET = HostConditions(0.1, 0.0, 0.0, 0.0, 0.0, 1e-3, 0.0)
LOAD = replace(QUIET, others_cores=2.0, waited_share=0.4)
SPARE_CORES = 1
BUDGET_S = 600.0  # of which nothing is spent: the trials are few

# What a round of the final re-measurement does to times: (x, true seconds) -> seconds


def truly(_x: int, call_s: float) -> float:
    return call_s


def upside_down(_x: int, call_s: float) -> float:
    """The machine became busy: everything takes longer, and the fastest longest."""
    return 0.1 / (1 + 1e3 * call_s)


def favours_another(x: int, call_s: float) -> float:
    """Nothing takes longer but the fastest: another looks as fast as the search's best was."""
    return 3e-3 if x == 7 else 1e-3


@dataclass(frozen=True)
class Round:
    times: Callable[[int, float], float] = truly
    host: HostConditions = QUIET


BUSY = Round(upside_down, LOAD)


class ReplayedTarget(ForwardingTarget):
    """Replays the readings of a search and of rounds; the last round's are those of all later rounds."""

    def __init__(self, search: HostConditions, rounds: tuple[Round, ...]) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self._search = search
        self._rounds = list(rounds)

    def measure(self, problem: Problem, loaded: object, effort: Effort, rng: Generator) -> Measurement:
        return replace(self._evaluator.measure(problem, loaded, effort, rng), host=self._search)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: Generator
    ) -> tuple[Measurement, ...]:
        played = self._rounds.pop(0) if len(self._rounds) > 1 else self._rounds[0]
        times = []
        for kernel in loaded:
            assert isinstance(kernel, Loaded)
            x = int(dict(kernel.knobs)["x"])
            times.append(replace(measurement(played.times(x, kernel.call_s)), host=played.host))
        return tuple(times)


def parts(*rounds: Round, search: HostConditions = QUIET) -> Backends:
    target = ReplayedTarget(search, rounds)
    return fakes.backends(runner=lambda order, how: TrialRunner.local(order, target, target, how.seed))


def tuned(
    store: Store, backends: Backends, budget_s: float | None = None, trials: int = 20
) -> tuple[TunedRun, list[str]]:
    """Returns a run, and what it says of its final re-measurement."""
    events: list[Event] = []
    settings = fakes.settings(trials, sampler="exhaustive", budget_s=budget_s)
    run = begin(settings, backends, store, Interruption(), events.append)
    return run, [event_line(event, settings) for event in events if isinstance(event, RoundDisturbed)]


def best_x(run: TunedRun) -> object:
    return present(run.selected).best.knobs["x"]


@pytest.mark.parametrize("times", [upside_down, favours_another])
def test_a_disturbed_final_keeps_the_order_and_the_times_of_an_undisturbed_search(
    store: Store, times: Callable[[int, float], float]
) -> None:
    run, said = tuned(store, parts(Round(times, LOAD)))
    assert (best_x(run), present(run.selected).measurement.median_s) == (7, fakes.BEST_S)
    assert said == ["final re-measurement: disturbed, the order of earlier times is kept"]
    assert run.run.reliability.unreliable.startswith(f"{KEPT}: ")
    assert "other programs kept 2.0 processors busy" in run.run.reliability.unreliable
    assert [(stored.quality.is_lost, stored.is_answering) for stored in run.rounds] == [(True, False)]
    assert run.run.baseline is not None


def test_a_disturbed_final_keeps_the_name_of_the_baseline_that_only_it_has_timed(store: Store) -> None:
    run, _ = tuned(store, parts(BUSY), budget_s=10.0)
    assert (best_x(run), present(run.run.baseline).name) == (7, "FakeBLAS 1.0")
    assert not present(run.run.baseline).is_interleaved


def test_a_disturbed_final_that_agrees_with_the_search_counts(store: Store) -> None:
    run, said = tuned(store, parts(Round(truly, LOAD)))
    assert (best_x(run), said) == (7, [])
    assert [(stored.quality.is_lost, stored.is_answering) for stored in run.rounds] == [(False, True)]
    assert run.run.reliability.unreliable.startswith("the timed threads did not run all the time")


def test_on_a_machine_that_is_always_busy_the_interleaved_times_count(store: Store) -> None:
    run, said = tuned(store, parts(BUSY, search=LOAD))
    assert (best_x(run) != 7, said) == (True, [])
    assert [stored.is_answering for stored in run.rounds] == [True]


def test_a_disturbed_final_is_repeated_while_the_budget_has_time_and_the_quiet_one_counts(
    store: Store,
) -> None:
    run, said = tuned(store, parts(BUSY, BUSY, Round()), BUDGET_S)
    assert said == ["final re-measurement: disturbed, timing once more"] * 2
    assert [stored.is_answering for stored in run.rounds] == [False, False, True]
    assert (best_x(run), run.run.reliability) == (7, RELIABLE)


def test_it_is_repeated_twice_at_most_and_then_says_what_is_kept(store: Store) -> None:
    run, said = tuned(store, parts(BUSY), BUDGET_S)
    assert len(run.rounds) == 3
    assert said[2:] == ["final re-measurement: disturbed, the order of earlier times is kept"]
    assert (best_x(run), present(run.selected).measurement.median_s) == (7, fakes.BEST_S)


def test_a_round_that_was_asked_for_is_not_repeated(store: Store) -> None:
    tuned(store, parts(BUSY, search=LOAD), BUDGET_S)
    before = len(store.rounds(1))
    resume(1, parts(BUSY, search=LOAD), store, Interruption(), retime=True)
    assert len(store.rounds(1)) == before + 1


def test_a_disturbed_final_of_a_longer_search_takes_nothing_from_the_reliable_round_before(
    store: Store,
) -> None:
    before, _ = tuned(store, parts(Round(), search=LOAD), trials=16)
    longer = resume(1, parts(BUSY, search=LOAD), store, Interruption(), limit=RunLimit(trials=20))
    assert (best_x(before), best_x(longer)) == (7, 7)
    assert [stored.is_answering for stored in longer.rounds] == [True, False]
    assert longer.run.reliability == RELIABLE


TRUE_S = st.sampled_from((1.0, 1.02, 1.1, 1.5, 2.0))
FACTOR = st.sampled_from((0.9, 1.0, 1.04, 1.2, 3.0))
TIMED = st.tuples(TRUE_S, FACTOR, st.booleans(), FACTOR)  # search: disturbed by that factor?, final: factor
UNRELIABLE = RoundQuality(0.3, 0.3, unreliable("load"))


def drawn_trial(number: int, drawn: tuple[float, float, bool, float]) -> tuple[StoredTrial, Measurement]:
    true_s, search_factor, is_disturbed_then, final_factor = drawn
    host = LOAD if is_disturbed_then else QUIET
    first_s = true_s * search_factor if is_disturbed_then else true_s
    first = replace(measurement(first_s, 0.01), host=host)
    return trial(number, first), measurement(true_s * final_factor, 0.01)


def counted(quality: RoundQuality, times: tuple[tuple[StoredTrial, Measurement], ...]) -> RoundQuality:
    trials = tuple(timed for timed, _ in times)
    least_s = QUIET.reference_s
    return quality_that_counts(quality, times, trials, quietest_reference_s=least_s, spare_cores=SPARE_CORES)


@given(drawn=st.lists(TIMED, min_size=1, max_size=8))
def test_no_disturbed_final_names_a_best_that_undisturbed_times_show_to_be_slower(
    drawn: list[tuple[float, float, bool, float]],
) -> None:
    times = tuple(drawn_trial(number, one) for number, one in enumerate(drawn))
    trials = tuple(timed for timed, _ in times)
    quality = counted(UNRELIABLE, times)
    assert is_disturbed(quality)
    assert is_kept(quality) == quality.is_lost
    finals = tuple(replace(timed, final=final) for timed, final in times)
    counting, noise = (trials, None) if quality.is_lost else (finals, quality.noise)
    chosen = present(select_result(counting, noise))
    undisturbed_s = {
        timed.number: true_s
        for timed, (true_s, _, is_disturbed_then, _) in zip(trials, drawn, strict=True)
        if not is_disturbed_then
    }
    least_s = min(undisturbed_s.values(), default=1e9)
    assert undisturbed_s.get(chosen.best.number, 0.0) <= least_s * (1 + NOISE_LIMIT)
    assert chosen.measurement.median_s <= least_s * (1 + NOISE_LIMIT)


@given(drawn=st.lists(TIMED, min_size=1, max_size=8))
def test_a_reliable_final_counts_whatever_the_search_showed(
    drawn: list[tuple[float, float, bool, float]],
) -> None:
    times = tuple(drawn_trial(number, one) for number, one in enumerate(drawn))
    quality = RoundQuality(0.01, 0.01, RELIABLE)
    assert counted(quality, times) is quality
