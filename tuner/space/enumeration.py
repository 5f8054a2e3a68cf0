"""The feasible set by constraint-ordered backtracking over blocks of configurations.

The Cartesian product of all choices is never formed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.space.constraint_table import ConstraintTable, Rule, evaluated, join_tables
from tuner.space.expression import Expression
from tuner.space.row_keys import Indices, Keys, RowKeys
from tuner.space.search_space import SearchSpace

BLOCK_ROWS = 1 << 16  # combinations evaluated together: bounds memory, fits in the cache
VISITS_LIMIT = 2_000_000_000  # partial combinations visited: some ten seconds


@dataclass(frozen=True, eq=False)
class Block:
    """A block of partial configurations: in each the same knobs have a choice and the others are open."""

    keys: Keys
    picks: dict[int, npt.NDArray[np.unsignedinteger]]  # chosen knobs that later constraints name

    @property
    def rows(self) -> int:
        """Returns the number of partial configurations in the block."""
        return len(self.keys[0])

    def of(self, rows: npt.NDArray[np.integer] | slice) -> "Block":
        """Returns a block of some of the partial configurations; ``rows`` are their indices, or a slice."""
        return Block(self.keys[:, rows], {knob: column[rows] for knob, column in self.picks.items()})


@dataclass(frozen=True, eq=False)
class _Step:
    """One step of the walk: chooses one knob, then applies the constraints whose knobs are all chosen."""

    knob: int
    choices: int
    tables: tuple[ConstraintTable, ...]
    rules: tuple[Rule, ...]  # without a table
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
        rules = [[Rule.of(self._space, each) for each in constraints] for _, constraints in ordered]
        steps: list[_Step] = []
        later: frozenset[int] = frozenset()
        for (knob, _), ready in zip(reversed(ordered), reversed(rules), strict=True):
            tables = join_tables(rule.table for rule in ready if rule.table is not None)
            slow = tuple(rule for rule in ready if rule.table is None)
            steps.append(_Step(knob, self.keys.sizes[knob], tables, slow, later))
            later = later.union(*(rule.knobs for rule in ready)) - {knob}
        return tuple(reversed(steps))

    def root(self) -> Block | None:
        """Returns the block to start from: one configuration in which every knob is open.

        None when a constraint without knobs does not hold, which rejects everything.
        """
        constant = (each for each in self._constraints if not each.names & set(self._space.names))
        is_allowed = all(evaluated(self._space, each, {}, 1).all() for each in constant)
        return Block(self.keys.root(), {}) if is_allowed else None

    def grown(self, depth: int, block: Block) -> Block:
        """Returns each partial configuration of a block extended by every allowed choice of the next knob.

        ``depth`` is the number of knobs that have a choice already.
        """
        step = self.steps[depth]
        allowed = np.ones((block.rows, step.choices), bool)
        for table in step.tables:
            allowed &= table.holds_for_each(block.picks, step.knob)
        rows, picks = np.nonzero(allowed)
        grown = block.of(rows)
        self.keys.chosen(grown.keys, step.knob, picks)
        grown.picks[step.knob] = picks.astype(self.keys.dtype)
        for rule in step.rules:
            grown = grown.of(np.flatnonzero(rule.holds(grown.picks)))
        return Block(grown.keys, {knob: grown.picks[knob] for knob in grown.picks.keys() & step.kept})

    def parts(self, depth: int, block: Block) -> Iterator[Block]:
        """Yields a block in parts, so that each has at most BLOCK_ROWS (65536) combinations in the next step.

        ``depth`` is the number of knobs that have a choice already.
        """
        choices = self.steps[depth].choices if depth < len(self.steps) else 1
        size = max(1, BLOCK_ROWS // choices)
        for start in range(0, block.rows, size):
            yield block.of(slice(start, start + size))


@dataclass(frozen=True, eq=False)
class Visited:
    """Part of the result of ``walked``: keys of complete configurations, which may be none, and a count.

    ``visits`` is how many partial configurations were visited since the part before.
    """

    keys: Keys
    visits: int


def walked(space: SearchSpace, constraints: tuple[Expression, ...]) -> Iterator[Visited]:
    """Yields the configurations that satisfy the constraints, in blocks, in no particular order.

    Between these blocks come empty ones, which report how many combinations were visited in a step.
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
    """Returns whether any configuration of the space satisfies the constraints.

    Raises UsageError when more than VISITS_LIMIT (2 billion) partial configurations were visited before that
    is known.
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
    """Returns the error message of a search that found nothing allowed in VISITS_LIMIT (2 billion) visits."""
    return (
        f"strategy {space.strategy}: no combination of {space.cartesian} was found to be allowed "
        f"after {VISITS_LIMIT} partial ones: add constraints over few knobs or values"
    )


def cartesian_blocks(space: SearchSpace) -> Iterator[Indices]:
    """Yields all combinations of the knobs' choices, allowed or not, in blocks.

    A block is an array (combinations, knobs) of choice indices.
    """
    keys = RowKeys(space)
    for start in range(0, space.cartesian, BLOCK_ROWS):
        flat = np.arange(start, min(start + BLOCK_ROWS, space.cartesian), dtype=np.uint64)
        yield keys.decode(flat[np.newaxis])


def cartesian_sample(space: SearchSpace, rows: int, rng: np.random.Generator) -> Indices:
    """Draws ``rows`` random combinations of the knobs' choices, allowed or not, with replacement.

    Returns an array (rows, knobs) of choice indices; each combination is equally likely.
    """
    keys = RowKeys(space)
    columns = [rng.integers(size, size=rows).astype(keys.dtype) for size in keys.sizes]
    return np.stack(columns, axis=1)


def first_violations(space: SearchSpace, blocks: Iterator[Indices]) -> npt.NDArray[np.int64]:
    """Counts for each constraint the combinations of which it is the first to be violated.

    ``blocks`` are arrays (combinations, knobs) of choice indices. The counts are in the order of the file.
    """
    rules = [Rule.of(space, constraint) for constraint in space.constraints]
    counts = np.zeros(len(rules) + 1, np.int64)
    for block in blocks:
        counts += np.bincount(_first_broken(rules, block), minlength=len(counts))
    return counts[:-1]


def first_broken_preference(space: SearchSpace, index: Indices) -> npt.NDArray[np.intp]:
    """Returns for each configuration the index of the first preference that it breaks.

    ``index`` is an array (configurations, knobs) of choice indices. The number of preferences stands for a
    configuration that breaks none.
    """
    rules = [Rule.of(space, preference) for preference in space.preferences]
    starts = range(0, max(1, len(index)), BLOCK_ROWS)
    return np.concatenate([_first_broken(rules, index[start : start + BLOCK_ROWS]) for start in starts])


def _first_broken(rules: list[Rule], block: Indices) -> npt.NDArray[np.intp]:
    """Returns for each row the index of the first rule that it breaks.

    Later rules are not evaluated on that row.
    """
    broken = np.full(len(block), len(rules), np.intp)
    left = np.arange(len(block))
    for place, rule in enumerate(rules):
        holds = np.broadcast_to(rule.holds({knob: block[left, knob] for knob in rule.knobs}), len(left))
        broken[left[~holds]] = place
        left = left[holds]
    return broken


def _ordered(
    space: SearchSpace, constraints: tuple[Expression, ...]
) -> list[tuple[int, tuple[Expression, ...]]]:
    """Orders the knobs so that constraints apply early: next, the knobs of the cheapest open constraint."""
    sizes = {knob.name: len(knob.choices) for knob in space.knobs}
    place = {name: number for number, name in enumerate(space.names)}
    open_constraints = [each for each in constraints if each.names & sizes.keys()]
    bound: set[str] = set()
    steps = []
    while len(bound) < len(sizes):
        for name in _next_knobs(open_constraints, sizes, bound):
            bound.add(name)
            ready = tuple(each for each in open_constraints if each.names & sizes.keys() <= bound)
            open_constraints = [each for each in open_constraints if each not in ready]
            steps.append((place[name], ready))
    return steps


def _next_knobs(constraints: list[Expression], sizes: dict[str, int], bound: set[str]) -> list[str]:
    """Returns the unbound knobs of the constraint with the fewest combinations, or all knobs without one."""
    missing = [sorted((each.names & sizes.keys()) - bound, key=sizes.__getitem__) for each in constraints]
    if not missing:
        return [name for name in sizes if name not in bound]
    return min(missing, key=lambda names: float(np.prod([float(sizes[name]) for name in names])))
