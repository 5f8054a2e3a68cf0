from dataclasses import replace

from tests.trials import measurement, run, trial
from tuner.core.runs import SEED, WARM_START, FirstPoint, StoredTrial, record_of
from tuner.output.report.phases import Phase, phases_of

TRIALS = tuple(trial(n, measurement(1e-3)) for n in range(6))


def first(of: StoredTrial, origin: str) -> FirstPoint:
    return FirstPoint(record_of(of).candidate, origin)


def test_first_points_are_named_by_their_origins_and_then_comes_the_sampler() -> None:
    points = (first(TRIALS[0], WARM_START), first(TRIALS[1], SEED), first(TRIALS[2], WARM_START))
    begun = replace(run(), settings=replace(run().settings, first=points))
    assert phases_of(begun, TRIALS) == (
        Phase("warm start, seed", 0, 2),
        Phase("random", 3, 5),
    )


def test_a_run_without_first_points_is_one_phase() -> None:
    assert phases_of(run(), TRIALS[::-1]) == (Phase("random", 0, 5),)
    assert phases_of(run(), ()) == ()


def test_a_proposal_without_an_outcome_counts_for_the_sampler() -> None:
    points = (first(TRIALS[0], SEED),)
    begun = replace(run(), settings=replace(run().settings, first=points))
    assert phases_of(begun, (trial(0, None),)) == (Phase("random", 0, 0),)
