"""Failed trials -> constraints that exclude them: the smallest conjunctions that no success satisfies.

A conjunction is accepted where chance does not explain it. A rule matches ``f`` of ``F`` failures and none of
``S`` successes with probability C(F, f) / C(F + S, f) if failing has nothing to do with the knobs; this
p-value (Fisher's exact test) times the number of rules tried (Bonferroni correction) must not exceed
CHANCE_LIMIT.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, exp, log

import numpy as np
import numpy.typing as npt

from tuner.analysis.hypergeometric import log_chance_of_one_kind
from tuner.analysis.possible_conditions import Condition, PointColumns, Truth, conditions
from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage
from tuner.space.expression import parse

MIN_SUPPORT = 5  # failed points that a suggestion explains at least, by default
CHANCE_LIMIT = 0.01  # over all rules tried: one search for suggestions in a hundred may find a false one
MOST_CONDITIONS = 3  # in a conjunction
KEPT = 500  # rules, and conditions to join them with: those that separate failures from successes best
ENOUGH = 0.9  # share of the best rule's failures: a simpler rule that explains as many is preferred


@dataclass(frozen=True)
class Observation:
    """A tried point of the search space (values of knobs, sizes, device limits) and its failure, if any."""

    values: tuple[tuple[str, Value], ...]  # knobs, sizes, device limits
    failure: Failure | None  # None: the point worked, in one trial at least
    trials: int
    problem: str  # problem and target, as printed


@dataclass(frozen=True)
class Suggestion:
    """A constraint mined from failed trials: it excludes failed points, and no successful point.

    Has the stage and the most frequent reason of the failures that it was mined from, the number of failed
    trials that it excludes, of any stage, and its p-value.
    """

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
        return sum(each.cost for each in self.conditions)

    @property
    def constraint(self) -> str:
        return " or ".join(sorted((each.allowed for each in self.conditions), key=len))


@dataclass(frozen=True, eq=False)
class _Found:
    rule: _Rule
    chance: float


def mine(
    observations: tuple[Observation, ...], knobs: tuple[str, ...], min_support: int = MIN_SUPPORT
) -> tuple[Suggestion, ...]:
    """Returns constraints of one strategy that would have excluded failed trials and no success.

    ``knobs``: names of the strategy's knobs. Each constraint explains ``min_support`` failed points or more
    that no constraint found before for failures of this kind explains, excludes no point that worked, and has
    a p-value of at most CHANCE_LIMIT (0.01). Those that exclude most failed trials come first.
    """
    points = _common(observations)
    columns = PointColumns(points, knobs)
    worked = np.array([each.failure is None for each in observations], bool)
    kinds = _kinds(observations, min_support)
    found = [
        _suggestion(each, observations, points, stage, failed)
        for stage, failed in kinds
        for each in _mined(columns, failed, worked, min_support, log(len(kinds) * MOST_CONDITIONS))
    ]
    unique = {each.constraint: each for each in reversed(found)}.values()
    return tuple(sorted(unique, key=lambda each: (-each.trials, each.constraint)))


def _mined(
    columns: PointColumns, failed: Truth, worked: Truth, min_support: int, log_kinds: float
) -> Iterator[_Found]:
    """Yields rules for failures of one kind, the shortest first; each explains failures that are left."""
    left = failed.copy()
    tried = list(_distinct(conditions(columns, failed), failed, worked, min_support))
    rules = [_Rule((each,), each.truth) for each in tried if each.is_alone]
    partners = [each for each in tried if each.is_partner]
    for length in range(1, MOST_CONDITIONS + 1):
        if length > 1:
            rules = _longer(rules, partners, left, worked, min_support)
        pure = [rule for rule in rules if not np.any(rule.truth & worked)]
        rules = [rule for rule in rules if np.any(rule.truth & worked)]
        log_tried = log_kinds + log(max(1, len(tried) if length == 1 else comb(len(partners), length)))
        while (found := _best(pure, left, worked, min_support, log_tried)) is not None:
            yield found
            left &= ~found.rule.truth
        if _count(left) < min_support:
            return


def _distinct(
    every: Iterator[Condition], failed: Truth, worked: Truth, min_support: int
) -> Iterator[Condition]:
    """Yields the simplest condition of each set of conditions with equal truth at every point."""
    known: dict[bytes, Condition] = {}
    evaluated = failed | worked
    for each in every:
        if _count(each.truth & failed) < min_support:
            continue
        key = np.packbits(each.truth[evaluated]).tobytes()
        best = known.get(key)
        if best is None or _simplicity(each) < _simplicity(best):
            known[key] = each
    yield from known.values()


def _simplicity(condition: Condition) -> tuple[bool, bool, int]:
    return (not condition.is_alone, not condition.is_partner, condition.cost)


def _longer(
    rules: list[_Rule], partners: list[Condition], left: Truth, worked: Truth, min_support: int
) -> list[_Rule]:
    """Returns rules with one condition more: the best that match no success, and the best that match some."""
    rules = _sharpest([rule for rule in rules if rule.conditions[-1].is_partner], left, worked)
    others = _sharpest([_Rule((each,), each.truth) for each in partners], left, worked)
    if not rules or not others:
        return []
    truths, more = (np.array([rule.truth for rule in some], np.float32) for some in (rules, others))
    hits = truths[:, left] @ more[:, left].T
    misses = truths[:, worked] @ more[:, worked].T
    is_new = (hits >= min_support) & (misses < truths[:, worked].sum(axis=1, keepdims=True))
    score = np.where(is_new, hits / (1 + misses), 0)
    chosen = (*_largest(np.where(misses == 0, score, 0)), *_largest(np.where(misses > 0, score, 0)))
    joined = ((rules[first], others[second]) for first, second in chosen)
    return [_Rule((*one.conditions, *other.conditions), one.truth & other.truth) for one, other in joined]


def _sharpest(rules: list[_Rule], left: Truth, worked: Truth) -> list[_Rule]:
    """Returns the rules that separate failures from successes best, at most KEPT."""
    failures, successes = max(1, _count(left)), max(1, _count(worked))

    def sharpness(rule: _Rule) -> float:
        return _count(rule.truth & left) / failures * (1 - _count(rule.truth & worked) / successes)

    return sorted(rules, key=sharpness, reverse=True)[:KEPT]


def _largest(score: npt.NDArray[np.float32]) -> list[tuple[int, int]]:
    """Returns the (row, column) indices of the largest positive scores, at most KEPT."""
    flat = score.ravel()
    places = np.argpartition(-flat, KEPT)[:KEPT] if len(flat) > KEPT else np.arange(len(flat))
    positive = np.sort(places[flat[places] > 0])
    return [(int(place) // score.shape[1], int(place) % score.shape[1]) for place in positive]


def _best(pure: list[_Rule], left: Truth, worked: Truth, min_support: int, log_tried: float) -> _Found | None:
    """Returns the simplest of the rules that explain most failures; None where chance explains the rule."""
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
    chance = exp(min(0.0, log_tried + log_chance_of_one_kind(explained, failed, failed + _count(worked))))
    return _Found(chosen, chance) if chance <= CHANCE_LIMIT else None


def _kinds(observations: tuple[Observation, ...], min_support: int) -> list[tuple[Stage, Truth]]:
    """Groups the failures by stage and reason; failures of rare reasons by stage alone."""
    failures = [each.failure for each in observations]
    kinds = [None if each is None else (each.stage, _kind_of(each.reason)) for each in failures]
    counted = Counter(kind for kind in kinds if kind is not None)
    merged = [kind if kind is None or counted[kind] >= min_support else (kind[0], "") for kind in kinds]
    every = dict.fromkeys(kind for kind in merged if kind is not None)
    masks = [(stage, np.array([kind == (stage, text) for kind in merged])) for stage, text in every]
    return [(stage, mask) for stage, mask in masks if _count(mask) >= min_support]


def _kind_of(reason: str) -> str:
    """Returns a failure's reason with # in place of its numbers."""
    return re.sub(r"0x[0-9a-fA-F]+|\d+(\.\d+)?", "#", reason)


