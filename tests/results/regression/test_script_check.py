from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import pytest

from tests.fakes import bind, candidate
from tests.tuning import fakes
from tests.tuning.watched_target import ANCHOR_S, Day, backends
from tuner.analysis.slowdown import LEAST_SESSIONS, Finding, PairedSlowdown, SlowdownLimits, finding_of
from tuner.core.candidate import RecordedRound
from tuner.core.problem import Problem
from tuner.core.reliability import unreliable
from tuner.db.store import Store
from tuner.results.exported_trial import exported
from tuner.results.regression import script_check
from tuner.results.regression.script_check import LEAST_DISTURBED, SESSIONS_LIMIT, CheckFinding, checked
from tuner.space.scripts.header import ScriptProvenance, parse_provenance, without_header
from tuner.targets.backends import Backends
from tuner.targets.target import BaselineChoice, Target


@dataclass(frozen=True)
class RecordedScript:
    """An exported script without its header, and its provenance."""

    text: str
    provenance: ScriptProvenance


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> RecordedScript:
    return tuned_script(tmp_path_factory.mktemp("check"), backends(Day()))


def tuned_script(folder: Path, parts: Backends) -> RecordedScript:
    with Store.open(str(folder / "results.db")) as store:
        tuned = fakes.tune(store, parts, trials=20, sampler="exhaustive")
        assert tuned.best is not None
        text = exported(parts, store, tuned.best, "script", None).decode()
        document = exported(parts, store, tuned.best, "provenance", None).decode()
    return RecordedScript(without_header(text), parse_provenance(document, text, "best.provenance.json"))


def check(
    script: RecordedScript, day: Day, knobs: Mapping[str, Any] | None = None, **header: Any
) -> script_check.ScriptCheck:
    """Checks the script on a day; ``knobs`` are of code that takes another time, ``header`` is edited."""
    provenance = replace(script.provenance, **header)
    text = script.text
    if knobs:
        text = bind(candidate(**knobs)).text
    return checked(backends(day), provenance, text, SlowdownLimits.up_to())


@pytest.mark.parametrize("machine", [0.7, 1.0, 1.3])
def test_slower_code_is_found_and_no_other_however_fast_the_machine_is(
    script: RecordedScript, machine: float
) -> None:
    assert script.provenance.round == RecordedRound(
        kernel_s=fakes.BEST_S, noise=0.0, library_s=2 * fakes.BEST_S, panel_product_s=ANCHOR_S
    )
    found = check(script, Day(kernel=machine, library=machine, anchor=machine))
    assert (found.finding, found.sessions) == (CheckFinding.NOT_SLOWER, LEAST_SESSIONS)
    assert found.median_s == pytest.approx(machine * fakes.BEST_S)
    assert found.slowdown is not None
    assert found.slowdown.median == pytest.approx(0.0)
    found = check(script, Day(kernel=1.05 * machine, library=machine, anchor=machine))
    assert (found.finding, found.sessions) == (CheckFinding.SLOWER, SESSIONS_LIMIT)
    assert found.slowdown is not None
    assert found.slowdown.interval[0] == pytest.approx(0.05)
    assert not found.finding.passes


def test_on_a_busy_machine_nothing_is_said_of_the_time(script: RecordedScript) -> None:
    for kernel in (1.0, 2.0):
        found = check(script, Day(kernel=kernel, library=kernel, waited=0.5))
        assert (found.finding, found.slowdown) == (CheckFinding.CANNOT_TELL, None)
        assert f"{LEAST_DISTURBED} of {LEAST_DISTURBED} sessions were disturbed" in found.reason
        assert "load, other programs kept 0.5 processors busy" in found.reason
        assert not found.finding.passes


@pytest.mark.slow
def test_short_loads_and_noise_end_in_an_answer_or_at_a_limit(script: RecordedScript) -> None:
    found = check(script, Day(waited=0.5, disturbed_every=3))
    assert (found.finding, found.sessions) == (CheckFinding.NOT_SLOWER, LEAST_SESSIONS)
    found = check(script, Day(kernel=1.05, waited=0.5, disturbed_every=3))
    assert (found.finding, found.sessions) == (CheckFinding.SLOWER, SESSIONS_LIMIT)
    found = check(script, Day(kernel=1.03, spread=0.04))
    assert (found.finding, found.sessions) == (CheckFinding.CANNOT_TELL, SESSIONS_LIMIT)
    assert found.reason == f"the interval is too wide after {SESSIONS_LIMIT} sessions"
    assert found.slowdown is not None


def test_some_quiet_sessions_of_a_busy_machine_do_not_show_a_slowdown(script: RecordedScript) -> None:
    found = check(script, Day(kernel=1.2, waited=0.5, disturbed_every=2))
    assert found.finding is CheckFinding.CANNOT_TELL
    assert LEAST_SESSIONS <= found.sessions < SESSIONS_LIMIT
    assert f"{LEAST_DISTURBED} of {LEAST_DISTURBED + found.sessions} sessions were disturbed" in found.reason


