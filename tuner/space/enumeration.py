"""Enumerates the allowed configurations of a search space, all or a fixed sample, by integer keys.

``rows_of`` gives the configurations, of a ``Walk`` through the knobs that checks each constraint as soon as
its knobs have values. ``first_violations`` counts what each constraint rejects.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.space.expressions import Expression
from tuner.space.search_space import ConstraintTable, Rule, SearchSpace, evaluated, join_tables

Indices = npt.NDArray[np.unsignedinteger]  # (rows, knobs): index of the choice of each knob
Keys = npt.NDArray[np.uint64]  # (words, rows); one word unless the space has 2**63 combinations or more

WORD_LIMIT = 2**63  # combinations that one word can number
DECODED_ROWS = 1 << 17  # decoded at once: they fit in the cache
BLOCK_ROWS = 1 << 16  # combinations evaluated together: bounds memory, fits in the cache
VISITS_LIMIT = 2_000_000_000  # partial combinations visited: about ten seconds
ROWS_LIMIT = 20_000_000  # rows in memory: a byte or two per knob here, about 50 bytes in a sampler
SAMPLE_ROWS = 1 << 20  # the best of so many is among the best millionth of the set
SAMPLE_KNOBS = 40  # a space with more has a smaller sample: each knob is a level, and makes the keys longer
PILOT_ROWS = 1 << 14  # of the sample that estimates the size of the set
GROWN_LIMIT = 1 << 23  # rows before a level of a sample is cut: bounds memory
SURE = 3.0  # times a limit: an estimate above is trusted, so that no enumeration is tried


class RowKeys:
    """Encodes and decodes configurations as integer keys (mixed radix): the last knob varies fastest."""

    def __init__(self, space: SearchSpace) -> None:
        self.sizes = tuple(len(knob.choices) for knob in space.knobs)
        self._words: list[tuple[int, int]] = []  # (first knob, end): as many knobs as one word can number
        start = 0
        for stop in range(1, len(self.sizes) + 1):
            if math.prod(self.sizes[start:stop]) >= WORD_LIMIT:
                self._words.append((start, stop - 1))
                start = stop - 1
        self._words.append((start, len(self.sizes)))
        self._digits: dict[int, tuple[int, int]] = {}  # knob -> (word, stride)
        for word, (first, stop) in enumerate(self._words):
            for knob in range(first, stop):
                self._digits[knob] = (word, math.prod(self.sizes[knob + 1 : stop]))

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """Returns the narrowest unsigned integer type that holds the choice indices of every knob."""
        largest = max(self.sizes, default=1)
        if largest <= 2**8:
            return np.uint8
        if largest <= 2**16:
            return np.uint16
        return np.uint32

    def root(self) -> Keys:
        """Returns the key of the configuration without any choice: zeros (64-bit words of a key, 1)."""
        return np.zeros((len(self._words), 1), np.uint64)

    def add_choice(self, keys: Keys, knob: int, picks: npt.NDArray[np.integer]) -> None:
        """Adds the choice of a further knob to the keys, in place.

        ``picks``: index of the choice per key; the knob must not have been added before.
        """
        word, stride = self._digits[knob]
        keys[word] += picks.astype(np.uint64) * np.uint64(stride)

    def encode(self, index: Indices) -> Keys:
        """Returns the keys of complete configurations: an array (64-bit words of a key, configurations).

        ``index``: an array (configurations, knobs) of choice indices.
        """
        keys = np.zeros((len(self._words), len(index)), np.uint64)
        for knob in range(len(self.sizes)):
            self.add_choice(keys, knob, index[:, knob])
        return keys

    def decode(self, keys: Keys) -> Indices:
        """Returns the configurations of keys: choice indices (configurations, knobs), column-major."""
        columns = np.empty((len(self.sizes), keys.shape[1]), self.dtype)
        for start in range(0, keys.shape[1], DECODED_ROWS):
            part = slice(start, start + DECODED_ROWS)
            for word, (first, last) in enumerate(self._words):
                rest = keys[word, part]
                for knob in reversed(range(first, last)):
                    quotient = rest // np.uint64(self.sizes[knob])
                    columns[knob, part] = rest - quotient * np.uint64(self.sizes[knob])
                    rest = quotient
        return columns.T


def sort_keys(keys: Keys) -> Keys:
    """Returns the keys in ascending order; keys of one word are sorted in place, others are copied."""
    if len(keys) == 1:
        keys.sort(axis=1)
        return keys
    return keys[:, np.lexsort(keys[::-1])]  # lexsort takes the most significant word last


# The feasible set by constraint-ordered backtracking over blocks of configurations.
# The Cartesian product of all choices is never formed.


@dataclass(frozen=True, eq=False)
class Block:
    """A block of partial configurations: all have a choice for the same knobs; the other knobs are open."""

    keys: Keys
    picks: dict[int, npt.NDArray[np.unsignedinteger]]  # chosen knobs that later constraints name

    @property
    def rows(self) -> int:
        return len(self.keys[0])

    def of(self, rows: npt.NDArray[np.integer] | slice) -> "Block":
        """Returns a block of the configurations with the indices ``rows``."""
        return Block(self.keys[:, rows], {knob: column[rows] for knob, column in self.picks.items()})


@dataclass(frozen=True, eq=False)
class _Step:
    knob: int
    choices: int
    tables: tuple[ConstraintTable, ...]  # constraints of which this knob is the last to get a choice
    rules: tuple[Rule, ...]  # such constraints without a table
    kept: frozenset[int]  # knobs that later steps need


class Walk:
    """A plan to enumerate a search space: the order in which knobs get a choice, with one step per knob."""

    def __init__(self, space: SearchSpace, constraints: tuple[Expression, ...]) -> None:
        self.keys = RowKeys(space)
        self._space = space
        self._constraints = constraints

    @cached_property
    def steps(self) -> tuple[_Step, ...]:
        """Returns the steps in order, one per knob; each constraint is applied as early as possible."""
        ordered = _ordered(self._space, self._constraints)
        rules = []
        for _, constraints in ordered:
            rules.append([Rule.of(self._space, constraint) for constraint in constraints])
        steps: list[_Step] = []
        later: frozenset[int] = frozenset()
        for (knob, _), ready in zip(reversed(ordered), reversed(rules), strict=True):
            tables = join_tables(rule.table for rule in ready if rule.table is not None)
            slow = tuple(rule for rule in ready if rule.table is None)
            steps.append(_Step(knob, self.keys.sizes[knob], tables, slow, later))
            later = later.union(*(rule.knobs for rule in ready)) - {knob}
        return tuple(reversed(steps))

    def root(self) -> Block | None:
        """Returns the block of the configuration without any choice, with which enumeration begins.

        None if a constraint that names no knob does not hold: no configuration is allowed.
        """
        constant = (
            constraint for constraint in self._constraints if not constraint.names & set(self._space.names)
        )
        is_allowed = all(evaluated(self._space, constraint, {}, 1).all() for constraint in constant)
        if is_allowed:
            return Block(self.keys.root(), {})
        return None

    def grown(self, depth: int, block: Block) -> Block:
        """Returns a block of configurations extended by each allowed choice of the knob of step ``depth``."""
        step = self.steps[depth]
        allowed = np.ones((block.rows, step.choices), bool)
        for table in step.tables:
            allowed &= table.holds_for_each(block.picks, step.knob)
        rows, picks = np.nonzero(allowed)
        grown = block.of(rows)
        self.keys.add_choice(grown.keys, step.knob, picks)
        grown.picks[step.knob] = picks.astype(self.keys.dtype)
        for rule in step.rules:
            grown = grown.of(np.flatnonzero(rule.holds(grown.picks)))
        return Block(grown.keys, {knob: grown.picks[knob] for knob in grown.picks.keys() & step.kept})

    def parts(self, depth: int, block: Block) -> Iterator[Block]:
        """Yields a block in parts, each of at most BLOCK_ROWS (65536) combinations with choices of a step.

        ``depth``: index of the step. A part has at least one configuration.
        """
        choices = self.steps[depth].choices if depth < len(self.steps) else 1
        size = max(1, BLOCK_ROWS // choices)
        for start in range(0, block.rows, size):
            yield block.of(slice(start, start + size))


@dataclass(frozen=True, eq=False)
class Visited:
    """The result of one step of an enumeration.

    ``keys``: of the complete configurations that it found; none, except after the last knob. ``visits``: how
    many partial configurations the step visited; 0 after the last knob.
    """

    keys: Keys
    visits: int


def walked(space: SearchSpace, constraints: tuple[Expression, ...]) -> Iterator[Visited]:
    """Yields the configurations that satisfy the constraints, in parts, in no particular order.

    A part may have no configuration, and only the number of partial configurations that were visited.
    """
    walk = Walk(space, constraints)
    root = walk.root()
    stack = [] if root is None else [(0, root)]
    while stack:
        depth, block = stack.pop()
        if depth == len(walk.steps):
            yield Visited(block.keys, 0)
            continue
        grown = walk.grown(depth, block)
        yield Visited(grown.keys[:, :0], block.rows * walk.steps[depth].choices)
        stack += [(depth + 1, part) for part in walk.parts(depth + 1, grown)]


def is_possible(space: SearchSpace, constraints: tuple[Expression, ...]) -> bool:
    """Returns whether any configuration satisfies the constraints.

    Raises UsageError after VISITS_LIMIT visited partial configurations.
    """
    visits = 0
    for part in walked(space, constraints):
        if part.keys.shape[1]:
            return True
        visits += part.visits
        if visits > VISITS_LIMIT:
            raise UsageError(too_long(space))
    return False


def too_long(space: SearchSpace) -> str:
    """Returns the error message for a space in which VISITS_LIMIT visits found no allowed configuration."""
    return (
        f"strategy {space.strategy}: no combination of {space.cartesian} was found to be allowed "
        f"after {VISITS_LIMIT} partial ones: add constraints over few knobs or values"
    )


def cartesian_blocks(space: SearchSpace) -> Iterator[Indices]:
    """Yields all combinations of choices, allowed or not: choice indices (combinations, knobs)."""
    keys = RowKeys(space)
    for start in range(0, space.cartesian, BLOCK_ROWS):
        flat = np.arange(start, min(start + BLOCK_ROWS, space.cartesian), dtype=np.uint64)
        yield keys.decode(flat[np.newaxis])


def cartesian_sample(space: SearchSpace, rows: int, rng: np.random.Generator) -> Indices:
    """Draws random combinations, allowed or not, with replacement: choice indices (rows, knobs)."""
    keys = RowKeys(space)
    columns = [rng.integers(size, size=rows).astype(keys.dtype) for size in keys.sizes]
    return np.stack(columns, axis=1)


def first_violations(space: SearchSpace, blocks: Iterator[Indices]) -> npt.NDArray[np.int64]:
    """Returns, per constraint in the file's order, how many combinations it is the first to reject.

    ``blocks``: arrays of choice indices (combinations, knobs).
    """
    rules = [Rule.of(space, constraint) for constraint in space.constraints]
    counts = np.zeros(len(rules) + 1, np.int64)
    for block in blocks:
        counts += np.bincount(_first_broken(rules, block), minlength=len(counts))
    return counts[:-1]


def first_broken_preference(space: SearchSpace, index: Indices) -> npt.NDArray[np.intp]:
    """Returns per configuration the index of the first preference that it breaks.

    ``index``: choice indices (configurations, knobs). len(preferences) for a configuration that breaks none.
    """
    rules = [Rule.of(space, preference) for preference in space.preferences]
    starts = range(0, max(1, len(index)), BLOCK_ROWS)
    return np.concatenate([_first_broken(rules, index[start : start + BLOCK_ROWS]) for start in starts])


def _first_broken(rules: list[Rule], block: Indices) -> npt.NDArray[np.intp]:
    broken = np.full(len(block), len(rules), np.intp)
    left = np.arange(len(block))
    for index, rule in enumerate(rules):
        holds = np.broadcast_to(rule.holds({knob: block[left, knob] for knob in rule.knobs}), len(left))
        broken[left[~holds]] = index
        left = left[holds]
    return broken


def _ordered(
    space: SearchSpace, constraints: tuple[Expression, ...]
) -> list[tuple[int, tuple[Expression, ...]]]:
    """Returns the knobs in the order of enumeration, each with the constraints that then can be checked.

    The next knobs are always those of the constraint with the fewest combinations of open knobs, so that
    constraints apply early.
    """
    sizes = {knob.name: len(knob.choices) for knob in space.knobs}
    open_constraints = [constraint for constraint in constraints if constraint.names & sizes.keys()]
    bound: set[str] = set()
    steps = []
    while len(bound) < len(sizes):
        missing = [
            sorted((constraint.names & sizes.keys()) - bound, key=sizes.__getitem__)
            for constraint in open_constraints
        ]
        fewest = min(
            missing or [[name for name in sizes if name not in bound]],
            key=lambda names: float(np.prod([float(sizes[name]) for name in names])),
        )
        for name in fewest:
            bound.add(name)
            ready = tuple(
                constraint for constraint in open_constraints if constraint.names & sizes.keys() <= bound
            )
            open_constraints = [constraint for constraint in open_constraints if constraint not in ready]
            steps.append((space.names.index(name), ready))
    return steps


# The configurations that a search chooses among: the whole feasible set, or a fixed sample of a larger set.
# A sample is drawn level by level. Each level extends the kept partial configurations by every allowed choice
# of one more knob and keeps those with the smallest hashes: each allowed configuration is equally likely to
# be in the sample, and the shares that were kept estimate their number (Chen, 1992,
# https://doi.org/10.1137/0221022, with equal weights). The hash is fixed, so equal spaces give equal samples
# on every machine, in every session.


@dataclass(frozen=True, eq=False)
class Rows:
    """Allowed configurations of one strategy, all or a sample, sorted; the last knob varies fastest."""

    index: Indices
    total: int  # number of allowed configurations; estimated where ``index`` is a sample
    is_sample: bool


@dataclass(frozen=True, eq=False)
class _Sample:
    keys: Keys
    share: float  # of the allowed rows that were kept, estimated; 1: all
    visits: float  # estimated number for a whole enumeration


def rows_of(space: SearchSpace, limit: int = ROWS_LIMIT, always: Indices | None = None) -> Rows:
    """Returns every allowed configuration of a space, or a sample if there are more than ``limit``.

    A sample is also taken if enumeration would take too long. It has at most SAMPLE_ROWS (2**20) drawn
    configurations, at most as many again that meet all preferences, and ``always``, which are choice indices
    (configurations, knobs). Raises UsageError if sampling finds none; an enumeration that finds none returns
    no rows.
    """
    walk = Walk(space, space.constraints)
    pilot = _sampled(walk, PILOT_ROWS)
    keys = pilot.keys if pilot.share == 1 else _all(space, pilot, limit)
    if keys is not None and keys.shape[1] <= limit:
        index = walk.keys.decode(sort_keys(keys))
        return Rows(index, len(index), is_sample=False)
    # fewer rows for many knobs, so that sampling takes about the same time
    rows_limit = int(SAMPLE_ROWS * min(1.0, SAMPLE_KNOBS / max(1, len(space.knobs))) ** 2)
    sample = _sampled(walk, rows_limit)
    rows = sample.keys.shape[1]
    if rows == 0:
        raise UsageError(too_long(space))
    wanted = [] if always is None else [walk.keys.encode(always)]
    if space.preferences:  # as many of the preferred rows again: they may be a small share
        wanted.append(_sampled(Walk(space, space.constraints + space.preferences), rows_limit).keys)
    keys = sort_keys(np.concatenate([sample.keys, *wanted], axis=1))
    is_new = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    index = walk.keys.decode(keys[:, np.concatenate([[True], is_new])])
    return Rows(index, max(round(rows / sample.share), len(index)), is_sample=sample.share < 1)


def _all(space: SearchSpace, pilot: _Sample, limit: int) -> Keys | None:
    if pilot.visits > SURE * VISITS_LIMIT or pilot.keys.shape[1] / pilot.share > SURE * limit:
        return None
    keys: list[Keys] = [RowKeys(space).root()[:, :0]]
    rows = visits = 0
    for part in walked(space, space.constraints):
        keys.append(part.keys)
        rows += part.keys.shape[1]
        visits += part.visits
        if rows > limit or visits > VISITS_LIMIT:
            return None
    return np.concatenate(keys, axis=1)


def _sampled(walk: Walk, limit: int) -> _Sample:
    block = walk.root()
    # kept / all allowed partial configurations so far: x / share estimates the x of a whole enumeration
    share = 1.0
    visits = 0.0
    if block is None:
        return _Sample(walk.keys.root()[:, :0], share, visits)
    for depth, step in enumerate(walk.steps):
        # thinned before and after each step, by another hash each time: samples of samples stay uniform
        parents = _smallest_hashes(block, max(1, GROWN_LIMIT // step.choices), 2 * depth)
        share *= parents.rows / max(1, block.rows)
        visits += parents.rows * step.choices / share
        grown_parts = [walk.grown(depth, part) for part in walk.parts(depth, parents)]
        grown_parts = [part for part in grown_parts if part.rows]
        if not grown_parts:
            return _Sample(block.keys[:, :0], share, visits)
        picks = {}
        for knob in grown_parts[0].picks:
            picks[knob] = np.concatenate([part.picks[knob] for part in grown_parts])
        grown = Block(np.concatenate([part.keys for part in grown_parts], axis=1), picks)
        block = _smallest_hashes(grown, limit, 2 * depth + 1)
        share *= block.rows / grown.rows
    return _Sample(block.keys, share, visits)


def _smallest_hashes(block: Block, limit: int, level: int) -> Block:
    """Returns up to ``limit`` rows of a block, those with the smallest hashes: a uniform sample.

    ``level``: each level has another hash function.
    """
    if block.rows <= limit:
        return block
    kept = np.argpartition(_hashes(block.keys, level), limit)[:limit]
    return block.of(np.sort(kept))


def _hashes(keys: Keys, level: int) -> npt.NDArray[np.uint64]:
    """Returns splitmix64 of the keys, a different hash at each level (Steele et al., 2014)."""
    state = np.full(keys.shape[1], level + 1, np.uint64)
    for word in keys:
        state = (state * np.uint64(0x9E3779B97F4A7C15)) ^ word
        state += np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
