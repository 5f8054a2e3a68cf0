"""The feasible set by constraint-ordered backtracking over blocks of rows, without the Cartesian product."""

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
    """Partial configurations: rows in which some knobs are chosen."""

    keys: Keys
    picks: dict[int, npt.NDArray[np.unsignedinteger]]  # chosen knobs that later constraints name

    @property
    def rows(self) -> int:
        """Returns the number of rows."""
        return len(self.keys[0])

    def of(self, rows: npt.NDArray[np.integer] | slice) -> "Block":
        """Returns a block of the selected rows."""
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
    """The order in which the knobs of a space are chosen, with one step per knob."""

    def __init__(self, space: SearchSpace, constraints: tuple[Expression, ...]) -> None:
        self.keys = RowKeys(space)
        self._space = space
        self._constraints = constraints

    @cached_property
    def steps(self) -> tuple[_Step, ...]:
        """Returns the steps; each constraint is applied as early as possible."""
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
        """Returns the block of one row with nothing chosen.

        None when a constraint without knobs rejects everything.
        """
        constant = (each for each in self._constraints if not each.names & set(self._space.names))
        is_allowed = all(evaluated(self._space, each, {}, 1).all() for each in constant)
        return Block(self.keys.root(), {}) if is_allowed else None

    def grown(self, depth: int, block: Block) -> Block:
        """Returns each row extended by every choice of one more knob that the constraints allow."""
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
        """Yields the block in parts that stay within BLOCK_ROWS when the next step extends them."""
        choices = self.steps[depth].choices if depth < len(self.steps) else 1
        size = max(1, BLOCK_ROWS // choices)
        for start in range(0, block.rows, size):
            yield block.of(slice(start, start + size))


@dataclass(frozen=True, eq=False)
class Visited:
    """Complete configurations, and how many partial ones were visited to find them."""

    keys: Keys
    visits: int


def walked(space: SearchSpace, constraints: tuple[Expression, ...]) -> Iterator[Visited]:
    """Yields the configurations that satisfy the constraints, in blocks, in no particular order.

    An empty block reports the visits since the previous block.
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

    Raises UsageError when VISITS_LIMIT is reached before that is known.
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
    """Returns the message for a space in which no configuration was found within VISITS_LIMIT."""
    return (
        f"strategy {space.strategy}: no combination of {space.cartesian} was found to be allowed "
        f"after {VISITS_LIMIT} partial ones: add constraints over few knobs or values"
    )


def cartesian_blocks(space: SearchSpace) -> Iterator[Indices]:
    """Yields every combination of choices, allowed or not, in blocks."""
    keys = RowKeys(space)
    for start in range(0, space.cartesian, BLOCK_ROWS):
        flat = np.arange(start, min(start + BLOCK_ROWS, space.cartesian), dtype=np.uint64)
        yield keys.decode(flat[np.newaxis])


def cartesian_sample(space: SearchSpace, rows: int, rng: np.random.Generator) -> Indices:
    """Draws combinations uniformly, with replacement, allowed or not."""
    keys = RowKeys(space)
    columns = [rng.integers(size, size=rows).astype(keys.dtype) for size in keys.sizes]
    return np.stack(columns, axis=1)


def first_violations(space: SearchSpace, blocks: Iterator[Indices]) -> npt.NDArray[np.int64]:
    """Counts for each constraint the rows that it is the first to reject, in the order of the file."""
    rules = [Rule.of(space, constraint) for constraint in space.constraints]
    counts = np.zeros(len(rules) + 1, np.int64)
    for block in blocks:
        counts += np.bincount(_first_broken(rules, block), minlength=len(counts))
    return counts[:-1]


def first_broken_preference(space: SearchSpace, index: Indices) -> npt.NDArray[np.intp]:
    """Returns for each row the index of the first preference that it breaks.

    Their number where it breaks none.
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