@pytest.mark.slow
def test_references_that_disagree_or_are_of_another_library_show_no_slowdown(script: RecordedScript) -> None:
    """Slower memory, faster memory, another clock at which the library gains nothing."""
    for day in (Day(kernel=1.2, library=1.2), Day(library=0.8), Day(kernel=1.2, anchor=1.2)):
        found = check(script, day)
        assert found.finding is CheckFinding.CANNOT_TELL
        assert found.reason.startswith("the baseline library and the reference kernel disagree")
    found = check(script, Day(kernel=1.2, library_name="FakeBLAS 2.0"))
    assert found.finding is CheckFinding.CANNOT_TELL
    assert found.reason.startswith("it is slower relative to the reference kernel alone")
    assert check(script, Day(library_name="FakeBLAS 2.0")).finding is CheckFinding.NOT_SLOWER


@final
class OnlyMkl(BaselineChoice):
    def __init__(self, by_mkl: Target) -> None:
        self._by_mkl = by_mkl

    def require(self, choice: str, problem: Problem) -> None:
        assert choice == "mkl"

    def target(self, choice: str) -> Target:
        assert choice == "mkl"
        return self._by_mkl

    def recorded(self, name: str, problem: Problem) -> str:
        return "mkl" if name == "FakeMKL 2.0" else ""


def test_a_script_is_timed_with_the_library_that_it_was_compared_with(script: RecordedScript) -> None:
    usual, chosen = backends(Day()), backends(Day(library_name="FakeMKL 2.0"))

    choice = OnlyMkl(chosen.targets["fake"])
    parts = fakes.changed(usual, targets={"fake": fakes.changed(usual.targets["fake"], baselines=choice)})
    provenance = script.provenance
    assert provenance.baseline is not None
    by_mkl = replace(provenance, baseline=replace(provenance.baseline, name="FakeMKL 2.0"))
    reason = "relative to the baseline library and the reference kernel"
    for header in (provenance, by_mkl):
        found = checked(parts, header, script.text, SlowdownLimits.up_to())
        assert (found.finding, found.reason) == (CheckFinding.NOT_SLOWER, reason)


def test_nothing_is_ruled_out_without_recorded_references_or_by_a_time_that_is_no_basis(
    script: RecordedScript,
) -> None:
    found = check(script, Day(kernel=1.2, library=1.2, anchor=1.2), round=None)
    assert found.finding is CheckFinding.CANNOT_TELL
    assert found.reason.startswith("it is slower relative to the recorded time alone")
    assert "tuner tune --resume 1 --retime" in found.hint
    as_fast = check(script, Day(), round=None)
    assert (as_fast.finding, as_fast.hint) == (CheckFinding.NOT_SLOWER, "")
    elsewhere = check(script, Day(), machine="yours")
    assert (elsewhere.reason, elsewhere.hint) == ("it was recorded on another machine, yours", "")
    loaded = check(script, Day(), reliability=unreliable("load"))
    assert loaded.reason == "the recorded time is unreliable: load"
    assert loaded.hint  # to record it again
    for found in (elsewhere, loaded):
        assert (found.finding, found.slowdown) == (CheckFinding.CANNOT_TELL, None)
        assert found.median_s == fakes.BEST_S


@pytest.mark.slow
def test_noise_of_the_recorded_round_and_what_a_larger_limit_allows_are_no_slowdown(
    script: RecordedScript,
) -> None:
    provenance, text = script.provenance, script.text
    assert provenance.round is not None
    noisy = replace(provenance.round, noise=0.06)
    assert check(script, Day(kernel=1.05), round=noisy).finding is CheckFinding.CANNOT_TELL
    for kernel, finding in ((1.05, CheckFinding.NOT_SLOWER), (1.12, CheckFinding.SLOWER)):
        found = checked(backends(Day(kernel=kernel)), provenance, text, SlowdownLimits.up_to(0.1))
        assert found.finding is finding


def test_code_that_is_wrong_or_breaks_has_failed(script: RecordedScript) -> None:
    for deed, at, reason in (
        ("wrong", "verify", "fails at stage verify: element (0, 1)"),
        ("fail", "together", "it ran alone, and failed when it was timed interleaved"),
    ):
        found = check(script, Day(), {"x": 7, "deed": deed, "at": at})
        assert found.finding is CheckFinding.FAILED
        assert reason in found.reason


def test_a_limit_is_three_points_above_what_is_never_called_slower() -> None:
    for max_slowdown, limits in (
        *((0.05, (0.02, 0.035)), (0.1, (0.07, 0.085)), (0.03, (0.02, 0.025))),
        *((0.01, (0.02, 0.01)), (9.0, (8.97, 8.985))),
    ):
        found = SlowdownLimits.up_to(max_slowdown)
        assert (found.tolerated, found.excluded) == pytest.approx(limits)


def test_what_lies_between_the_usual_limit_and_the_one_of_the_user_is_not_slower() -> None:
    small = PairedSlowdown(0.07, (0.06, 0.08), 0.01)
    assert finding_of(small, LEAST_SESSIONS, SlowdownLimits.up_to(0.1)) is Finding.NOT_SLOWER
    assert finding_of(small, LEAST_SESSIONS, SlowdownLimits.up_to(0.05)) is Finding.SLOWER


def test_a_library_that_was_timed_alone_is_no_reference(tmp_path: Path) -> None:
    recorded = tuned_script(tmp_path, fakes.backends(runner=fakes.runner_without_baseline))
    provenance = recorded.provenance
    assert provenance.baseline is not None
    assert provenance.round is not None
    assert provenance.round.library_s is None
