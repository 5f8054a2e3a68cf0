"""Constraints mined from failed trials: conditions that failures meet and no success meets.

``mine`` tries all ``conditions`` on the points of observations, and returns a Suggestion for each that
explains enough failures beyond chance.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, exp, lgamma, log

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage
from tuner.space.expressions import parse

Truth = npt.NDArray[np.bool_]  # one per point
Column = npt.NDArray[np.int64] | npt.NDArray[np.str_]
THRESHOLDS = 24  # of one term; more are thinned out evenly
SIZES = ("m", "n", "k")
MIN_SUPPORT = 5  # failed points that a suggestion explains at least, by default
CHANCE_LIMIT = 0.01  # over all rules tried: one search for suggestions in a hundred may find a false one
MOST_CONDITIONS = 3  # in a conjunction
KEPT = 500  # rules, and conditions to join them with: those that separate failures from successes best
NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?")  # in the reason of a failure
ENOUGH = 0.9  # share of the best rule's failures: a simpler rule that explains as many is preferred


def log_chance_all_wanted(drawn: int, wanted: int, total: int) -> float:
    """Returns the natural log of the probability that ``drawn`` points are all wanted.

    The points are drawn at random, without replacement, from ``total`` points of which ``wanted`` are wanted:
    log(C(wanted, drawn) / C(total, drawn)). ``drawn`` is at most ``wanted``.
    """
    return (
        _log_factorial(wanted)
        - _log_factorial(wanted - drawn)
        + _log_factorial(total - drawn)
        - _log_factorial(total)
    )


def _log_factorial(number: int) -> float:
    return lgamma(number + 1)


@dataclass(frozen=True, eq=False)
class Condition:
    """A comparison of knobs or sizes that may explain failures, with its truth at each observed point."""

    allowed: str  # the negation, as the text of a constraint
    truth: Truth
    cost: int  # number of names: the fewer, the simpler
    is_partner: bool  # simple enough to be joined with other conditions
    is_alone: bool  # involves knobs, so that its negation is a constraint by itself


@dataclass(frozen=True, eq=False)
class _Term:
    text: str
    values: npt.NDArray[np.int64]
    names: int
    is_of_knobs: bool


class PointColumns:
    """Observed points of the search space as numpy columns, by name of the knob or variable.

    Names with the same value at every point are left out.
    """

    def __init__(self, points: tuple[dict[str, Value], ...], knobs: tuple[str, ...]) -> None:
        if points:
            columns = {name: np.array([point[name] for point in points]) for name in points[0]}
        else:
            columns = {}
        self.columns: dict[str, Column] = {
            name: column for name, column in columns.items() if len(np.unique(column)) > 1
        }
        self.knobs = tuple(name for name in knobs if name in self.columns)
        self.numbers = tuple(name for name, column in self.columns.items() if column.dtype.kind == "i")
        self.number_knobs = tuple(name for name in self.knobs if name in self.numbers)
        self.texts = tuple(name for name in self.columns if name not in self.numbers)

    def number(self, name: str) -> npt.NDArray[np.int64]:
        return self.columns[name].astype(np.int64)


def conditions(columns: PointColumns, failed: Truth) -> Iterator[Condition]:
    """Yields comparisons that could explain failures: thresholds, equalities, orders and divisibility.

    ``failed``: for each point of ``columns``, whether it failed. A knob, a size or a product of them is
    compared with at most THRESHOLDS (24) of the values that it has at failed points.
    """
    for term in _terms(columns):
        values = np.unique(term.values[failed])
        if len(values) > THRESHOLDS:
            values = values[np.linspace(0, len(values) - 1, THRESHOLDS).round().astype(int)]
        is_partner = term.names <= 2
        for value in values.tolist():
            above = term.values >= value
            below = term.values <= value
            yield Condition(f"{term.text} < {value}", above, term.names, is_partner, term.is_of_knobs)
            yield Condition(f"{term.text} > {value}", below, term.names, is_partner, term.is_of_knobs)
    for name in (*columns.texts, *columns.number_knobs):
        column = columns.columns[name]
        for value in np.unique(column).tolist():
            yield Condition(f"{name} != {value!r}", column == value, 1, True, name in columns.knobs)
    yield from _comparisons(columns)
    yield from _divisions(columns)


def _terms(columns: PointColumns) -> Iterator[_Term]:
    for name in columns.numbers:
        yield _Term(name, columns.number(name), 1, name in columns.knobs)
    for count in (2, 3):
        for names in itertools.combinations(columns.number_knobs, count):
            product = np.prod(list(map(columns.number, names)), axis=0)
            yield _Term(" * ".join(names), product, count, is_of_knobs=True)


def _comparisons(columns: PointColumns) -> Iterator[Condition]:
    for left, right in itertools.permutations(columns.number_knobs, 2):
        above = columns.number(left) > columns.number(right)
        yield Condition(f"{left} <= {right}", above, 2, is_partner=True, is_alone=True)
    for term in (term for term in _terms(columns) if term.is_of_knobs and term.names <= 2):
        for other in (name for name in columns.numbers if name not in term.text.split(" * ")):
            if term.names == 1 and other in columns.knobs:
                continue  # the loop above yields these
            is_partner = term.names == 1
            above = term.values > columns.number(other)
            below = term.values < columns.number(other)
            yield Condition(f"{term.text} <= {other}", above, term.names + 1, is_partner, is_alone=True)
            yield Condition(f"{term.text} >= {other}", below, term.names + 1, is_partner, is_alone=True)


def _divisions(columns: PointColumns) -> Iterator[Condition]:
    for part in (term for term in _terms(columns) if term.is_of_knobs and term.names <= 2):
        divisor = np.where(part.values == 0, 1, part.values)
        text = part.text if part.names == 1 else f"({part.text})"
        for whole in (*columns.number_knobs, *(name for name in SIZES if name in columns.numbers)):
            if whole in part.text.split(" * "):
                continue
            # a constraint that divides by zero does not hold
            fails = (columns.number(whole) % divisor != 0) | (part.values == 0)
            yield Condition(f"{whole} % {text} == 0", fails, part.names + 1, part.names == 1, is_alone=True)


# Failed trials -> constraints that exclude them: the smallest conjunctions that no success satisfies.
# A conjunction is accepted where chance does not explain it. A rule matches ``f`` of ``F`` failures (of one
# kind, not explained so far) and none of ``S`` successes with probability C(F, f) / C(F + S, f) if failing
# has nothing to do with the knobs; this p-value (Fisher's exact test) times the number of rules tried
# (Bonferroni correction) must not exceed CHANCE_LIMIT.


@dataclass(frozen=True)
class Observation:
    """A tried point of the search space (values of knobs, sizes, device limits) and its failure, if any."""

    values: tuple[tuple[str, Value], ...]  # knobs, sizes, device limits
    failure: Failure | None  # None: the point worked, in one trial at least
    trials: int
    problem: str  # problem and target, as printed


@dataclass(frozen=True)
class Suggestion:
    """A constraint mined from failed trials: it excludes failed points, and no successful point."""

    constraint: str
    stage: Stage  # of the failures that the constraint was mined from
    reason: str  # the most frequent of these failures
    trials: int  # failed trials that the constraint excludes, at any stage
    problems: tuple[tuple[str, int], ...]  # (problem and target, number of excluded trials)
    chance: float  # upper bound of the p-value, corrected for all rules tried


@dataclass(frozen=True, eq=False)
class _Rule:
    conditions: tuple[Condition, ...]
    truth: Truth  # per point: all conditions hold

    @property
    def cost(self) -> int:
        return sum(condition.cost for condition in self.conditions)

    @property
    def constraint(self) -> str:
        return " or ".join(sorted((condition.allowed for condition in self.conditions), key=len))


@dataclass(frozen=True, eq=False)
class _Mined:
    rule: _Rule
    chance: float


def mine(
    observations: tuple[Observation, ...], knobs: tuple[str, ...], min_support: int = MIN_SUPPORT
) -> tuple[Suggestion, ...]:
    """Returns constraints on one strategy's knobs that would have excluded failed trials, and no success.

    Failures are of one kind if their stage is equal and their reasons differ in numbers alone. A constraint
    excludes ``min_support`` or more failed points of one kind that no earlier constraint for this kind
    excludes, with a p-value of at most CHANCE_LIMIT (0.01). Sorted by the number of failed trials that they
    exclude, the most first.
    """
    points = _common(observations)
    columns = PointColumns(points, knobs)
    worked = np.array([observation.failure is None for observation in observations], bool)
    kinds = _kinds(observations, min_support)
    suggestions: list[Suggestion] = []
    for stage, failed in kinds:
        rules = _mined(columns, failed, worked, min_support, log(len(kinds) * MOST_CONDITIONS))
        suggestions += [_suggestion(rule, observations, points, stage, failed) for rule in rules]
    unique = {suggestion.constraint: suggestion for suggestion in reversed(suggestions)}.values()
    return tuple(sorted(unique, key=lambda suggestion: (-suggestion.trials, suggestion.constraint)))


def _mined(
    columns: PointColumns, failed: Truth, worked: Truth, min_support: int, log_kinds: float
) -> Iterator[_Mined]:
    # by number of conditions: the rules that match no success, best first, as long as failures are left
    left = failed.copy()
    tried = list(_distinct(conditions(columns, failed), failed, worked, min_support))
    rules = [_Rule((condition,), condition.truth) for condition in tried if condition.is_alone]
    partners = [condition for condition in tried if condition.is_partner]
    for length in range(1, MOST_CONDITIONS + 1):
        if length > 1:
            rules = _longer(rules, partners, left, worked, min_support)
        pure = [rule for rule in rules if not np.any(rule.truth & worked)]
        rules = [rule for rule in rules if np.any(rule.truth & worked)]
        log_tried = log_kinds + log(max(1, len(tried) if length == 1 else comb(len(partners), length)))
        while (best := _best(pure, left, worked, min_support, log_tried)) is not None:
            yield best
            left &= ~best.rule.truth
        if _count(left) < min_support:
            return


def _distinct(
    every: Iterator[Condition], failed: Truth, worked: Truth, min_support: int
) -> Iterator[Condition]:
    # of conditions that are equal on all trials, the simplest
    known: dict[bytes, Condition] = {}
    evaluated = failed | worked
    for rule in every:
        if _count(rule.truth & failed) < min_support:
            continue
        key = np.packbits(rule.truth[evaluated]).tobytes()
        best = known.get(key)
        if best is None or _simplicity(rule) < _simplicity(best):
            known[key] = rule
    yield from known.values()


def _simplicity(condition: Condition) -> tuple[bool, bool, int]:
    return (not condition.is_alone, not condition.is_partner, condition.cost)


def _longer(
    rules: list[_Rule], partners: list[Condition], left: Truth, worked: Truth, min_support: int
) -> list[_Rule]:
    """Returns rules that are extended by one condition, which makes them match fewer successful points.

    These are the best of the rules that then match no success, and the best of those that still match some.
    ``left``: per point, whether it is a failure that no suggestion excludes yet; ``worked``: whether it is a
    success. ``min_support``: the fewest of the failures in ``left`` that a returned rule matches.
    """
    rules = _sharpest([rule for rule in rules if rule.conditions[-1].is_partner], left, worked)
    others = _sharpest([_Rule((partner,), partner.truth) for partner in partners], left, worked)
    if not rules or not others:
        return []
    truths, more = (np.array([rule.truth for rule in some], np.float32) for some in (rules, others))
    # [rule, partner]: failures ("left") and successes ("worked") that both conditions match
    hits = truths[:, left] @ more[:, left].T
    misses = truths[:, worked] @ more[:, worked].T
    is_new = (hits >= min_support) & (misses < truths[:, worked].sum(axis=1, keepdims=True))
    score = np.where(is_new, hits / (1 + misses), 0)
    chosen = (*_largest(np.where(misses == 0, score, 0)), *_largest(np.where(misses > 0, score, 0)))
    joined = ((rules[first], others[second]) for first, second in chosen)
    return [_Rule((*rule.conditions, *other.conditions), rule.truth & other.truth) for rule, other in joined]


def _sharpest(rules: list[_Rule], left: Truth, worked: Truth) -> list[_Rule]:
    failures = max(1, _count(left))
    successes = max(1, _count(worked))

    def sharpness(rule: _Rule) -> float:
        return _count(rule.truth & left) / failures * (1 - _count(rule.truth & worked) / successes)

    return sorted(rules, key=sharpness, reverse=True)[:KEPT]


def _largest(score: npt.NDArray[np.float32]) -> list[tuple[int, int]]:
    flat = score.ravel()
    indices = np.argpartition(-flat, KEPT)[:KEPT] if len(flat) > KEPT else np.arange(len(flat))
    positive = np.sort(indices[flat[indices] > 0]).tolist()
    return [divmod(index, score.shape[1]) for index in positive]  # (row, column)


def _best(pure: list[_Rule], left: Truth, worked: Truth, min_support: int, log_tried: float) -> _Mined | None:
    support = [_count(rule.truth & left) for rule in pure]
    most = max(support, default=0)
    if most < min_support:
        return None
    enough = max(min_support, ENOUGH * most)
    chosen, explained = min(
        ((rule, count) for rule, count in zip(pure, support, strict=True) if count >= enough),
        key=lambda pair: (pair[0].cost, -pair[1], pair[0].constraint),
    )
    failed = _count(left)
    chance = exp(min(0.0, log_tried + log_chance_all_wanted(explained, failed, failed + _count(worked))))
    if chance <= CHANCE_LIMIT:
        return _Mined(chosen, chance)
    return None


def _kinds(observations: tuple[Observation, ...], min_support: int) -> list[tuple[Stage, Truth]]:
    """Returns (stage, mask of the points that failed so) for each frequent kind of failure.

    Failures are of one kind if their stage is equal and their reasons differ in numbers alone; rare kinds of
    a stage are joined to one. A kind is frequent if ``min_support`` points or more failed so.
    """
    kinds = [_kind(observation.failure) for observation in observations]
    counted = Counter(kinds)
    joined: list[tuple[Stage, str] | None] = []
    for kind in kinds:
        if kind is not None and counted[kind] < min_support:
            kind = (kind[0], "")
        joined.append(kind)
    frequent = []
    for kind in dict.fromkeys(joined):
        mask = np.array([other == kind for other in joined])
        if kind is not None and _count(mask) >= min_support:
            frequent.append((kind[0], mask))
    return frequent


def _kind(failure: Failure | None) -> tuple[Stage, str] | None:
    if failure is None:
        return None
    return failure.stage, NUMBER.sub("#", failure.reason)


def _suggestion(
    mined: _Mined,
    observations: tuple[Observation, ...],
    points: tuple[dict[str, Value], ...],
    stage: Stage,
    failed: Truth,
) -> Suggestion:
    text = mined.rule.constraint
    rejects = ~_holds(text, points)  # parsed as a search would parse it
    saved: Counter[str] = Counter()
    reasons = []
    for is_rejected, is_meant, observation in zip(rejects, failed, observations, strict=True):
        if is_rejected:
            assert observation.failure is not None, text
            saved[observation.problem] += observation.trials
            if is_meant:
                reasons.append(observation.failure.reason)
    return Suggestion(
        constraint=text,
        stage=stage,
        reason=Counter(reasons).most_common(1)[0][0],
        trials=saved.total(),
        problems=tuple(saved.items()),
        chance=mined.chance,
    )


def _holds(text: str, points: tuple[dict[str, Value], ...]) -> Truth:
    expression = parse(text, "suggestion")
    columns = {name: np.array([point[name] for point in points]) for name in expression.names}
    return np.broadcast_to(np.asarray(expression.evaluate(columns)) != 0, (len(points),))


def _common(observations: tuple[Observation, ...]) -> tuple[dict[str, Value], ...]:
    points = [dict(observation.values) for observation in observations]
    names = set.intersection(*map(set, points)) if points else set()
    return tuple({name: point[name] for name in point if name in names} for point in points)


def _count(truth: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(truth))
