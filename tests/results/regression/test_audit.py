"""An audit compares changed code with its recorded time although the machine is another on another day."""

from pathlib import Path

import pytest

from tests.fakes import bind
from tests.tuning import fakes
from tests.tuning.watched_target import Day, backends
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.results.regression.audit import Audited, AuditStatus, audit


def another_code(candidate: Candidate) -> Script:
    """Binds a script of other code, as fast as before."""
    return bind(Candidate.of(candidate.strategy, dict(candidate.choices) | {"another": 1}))


def audited(folder: Path, then: Day, now: Day) -> tuple[Audited, str]:
    """Tunes on one day, audits other code on another; returns the audit, and why the time is stale."""
    with Store.open(str(folder / "results.db")) as store:
        fakes.tune(store, backends(then), trials=20, sampler="exhaustive")
        today = backends(now, bind=lambda *_: another_code, compiler=lambda _target: fakes.OTHER_COMPILER)
        found = next(iter(audit(today, store, TrialQuery(), SlowdownLimits.up_to())))
        return found, store.trial(found.trial.id).stale


@pytest.mark.parametrize("machine", [0.7, 1.0, 1.3])
def test_a_slowdown_of_5_percent_is_found_across_sessions_however_fast_the_machine_is(
    tmp_path: Path, machine: float
) -> None:
    slower = Day(kernel=1.05 * machine, library=machine, anchor=machine)
    found, stale = audited(tmp_path, Day(), slower)
    assert (found.status, found.status.holds) == (AuditStatus.SLOWER, False)
    assert found.now_s == pytest.approx(1.05 * machine * fakes.BEST_S)
    relative = "slower relative to the baseline library and the reference kernel, +5.0% time"
    assert found.reason.startswith(f"other code, recorded 1 ms, {relative}")
    assert stale.startswith("slower in an audit: other code")


@pytest.mark.parametrize("machine", [0.7, 1.3])
def test_a_machine_that_is_slower_today_makes_no_code_slower(tmp_path: Path, machine: float) -> None:
    found, stale = audited(tmp_path, Day(), Day(kernel=machine, library=machine, anchor=machine))
    assert (found.status, found.status.holds) == (AuditStatus.TIMED_AGAIN, True)
    assert "not slower relative to the baseline library and the reference kernel" in found.reason
    assert stale.startswith("timed again in an audit")


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (Day(kernel=1.2, library=1.2, waited=0.5), "6 of 6 sessions were disturbed: the timed threads"),
        (Day(kernel=1.2, library=1.2), "the baseline library and the reference kernel disagree"),
        (Day(kernel=1.2, library_name="FakeBLAS 2.0"), "it is slower relative to the reference kernel alone"),
    ],
    ids=["busy", "other memory", "other library"],
)
def test_what_the_references_do_not_tell_is_flagged_and_the_time_stays(
    tmp_path: Path, now: Day, reason: str
) -> None:
    found, stale = audited(tmp_path, Day(), now)
    assert (found.status, found.status.holds, stale) == (AuditStatus.NOT_EVALUATED, False, "")
    assert f"cannot tell: {reason}" in found.reason


def test_a_time_that_was_unreliable_gives_way_to_today_s(tmp_path: Path) -> None:
    found, stale = audited(tmp_path, Day(waited=0.5), Day())
    assert (found.status, found.status.holds) == (AuditStatus.TIMED_AGAIN, True)
    assert "cannot tell: the recorded time is unreliable" in found.reason
    assert stale
