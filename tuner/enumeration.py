"""Constraint-ordered backtracking over blocks of rows: the feasible set without the cartesian product."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.errors import UsageError
from tuner.expression import Expression
from tuner.space import SearchSpace

Indices = npt.NDArray[np.int32]  # (rows, knobs): which choice of each knob

BLOCK_ROWS = 1 << 16  # rows expanded at once: bounds memory
ROWS_LIMIT = 4_000_000  # rows of a feasible set: a sampler holds some 100 bytes for each
VISITS_LIMIT = 200_000_000  # partial combinations looked at: some tens of seconds


@dataclass(frozen=True)
class _Step:
    """Binds one knob, then applies the constraints whose knobs are all bound."""

    knob: int
    constraints: tuple[Expression, ...]


def feasible(space: SearchSpace) -> Indices:
    """Returns the combinations that satisfy every constraint, the last knob varying fastest.

    Raises UsageError for a set that is too large to hold or to enumerate.
    """
    found: list[Indices] = []
    rows = 0
    for block in _blocks(space, space.constraints):
        found.append(block)
        rows += len(block)
        if rows > ROWS_LIMIT:
            raise UsageError(
                f"strategy {space.strategy}: found more than {ROWS_LIMIT} allowed combinations, allowed "
                f"{ROWS_LIMIT}: add constraints or give knobs fewer values"
            )
    index = np.concatenate([np.empty((0, len(space.knobs)), np.int32), *found])
    # lexsort takes the most significant key last; with no knobs there is at most one row
    return index[np.lexsort(index.T[::-1])] if space.knobs else index


def is_possible(space: SearchSpace, constraints: tuple[Expression, ...]) -> bool:
    """Returns whether some combination satisfies these constraints."""
    return next(_blocks(space, constraints), None) is not None


def cartesian_blocks(space: SearchSpace) -> Iterator[Indices]:
    """Yields every combination, allowed or not, in blocks."""
    shape = tuple(len(knob.choices) for knob in space.knobs)
    for start in range(0, space.cartesian, BLOCK_ROWS):
        flat = np.arange(start, min(start + BLOCK_ROWS, space.cartesian))
        if not shape:
            yield np.empty((len(flat), 0), np.int32)
            continue
        yield np.stack(np.unravel_index(flat, shape), axis=1).astype(np.int32)


def cartesian_sample(space: SearchSpace, rows: int, rng: np.random.Generator) -> Indices:
    """Draws combinations, allowed or not, each as likely as any other."""
    columns = [rng.integers(len(knob.choices), size=rows) for knob in space.knobs]
    return np.stack(columns, axis=1).astype(np.int32)


def first_violations(space: SearchSpace, block: Indices) -> npt.NDArray[np.int64]:
    """Counts per constraint the rows that it is the first, in file order, to reject."""
    counts = np.zeros(len(space.constraints), np.int64)
    for place, constraint in enumerate(space.constraints):
        holds = _holds(space, constraint, block, range(len(space.knobs)))
        counts[place] = np.count_nonzero(~holds)
        block = block[holds]
    return counts


def _blocks(space: SearchSpace, constraints: tuple[Expression, ...]) -> Iterator[Indices]:
    """Yields the rows that satisfy the constraints, in blocks, in no useful order; none is empty."""
    names = set(space.names)
    steps = _steps(space, constraints)
    root = np.zeros((1, len(space.knobs)), np.int32)
    constant = [each for each in constraints if not each.names & names]
    if not all(_holds(space, each, root, ()).all() for each in constant):
        return
    stack = [(0, root)]
    visits = 0
    while stack:
        depth, block = stack.pop()
        if depth == len(steps):
            yield block
            continue
        bound = [step.knob for step in steps[: depth + 1]]
        grown = _grow(space, steps[depth], block, bound)
        visits += len(block) * len(space.knobs[bound[-1]].choices)
        if visits > VISITS_LIMIT:
            raise UsageError(
                f"strategy {space.strategy}: found more than {VISITS_LIMIT} partial combinations of "
                f"{space.cartesian}, allowed {VISITS_LIMIT}: add constraints over few knobs or values"
            )
        next_choices = len(space.knobs[steps[depth + 1].knob].choices) if depth + 1 < len(steps) else 1
        stack += [(depth + 1, part) for part in _split(grown, next_choices)]


def _split(block: Indices, choices: int) -> list[Indices]:
    """Cuts rows into parts that stay within BLOCK_ROWS when each row gets every choice."""
    size = max(1, BLOCK_ROWS // choices)
    return [block[start : start + size] for start in range(0, len(block), size)]


def _grow(space: SearchSpace, step: _Step, block: Indices, bound: list[int]) -> Indices:
    """Gives every row every choice of one more knob, and keeps what the step's constraints allow."""
    choices = len(space.knobs[step.knob].choices)
    grown = np.repeat(block, choices, axis=0)
    grown[:, step.knob] = np.tile(np.arange(choices, dtype=np.int32), len(block))
    for constraint in step.constraints:
        grown = grown[_holds(space, constraint, grown, bound)]
    return grown


def _holds(
    space: SearchSpace, constraint: Expression, block: Indices, bound: range | list[int] | tuple[()]
) -> npt.NDArray[np.bool_]:
    """Evaluates a constraint on every row; only the bound knobs have a meaning."""
    values = dict(space.variables)
    columns = {
        knob.name: np.array(knob.choices)[block[:, place]]
        for place, knob in ((place, space.knobs[place]) for place in bound)
        if knob.name in constraint.names
    }
    truth = constraint.evaluate({**values, **columns})
    return np.broadcast_to(np.asarray(truth) != 0, (len(block),))


def _steps(space: SearchSpace, constraints: tuple[Expression, ...]) -> tuple[_Step, ...]:
    """Orders the knobs so that constraints apply early: next, those of the one that multiplies least."""
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
            steps.append(_Step(place[name], ready))
    return tuple(steps)


def _next_knobs(constraints: list[Expression], sizes: dict[str, int], bound: set[str]) -> list[str]:
    """Returns the unbound knobs of the cheapest constraint to complete, or all that no constraint names."""
    missing = [sorted((each.names & sizes.keys()) - bound, key=sizes.__getitem__) for each in constraints]
    if not missing:
        return [name for name in sizes if name not in bound]
    return min(missing, key=lambda names: float(np.prod([float(sizes[name]) for name in names])))
