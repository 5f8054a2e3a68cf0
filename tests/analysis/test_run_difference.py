import dataclasses
from collections.abc import Callable

import pytest

from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.core.records import Verdict
from tuner.core.runs import StoredTrial
from tuner.results.differences import differences

FIRST = (trial(0, measurement(1.0)), trial(1, Failure(Stage.RUN, "no")), trial(2, measurement(2.0)))


def changed(**changes: object) -> StoredTrial:
    """Returns trial 0 with another record."""
    record = FIRST[0].record
    return dataclasses.replace(FIRST[0], record=dataclasses.replace(record, **changes))  # type: ignore[arg-type]


def test_ids_and_clocks_do_not_count() -> None:
    later = tuple(dataclasses.replace(one, id=one.id + 50, run=9) for one in FIRST)
    assert differences(FIRST, later) == ()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: dataclasses.replace(FIRST[0], row=9), "row"),
        (lambda: dataclasses.replace(FIRST[0], final=measurement(2.0)), "final"),
        (lambda: changed(outcome=measurement(1.5)), "outcome"),
        (lambda: changed(verdict=Verdict(0.5, 64)), "verdict"),
        (lambda: changed(artifact_sha256="other"), "code"),
        (lambda: changed(script_sha256="other"), "script"),
        (lambda: changed(reused_from=101), "reused from"),
    ],
)
def test_everything_else_counts_once_per_trial(other: Callable[[], StoredTrial], what: str) -> None:
    (found,) = differences(FIRST, (other(), *FIRST[1:]))
    assert (found.number, found.what) == (0, what)
    assert found.text.startswith(f"trial 0: {what}: ")


def test_a_trial_that_one_run_lacks_is_a_difference() -> None:
    assert [each.number for each in differences(FIRST, FIRST[:2])] == [2]
    assert [each.number for each in differences(FIRST[:1], FIRST)] == [1, 2]


def test_origins_are_compared_by_number() -> None:
    ours = (FIRST[0], dataclasses.replace(changed(reused_from=100), id=101, number=1))
    theirs = tuple(dataclasses.replace(one, id=one.id + 50) for one in ours)
    record = theirs[1].record
    moved = dataclasses.replace(theirs[1], record=dataclasses.replace(record, reused_from=150))
    assert differences(ours, (theirs[0], moved)) == ()
    assert "trial 100 of another run" in differences(ours, theirs)[0].second
