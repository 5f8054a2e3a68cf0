import itertools
from collections.abc import Iterable
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.analysis.constraint_mining import Observation, log_chance_all_wanted, mine
from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage
from tuner.space.expressions import parse

KNOBS: dict[str, tuple[Value, ...]] = {
    "tile_m": (4, 8, 16, 32),
    "tile_n": (8, 16, 32, 64),
    "unroll": (1, 2, 4),
    "order": ("mn", "nm"),
    "split": ("none", "m", "n"),
}
SHAPES = ((64, 64, 64), (10, 30, 7), (512, 16, 16), (24, 48, 9))
RULES = (
    *("tile_m * tile_n <= 256", "tile_m < 32", "split != 'n'", "tile_m <= tile_n", "tile_m <= m"),
    *("n % tile_n == 0", "n % (tile_m * unroll) == 0", "tile_m * unroll <= tile_n"),
    *("tile_m * tile_n * unroll < 900", "split != 'm' or unroll > 1", "order == 'mn' or tile_n >= 32"),
    "order == 'mn' or split != 'm' or tile_m < 16",
)
CRASHED, SPILLS = Failure(Stage.RUN, "crashed"), "spills 5 registers"


def drawn(seed: int, count: int, shapes: tuple[tuple[int, int, int], ...] = SHAPES) -> list[dict[str, Value]]:
    rng = np.random.default_rng(seed)
    points: dict[str, dict[str, Value]] = {}
    while len(points) < count:
        sizes = dict(zip("mnk", shapes[rng.integers(len(shapes))], strict=True))
        knobs = {name: choices[rng.integers(len(choices))] for name, choices in KNOBS.items()}
        points[str((sizes, knobs))] = {**knobs, **sizes, "vector_registers": 32}
    return list(points.values())


def observed(points: list[dict[str, Value]], rule: str, reason: str = SPILLS) -> tuple[Observation, ...]:
    holds, found = parse(rule, "f"), []
    for number, point in enumerate(points):
        outcome = None if holds.evaluate(point) else Failure(Stage.COMPILE, reason.replace("5", str(number)))
        found.append(Observation(tuple(point.items()), outcome, 1 + number % 2, str(point["m"])))
    return tuple(found)


def truth(text: str, observations: Iterable[Observation]) -> list[bool]:
    return [bool(parse(text, "f").evaluate(dict(each.values))) for each in observations]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("rule", RULES)
def test_a_planted_rule_is_found(rule: str) -> None:
    observations = observed(drawn(3, 250), rule)
    (found,) = mine(observations, tuple(KNOBS))
    assert truth(found.constraint, observations) == truth(rule, observations)
    assert found.constraint.count(" or ") == rule.count(" or ")
    assert found.trials == sum(each.trials for each in observations if each.failure is not None)
    assert (found.stage, found.reason.split()[0]) == (Stage.COMPILE, "spills")
    assert found.chance < 1e-6


def test_a_rule_reads_as_one_would_write_it_and_two_causes_are_distinguished() -> None:
    shapes = tuple((m, 64, 64) for m in (5, 10, 20, 40))
    wanted = {rule: rule for rule in ("tile_m < 32", "split != 'n'", "tile_m <= m")}
    wanted["tile_m * tile_n <= 256"] = "tile_m * tile_n < 512"  # nothing between was tried
    for rule, constraint in wanted.items():
        (found,) = mine(observed(drawn(1, 300, shapes), rule), tuple(KNOBS))
        assert found.constraint == constraint
    points = drawn(5, 400)
    wide, split = observed(points, "tile_m < 32"), observed(points, "split != 'n'", "is not supported")
    both = tuple(a if a.failure is not None else b for a, b in zip(wide, split, strict=True))
    reasons = {each.constraint: each.reason.split()[0] for each in mine(both, tuple(KNOBS))}
    assert reasons == {"tile_m < 32": "spills", "split != 'n'": "is"}


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(RULES), st.floats(0, 0.3), st.integers(2, 8))
@pytest.mark.slow
def test_no_suggestion_excludes_a_success(seed: int, rule: str, noise: float, min_support: int) -> None:
    rng = np.random.default_rng(seed)
    observations = list(observed(drawn(seed, 120), rule))
    for number, each in enumerate(observations):
        if rng.random() <= noise:
            observations[number] = Observation(each.values, CRASHED if rng.random() < 0.5 else None, 1, "p")
    explained = np.zeros(len(observations), bool)
    for found in mine(tuple(observations), tuple(KNOBS), min_support):
        holds = np.array(truth(found.constraint, observations))
        assert all(holds[n] for n, each in enumerate(observations) if each.failure is None)
        assert np.count_nonzero(~holds) >= min_support
        explained |= ~holds
        assert found.trials == sum(trials for _, trials in found.problems)
        assert found.trials == sum(each.trials for no, each in zip(~holds, observations, strict=True) if no)


# The limit of 1 in 100 is a bound that counts every rule as an independent one; far fewer are found
@pytest.mark.parametrize("seed", range(25))
def test_failures_without_a_cause_give_no_suggestion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.1, 0.9)
    points = [tuple(point.items()) for point in drawn(seed, 100)]
    outcomes = [CRASHED if rng.random() < share else None for _ in points]
    observations = [Observation(*each, 1, "p") for each in zip(points, outcomes, strict=True)]
    assert mine(tuple(observations), tuple(KNOBS)) == ()


def test_too_few_failures_or_failures_of_all_or_none_are_not_explained() -> None:
    observations = observed(drawn(2, 200), "tile_m < 32")
    failed = sum(each.failure is not None for each in observations)
    assert len(mine(observations, tuple(KNOBS), failed)) == 1
    assert mine(observations, tuple(KNOBS), failed + 1) == ()
    for rule in ("1 == 0", "1 == 1"):
        assert mine(observed(drawn(0, 50), rule), tuple(KNOBS)) == ()
    assert mine((), ()) == ()


def test_a_zero_knob_counts_as_a_divisor_and_a_name_that_some_points_lack_is_not_used() -> None:
    sizes, rule = itertools.product((0, 32, 48, 96), range(1, 33)), "block % tile == 0"
    observations = observed([{"block": block, "tile": tile, "m": 48} for block, tile in sizes], rule)
    (found,) = mine(observations, ("block", "tile"))
    assert truth(found.constraint, observations) == truth(rule, observations)
    observations = observed(drawn(4, 200), "tile_m < 32")
    cut = Observation(observations[0].values[1:], None, 1, "p")
    assert all("tile_m" not in each.constraint for each in mine((*observations[1:], cut), tuple(KNOBS)))


def test_the_chance_is_the_share_of_draws_of_that_kind() -> None:
    for drawn, kind, every in ((0, 0, 0), (0, 3, 7), (1, 3, 7), (3, 3, 7), (7, 7, 7), (5, 40, 200)):
        share = comb(kind, drawn) / comb(every, drawn)
        assert exp(log_chance_all_wanted(drawn, kind, every)) == pytest.approx(share, rel=1e-12)