def _suggestion(
    found: _Found,
    observations: tuple[Observation, ...],
    points: tuple[dict[str, Value], ...],
    stage: Stage,
    failed: Truth,
) -> Suggestion:
    """Parses the constraint as a search would, and counts the trials that the constraint rejects."""
    text = found.rule.constraint
    rejects = ~_holds(text, points)
    assert not any(no and each.failure is None for no, each in zip(rejects, observations, strict=True)), text
    saved = [each for no, each in zip(rejects, observations, strict=True) if no]
    reasons = [
        each.failure.reason
        for no, is_meant, each in zip(rejects, failed, observations, strict=True)
        if no and is_meant and each.failure is not None
    ]
    return Suggestion(
        constraint=text,
        stage=stage,
        reason=Counter(reasons).most_common(1)[0][0],
        trials=sum(each.trials for each in saved),
        problems=tuple(_trials_by_problem(saved).items()),
        chance=found.chance,
    )


def _trials_by_problem(observations: list[Observation]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in observations:
        counts[each.problem] += each.trials
    return counts


def _holds(text: str, points: tuple[dict[str, Value], ...]) -> Truth:
    """Returns, per point, whether a constraint holds."""
    expression = parse(text, "suggestion")
    columns = {name: np.array([point[name] for point in points]) for name in expression.names}
    return np.broadcast_to(np.asarray(expression.evaluate(columns)) != 0, (len(points),))


def _common(observations: tuple[Observation, ...]) -> tuple[dict[str, Value], ...]:
    """Returns each observation's values by name, only of names that every observation has."""
    points = [dict(each.values) for each in observations]
    names = set.intersection(*(set(point) for point in points)) if points else set()
    return tuple({name: point[name] for name in point if name in names} for point in points)


def _count(truth: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(truth))
